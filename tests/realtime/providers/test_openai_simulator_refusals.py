"""What the simulated OpenAI realtime wire refuses, and that a refused event has no effect."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest

from tests.simulators.openai_realtime_answer import AnswerWanted, Refusal
from tests.simulators.openai_realtime_checks import MAX_AUDIO_CHARACTERS
from tests.simulators.openai_realtime_types import unknown_fields
from tests.simulators.openai_realtime_wire import RealtimeWire

Json = dict[str, Any]


def told(wire: RealtimeWire, event: Json | str | bytes) -> list[Json]:
    """Say something to the wire; the server events it answers with, judged by the SDK."""
    wire.receive(json.dumps(event) if isinstance(event, dict) else event)
    events = [entry for entry in wire.take() if isinstance(entry, dict)]
    assert [unknown_fields(one) for one in events] == [[] for _ in events]
    return events


def refused(wire: RealtimeWire, event: Json | str | bytes) -> Json:
    """The one error that answers an event."""
    (only,) = told(wire, event)
    assert only["type"] == "error"
    return dict(only["error"])


def audio(ms: int) -> str:
    return base64.b64encode(np.zeros(24 * ms, np.int16).tobytes()).decode()


def item(text: str = "hi", **fields: Any) -> Json:
    content = [{"type": "input_text", "text": text}]
    message = {"type": "message", "role": "user", "content": content, **fields}
    return {"type": "conversation.item.create", "item": message}


def update(**session: Any) -> Json:
    return {"type": "session.update", "session": {"type": "realtime", **session}}


def spoken(wire: RealtimeWire, ms: int = 1_000, *, over: bool = True) -> str:
    """An answer by voice; its item's id."""
    wire.receive('{"type":"response.create"}')
    (answer,) = [one.answer for one in wire.take() if isinstance(one, AnswerWanted)]
    answer.begin()
    item_id = answer.message()
    answer.say("alpha")
    answer.sound(np.zeros(24 * ms, np.int16))
    if over:
        answer.finish()
    wire.take()
    return item_id


def heard(**turn_detection: Any) -> Json:
    return update(audio={"input": {"turn_detection": turn_detection}})


def transcription(**settings: Any) -> Json:
    return update(audio={"input": {"transcription": settings}})


def create(**response: Any) -> Json:
    return {"type": "response.create", "response": response}


def tool(**fields: Any) -> Json:
    return {"type": "function", "name": "f", **fields}


