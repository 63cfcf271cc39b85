"""The two tables between `/ws` and the brain: what is asked, and what is told."""

from __future__ import annotations

import json

import pytest

from voxglove.media.brain import ClientBargeIn, Commit, Interrupt, Mute, PushToTalk, Say
from voxglove.media.events import (
    CallEnded,
    CallEvent,
    Compaction,
    Inbox,
    InputGap,
    Interruption,
    LatencyPart,
    Metric,
    Mode,
    Problem,
    Response,
    Slot,
    SlotRemoved,
    Tasks,
    Tool,
    Transcript,
    Turn,
    Vad,
)
from voxglove.media.transport import Image
from voxglove.web import wire

ASKED = [
    ({"t": "say", "text": "hi"}, Say("hi")),
    ({"t": "say", "text": "hi", "speaker": "user"}, Say("hi")),
    ({"t": "mute", "on": True}, Mute(True)),
    ({"t": "ptt", "down": False}, PushToTalk(False)),
    ({"t": "commit"}, Commit()),
    ({"t": "interrupt"}, Interrupt()),
    ({"t": "barge_in"}, ClientBargeIn()),
    ({"t": "resolve", "id": "s", "value": [1]}, wire.Resolve("s", [1])),
    ({"t": "reject", "id": "s"}, wire.Reject("s", "rejected")),
    ({"t": "reject", "id": "s", "reason": "no"}, wire.Reject("s", "no")),
    ({"t": "playback_done", "turnId": 1}, None),
    ({"t": "speaker", "speaker": "user"}, None),
]


@pytest.mark.parametrize(("message", "asked"), ASKED, ids=lambda value: str(value)[:30])
def test_what_a_message_asks_for(message: dict[str, object], asked: object) -> None:
    assert wire.to_request(message) == asked


def kinds(event: CallEvent) -> list[object]:
    return [message["t"] for message in wire.ServerWire().encode(0, event, 0)]


TOLD = [
    (Mode(mode="thinking"), ["state"]),
    (Transcript(role="user", text="a", partial=True), ["partial"]),
    (Transcript(role="user", text="a", partial=False), ["utterance"]),
    (Transcript(role="assistant", text="a", partial=True), ["speech"]),
    (Transcript(role="assistant", text="a", partial=False, heard="a", unheard=""), ["heard"]),
    (Transcript(role="assistant", text="a", partial=False, source="narration"), ["speech"]),
    (Response(event="started"), ["event"]),
    (Response(event="audio", out=3), ["event"]),
    (Response(event="ended"), ["speech_end", "event"]),
    (Response(event="cut", out=3), ["speech_end", "event"]),
    (Slot(id="s", renderer="generic", input={}, strategy="stay"), ["slot"]),
    (SlotRemoved(id="s"), ["slot_removed"]),
    (Metric(name="m", value=1.0), ["metric"]),
    (Problem(code="ERR_X", stage="stt", message="m"), ["error"]),
    (Interruption(event="paused", reason="voice", out=0), ["event"]),
    (Interruption(event="cut", reason="words", out=0), ["event"]),
    (Tool(event="started", id="1", name="n", input={}), ["event"]),
    (Turn(event="committed", reason="r", text="t"), ["event"]),
    (Vad(event="start", position=0), ["event"]),
    (InputGap(samples=5), ["event"]),
    (Tasks(tasks=()), ["event"]),
    (Inbox(items=()), ["event"]),
    (Compaction(event="start"), ["event"]),
    (CallEnded(reason="hangup", late=0, turns=0), []),
]


@pytest.mark.parametrize(("event", "told"), TOLD, ids=lambda value: str(value)[:40])
def test_what_an_event_tells(event: CallEvent, told: list[str]) -> None:
    assert kinds(event) == told


def test_messages_carry_the_fields_of_the_contract() -> None:
    words = Transcript(
        role="assistant",
        text="Hello there",
        partial=False,
        heard="Hello",
        unheard=" there",
        interrupted=True,
        turn=4,
    )
    (heard,) = wire.ServerWire().encode(0, words, 0)
    assert heard == {
        "t": "heard",
        "turnId": 4,
        "heard": "Hello",
        "unheard": " there",
        "interrupted": True,
    }
    (end, line) = wire.ServerWire().encode(16_000, Response(event="ended", turn=4), 77)
    assert end == {"t": "speech_end", "turnId": 4, "pos": 77}
    assert line == {
        "t": "event",
        "event": {"t": 1.0, "at": 16_000, "type": "response", "event": "ended", "turn": 4},
    }
    part = LatencyPart(name="stt", ms=5.0, setting="stt.model")
    metric = Metric(name="turn_latency", total_ms=5.0, parts=(part,), turn=4)
    (told,) = wire.ServerWire().encode(0, metric, 0)
    assert told == {
        "t": "metric",
        "name": "turn_latency",
        "turn": 4,
        "total_ms": 5.0,
        "parts": [{"name": "stt", "ms": 5.0, "setting": "stt.model"}],
    }
    json.dumps(told)


