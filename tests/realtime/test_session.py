"""The session's surface: a call from its first word to its last."""

from __future__ import annotations

from tests.realtime.sessions import built, held
from voxglove.adapters.errors import CredentialsRejected
from voxglove.realtime.scripted import Asked, Reply, ScriptedAdapter
from voxglove.realtime.session import RealtimeSession


async def test_a_spoken_turn_and_its_answer_reach_history_in_order() -> None:
    async with held(ScriptedAdapter(lambda asked: Reply(text=f"you said {asked.text}"))) as call:
        await call.silence(0.3)
        await call.talk("book a table")
        await call.rest(3)
        assert await call.texts() == [("user", "book a table"), ("agent", "you said book a table")]
        assert call.problems == []
    last = (await call.history())[-1]
    assert last.playback == "settled" and last.heard == "you said book a table"


async def test_states() -> None:
    async with held() as call:
        pass
    assert call.states == ["connecting", "open", "closed"]


async def test_an_expired_token_is_refreshed_once() -> None:
    expired, fresh = ScriptedAdapter(), ScriptedAdapter()
    expired.refuse(CredentialsRejected("ERR_REALTIME_AUTH", "the token has expired"))
    asked = 0

    async def refresh() -> ScriptedAdapter:
        nonlocal asked
        asked += 1
        return fresh

    session = RealtimeSession(built(), adapter=expired, refresh=refresh)
    await session.start()
    assert (session.state, asked, len(fresh.connections)) == ("open", 1, 1)
    await session.stop()


async def test_say() -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(text=f"{asked.by} {asked.text}")

    async with held(ScriptedAdapter(answer)) as call:
        await call.session.say("hello there")
        await call.rest(2)
        assert await call.texts() == [("user", "hello there"), ("agent", "text hello there")]
