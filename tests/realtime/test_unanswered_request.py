"""A request that the model answers by saying nothing must not take the answer to the next one."""

from __future__ import annotations

from tests.realtime.fault_matrix import Caller
from tests.realtime.sessions import built
from tests.simulators.gpt_live import gpt_live
from tests.simulators.realtime_script import Asked, Reply, Script
from voxglove.realtime.factory import create_realtime_adapter
from voxglove.realtime.session import RealtimeSession


def answer(asked: Asked) -> Reply:
    return Reply(text="hotel" if "speak" in asked.instruction else "")


async def test_gpt_live_answers_the_request_after_one_it_ignored() -> None:
    async with gpt_live(Script(answer=answer)) as server:
        adapter = create_realtime_adapter(
            "gpt-live", api_key="test-key", base_url=f"{server.origin}/v1"
        )
        session = RealtimeSession(built(), adapter=adapter)
        problems: list[str] = []
        session.on("problem", lambda problem: problems.append(problem.code))
        await session.start()
        try:
            caller = Caller(session)
            ignored = session.respond("be quiet")
            await caller.wait(11)
            assert ignored.done() and problems == ["ERR_REALTIME_NO_RESPONSE"]
            spoken = session.respond("speak")
            await caller.answered()
            assert spoken.done() and len(problems) == 1, "the speech answers the second request"
        finally:
            await session.stop()
