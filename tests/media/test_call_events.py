"""Each call event as a line of the timeline, against the table of CONTRACTS A."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from voxglove.media.events import (
    CallEnded,
    CallEvent,
    CallStarted,
    Compaction,
    EndReason,
    Inbox,
    InputGap,
    Interruption,
    LatencyPart,
    LineEvent,
    Metric,
    Mode,
    ModeName,
    Problem,
    Reconnected,
    Response,
    Slot,
    SlotRemoved,
    Tasks,
    Tool,
    ToolStatus,
    Transcript,
    Turn,
    Vad,
    to_line,
)
from voxglove.media.transport import LineState

CASES: list[tuple[CallEvent, dict[str, object]]] = [
    (
        CallStarted(
            call_id="c", line="ws", brain="cascade", agent="demo", stt="a", tts="b", model="m",
            clock="fast", costs={"stt": 0.25},
        ),
        {
            "type": "call_started", "v": 1, "call_id": "c", "line": "ws", "brain": "cascade",
            "agent": "demo", "stt": "a", "tts": "b", "model": "m", "clock": "fast",
            "costs": {"stt": 0.25},
        },
    ),
    (LineEvent(state="detached"), {"type": "line", "state": "detached"}),
    (Mode(mode="thinking", turn=2), {"type": "mode", "mode": "thinking", "turn": 2}),
    (InputGap(samples=960), {"type": "gap", "samples": 960}),
    (Vad(event="misfire", position=5), {"type": "vad", "event": "misfire", "position": 5}),
    (
        Transcript(role="user", text="hi", partial=True, start=10, end=20, turn=1),
        {
            "type": "transcript", "role": "user", "text": "hi", "partial": True, "start": 10,
            "end": 20, "source": "speech", "turn": 1,
        },
    ),
    (
        Transcript(
            role="assistant", text="one two", partial=False, heard="one", unheard="two",
            interrupted=True, estimated=False, turn=1, gen=4,
        ),
        {
            "type": "transcript", "role": "assistant", "text": "one two", "partial": False,
            "source": "speech", "heard": "one", "unheard": "two", "interrupted": True,
            "estimated": False, "turn": 1, "gen": 4,
        },
    ),
    (
        Turn(event="committed", reason="detector", text="hi", hold_ms=0, p=0.0),
        {
            "type": "turn", "event": "committed", "reason": "detector", "text": "hi",
            "hold_ms": 0, "p": 0.0,
        },
    ),
    (
        Turn(event="dropped", reason="empty", text=""),
        {"type": "turn", "event": "dropped", "reason": "empty", "text": ""},
    ),
    (Response(event="started"), {"type": "response", "event": "started"}),
    (
        Response(event="cut", out=0, text="one two", heard=""),
        {"type": "response", "event": "cut", "out": 0, "text": "one two", "heard": ""},
    ),
    (
        Interruption(event="cut", reason="stop_word", out=99),
        {"type": "interruption", "event": "cut", "reason": "stop_word", "out": 99},
    ),
    (
        Tool(event="started", id="t", name="book", input={"day": "Friday"}),
        {
            "type": "tool", "event": "started", "id": "t", "name": "book",
            "input": {"day": "Friday"},
        },
    ),
    (
        Tool(event="result", id="t", name="book", status="aborted", duration_ms=12.5),
        {
            "type": "tool", "event": "result", "id": "t", "name": "book", "status": "aborted",
            "duration_ms": 12.5,
        },
    ),
    (
        Tasks(tasks=({"id": "1", "content": "Look", "status": "pending"},)),
        {"type": "tasks", "tasks": [{"id": "1", "content": "Look", "status": "pending"}]},
    ),
    (Inbox(items=()), {"type": "inbox", "items": []}),
    (Compaction(event="start"), {"type": "compaction", "event": "start"}),
    (
        Compaction(event="end", status="aborted"),
        {"type": "compaction", "event": "end", "status": "aborted"},
    ),
    (
        Transcript(role="user", text="hi", partial=False, start=1, end=2, turn=1, message="m1"),
        {
            "type": "transcript", "role": "user", "text": "hi", "partial": False, "start": 1,
            "end": 2, "source": "speech", "turn": 1,
        },
    ),
    (
        Slot(id="s", renderer="form", input={"a": [1]}, strategy="push", tool_call_id="t"),
        {
            "type": "slot", "id": "s", "renderer": "form", "input": {"a": [1]},
            "strategy": "push", "tool_call_id": "t",
        },
    ),
    (SlotRemoved(id="s"), {"type": "slot_removed", "id": "s"}),
    (
        Metric(
            name="turn_latency", total_ms=300.0, turn=1,
            parts=(LatencyPart(name="turn", ms=300.0, setting="turn.hold_ms"),),
        ),
        {
            "type": "metric", "name": "turn_latency", "total_ms": 300.0, "turn": 1,
            "parts": [{"name": "turn", "ms": 300.0, "setting": "turn.hold_ms"}],
        },
    ),
    (Metric(name="loop_lag", value=0.0), {"type": "metric", "name": "loop_lag", "value": 0.0}),
    (
        Reconnected(
            restored=True, planned=False, attempt=1, lost_ms=0, replayed_ms=2_000, outage_ms=250
        ),
        {
            "type": "reconnected", "restored": True, "planned": False, "attempt": 1,
            "lost_ms": 0, "replayed_ms": 2_000, "outage_ms": 250,
        },
    ),
    (
        Problem(code="ERR_STT_CONNECTION", stage="stt", message="gone"),
        {
            "type": "problem", "code": "ERR_STT_CONNECTION", "stage": "stt", "message": "gone",
            "fatal": False,
        },
    ),
    (
        CallEnded(reason="linger", late=0, turns=3),
        {"type": "call_ended", "reason": "linger", "late": 0, "turns": 3},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("event", "line"), CASES, ids=lambda value: getattr(value, "type", None))
def test_line_has_the_fields_of_the_table_and_nothing_that_is_none(
    event: CallEvent, line: dict[str, object]
) -> None:
    made = to_line(32_000, event)
    assert made == {"t": 2.0, "at": 32_000, **line}
    assert json.loads(json.dumps(made)) == made


def test_every_event_type_is_in_the_table() -> None:
    assert {event.type for event, _ in CASES} == {kind.type for kind in CallEvent.__subclasses__()}


def test_time_is_the_position_at_16_khz() -> None:
    assert to_line(1, Mode(mode="idle"))["t"] == 1 / 16_000
    assert to_line(16_000 * 3_600, Mode(mode="idle"))["t"] == 3_600.0


def test_a_line_is_the_readers_own() -> None:
    costs = {"stt": 0.25}
    started = CASES[0][0]
    assert isinstance(started, CallStarted)
    line = to_line(0, started)
    assert line["costs"] == costs and line["costs"] is not started.costs


def test_names_are_those_of_the_contract() -> None:
    assert set(get_args(LineState)) == {"attached", "held", "detached", "closed"}
    assert set(get_args(ModeName)) == {"idle", "listening", "thinking", "speaking"}
    assert set(get_args(ToolStatus)) == {"success", "error", "aborted"}
    assert set(get_args(EndReason)) == {
        "hangup", "remote_hangup", "limit", "linger", "error", "drain",
    }  # fmt: skip