def test_muted_is_a_state_of_listening_only() -> None:
    server = wire.ServerWire()
    assert server.muted(True)[0]["state"] == "muted"
    states = [server.encode(0, Mode(mode=mode), 0)[0]["state"] for mode in ("speaking", "idle")]
    assert states == ["speaking", "muted"]
    assert server.muted(False)[0]["state"] == "listening"


def test_a_client_that_comes_back_is_told_mode_and_open_slots() -> None:
    server = wire.ServerWire()
    server.encode(0, Mode(mode="thinking"), 0)
    for name in ("a", "b"):
        slot = Slot(id=name, renderer="generic", input={}, strategy="stay", tool_call_id="c")
        server.encode(0, slot, 0)
    server.encode(0, SlotRemoved(id="a"), 0)
    state, slot_b = server.snapshot()
    assert state["state"] == "thinking"
    assert (slot_b["t"], slot_b["id"], slot_b["tool_call_id"]) == ("slot", "b", "c")


def test_a_client_that_comes_back_is_told_how_the_agent_stands() -> None:
    """Also that the plan is empty again: the page may remember another."""
    server = wire.ServerWire()
    assert len(server.snapshot()) == 1, "nothing of it was ever told"
    for event in (Tasks(tasks=({"id": "1"},)), Compaction(event="start"), Tasks(tasks=())):
        server.encode(16_000, event, 0)
    _, tasks, compaction = server.snapshot()
    line = {"t": 1.0, "at": 16_000, "type": "tasks", "tasks": []}
    assert tasks == {"t": "event", "event": line, "again": True}
    assert compaction["event"]["event"] == "start"  # type: ignore[index]
    (told,) = server.encode(16_000, Tasks(tasks=()), 0)
    assert "again" not in told


def test_a_tool_is_told_with_the_words_written_before_it() -> None:
    """They may sound later; a page keeps their place. Counted as a page counts."""
    server = wire.ServerWire()
    server.encode(0, Response(event="started", turn=3), 0)
    started = Tool(event="started", id="1", name="n", input={})
    assert "behind" not in server.encode(0, started, 0)[0]
    server.words("Wait \U0001f600 ", 0)
    (told,) = server.encode(0, started, 0)
    assert told["behind"] == {"turnId": 3, "chars": 7}
    result = Tool(event="result", id="1", name="n", status="success")
    assert "behind" not in server.encode(0, result, 0)[0]


def test_ready_names_the_inbox_only_where_a_page_may_answer_it() -> None:
    told = [
        wire.ready(call_id="c", token="t", epoch=0, assistant="A", resumed=False, inbox=inbox)
        for inbox in (True, False)
    ]
    assert [one.get("inbox") for one in told] == ["/sessions/c/inbox", None]


def test_pause_and_resume_only_after_a_barge_in_and_each_once() -> None:
    server = wire.ServerWire()
    paused = Interruption(event="paused", reason="voice", out=0)
    resumed = Interruption(event="resumed", reason="misfire", out=0)

    def reflex(event: CallEvent) -> list[object]:
        told = server.encode(0, event, 0)
        return [message["t"] for message in told if message["t"] != "event"]

    assert reflex(paused) == reflex(resumed) == []
    server.barge_in()
    assert reflex(paused) == ["pause"]
    assert reflex(resumed) == ["resume"]
    assert reflex(resumed) == []
    assert server.barge_in_settled() == []


def test_voice_row_029_a_barge_in_that_changed_nothing_is_answered_by_resume() -> None:
    server = wire.ServerWire()
    server.barge_in()
    assert server.barge_in_settled() == [{"t": "resume"}]
    assert server.barge_in_settled() == []


def test_a_growing_answer_is_shown_from_its_first_sound_to_its_end() -> None:
    server = wire.ServerWire()
    assert server.words("stray", 0) == []
    server.encode(0, Response(event="started", turn=2), 0)
    assert server.words("Hello", 9) == [], "it may be cut before anybody hears it"
    shown = {"t": "speech", "turnId": 2, "text": "Hello", "pos": 9}
    assert server.encode(0, Response(event="audio", turn=2), 9)[0] == shown
    assert server.words("Hello you", 9)[0]["text"] == "Hello you"
    server.encode(0, Response(event="started", turn=3), 0)
    server.encode(0, Response(event="cut", turn=2), 0)
    server.encode(0, Response(event="audio", turn=3), 0)
    assert server.words("Next", 9)[0]["turnId"] == 3, "the old answer's end does not end the new"
    server.encode(0, Response(event="ended", turn=3), 0)
    assert server.words("Next", 9) == []


def test_a_picture_is_no_request_but_a_signal_of_the_line() -> None:
    message = {"t": "image", "mime": "image/png", "data": "aGk=", "live": True}
    assert wire.to_picture(message) == Image("image/png", b"hi", live=True)
    assert wire.to_picture({"t": "image", "mime": "image/png", "data": "aGk="}) == Image(
        "image/png", b"hi"
    )
    assert wire.to_picture({"t": "say", "text": "hi"}) is None
    assert wire.to_request(message) is None
