"""The simulated OpenAI realtime wire by itself: what it takes, in which order it answers, and when
it hears speech. All without a socket."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
from openai.types.realtime import RealtimeClientEvent
from openai.types.realtime.realtime_conversation_item_assistant_message import (
    Content as AssistantContent,
)
from pydantic import BaseModel

from tests.simulators import tone_words
from tests.simulators.openai_realtime_answer import Answer, AnswerWanted, Refusal, TurnTaken
from tests.simulators.openai_realtime_events import parse
from tests.simulators.openai_realtime_examples import (
    GOOD,
    MODEL,
    NOT_NOW,
    REFERENCES,
    SEMANTIC_VAD,
    SERVER_VAD,
    heard,
    session,
)
from tests.simulators.openai_realtime_types import unknown_fields
from tests.simulators.openai_realtime_wire import RealtimeWire

Json = dict[str, Any]
RATE = 24_000


def test_every_client_event_of_the_sdk_is_taken() -> None:
    wire = RealtimeWire(MODEL)
    for event in [*GOOD, *REFERENCES]:
        wire.receive(json.dumps(event))
        for entry in wire.take():
            assert not isinstance(entry, Refusal), event
            assert not isinstance(entry, dict) or unknown_fields(entry) == []
    for event in NOT_NOW:
        assert parse(json.dumps(event)) == event


def test_the_examples_have_every_field_that_the_sdk_knows() -> None:
    union = get_args(get_args(RealtimeClientEvent)[0])
    kinds = {get_args(one.model_fields["type"].annotation)[0]: one for one in union}
    used: dict[type[BaseModel], set[str]] = {}
    for event in [*GOOD, *REFERENCES[1:], *NOT_NOW]:
        _collect(kinds[event["type"]].model_validate(event), used)
    unused = {kind: set(kind.model_fields) - names for kind, names in used.items()}
    assert unused.pop(AssistantContent) == {"audio", "transcript"}, "sound of it is never sent back"
    assert {kind: names for kind, names in unused.items() if names} == {}
    assert set(kinds.values()) <= set(used)


def _collect(value: object, used: dict[type[BaseModel], set[str]]) -> None:
    """Which fields are set, by class."""
    if isinstance(value, BaseModel):
        assert not value.model_extra, (type(value), value.model_extra)
        used.setdefault(type(value), set()).update(value.model_fields_set)
        for name in value.model_fields_set:
            _collect(getattr(value, name), used)
    elif isinstance(value, list):
        for one in value:
            _collect(one, used)


def test_the_server_vad_of_an_update_is_merged() -> None:
    wire = RealtimeWire(MODEL, silence_ms=400)
    for event in (
        heard(turn_detection={"type": "server_vad", "threshold": 0.9}),
        heard(turn_detection={"type": "server_vad", "interrupt_response": False}),
        heard(transcription={"model": "whisper-1", "language": "en"}),
        heard(transcription={"model": "gpt-4o-transcribe"}),
        session(instructions="a"),
    ):
        wire.receive(json.dumps(event))
    settings: Any = wire.config.session
    assert settings["instructions"] == "a"
    assert settings["audio"]["input"]["transcription"] == {
        "model": "gpt-4o-transcribe",
        "language": "en",
    }
    detection = settings["audio"]["input"]["turn_detection"]
    assert (detection["threshold"], detection["interrupt_response"]) == (0.9, False)
    assert detection["silence_duration_ms"] == 400
    wire.receive(json.dumps(heard(turn_detection=SEMANTIC_VAD)))
    wire.receive(json.dumps(heard(turn_detection={"type": "server_vad"})))
    settings = wire.config.session
    assert settings["audio"]["input"]["turn_detection"]["threshold"] == 0.5, "another kind: anew"


def talk(wire: RealtimeWire, text: str, before_ms: int = 0, after_ms: int = 0) -> list[Any]:
    """Silence, words, silence in one frame; what comes of it."""
    quiet = [np.zeros(RATE * ms // 1_000, np.int16) for ms in (before_ms, after_ms)]
    pcm = np.concatenate([quiet[0], tone_words.speak(text, RATE), quiet[1]])
    audio = base64.b64encode(pcm.tobytes()).decode()
    wire.receive(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
    return list(wire.take())


def events(entries: list[Any], *names: str) -> Iterator[Json]:
    for one in entries:
        if isinstance(one, dict) and one["type"].rpartition(".")[2] in names:
            yield one


def test_speech_is_told_from_its_padding_to_the_end_of_its_silence() -> None:
    wire = RealtimeWire(MODEL)
    entries = talk(wire, "alpha bravo", before_ms=1_000, after_ms=1_000)
    started, stopped, committed = events(entries, "speech_started", "speech_stopped", "committed")
    assert abs(started["audio_start_ms"] - (1_000 - 300)) <= 40
    assert abs(stopped["audio_end_ms"] - (1_000 + 2 * tone_words.STEP_MS - 40 + 500)) <= 40
    assert started["item_id"] == stopped["item_id"] == committed["item_id"]
    (turn,) = [one for one in entries if isinstance(one, TurnTaken)]
    assert (turn.sound.start_ms, turn.sound.end_ms) == (
        started["audio_start_ms"],
        stopped["audio_end_ms"],
    )
    assert tone_words.read(turn.sound.samples, RATE) == ["alpha", "bravo"]


def test_two_turns_in_one_frame_are_two_turns() -> None:
    wire = RealtimeWire(MODEL)
    wire.receive(json.dumps(heard(turn_detection={**SERVER_VAD, "create_response": False})))
    pcm = [tone_words.speak("one", RATE), np.zeros(RATE, np.int16)]
    audio = base64.b64encode(np.concatenate([*pcm, *pcm]).tobytes()).decode()
    wire.receive(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
    turns = [one for one in wire.take() if isinstance(one, TurnTaken)]
    assert [tone_words.read(turn.sound.samples, RATE) for turn in turns] == [["one"], ["one"]]
    assert turns[0].sound.end_ms <= turns[1].sound.start_ms


def test_a_high_threshold_does_not_hear_soft_speech() -> None:
    wire = RealtimeWire(MODEL)
    wire.receive(json.dumps(heard(turn_detection={**SERVER_VAD, "threshold": 0.99})))
    assert list(events(talk(wire, "alpha", after_ms=700), "speech_started")) == []


def test_a_commit_by_hand_while_speaking_keeps_the_announced_id() -> None:
    wire = RealtimeWire(MODEL)
    (started,) = events(talk(wire, "alpha"), "speech_started")
    wire.receive('{"type":"input_audio_buffer.commit"}')
    (committed,) = events(list(wire.take()), "committed")
    assert committed["item_id"] == started["item_id"]
    assert wire.active is None, "a commit asks for no answer"
    assert list(events(talk(wire, "", after_ms=1_000), "speech_stopped")) == []


def wanted(entries: list[Any]) -> Answer:
    (only,) = [one.answer for one in entries if isinstance(one, AnswerWanted)]
    assert isinstance(only, Answer)
    return only


def test_speech_that_may_not_interrupt_leaves_the_response_and_gets_none() -> None:
    wire = RealtimeWire(MODEL)
    wire.receive(json.dumps(heard(turn_detection={**SERVER_VAD, "interrupt_response": False})))
    wire.receive('{"type":"response.create"}')
    answer = wanted(list(wire.take()))
    entries = talk(wire, "alpha", after_ms=700)
    assert not answer.over
    (error,) = events(entries, "error")
    assert error["error"]["code"] == "conversation_already_has_active_response"
    assert [one for one in entries if isinstance(one, (AnswerWanted, Refusal))] == []


def test_an_answer_cancelled_before_it_began_is_still_told_whole() -> None:
    wire = RealtimeWire(MODEL)
    wire.receive('{"type":"response.create"}')
    wire.take()
    told = [one["type"] for one in events(talk(wire, "alpha"), "created", "done", "speech_started")]
    assert told == ["input_audio_buffer.speech_started", "response.created", "response.done"]


def test_what_is_cut_while_it_is_spoken_stays_cut() -> None:
    wire = RealtimeWire(MODEL)
    wire.receive('{"type":"response.create"}')
    answer = wanted(list(wire.take()))
    answer.begin()
    at = {"item_id": answer.message(), "content_index": 0, "audio_end_ms": 500}
    answer.sound(np.zeros(RATE, np.int16))
    wire.receive(json.dumps({"type": "conversation.item.truncate", **at}))
    answer.say("late")
    answer.sound(np.zeros(RATE, np.int16))
    answer.finish()
    (kept,) = wire.conversation
    assert (kept.audio_ms, kept.text) == (500, "")
    assert [one for one in wire.take() if isinstance(one, Refusal)] == []


def test_nobody_speaks_for_the_idle_timeout() -> None:
    wire = RealtimeWire(MODEL)
    wire.receive(json.dumps(heard(turn_detection=SERVER_VAD)))
    wire.receive('{"type":"response.create"}')
    answer = wanted(list(wire.take()))
    answer.begin()
    answer.message()
    answer.sound(np.zeros(RATE, np.int16))
    answer.finish()
    wire.take()
    assert list(events(talk(wire, "", after_ms=5_900), "timeout_triggered")) == []
    entries = talk(wire, "", after_ms=100)
    (timeout,) = events(entries, "timeout_triggered")
    assert (timeout["audio_start_ms"], timeout["audio_end_ms"]) == (1_000, 6_000)
    assert [one["item_id"] for one in events(entries, "committed")] == [timeout["item_id"]]
    assert wanted(entries).cause == "idle"
