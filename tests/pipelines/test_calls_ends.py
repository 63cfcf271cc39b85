"""How a call ends over parts that end slowly, and the next call over the same brain.

DESIGN invariant 10: a hang-up in any state ends every task, socket and timer of the call within two
seconds, whatever its parts do; the leak check of every test watches. Then the brain is as new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.calls import CallScript, Says, SpanVad, at, hold_call
from tests.support.timed import TimedModel, TimedTts, TimedVoice
from voxglove.adapters.models.scripted import Call as ToolUse
from voxglove.adapters.models.scripted import ScriptedModel, Text, say
from voxglove.adapters.stt.scripted import ScriptedStt, Spoken
from voxglove.adapters.transports.fixture import FixtureTransport
from voxglove.adapters.tts.scripted import ScriptedVoice, Timing
from voxglove.core.builder import Glove
from voxglove.core.cancel import CancelToken
from voxglove.core.messages import Message, MessagePatch
from voxglove.core.model import ModelRequest, ModelResult, Notify
from voxglove.core.stores.memory import MemoryStore
from voxglove.core.tool import Tool
from voxglove.media import brain, events
from voxglove.media.call import Call, CallPolicy
from voxglove.media.errors import MediaValueError
from voxglove.media.transport import CallInfo
from voxglove.pipelines import vocabulary as voc
from voxglove.pipelines.detectors.port import Decision, TurnQuery
from voxglove.pipelines.machine import MachineConfig
from voxglove.pipelines.pipeline import PipelineParts, VoicePipeline

SLOW_S = 30.0
REPLY = "alpha bravo charlie delta echo foxtrot golf hotel."


class SlowStt(ScriptedStt):
    async def aclose(self) -> None:
        await super().aclose()
        await asyncio.sleep(SLOW_S)


class SlowTts(TimedTts):
    async def aclose(self) -> None:
        await super().aclose()
        await asyncio.sleep(SLOW_S)


class SlowVoice(TimedVoice):
    def __call__(self) -> TimedTts:
        voice = SlowTts(timing=self.timing)
        self.made.append(voice)
        return voice


class SlowStore(MemoryStore):
    async def amend_message(self, message_id: str, patch: MessagePatch) -> Message:
        await asyncio.sleep(SLOW_S)
        return await super().amend_message(message_id, patch)


class SlowModel(TimedModel):
    """Takes its time to notice that it was cancelled."""

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        try:
            return await super().prompt(request, notify, token)
        finally:
            await asyncio.sleep(SLOW_S)


class SlowDetector:
    async def decide(self, query: TurnQuery) -> Decision:
        try:
            await asyncio.sleep(SLOW_S)
        finally:
            await asyncio.sleep(SLOW_S)
        return Decision(0, "late")


async def _slow_tool(value: object) -> str:
    try:
        await asyncio.sleep(SLOW_S)
    finally:
        await asyncio.sleep(SLOW_S)
    return "done"


TOOL = Tool(
    name="slow", description="slow", do=_slow_tool,
    json_schema={"type": "object", "properties": {}}, read_only=True,
)  # fmt: skip

SLOW: dict[str, Callable[[CallScript], None]] = {
    "recogniser": lambda script: setattr(script, "ear", SlowStt),
    "voice": lambda script: setattr(script, "voice", SlowVoice),
    "store": lambda script: setattr(script, "store", SlowStore()),
    "model": lambda script: setattr(script, "mind", SlowModel),
    "detector": lambda script: setattr(script, "detector", SlowDetector()),
    "tool": lambda script: setattr(script, "model", [say(Text("alpha bravo. "), ToolUse("slow"))]),
}
STATES = {
    "listening": 0.2,
    "user speaking": 0.7,
    "holding": 1.05,
    "thinking": 1.2,
    "speaking": 2.2,
    "paused": 2.65,
    "cut": 3.3,
    "second answer": 4.5,
}


def script_of(seconds: float) -> CallScript:
    return CallScript(
        caller=[Says(0.3, 0.9, "Hello?"), Says(2.5, 3.1, "Tell me more?")],
        model=[say(Text(REPLY, 90)), "echo.", "echo."],
        tools=[TOOL],
        tts_timing=Timing(word_ms=300, open_ms=50),
        seconds=seconds,
    )


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("part", [*SLOW, "all"])
async def test_a_hang_up_ends_slow_parts_within_two_seconds(part: str, state: str) -> None:
    script = script_of(STATES[state])
    for name, slow in SLOW.items():
        if part in (name, "all"):
            slow(script)
    async with asyncio.TaskGroup() as survivors:
        script.survivors = survivors
        held = await hold_call(script)
    assert held.took_to_end <= 2.0, held.told()
    assert held.reason == "hangup"
    assert isinstance(held.timeline[-1][1], events.CallEnded)
    assert held.agent.turn_queue.current_hold is None


# ---- the next call over the same brain


class Desk:
    """One brain for several calls, each with a caller who says "Hello?" at 0.3 s."""

    def __init__(self, connect: Callable[[], type[ScriptedStt]] = lambda: ScriptedStt) -> None:
        self.log: list[voc.TurnEvent] = []
        self.agent = Glove(model=ScriptedModel([REPLY] * 4)).build()
        self.brain = VoicePipeline(
            PipelineParts(
                agent=self.agent,
                stt=lambda: connect()([Spoken(at(0.3), at(0.9), "Hello?")], final_ms=100),
                tts=ScriptedVoice(timing=Timing(word_ms=300)),
                vad=lambda: SpanVad([(at(0.3), at(0.9), 0.9)]),
                echo_guard=False,
            ),
            MachineConfig(detector=False),
            record=self.log.append,
        )

    def call(self, seconds: float, policy: CallPolicy | None = None) -> tuple[Call, list[Told]]:
        """A fresh call, its line attached, and its timeline."""
        call = Call(self.brain, CallInfo(call_id="desk"), policy)
        told: list[Told] = []
        call.subscribe(lambda sample, event: told.append((sample, event)))
        call.attach(FixtureTransport(np.zeros(at(seconds), np.int16), hangup_after_s=0.0))
        return call, told


Told = tuple[int, events.CallEvent]


async def _remote(desk: Desk) -> str:
    return await desk.call(2.2)[0].run()


async def _ours(desk: Desk) -> str:
    call, _ = desk.call(9)
    asyncio.get_running_loop().call_later(2.2, call.hang_up)
    return await call.run()


async def _linger(desk: Desk) -> str:
    call, _ = desk.call(9, CallPolicy(linger_s=1))
    line = call.transport
    assert isinstance(line, FixtureTransport)
    line.fail_at(at(2.2))
    return await call.run()


async def _limit(desk: Desk) -> str:
    return await desk.call(9, CallPolicy(max_s=2.2))[0].run()


async def _cancelled(desk: Desk) -> str:
    try:
        async with asyncio.timeout(2.2):
            return await desk.call(9)[0].run()
    except TimeoutError:
        return "drain"


async def _broken(desk: Desk) -> str:
    """The brain's own task dies under the call, while frames go on coming."""
    call, _ = desk.call(9)

    def kill() -> None:
        brains = [t for t in asyncio.all_tasks() if t.get_name() == "call.brain"]
        brains[0].cancel()

    asyncio.get_running_loop().call_later(2.2, kill)
    return await call.run()


