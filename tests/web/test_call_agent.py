"""An agent on a call: slots and tools become events, goodbyes hang up, growing answers show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.web.echo import EchoBrain
from voxglove.core.builder import Glove
from voxglove.core.events import (
    ModelResponseComplete,
    RequestEnded,
    RequestStarted,
    TextDelta,
    ToolStarted,
    ToolUseResult,
)
from voxglove.core.messages import ToolResultData
from voxglove.core.model import Model
from voxglove.media.call import Call, CallPolicy
from voxglove.media.errors import Unsupported
from voxglove.media.events import (
    CallEvent,
    Interruption,
    Mode,
    Response,
    Slot,
    SlotRemoved,
    Tool,
    Vad,
)
from voxglove.media.transport import CallInfo
from voxglove.web.call_agent import (
    QUIET_S,
    CallReporter,
    LineTools,
    LiveText,
    agent_info,
    answer_to,
    bound,
)
from voxglove.web.wire import Reject, Resolve


@asynccontextmanager
async def live() -> AsyncIterator[tuple[Call, list[CallEvent]]]:
    info = CallInfo(call_id="c", line="websocket", peer="p", agent="demo")
    call = Call(EchoBrain(), info, CallPolicy(linger_s=500))
    events: list[CallEvent] = []
    call.subscribe(lambda at, event: events.append(event))
    async with asyncio.TaskGroup() as group:
        group.create_task(call.run())
        await asyncio.sleep(0.01)
        yield call, events
        call.hang_up()


class NoModel:
    """Never asked in these tests."""

    name = "none"


def agent_of() -> Glove:
    model: Model = NoModel()  # type: ignore[assignment]
    return Glove(model=model)


async def test_slots_and_answers_cross_both_ways() -> None:
    async with live() as (call, events):
        agent = agent_of().build()
        async with bound(agent, call, has_display=True), asyncio.TaskGroup() as group:
            asked = group.create_task(agent.display.push_and_wait("generic", {"a": 1}))
            await asyncio.sleep(0.01)
            (slot,) = [event for event in events if isinstance(event, Slot)]
            answer = answer_to(agent)
            assert not answer(Resolve("slot_99", True))
            assert answer(Resolve(slot.id, "yes"))
            assert await asked == "yes"
            shown = agent.display.push_and_forget("generic")
            assert answer(Reject(shown, "no"))
        assert [event.id for event in events if isinstance(event, SlotRemoved)] == [slot.id, shown]
        assert not agent.display.has_audience, "nothing of the call is left on the agent"


async def test_without_a_display_nobody_is_shown_a_slot() -> None:
    async with live() as (call, events):
        agent = agent_of().build()
        async with bound(agent, call, has_display=False):
            assert not agent.display.has_audience
            agent.display.push_and_forget("generic")
        assert not [event for event in events if isinstance(event, Slot)]


async def test_words_are_shown_before_the_tool_that_follows_them() -> None:
    async with live() as (call, events):
        agent = agent_of().build()
        order: list[object] = []
        call.subscribe(lambda at, event: order.append(type(event).__name__))
        async with agent.running(), bound(agent, call, has_display=False) as told:
            told.live_text.show = order.append
            agent.notify_subscribers(RequestStarted(user_message_id=None))
            agent.notify_subscribers(TextDelta(text="Wait.", message_id="m"))
            agent.notify_subscribers(ModelResponseComplete(text="Wait.", message_id="m"))
            agent.notify_subscribers(ToolStarted(call_id="1", tool_name="book", input={}))
            await asyncio.sleep(0.01)
        assert order == ["Wait.", "Wait.", "Tool"]


def test_tools_are_told_once_started_and_once_ended() -> None:
    told: list[CallEvent] = []
    reporter = CallReporter(told.append)
    reporter.record(ToolStarted(call_id="1", tool_name="book", input={"for": 2}))
    result = ToolResultData("error", None)
    reporter.record(ToolUseResult(call_id="1", tool_name="book", result=result, duration_ms=5.0))
    reporter.record(TextDelta(text="x"))
    assert told == [
        Tool(event="started", id="1", name="book", input={"for": 2}),
        Tool(event="result", id="1", name="book", status="error", duration_ms=5.0),
    ]


async def test_a_goodbye_hangs_up_when_it_was_heard() -> None:
    async with live() as (call, _):
        tools = LineTools(lambda: call)
        await tools.hang_up_after_playout("done")
        call.emit(Mode(mode="speaking"))
        await asyncio.sleep(5)
        assert call.ended is None
        call.emit(Mode(mode="listening"))
        await asyncio.sleep(QUIET_S / 2)
        assert call.ended is None
        await asyncio.sleep(QUIET_S)
        assert call.ended == "hangup"


@pytest.mark.parametrize(
    "again",
    [Vad(event="confirmed", position=0), Interruption(event="cut", reason="words", out=0)],
)
async def test_field_041_a_caller_who_speaks_again_keeps_the_line(again: CallEvent) -> None:
    async with live() as (call, _):
        tools = LineTools(lambda: call)
        await tools.hang_up_after_playout("done")
        call.emit(Mode(mode="speaking"))
        call.emit(again)
        call.emit(Mode(mode="listening"))
        await asyncio.sleep(60)
        assert call.ended is None
        await tools.hang_up_after_playout("really")
        call.emit(Mode(mode="listening"))
        await asyncio.sleep(1)
        assert call.ended == "hangup"


async def test_a_cough_after_the_goodbye_delays_it_only() -> None:
    async with live() as (call, _):
        await LineTools(lambda: call).hang_up_after_playout("done")
        call.emit(Mode(mode="listening"))
        call.emit(Vad(event="start", position=0))
        await asyncio.sleep(1)
        assert call.ended is None
        call.emit(Vad(event="misfire", position=0))
        await asyncio.sleep(1)
        assert call.ended == "hangup"


async def test_a_goodbye_that_never_sounds_ends_the_call_all_the_same() -> None:
    async with live() as (call, _):
        await LineTools(lambda: call).hang_up_after_playout("done")
        await asyncio.sleep(31)
        assert call.ended == "hangup"


async def test_a_browser_cannot_be_transferred() -> None:
    async with live() as (call, _):
        with pytest.raises(Unsupported, match="transfer"):
            await LineTools(lambda: call).transfer("+1")


async def test_growing_text_is_shown_some_times_a_second_and_at_the_end() -> None:
    shown: list[str] = []
    text = LiveText()
    text.show = shown.append
    text.record(RequestStarted(user_message_id="u1", run_id="r1"))
    for word in ("Your ", "table ", "is ", "booked."):
        text.record(TextDelta(text=word, run_id="r1", message_id="m1"))
    text.record(TextDelta(text="secret summary", run_id="r1", phase="compaction"))
    text.record(TextDelta(text="Bye.", run_id="r1", message_id="m2"))
    text.record(RequestEnded(run_id="r1", status="ok"))
    await asyncio.sleep(1)
    text.record(RequestStarted(user_message_id="u2", run_id="r2"))
    text.record(TextDelta(text="Next", run_id="r2", message_id="m3"))
    assert shown == ["Your ", "Your table is booked. Bye.", "Next"]


async def test_late_words_of_a_cut_answer_are_not_the_next_ones() -> None:
    """An agent's events are delivered a step after the call's."""
    shown: list[str] = []
    text = LiveText()
    text.show = shown.append
    text.record(RequestStarted(user_message_id="u1", run_id="r1"))
    text.on_event(0, Response(event="started", turn=2))
    text.record(TextDelta(text="Old", run_id="r1", message_id="m1"))
    text.record(RequestEnded(run_id="r1", status="aborted"))
    text.record(RequestStarted(user_message_id="u2", run_id="r2"))
    text.record(TextDelta(text="Late", run_id="r1", message_id="m1"))
    assert shown == []
    text.record(TextDelta(text="New", run_id="r2", message_id="m2"))
    assert shown == ["New"]


def test_a_factory_is_told_who_calls() -> None:
    info = agent_info(CallInfo(call_id="c", line="websocket", peer="p"), has_display=True)
    assert (info.call_id, info.line, info.caller, info.has_display) == ("c", "websocket", "p", True)
