"""The scripted provider behaves as its port says, in a provider's order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from voxglove.adapters.errors import ConnectionFailed
from voxglove.core.messages import ToolCall
from voxglove.realtime.commands import (
    AppendContext,
    CommitTurn,
    CutOutput,
    RequestResponse,
    SendAudio,
    SendText,
    SendToolResults,
    SpeechBoundary,
    Summarise,
    ToolOutput,
)
from voxglove.realtime.events import (
    LOST,
    Audio,
    Closed,
    GoAway,
    Interrupted,
    ItemDone,
    Opened,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    Resumable,
    Summary,
    ToolCalls,
    Used,
    UserSpeech,
    UserTurn,
    Words,
)
from voxglove.realtime.port import Setup
from voxglove.realtime.scripted import (
    ABLE,
    Asked,
    Reply,
    ScriptedAdapter,
    ScriptedConnection,
)

RATE = ABLE.input_format.rate
LONG = "one two three four five six seven eight nine ten"
"""2.4 s of speech, 0.6 s of time."""


@dataclass
class Talk:
    """A connection and what it reported, each event with its time."""

    connection: ScriptedConnection
    told: list[tuple[float, RealtimeEvent]] = field(default_factory=list)

    @property
    def events(self) -> list[RealtimeEvent]:
        return [event for _, event in self.told]

    @property
    def kinds(self) -> list[str]:
        """Names of the events, a run of the same as one."""
        names = [type(event).__name__ for event in self.events]
        return [name for at, name in enumerate(names) if not at or names[at - 1] != name]

    async def hear(self, seconds: float, *, loud: bool) -> None:
        """The caller, in real time."""
        frame = np.full(RATE // 50, 3_000 if loud else 0, "<i2").tobytes()
        for _ in range(round(seconds * 50)):
            self.connection.tell(SendAudio(frame))
            await asyncio.sleep(0.02)


@asynccontextmanager
async def talking(adapter: ScriptedAdapter, setup: Setup | None = None) -> AsyncIterator[Talk]:
    told: list[tuple[float, RealtimeEvent]] = []
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        connection = await adapter.connect(
            setup or Setup(instructions=""),
            lambda event: told.append((loop.time(), event)),
            group,
        )
        yield Talk(connection, told)
        await connection.close()
    assert [type(event) for _, event in told].count(Closed) == 1
    assert isinstance(told[-1][1], Closed)


ANSWER = ["ResponseStarted", "Words", "Audio", "Words", "ItemDone", "ResponseDone"]


async def test_a_turn_is_heard_by_its_energy_and_answered() -> None:
    adapter = ScriptedAdapter(read=lambda pcm, rate: f"{len(pcm) / 2 / rate:.2f} seconds")
    async with talking(adapter) as talk:
        await talk.hear(0.3, loud=False)
        await talk.hear(1, loud=True)
        await talk.hear(1.5, loud=False)
        assert talk.kinds == [
            "Opened",
            "UserSpeech",
            "UserTurn",
            "Words",
            *ANSWER,
            "Used",
            "Resumable",
        ]
        assert UserSpeech("started", "user-1-1", 300) in talk.events
        assert UserTurn("user-1-1", 300, 1_300) in talk.events
        assert Words("user", "user-1-1", "1.00 seconds", True, 300, 1_300) in talk.events
        assert Words("assistant", "item-1-1", "1.00 seconds", True) in talk.events


async def test_speech_goes_out_faster_than_real_time() -> None:
    async with talking(ScriptedAdapter(speed=4.0)) as talk:
        talk.connection.tell(SendText(LONG))
        await asyncio.sleep(5)
        times = [at for at, event in talk.told if isinstance(event, Audio)]
        sound = b"".join(event.pcm for event in talk.events if isinstance(event, Audio))
        assert len(sound) == 10 * 0.24 * RATE * 2
        assert times[-1] - times[0] == pytest.approx((2.4 - 0.1) / 4)


async def test_a_script_may_say_what_is_said_when() -> None:
    async with talking(ScriptedAdapter()) as talk:
        talk.connection.user_says("hello there", 200, 600)
        talk.connection.user_says("and again", 2_000, 2_400)
        await talk.hear(4, loud=True)
        turns = [event for event in talk.events if isinstance(event, UserTurn)]
        assert turns == [UserTurn("user-1-1", 200, 600), UserTurn("user-1-2", 2_000, 2_400)]
        words = [w.text for w in talk.events if isinstance(w, Words) and w.role == "user"]
        assert words == ["hello there", "and again"]


async def test_the_host_ends_turns_where_the_setup_says_so() -> None:
    adapter = ScriptedAdapter()
    async with talking(adapter, Setup(instructions="", manual_turns=True)) as talk:
        await talk.hear(1, loud=True)
        await talk.hear(2, loud=False)
        assert talk.events == [Opened("session-1")]
        talk.connection.tell(SpeechBoundary(True))
        await talk.hear(1, loud=True)
        talk.connection.tell(CommitTurn())
        talk.connection.tell(CommitTurn())
        await asyncio.sleep(1)
        turns = [event for event in talk.events if isinstance(event, UserTurn)]
        assert [(turn.start_ms, turn.end_ms) for turn in turns] == [(3_000, 4_000)]


@pytest.mark.parametrize("interruption", [True, False])
async def test_the_caller_interrupts_unless_that_is_off(interruption: bool) -> None:
    adapter = ScriptedAdapter(speed=1)
    async with talking(adapter, Setup(instructions="", interruption=interruption)) as talk:
        talk.connection.tell(SendText(LONG))
        await asyncio.sleep(1)
        await talk.hear(0.2, loud=True)
        assert (Interrupted("item-1-1") in talk.events) == interruption
        assert (ResponseDone("response-1-1", "cancelled") in talk.events) == interruption
        await asyncio.sleep(3)
        if not interruption:
            assert ResponseDone("response-1-1") in talk.events


@pytest.mark.parametrize("cancel", [True, False])
async def test_a_cut_is_answered_once_and_ends_the_response_if_it_may(cancel: bool) -> None:
    async with talking(ScriptedAdapter(speed=1)) as talk:
        talk.connection.tell(SendText(LONG))
        await asyncio.sleep(1)
        talk.connection.tell(CutOutput({"item-1-1": 500}, cancel))
        await asyncio.sleep(5)
        assert talk.events.count(Interrupted("item-1-1")) == 1
        [done] = [event for event in talk.events if isinstance(event, ResponseDone)]
        assert done.status == ("cancelled" if cancel else "completed")
        assert talk.events.count(ItemDone("item-1-1")) == 1


async def test_calls_wait_for_their_results_and_requests_for_their_turn() -> None:
    call = ToolCall("look_up", {"id": 3}, "call-1")

    def answer(asked: Asked) -> Reply:
        if asked.by == "text":
            return Reply(text="one moment", calls=(call,))
        return Reply(text=asked.instruction or asked.results["call-1"])

    async with talking(ScriptedAdapter(answer)) as talk:
        talk.connection.tell(SendText("where is it"))
        talk.connection.tell(RequestResponse("greet", "ask-1"))
        await asyncio.sleep(3)
        talk.connection.tell(SendToolResults((ToolOutput("call-1", "look_up", "in Rome"),)))
        await asyncio.sleep(3)
        started = [event for event in talk.events if isinstance(event, ResponseStarted)]
        assert [event.request_id for event in started] == ["", "ask-1", ""]
        assert ToolCalls("response-1-1", (call,)) in talk.events
        said = [w.text for w in talk.events if isinstance(w, Words) and w.final]
        assert said == ["one moment", "greet", "in Rome"]


async def test_what_asks_for_no_answer_gets_none() -> None:
    async with talking(ScriptedAdapter()) as talk:
        silent = (
            AppendContext("a"),
            SendText("b", respond=False),
            SendToolResults((ToolOutput("c", "d", "e"),), respond=False),
        )
        for command in silent:
            talk.connection.tell(command)
        await asyncio.sleep(3)
        assert talk.events == [Opened("session-1")]
        assert tuple(talk.connection.commands) == silent


async def test_a_summary_is_written_out_of_band() -> None:
    async with talking(ScriptedAdapter()) as talk:
        talk.connection.tell(Summarise("sum-1", "briefly"))
        [summary] = [event for event in talk.events if isinstance(event, Summary)]
        assert summary.request_id == "sum-1" and summary.text


async def test_a_drop_closes_what_is_open_and_nothing_comes_after() -> None:
    async with talking(ScriptedAdapter(speed=1)) as talk:
        talk.connection.tell(SendText(LONG))
        await asyncio.sleep(1)
        talk.connection.drop("1011", "internal")
        talk.connection.tell(SendText("late"))
        await asyncio.sleep(5)
        assert talk.events[-3:] == [
            ItemDone("item-1-1"),
            ResponseDone("response-1-1", "cancelled", LOST),
            Closed("1011", "internal"),
        ]


async def test_it_can_fall_silent_and_go_away() -> None:
    async with talking(ScriptedAdapter()) as talk:
        talk.connection.go_away(10)
        talk.connection.silent = True
        talk.connection.tell(SendText("hello"))
        await asyncio.sleep(9)
        assert talk.events == [Opened("session-1"), GoAway(10)]
        await asyncio.sleep(2)
        assert isinstance(talk.events[-1], Closed)


async def test_handles_restore_until_they_expire() -> None:
    adapter = ScriptedAdapter()
    async with talking(adapter) as talk:
        handle = talk.connection.give_handle()
        assert Resumable(handle) in talk.events
    async with talking(adapter, Setup(instructions="", resume_handle=handle)) as talk:
        assert talk.events == [Opened("session-2", resumed=True)]


async def test_refusals_come_one_for_each_connect() -> None:
    adapter = ScriptedAdapter()
    adapter.refuse(ConnectionFailed("1006", "away"))
    async with asyncio.TaskGroup() as group:
        with pytest.raises(ConnectionFailed, match="away"):
            await adapter.connect(Setup(instructions=""), lambda event: None, group)
    async with talking(adapter) as talk:
        assert talk.events == [Opened("session-1")]
    assert len(adapter.setups) == 2 and len(adapter.connections) == 1


@pytest.mark.parametrize("usage", ["tokens", "duration"])
async def test_the_last_word_is_the_count(usage: str) -> None:
    able = replace(ABLE, usage="duration") if usage == "duration" else ABLE
    async with talking(ScriptedAdapter(capabilities=able)) as talk:
        await talk.hear(2, loud=False)
    used = talk.events[-2]
    assert isinstance(used, Used) and used.final
    assert used.seconds == (2.0 if usage == "duration" else None)
    assert talk.events[-1] == Closed("1000", clean=True)
