"""Client events of the OpenAI Realtime API with every field that its SDK knows; no server events.

A session takes GOOD in this order, each at once after the other.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
MODEL = "gpt-realtime-2"
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "auto"}
SOUND = {"type": "input_audio", "audio": "AAAAAA==", "transcript": "hi"}
COMMON = {"object": "realtime.item", "status": "completed"}
FILTER = {"read_only": True, "tool_names": ["a"]}
MCP = {
    "type": "mcp",
    "server_label": "s",
    "server_url": "https://a.example",
    "connector_id": "connector_gmail",
    "tunnel_id": "t",
    "authorization": "a",
    "server_description": "d",
    "headers": {"a": "b"},
    "allowed_tools": FILTER,
    "allowed_callers": ["direct"],
    "defer_loading": False,
    "require_approval": {"always": FILTER, "never": FILTER},
}
FUNCTION = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}
SETTINGS: Json = {
    "output_modalities": ["audio"],
    "instructions": "Be brief.",
    "tools": [FUNCTION, MCP],
    "max_output_tokens": 400,
    "prompt": {"id": "p", "variables": {"a": "b"}, "version": "1"},
    "reasoning": {"effort": "low"},
    "parallel_tool_calls": True,
}
SAID = {"format": {"type": "audio/pcm", "rate": 24_000}, "voice": {"id": "voice_1"}}
SERVER_VAD: Json = {
    "type": "server_vad",
    "threshold": 0.5,
    "prefix_padding_ms": 300,
    "silence_duration_ms": 500,
    "create_response": True,
    "interrupt_response": True,
    "idle_timeout_ms": 5_000,
}
SEMANTIC_VAD = {
    "type": "semantic_vad",
    "eagerness": "high",
    "create_response": False,
    "interrupt_response": False,
}
WHISPER = {"model": "gpt-realtime-whisper", "language": "en", "prompt": "", "delay": "low"}
LISTS = {"model": "gpt-transcribe", "languages": ["en"], "keywords": ["a"]}


def session(**fields: Any) -> Json:
    return {"type": "session.update", "event_id": "e", "session": {"type": "realtime", **fields}}


def heard(**fields: Any) -> Json:
    return session(audio={"input": fields})


def item(*content: Json, role: str = "user", **fields: Any) -> Json:
    message = {"type": "message", "role": role, "content": list(content), **COMMON, **fields}
    return {"type": "conversation.item.create", "event_id": "e", "item": message}


def own_item(**fields: Any) -> Json:
    return {"type": "conversation.item.create", "item": fields}


def response(**fields: Any) -> Json:
    return {"type": "response.create", "event_id": "e", "response": fields}


ABOUT_MCP = {"arguments": "{}", "name": "f", "server_label": "s"}
NEXT_DOOR = {"type": "function", "name": "f"}
GOOD: list[Json] = [
    session(
        **SETTINGS,
        model=MODEL,
        include=["item.input_audio_transcription.logprobs"],
        tool_choice="auto",
        truncation={
            "type": "retention_ratio",
            "retention_ratio": 0.8,
            "token_limits": {"post_instructions": 8_000},
        },
        tracing={"group_id": "g", "workflow_name": "w", "metadata": {}},
        audio={
            "input": {
                "format": {"type": "audio/pcmu"},
                "noise_reduction": {"type": "near_field", "strength": 1.0},
                "transcription": WHISPER,
                "turn_detection": SERVER_VAD,
            },
            "output": {**SAID, "speed": 1.5},
        },
    ),
    session(tools=[{**MCP, "allowed_tools": ["a"], "require_approval": "never"}]),
    session(tools=[FUNCTION], tool_choice=NEXT_DOOR, tracing="auto", truncation="disabled"),
    session(tools=[], tool_choice={"type": "mcp", "server_label": "s", "name": "n"}),
    session(tracing=None, prompt=None, max_output_tokens="inf", output_modalities=["text"]),
    heard(format={"type": "audio/pcma"}, transcription=LISTS, turn_detection=SEMANTIC_VAD),
    heard(format={"type": "audio/pcm"}, noise_reduction=None, transcription=None),
    heard(turn_detection=None),
    {"type": "input_audio_buffer.append", "event_id": "e", "audio": "A" * 10_000},
    {"type": "input_audio_buffer.commit", "event_id": "e"},
    {"type": "input_audio_buffer.clear", "event_id": "e"},
    item({"type": "input_text", "text": "Hi"}, SOUND, IMAGE, id="u1")
    | {"previous_item_id": "root"},
    item({"type": "input_text", "text": "A VIP."}, role="system", id="s1")
    | {"previous_item_id": "u1"},
    item({"type": "output_text", "text": "Earlier."}, role="assistant", id="a1"),
    own_item(type="function_call", name="f", arguments="{}", call_id="c", id="f1", **COMMON),
    own_item(type="function_call_output", call_id="c", output="{}", id="o1", **COMMON),
    own_item(
        type="mcp_approval_response", id="m1", approval_request_id="r", approve=True, reason="ok"
    ),
    own_item(type="mcp_approval_request", id="m2", **ABOUT_MCP),
    own_item(
        type="mcp_list_tools",
        id="m3",
        server_label="s",
        tools=[{"name": "n", "input_schema": {}, "annotations": {}, "description": "d"}],
    ),
    own_item(
        type="mcp_call",
        id="m4",
        approval_request_id="m2",
        output="o",
        error={"type": "tool_execution_error", "message": "m"},
        **ABOUT_MCP,
    ),
    {"type": "conversation.item.retrieve", "event_id": "e", "item_id": "u1"},
    response(
        **SETTINGS,
        tool_choice="required",
        conversation="none",
        metadata={"purpose": "summary"},
        audio={"output": SAID},
        input=[item({"type": "input_text", "text": "Sum up."})["item"]],
    ),
    {"type": "response.create"},
    {"type": "response.cancel", "event_id": "e"},
]
REFERENCES: list[Json] = [
    response(conversation="none", input=[{"type": "item_reference", "id": "u1"}]),
    {"type": "conversation.item.delete", "event_id": "e", "item_id": "u1"},
]
"""Come after the others. The reference is not in the union of the SDK's client events; it is typed
by response_create_event_with_references_param alone."""

NOT_NOW: list[Json] = [
    {"type": "response.cancel", "event_id": "e", "response_id": "r"},
    {"type": "output_audio_buffer.clear", "event_id": "e"},
    {
        "type": "conversation.item.truncate",
        "event_id": "e",
        "item_id": "i",
        "content_index": 0,
        "audio_end_ms": 0,
    },
]
"""Of good form, but for a response, an item or a transport that is not there."""