U, M, V = "unknown_parameter", "missing_required_parameter", "invalid_value"
FORM: list[tuple[Json | str | bytes, str, str | None]] = [
    ("{", "invalid_event", None),
    ("[]", "invalid_event", None),
    (b"{}", "invalid_event", None),
    ({}, M, "type"),
    ({"type": "nonsense"}, V, "type"),
    ({"type": ["a"]}, V, "type"),
    ({"type": "response.audio.delta"}, V, "type"),
    ({"type": "input_audio_buffer.commit", "force": True}, U, "force"),
    ({"type": "input_audio_buffer.commit", "event_id": 7}, V, "event_id"),
    ({"type": "session.update"}, M, "session"),
    ({"type": "session.update", "session": {}}, M, "session.type"),
    ({"type": "session.update", "session": {"type": "transcription"}}, V, "session.type"),
    (update(foo=1), U, "session.foo"),
    (update(voice="marin"), U, "session.voice"),
    (update(modalities=["text"]), U, "session.modalities"),
    (update(input_audio_format="pcm16"), U, "session.input_audio_format"),
    (update(temperature=0.8), U, "session.temperature"),
    (update(instructions=None), V, "session.instructions"),
    (update(instructions=["a"]), V, "session.instructions"),
    (update(output_modalities=["audio", "text"]), V, "session.output_modalities"),
    (update(output_modalities=[]), V, "session.output_modalities"),
    (update(output_modalities="audio"), V, "session.output_modalities"),
    (update(model="gpt-realtime"), V, "session.model"),
    (update(max_output_tokens=0), V, "session.max_output_tokens"),
    (update(max_output_tokens=4_097), V, "session.max_output_tokens"),
    (update(max_output_tokens="many"), V, "session.max_output_tokens"),
    (update(max_output_tokens=True), V, "session.max_output_tokens"),
    (update(parallel_tool_calls=1), V, "session.parallel_tool_calls"),
    (update(reasoning={"effort": "huge"}), V, "session.reasoning.effort"),
    (update(truncation={"type": "retention_ratio"}), M, "session.truncation.retention_ratio"),
    (update(tracing="on"), V, "session.tracing"),
    (update(audio={"input": {"vad": {}}}), U, "session.audio.input.vad"),
    (
        update(audio={"input": {"format": {"type": "audio/pcm", "rate": 16_000}}}),
        *(V, "session.audio.input.format.rate"),
    ),
    (
        update(audio={"output": {"format": {"type": "audio/pcmu", "rate": 8_000}}}),
        *(U, "session.audio.output.format.rate"),
    ),
    (
        update(audio={"output": {"format": {"type": "audio/opus"}}}),
        *(V, "session.audio.output.format.type"),
    ),
    (update(audio={"input": {"format": "pcm16"}}), V, "session.audio.input.format"),
    (update(audio={"output": {"voice": "darth"}}), V, "session.audio.output.voice"),
    (update(audio={"output": {"speed": 2}}), V, "session.audio.output.speed"),
    (update(audio={"output": {"speed": None}}), V, "session.audio.output.speed"),
    (
        update(audio={"input": {"noise_reduction": {"type": "loud"}}}),
        *(V, "session.audio.input.noise_reduction.type"),
    ),
    (heard(), M, "session.audio.input.turn_detection.type"),
    (heard(type="magic"), V, "session.audio.input.turn_detection.type"),
    (
        heard(type="server_vad", threshold=2),
        *(V, "session.audio.input.turn_detection.threshold"),
    ),
    (
        heard(type="server_vad", idle_timeout_ms=100),
        *(V, "session.audio.input.turn_detection.idle_timeout_ms"),
    ),
    (
        heard(type="server_vad", silence_duration_ms=1.5),
        *(V, "session.audio.input.turn_detection.silence_duration_ms"),
    ),
    (
        heard(type="semantic_vad", threshold=0.5),
        *(U, "session.audio.input.turn_detection.threshold"),
    ),
    (
        heard(type="server_vad", eagerness="low"),
        *(U, "session.audio.input.turn_detection.eagerness"),
    ),
    (transcription(model="ears"), V, "session.audio.input.transcription.model"),
    (
        transcription(model="whisper-1", keywords=["a"]),
        *(V, "session.audio.input.transcription.keywords"),
    ),
    (
        transcription(model="whisper-1", delay="low"),
        *(V, "session.audio.input.transcription.delay"),
    ),
    (update(tools=[{"type": "function"}]), M, "session.tools[0].name"),
    (update(tools=[tool(function={})]), U, "session.tools[0].function"),
    (update(tools=[tool(strict=True)]), U, "session.tools[0].strict"),
    (update(tools=[tool(name="a b")]), V, "session.tools[0].name"),
    (update(tools=[tool(parameters={})]), V, "session.tools[0].parameters"),
    (update(tools=[tool(), tool()]), V, "session.tools"),
    (update(tools=[{"type": "mcp"}]), M, "session.tools[0].server_label"),
    (update(tool_choice="maybe"), V, "session.tool_choice"),
    (update(tool_choice={"type": "function", "name": "g"}), V, "session.tool_choice"),
    ({"type": "input_audio_buffer.append"}, M, "audio"),
    ({"type": "input_audio_buffer.append", "audio": 1}, V, "audio"),
    ({"type": "input_audio_buffer.append", "audio": "AAA"}, V, "audio"),
    ({"type": "input_audio_buffer.append", "audio": "AAAA-AAAA"}, V, "audio"),
    ({"type": "input_audio_buffer.append", "audio": "AAAA\nAAAA"}, V, "audio"),
    ({"type": "input_audio_buffer.append", "audio": "ä==="}, V, "audio"),
    ({"type": "input_audio_buffer.append", "audio": "AAAA"}, V, "audio"),
    (
        {"type": "input_audio_buffer.append", "audio": "A" * (MAX_AUDIO_CHARACTERS + 4)},
        *(V, "audio"),
    ),
    ({"type": "input_audio_buffer.commit"}, "input_audio_buffer_commit_empty", None),
    ({"type": "conversation.item.create"}, M, "item"),
    ({"type": "conversation.item.create", "item": {"type": "thought"}}, V, "item.type"),
    ({"type": "conversation.item.create", "item": {"type": "message"}}, M, "item.role"),
    (item(role="tool"), V, "item.role"),
    (item(content=[]), V, "item.content"),
    (item(content="hi"), V, "item.content"),
    (item(content=[{"type": "text", "text": "a"}]), V, "item.content[0].type"),
    (item(content=[{"type": "input_text"}]), M, "item.content[0].text"),
    (item(content=[{"type": "output_text", "text": "a"}]), V, "item.content[0].type"),
    (
        item(content=[{"type": "input_audio", "audio": "AAAA"}]),
        *(V, "item.content.audio"),
    ),
    (
        item(content=[{"type": "input_image", "image_url": "data:image/gif;base64,AAAA"}]),
        *(V, "item.content[0].image_url"),
    ),
    (
        item(content=[{"type": "input_image", "image_url": "data:image/png;base64,A"}]),
        *(V, "item.content[0].image_url"),
    ),
    (item(role="assistant"), V, "item.content[0].type"),
    (
        item(role="assistant", content=[{"type": "output_audio", "audio": "AAAA"}]),
        *(V, "item.content[0].type"),
    ),
    (item(role="system", content=[{"type": "output_text"}]), V, "item.content[0].type"),
    (item(id="i" * 33), V, "item.id"),
    (item(id=""), V, "item.id"),
    (item(name="bob"), U, "item.name"),
    (
        item() | {"previous_item_id": "item_x"},
        *("item_create_invalid_previous_item_id", "previous_item_id"),
    ),
    (
        item() | {"item": {"type": "function_call_output", "call_id": "call_x", "output": ""}},
        *("invalid_tool_call_id", "item.call_id"),
    ),
    (
        item() | {"item": {"type": "function_call_output", "call_id": "call_x", "output": {}}},
        *(V, "item.output"),
    ),
    (
        item() | {"item": {"type": "function_call", "name": "f", "arguments": {}}},
        *(V, "item.arguments"),
    ),
    (
        {"type": "conversation.item.retrieve", "item_id": "x"},
        *("item_retrieve_invalid_item_id", "item_id"),
    ),
    (
        {"type": "conversation.item.delete", "item_id": "x"},
        *("item_delete_invalid_item_id", "item_id"),
    ),
    ({"type": "conversation.item.delete"}, M, "item_id"),
    ({"type": "conversation.item.truncate", "item_id": "x"}, M, "content_index"),
    (
        {
            "type": "conversation.item.truncate",
            "item_id": "x",
            "content_index": 0,
            "audio_end_ms": 0,
        },
        *("item_truncate_invalid_item_id", "item_id"),
    ),
    (create(modalities=["text"]), U, "response.modalities"),
    (create(turn_detection=None), U, "response.turn_detection"),
    (create(output_modalities=["text", "audio"]), V, "response.output_modalities"),
    (create(conversation="other"), V, "response.conversation"),
    (create(audio={"input": {}}), U, "response.audio.input"),
    (create(metadata={"k": 1}), V, "response.metadata.k"),
    (create(metadata={"k": "v" * 513}), V, "response.metadata.k"),
    (create(metadata={"k" * 65: "v"}), V, "response.metadata key"),
    (create(metadata={str(n): "" for n in range(17)}), V, "response.metadata"),
    (create(input=[{"type": "item_reference"}]), M, "response.input[0].id"),
    (create(input=[{"type": "item_reference", "id": "x"}]), V, "response.input"),
    (create(input={}), V, "response.input"),
    (create(tool_choice={"type": "function", "name": "g"}), V, "response.tool_choice"),
    ({"type": "response.cancel"}, "response_cancel_not_active", None),
    ({"type": "response.cancel", "response_id": "resp_x"}, "response_cancel_not_active", None),
    ({"type": "output_audio_buffer.clear"}, "invalid_event", "type"),
]


