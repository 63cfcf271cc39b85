"""OpenAI Realtime's codec: golden transcripts, cuts, one response at a time, ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.realtime import golden_runner
from tests.realtime.providers.openai_make import (
    SECOND,
    Wire,
    assert_sdk_takes,
    called,
    make,
    spoken,
)
from voxglove.core.errors import UsageError
from voxglove.realtime.commands import (
    CommitTurn,
    CutOutput,
    RequestResponse,
    SendAudio,
    SendText,
    SendToolResults,
    Summarise,
    ToolOutput,
)
from voxglove.realtime.events import (
    LOST,
    Audio,
    Closed,
    Interrupted,
    ItemDone,
    ResponseDone,
    ResponseStarted,
    Summary,
    UserTurn,
    Words,
)
from voxglove.realtime.port import Setup

GOLDEN = golden_runner.transcripts("openai")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    golden_runner.run(path, make)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_sdk_knows_every_field_we_send(path: Path) -> None:
    for frame in golden_runner.read(path).client_frames():
        assert_sdk_takes(frame)


def test_the_check_of_fields_can_fail() -> None:
    with pytest.raises(AssertionError):
        assert_sdk_takes('{"type": "response.create", "response": {"modalities": ["text"]}}')


def test_there_is_a_transcript_of_every_kind() -> None:
    sent = {json.loads(one)["type"] for path in GOLDEN for one in _frames(path)}
    assert sent >= {
        *("session.update", "input_audio_buffer.append", "input_audio_buffer.commit"),
        *("conversation.item.create", "conversation.item.delete", "conversation.item.truncate"),
        *("response.create", "response.cancel"),
    }


def _frames(path: Path) -> list[str]:
    return list(golden_runner.read(path).client_frames())


# -- what a cut does --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heard_ms", "frames"),
    [
        (400, [("conversation.item.truncate", 400)]),
        (999, [("conversation.item.truncate", 999)]),
        (1_000, []),
        (5_000, []),
        (0, [("conversation.item.delete", None)]),
        (-5, [("conversation.item.delete", None)]),
    ],
)
def test_voice_row_092_an_answer_is_cut_where_playback_was(
    heard_ms: int, frames: list[tuple[str, int | None]]
) -> None:
    wire = spoken(Wire())
    wire.done("resp_1")
    assert wire.tell(CutOutput({"item_a": heard_ms})) == [Interrupted("item_a")]
    assert [(one["type"], one.get("audio_end_ms")) for one in wire.sent] == frames


def test_voice_row_092_a_cut_beyond_what_came_is_clamped_while_more_would_have_come() -> None:
    wire = spoken(Wire(), done=False)
    wire.tell(CutOutput({"item_a": 1_500}))
    assert [one.get("audio_end_ms") for one in wire.sent] == [None, 1_000]
    assert wire.types() == ["response.cancel", "conversation.item.truncate"]


def test_voice_row_092_with_interruption_off_nothing_is_cancelled() -> None:
    wire = spoken(Wire(Setup(instructions="", interruption=False)), done=False)
    assert wire.tell(CutOutput({"item_a": 300}, cancel=False)) == [Interrupted("item_a")]
    assert wire.sent == []
    wire.speak("resp_1", "item_a", SECOND)
    assert isinstance(wire.events[-3], Audio)
    wire.done("resp_1")
    assert wire.sent == [
        {
            "type": "conversation.item.truncate",
            "item_id": "item_a",
            "content_index": 0,
            "audio_end_ms": 300,
        }
    ]


def test_a_second_cut_only_takes_more_away() -> None:
    wire = spoken(Wire())
    wire.done("resp_1")
    wire.tell(CutOutput({"item_a": 400}))
    wire.tell(CutOutput({"item_a": 600}))
    wire.tell(CutOutput({"item_a": 200}))
    assert [one["audio_end_ms"] for one in wire.sent] == [400, 200]


def test_every_cut_is_answered_once_whatever_runs() -> None:
    wire = Wire()
    assert wire.tell(CutOutput()) == [Interrupted()]
    assert wire.tell(CutOutput({"item_unknown": 10})) == [Interrupted("item_unknown")]
    assert wire.sent == []


def test_nothing_of_a_cut_response_is_passed_on() -> None:
    wire = spoken(Wire(), done=False)
    wire.tell(CutOutput({"item_a": 500}))
    wire.events.clear()
    wire.speak("resp_1", "item_a", SECOND)
    wire.done("resp_1", "cancelled")
    assert wire.events == [
        Words("assistant", "item_a", "", final=True),
        ItemDone("item_a"),
        ResponseDone("resp_1", "cancelled"),
    ]


def test_a_response_that_was_cut_before_it_began_is_cancelled_when_it_does() -> None:
    wire = Wire()
    wire.tell(RequestResponse(request_id="q"))
    wire.tell(CutOutput())
    assert wire.types() == ["response.create"]
    wire.server("response.created", response={"id": "resp_1", "metadata": {"request": "r1"}})
    assert wire.events[-1] == ResponseStarted("resp_1", "q")
    assert wire.sent == [{"type": "response.cancel", "response_id": "resp_1"}]
    wire.speak("resp_1", "item_a", SECOND)
    assert not any(isinstance(event, Audio) for event in wire.events)


def test_verbatim_speech_is_no_history_and_cannot_be_truncated() -> None:
    wire = Wire()
    wire.tell(RequestResponse("Mind the gap.", "v", verbatim=True))
    create = wire.sent[-1]["response"]
    assert isinstance(create, dict)
    assert (create["conversation"], create["input"]) == ("none", [])
    wire.respond("resp_1")
    wire.speak("resp_1", "item_a", SECOND)
    wire.types()
    wire.tell(CutOutput({"item_a": 300}))
    assert wire.types() == ["response.cancel"]
    wire.done("resp_1", usage={"input_tokens": 9, "output_tokens": 1})
    assert [getattr(event, "context_tokens", None) for event in wire.events[-2:]] == [None, None]


@pytest.mark.parametrize("interruption", [True, False])
def test_the_users_voice_ends_verbatim_speech_where_it_may_interrupt(interruption: bool) -> None:
    wire = Wire(Setup(instructions="", interruption=interruption))
    wire.tell(RequestResponse("Mind the gap.", "v", verbatim=True))
    wire.respond("resp_1")
    wire.speak("resp_1", "item_a", SECOND, done=False)
    wire.types()
    events = wire.server("input_audio_buffer.speech_started", item_id="u", audio_start_ms=5)
    assert events[1:] == [Interrupted("item_a")] * interruption
    assert wire.types() == ["response.cancel"] * interruption


def test_the_sessions_cut_at_the_users_onset_is_carried_out_when_the_provider_has_stopped() -> None:
    wire = spoken(Wire(), done=False)
    wire.server("input_audio_buffer.speech_started", item_id="u", audio_start_ms=5)
    wire.tell(CutOutput({"item_a": 300}, cancel=False))
    assert wire.types() == []
    wire.done("resp_1", "cancelled", status_details={"reason": "turn_detected"})
    assert [one["audio_end_ms"] for one in wire.sent] == [300]


# -- one response at a time -------------------------------------------------------------------


def test_requests_wait_for_the_response_that_runs() -> None:
    wire = spoken(Wire())
    wire.types()
    wire.tell(RequestResponse("First.", "a"))
    wire.tell(SendText("typed"))
    wire.tell(RequestResponse("Second.", "b"))
    wire.tell(SendText("typed again"))
    assert wire.types() == ["conversation.item.create"] * 2
    asked: list[object] = []
    for number in range(2, 6):
        wire.done(f"resp_{number - 1}")
        if not wire.sent:
            break
        asked.append(dict(wire.sent[-1]["response"]).get("instructions"))  # type: ignore[call-overload]
        wire.respond(f"resp_{number}")
        wire.sent.clear()
    assert asked == ["Be kind.\n\nFirst.", None, "Be kind.\n\nSecond."]


def test_two_named_requests_are_two_responses() -> None:
    wire = spoken(Wire())
    wire.types()
    wire.tell(SendText("one", request_id="a"))
    wire.tell(SendText("two", request_id="b"))
    wire.tell(SendText("three"))
    begun: list[str] = []
    for number in range(2, 6):
        wire.done(f"resp_{number - 1}")
        if "response.create" not in [one["type"] for one in wire.sent]:
            break
        started = wire.respond(f"resp_{number}")[0]
        assert isinstance(started, ResponseStarted)
        begun.append(started.request_id)
        wire.sent.clear()
    assert begun == ["a", "b"]


def test_a_request_waits_for_the_answer_to_a_taken_turn() -> None:
    wire = Wire()
    wire.server("input_audio_buffer.speech_stopped", item_id="u", audio_end_ms=900)
    wire.server("input_audio_buffer.committed", item_id="u")
    assert wire.codec.due
    wire.tell(RequestResponse("x"))
    assert wire.types() == []
    wire.respond("resp_1", own=True)
    wire.done("resp_1")
    assert wire.types() == ["response.create"]
    assert wire.codec.due


@pytest.mark.parametrize("there", [True, False])
def test_what_the_answer_to_a_turn_could_see_is_not_asked_for_again(there: bool) -> None:
    wire = called(Wire(), "call_1")
    wire.server("input_audio_buffer.speech_stopped", item_id="u", audio_end_ms=900)
    wire.server("input_audio_buffer.committed", item_id="u")
    wire.types()
    wire.tell(SendToolResults((ToolOutput("call_1", "a", "x"),)))
    output = wire.sent[0]["item"]
    if there:
        wire.server("conversation.item.added", item=output)
    wire.respond("resp_2", own=True)
    wire.done("resp_2")
    assert wire.types() == ["conversation.item.create", *(["response.create"] * (not there))]


def test_a_response_that_is_wanted_for_itself_is_not_lost_to_a_turn() -> None:
    wire = Wire()
    wire.server("input_audio_buffer.speech_stopped", item_id="u", audio_end_ms=900)
    wire.server("input_audio_buffer.committed", item_id="u")
    wire.tell(SendText("a"))
    wire.tell(RequestResponse())
    wire.server("conversation.item.added", item=wire.sent[0]["item"])
    wire.types()
    wire.respond("resp_1", own=True)
    wire.done("resp_1")
    assert wire.types() == ["response.create"]


def test_a_turn_whose_own_response_was_refused_is_asked_for() -> None:
    wire = spoken(Wire(Setup(instructions="", interruption=False)))
    wire.types()
    wire.server("input_audio_buffer.speech_stopped", item_id="u", audio_end_ms=900)
    wire.server("input_audio_buffer.committed", item_id="u")
    busy = {"type": "invalid_request_error", "code": "conversation_already_has_active_response"}
    wire.server("error", error=busy)
    wire.done("resp_1")
    assert wire.types() == ["response.create"]


def test_a_request_refused_for_a_response_we_never_saw_waits_for_its_end() -> None:
    wire = Wire()
    wire.tell(RequestResponse(request_id="q"))
    busy = {"code": "conversation_already_has_active_response", "event_id": "r1"}
    wire.server("error", error=busy)
    assert wire.types() == ["response.create"]
    assert wire.codec.due
    wire.done("resp_unseen")
    assert wire.types() == ["response.create"]


def test_a_commit_of_ours_is_answered_only_if_it_took_something() -> None:
    wire = Wire()
    wire.tell(CommitTurn())
    event_id = wire.sent[-1]["event_id"]
    empty = {"code": "input_audio_buffer_commit_empty", "event_id": event_id}
    assert wire.server("error", error=empty) == []
    assert wire.types() == ["input_audio_buffer.commit"]
    wire.tell(SendAudio(SECOND))
    wire.tell(CommitTurn())
    turn = wire.server("input_audio_buffer.committed", item_id="u")
    assert turn == [UserTurn("u", None, 1_000)]
    assert wire.types()[1:] == ["input_audio_buffer.commit", "response.create"]


def test_summaries_run_beside_and_are_nobody_elses() -> None:
    wire = spoken(Wire())
    wire.types()
    wire.tell(Summarise("s1", "One."))
    wire.respond("sum_1")
    wire.tell(Summarise("s2", "Two."))
    wire.respond("sum_2")
    assert wire.types() == ["response.create"] * 2
    item = {"id": "i", "type": "message", "content": [{"type": "output_text", "text": "Two. "}]}
    wire.done("sum_2", output=[item], usage={"input_tokens": 5, "output_tokens": 2})
    wire.done("sum_1", "incomplete", output=[item])
    said = [(event.request_id, event.text) for event in wire.events if isinstance(event, Summary)]
    assert said == [("s2", "Two."), ("s1", "")]
    assert [event for event in wire.events if isinstance(event, ResponseStarted)] == [
        ResponseStarted("resp_1", "q")
    ]
    wire.done("resp_1")
    assert not wire.codec.due


# -- ends -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "reason", "named", "fatal"),
    [
        (1006, "", "1006", False),
        (1001, "Your session hit the maximum duration of 60 minutes.", "session_expired", False),
        (4000, "invalid_request_error.invalid_model", "invalid_model", True),
        (1011, "internal", "1011", False),
    ],
)
def test_how_a_connection_ends(code: int, reason: str, named: str, fatal: bool) -> None:
    wire = spoken(Wire(), done=False)
    wire.tell(Summarise("s", "x"))
    events = wire.codec.closed(code, reason)
    assert events == [
        Words("assistant", "item_a", "", final=True),
        ItemDone("item_a"),
        ResponseDone("resp_1", "cancelled", LOST),
        Summary("s", ""),
        Closed(named, reason, fatal=fatal),
    ]
    assert wire.codec.closed(code, reason) == []
    assert not wire.codec.due and wire.codec.finished
    assert wire.tell(SendText("late")) == [] and wire.codec.take() == []


@pytest.mark.parametrize("field", ["code", "type"])
def test_a_fatal_error_is_found_in_either_field(field: str) -> None:
    wire = Wire()
    events = wire.server("error", error={field: "insufficient_quota", "message": "empty"})
    assert events == [Closed("insufficient_quota", "empty", fatal=True)]


def test_a_response_that_fails_for_good_ends_the_connection() -> None:
    wire = spoken(Wire())
    error = {"type": "insufficient_quota", "message": "empty"}
    wire.done("resp_1", "failed", status_details={"type": "failed", "error": error})
    assert wire.events[-2:] == [
        ResponseDone("resp_1", "failed", "insufficient_quota"),
        Closed("insufficient_quota", "empty", fatal=True),
    ]


def test_a_setup_that_is_refused_is_fatal() -> None:
    codec = make({})
    codec.begin(Setup(instructions=""))
    codec.receive('{"type": "session.created", "session": {"id": "s"}}')
    error = {"type": "invalid_request_error", "code": "invalid_value", "event_id": "setup"}
    events = codec.receive(json.dumps({"type": "error", "error": {**error, "message": "voice"}}))
    assert events == [Closed("invalid_value", "voice", fatal=True)]


@pytest.mark.parametrize(
    "bad",
    [
        {"model": ""},
        {"model": "gpt-live-1"},
        {"base_url": "api.openai.com/v1"},
        {"speed": 3.0},
        {"truncation": 0.0},
        {"max_output_tokens": 5_000},
        {"server_vad": {"threshold": 2.0}},
        {"server_vad": {"idle_timeout_ms": 10}},
    ],
)
def test_a_configuration_that_cannot_work_is_refused_at_once(bad: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        make(bad)
