"""Timelines as files, and the schema by which tests read them."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from tests.support.timeline_schema import SHAPES, faults, line_faults, read_timeline
from voxglove.media import events as call
from voxglove.pipelines.log import read_log
from voxglove.pipelines.machine import MachineConfig
from voxglove.pipelines.vocabulary import Tick, TurnEvent, Voice
from voxglove.web.timeline import TimelineFile, TurnLogFile

STARTED = call.CallStarted(
    call_id="c",
    line="fixture",
    brain="cascade",
    agent="demo",
    stt="whisper",
    tts="piper_onnx",
    model="demo",
    clock="fast",
    costs={"stt": 0.3},
)
ENDED = call.CallEnded(reason="hangup", late=0, turns=1)


def test_a_timeline_is_written_in_order_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "t.jsonl"
    file = TimelineFile(path)
    events = [STARTED, call.LineEvent(state="attached"), call.Response(event="audio", out=3, gen=1)]
    for at, event in enumerate([*events, ENDED]):
        file(at * 320, event)
    file.close()
    file.close()
    lines = read_timeline(path)
    assert faults(lines) == []
    assert [line["type"] for line in lines] == ["call_started", "line", "response", "call_ended"]
    assert lines[2] == {
        "t": 0.04,
        "at": 640,
        "type": "response",
        "gen": 1,
        "event": "audio",
        "out": 3,
    }


def test_what_was_answered_is_on_the_disk_before_the_call_is_over(tmp_path: Path) -> None:
    file = TimelineFile(tmp_path / "t.jsonl")
    file(0, STARTED)
    file(320, call.Response(event="ended", text="Bye."))
    assert [line["type"] for line in read_timeline(tmp_path / "t.jsonl")] == [
        "call_started",
        "response",
    ]
    file.close()


def test_values_without_a_json_form_are_written_as_text(tmp_path: Path) -> None:
    file = TimelineFile(tmp_path / "t.jsonl")
    file(0, call.Tool(event="started", id="1", name="book", input={"where": Path("a")}))
    file.close()
    assert read_timeline(tmp_path / "t.jsonl")[0]["input"] == {"where": "a"}


def test_a_turn_log_reads_back_as_its_events(tmp_path: Path) -> None:
    events: list[TurnEvent] = [
        Tick(at=320, prob=0.5, level=0.1),
        Voice(at=640, kind="start", position=320),
    ]
    file = TurnLogFile(tmp_path / "r.jsonl")
    file.begin(MachineConfig())
    for event in events:
        file(event)
    file.close()
    config, read = read_log(map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines()))
    assert (config, list(read)) == (MachineConfig(), events)


def test_a_file_that_cannot_be_made_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory"):
        TimelineFile(tmp_path)


# ---- the schema itself


def test_the_schema_knows_every_event_and_no_other() -> None:
    kinds = [kind for kind in call.CallEvent.__subclasses__()]
    assert {kind.type for kind in kinds} == set(SHAPES)
    for kind in kinds:
        shape = SHAPES[kind.type]
        told = {one.name for one in fields(kind) if "here" not in one.metadata}
        assert told - {"turn", "gen"} == {*shape.must, *shape.may}, kind.type


def test_end_reasons_of_the_schema_are_those_of_the_package() -> None:
    reasons = get_args(call.EndReason)
    assert all(SHAPES["call_ended"].must["reason"](reason) for reason in reasons)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"type": "mood"}, "type 'mood' stands nowhere"),
        ({"type": "mode"}, "mode has no mode"),
        ({"type": "mode", "mode": "paused"}, "mode.mode is 'paused'"),
        ({"type": "mode", "mode": "idle", "colour": 1}, "mode.colour is not in the contract"),
        ({"type": "mode", "mode": "idle", "t": 1.0}, "t 1.0 is not at 0"),
        ({"type": "gap", "samples": -1}, "gap.samples is -1"),
        ({"type": "problem", "code": "E", "stage": "s", "message": "", "fatal": False}, "code"),
        ({"type": "response", "event": "ended"}, "response ended has no text"),
        ({"type": "tool", "event": "result", "id": "1", "name": "n"}, "tool result has no status"),
        ({"type": "metric", "name": "turn_latency", "total_ms": 3, "parts": []}, "parts sum to 0"),
        ({"type": "tasks", "tasks": [{"id": "1"}]}, "tasks.tasks is"),
        ({"type": "inbox", "items": "none"}, "inbox.items is"),
        ({"type": "compaction", "event": "end"}, "status at its end"),
        ({"type": "compaction", "event": "start", "status": "ok"}, "status at its end"),
    ],
)
def test_the_schema_refuses(line: dict[str, object], says: str) -> None:
    found = line_faults({"t": 0.0, "at": 0, **line})
    assert any(says in fault for fault in found), found


def test_the_schema_refuses_a_wrong_order() -> None:
    first, last = call.to_line(0, STARTED), call.to_line(320, ENDED)
    middle = call.to_line(640, call.Response(event="ended", text="", gen=1))
    assert faults([first, last]) == []
    assert any("first" in fault for fault in faults([last]))
    assert any("last" in fault for fault in faults([first]))
    assert any("backwards" in fault for fault in faults([first, middle, last]))
    assert any("more than once" in fault for fault in faults([first, middle, middle, last]))