ENDS = {
    "remote_hangup": _remote,
    "hangup": _ours,
    "linger": _linger,
    "limit": _limit,
    "drain": _cancelled,
    "error": _broken,
}


@pytest.mark.parametrize("end", ENDS)
async def test_voice_row_005_a_brain_serves_the_next_call_after_any_end(end: str) -> None:
    desk = Desk()
    assert await ENDS[end](desk) == end
    first = len(desk.log)
    call, told = desk.call(6)
    # A command before the first frame belongs to the new timeline too.
    call_done: list[asyncio.Future[None]] = []
    loop = asyncio.get_running_loop()
    loop.call_soon(loop.call_soon, lambda: call_done.append(call.command(brain.Mute(on=False))))
    assert await call.run() == "remote_hangup"
    positions = [event.at for event in desk.log[first:]]
    assert positions == sorted(positions) and positions[0] == 0, positions[:5]
    turns = [(e.reason, e.text) for _, e in told if isinstance(e, events.Turn)]
    assert turns == [("question", "Hello?")], told
    answers = [e for _, e in told if isinstance(e, events.Transcript) and e.role == "assistant"]
    assert [answer.heard for answer in answers] == [REPLY]
    modes = [e.mode for _, e in told if isinstance(e, events.Mode)]
    assert modes == ["listening", "thinking", "speaking", "listening", "idle"]
    assert call_done and call_done[0].done()


async def test_a_brain_whose_recogniser_could_not_be_made_serves_the_next_call() -> None:
    made: list[int] = []

    def connect() -> type[ScriptedStt]:
        made.append(1)
        if len(made) == 1:
            raise OSError("no model file")
        return ScriptedStt

    desk = Desk(connect)
    assert await desk.call(3)[0].run() == "error"
    assert await desk.call(3)[0].run() == "remote_hangup"
    assert any(isinstance(event, voc.Words) for event in desk.log)


def test_a_config_that_contradicts_its_parts_is_refused() -> None:
    parts = Desk().brain._made_of
    with pytest.raises(MediaValueError, match="detector"):
        VoicePipeline(parts, MachineConfig(detector=True))


async def test_a_recogniser_that_contradicts_the_config_ends_the_call_at_once() -> None:
    class Continuous(ScriptedStt):
        continuous = True

    call, told = Desk(lambda: Continuous).call(3)
    assert await call.run() == "error"
    problems = [event.message for _, event in told if isinstance(event, events.Problem)]
    assert len(problems) == 1 and "continuous" in problems[0]