@pytest.mark.parametrize("event, code, param", FORM, ids=lambda value: str(value)[:70])
def test_is_refused_and_has_no_effect(event: Any, code: str, param: str | None) -> None:
    wire = RealtimeWire("gpt-realtime-2")
    before = json.dumps(wire.config.session)
    if isinstance(event, dict) and "event_id" not in event:
        event = {**event, "event_id": "mine"}
    error = refused(wire, event)
    assert (error["code"], error["param"]) == (code, param)
    assert error["type"] == "invalid_request_error"
    named = isinstance(event, dict) and event["event_id"] == "mine"
    assert error["event_id"] == ("mine" if named else None)
    assert json.dumps(wire.config.session) == before
    assert (list(wire.conversation), wire.active, wire.buffer.kept_ms) == ([], None, 0)


def test_an_update_with_one_bad_field_changes_nothing() -> None:
    wire = RealtimeWire("gpt-realtime-2")
    refused(wire, update(instructions="new", audio={"output": {"voice": "darth"}}))
    refused(wire, update(instructions="new", output_modalities=["text", "audio"]))
    assert wire.config.session["instructions"] == ""


@pytest.mark.parametrize("field", [{"reasoning": {"effort": "low"}}, {"parallel_tool_calls": True}])
def test_a_model_that_does_not_reason_takes_no_settings_for_it(field: Json) -> None:
    error = refused(RealtimeWire("gpt-realtime"), update(**field))
    assert error["param"] == f"session.{next(iter(field))}"


def test_less_than_100_ms_is_no_turn() -> None:
    wire = RealtimeWire("gpt-realtime-2")
    told(wire, update(audio={"input": {"turn_detection": None}}))
    assert told(wire, {"type": "input_audio_buffer.append", "audio": audio(99)}) == []
    error = refused(wire, {"type": "input_audio_buffer.commit"})
    assert error["code"] == "input_audio_buffer_commit_empty"
    assert "only has 99.00ms" in error["message"]
    told(wire, {"type": "input_audio_buffer.append", "audio": audio(1)})
    events = told(wire, {"type": "input_audio_buffer.commit"})
    assert [one["type"] for one in events] == [
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    assert refused(wire, {"type": "input_audio_buffer.commit"})["code"] == error["code"]


def test_an_item_id_is_taken_once() -> None:
    wire = RealtimeWire("gpt-realtime-2")
    told(wire, item(id="item_1"))
    assert refused(wire, item(id="item_1"))["code"] == "item_create_duplicate_item_id"
    assert len(list(wire.conversation)) == 1


@pytest.mark.parametrize(
    "change, code, param",
    [
        ({"audio_end_ms": 1_001}, "invalid_value", "audio_end_ms"),
        ({"audio_end_ms": -1}, "invalid_value", "audio_end_ms"),
        ({"content_index": 1}, "invalid_value", "content_index"),
        ({"item_id": "user"}, "item_truncate_invalid_item_id", "item_id"),
        ({"item_id": "written"}, "item_truncate_invalid_item_id", "item_id"),
    ],
)
def test_only_sound_that_was_given_can_be_cut(change: Json, code: str, param: str) -> None:
    wire = RealtimeWire("gpt-realtime-2")
    told(wire, item(id="user"))
    told(wire, item(id="written", role="assistant", content=[{"type": "output_text", "text": ""}]))
    spoken_id = spoken(wire)
    cut = {"item_id": spoken_id, "content_index": 0, "audio_end_ms": 1_000, **change}
    error = refused(wire, {"type": "conversation.item.truncate", **cut})
    assert (error["code"], error["param"]) == (code, param)


def test_what_was_cut_cannot_grow_again() -> None:
    wire = RealtimeWire("gpt-realtime-2")
    item_id = spoken(wire)
    cut: Json = {"type": "conversation.item.truncate", "item_id": item_id, "content_index": 0}
    assert told(wire, cut | {"audio_end_ms": 500})[0]["audio_end_ms"] == 500
    assert refused(wire, cut | {"audio_end_ms": 501})["code"] == "invalid_value"
    (shown,) = told(wire, {"type": "conversation.item.retrieve", "item_id": item_id})
    (content,) = shown["item"]["content"]
    assert "transcript" not in content, "nobody knows which of its words are left"
    assert len(base64.b64decode(content["audio"])) == 24 * 500 * 2


def test_one_response_at_a_time_in_the_conversation() -> None:
    wire = RealtimeWire("gpt-realtime-2")
    spoken(wire, over=False)
    wire.receive('{"type":"response.create"}')
    (refusal,) = [one for one in wire.take() if isinstance(one, Refusal)]
    assert refusal.code == "conversation_already_has_active_response"
    assert not refusal.race, "the client asked for both"
    assert told(wire, create(conversation="none", input=[])) == []


def test_the_voice_is_locked_by_the_first_sound() -> None:
    wire = RealtimeWire("gpt-realtime-2")
    voice = {"output": {"voice": "cedar"}}
    assert told(wire, update(audio=voice))[0]["session"]["audio"]["output"]["voice"] == "cedar"
    spoken(wire)
    other = {"output": {"voice": "ash"}}
    assert refused(wire, update(audio=other))["code"] == "cannot_update_voice"
    assert refused(wire, create(audio=other))["code"] == "cannot_update_voice"
    assert told(wire, update(audio=voice))[0]["type"] == "session.updated", "the same is fine"


def test_speed_changes_between_turns_only() -> None:
    wire = RealtimeWire("gpt-realtime-2")
    spoken(wire, over=False)
    error = refused(wire, update(audio={"output": {"speed": 1.2}}))
    assert error["param"] == "session.audio.output.speed"
