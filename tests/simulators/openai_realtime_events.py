"""The client events of the OpenAI Realtime API (GA): their fields, and how one frame is read.

Pure, and without state: what an event may say in this moment of a session is judged by
`openai_realtime_wire`. Fields and rules are those of protocols/openai-realtime sections 3 and 4.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.simulators.openai_realtime_checks import (
    Check,
    Json,
    Refused,
    anything,
    base64_of,
    boolean,
    either,
    fields,
    integer,
    listed,
    mapping,
    matching,
    nullable,
    number,
    one_of,
    picture,
    tagged,
    text,
    word,
    wrong,
)

VOICES = ("alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse", "marin", "cedar")
TRANSCRIBERS = (
    *("whisper-1", "gpt-transcribe", "gpt-live-transcribe", "gpt-4o-mini-transcribe"),
    *("gpt-4o-mini-transcribe-2025-12-15", "gpt-4o-transcribe", "gpt-4o-transcribe-diarize"),
    "gpt-realtime-whisper",
)
MAX_ITEM_ID = 32
MAX_EVENT_ID = 512


def tokens(where: str, value: object) -> None:
    """A bound of an answer."""
    (one_of("inf") if isinstance(value, str) else integer(1, 4_096))(where, value)


def schema(where: str, value: object) -> None:
    """The JSON schema of a tool's parameters: an object at its top."""
    if not isinstance(value, dict) or value.get("type") != "object":
        raise wrong(where, value, "expected a JSON schema of type 'object'")


TEXT = text()
NAME = matching(r"[A-Za-z0-9_-]{1,64}")
MODALITIES = listed(one_of("text", "audio"))
FORMAT = tagged(
    "type",
    {
        "audio/pcm": fields({"type": TEXT}, {"rate": one_of(24_000)}),
        "audio/pcmu": fields({"type": TEXT}),
        "audio/pcma": fields({"type": TEXT}),
    },
)
VOICE = either(one_of(*VOICES), fields({"id": text(1)}))
NOISE_REDUCTION = nullable(
    fields({"type": one_of("near_field", "far_field")}, {"strength": number(0, 1)})
)
TRANSCRIPTION = nullable(
    fields(
        {},
        {
            "model": one_of(*TRANSCRIBERS),
            "language": TEXT,
            "languages": listed(TEXT),
            "keywords": listed(TEXT),
            "prompt": TEXT,
            "delay": one_of("minimal", "low", "medium", "high", "xhigh"),
        },
    )
)
ANSWERING = {"create_response": boolean, "interrupt_response": boolean}
TURN_DETECTION = nullable(
    tagged(
        "type",
        {
            "server_vad": fields(
                {"type": TEXT},
                {
                    **ANSWERING,
                    "threshold": number(0, 1),
                    "prefix_padding_ms": integer(0),
                    "silence_duration_ms": integer(0),
                    "idle_timeout_ms": nullable(integer(5_000, 30_000)),
                },
            ),
            "semantic_vad": fields(
                {"type": TEXT},
                {**ANSWERING, "eagerness": one_of("low", "medium", "high", "auto")},
            ),
        },
    )
)
TOOL_FILTER = fields({}, {"read_only": boolean, "tool_names": listed(TEXT)})
TOOL = tagged(
    "type",
    {
        "function": fields(
            {"type": TEXT, "name": NAME},
            {"description": TEXT, "parameters": schema},
        ),
        "mcp": fields(
            {"type": TEXT, "server_label": text(1)},
            {
                "server_url": TEXT,
                "connector_id": TEXT,
                "tunnel_id": TEXT,
                "authorization": TEXT,
                "server_description": TEXT,
                "headers": nullable(mapping(TEXT, TEXT, 64)),
                "allowed_tools": nullable(anything),
                "allowed_callers": nullable(listed(one_of("direct", "programmatic"))),
                "defer_loading": boolean,
                "require_approval": nullable(
                    either(
                        one_of("always", "never"),
                        fields({}, {"always": TOOL_FILTER, "never": TOOL_FILTER}),
                    )
                ),
            },
        ),
    },
)
TOOL_CHOICE = either(
    one_of("auto", "none", "required"),
    tagged(
        "type",
        {
            "function": fields({"type": TEXT, "name": NAME}),
            "mcp": fields({"type": TEXT, "server_label": TEXT}, {"name": nullable(TEXT)}),
        },
    ),
)
PROMPT = nullable(
    fields({"id": text(1)}, {"variables": nullable(mapping(TEXT, anything, 64)), "version": TEXT})
)
REASONING = fields({}, {"effort": one_of("minimal", "low", "medium", "high", "xhigh")})
TRUNCATION = either(
    one_of("auto", "disabled"),
    fields(
        {"type": one_of("retention_ratio"), "retention_ratio": number(0, 1)},
        {"token_limits": fields({}, {"post_instructions": integer(1)})},
    ),
)
TRACING = nullable(
    either(
        one_of("auto"), fields({}, {"group_id": TEXT, "workflow_name": TEXT, "metadata": anything})
    )
)
SESSION = fields(
    {"type": one_of("realtime")},
    {
        "model": TEXT,
        "output_modalities": MODALITIES,
        "instructions": TEXT,
        "audio": fields(
            {},
            {
                "input": fields(
                    {},
                    {
                        "format": FORMAT,
                        "noise_reduction": NOISE_REDUCTION,
                        "transcription": TRANSCRIPTION,
                        "turn_detection": TURN_DETECTION,
                    },
                ),
                "output": fields(
                    {}, {"format": FORMAT, "voice": VOICE, "speed": number(0.25, 1.5)}
                ),
            },
        ),
        "include": listed(one_of("item.input_audio_transcription.logprobs")),
        "tools": listed(TOOL, most=128),
        "tool_choice": TOOL_CHOICE,
        "max_output_tokens": tokens,
        "truncation": TRUNCATION,
        "tracing": TRACING,
        "prompt": PROMPT,
        "reasoning": REASONING,
        "parallel_tool_calls": boolean,
    },
)

ITEM_ID = text(1, MAX_ITEM_ID)
COMMON = {
    "id": ITEM_ID,
    "object": one_of("realtime.item"),
    "status": one_of("completed", "incomplete", "in_progress"),
}
INPUT_TEXT = fields({"type": TEXT, "text": TEXT})
USER_CONTENT = tagged(
    "type",
    {
        "input_text": INPUT_TEXT,
        "input_audio": fields({"type": TEXT, "audio": base64_of()}, {"transcript": nullable(TEXT)}),
        "input_image": fields(
            {"type": TEXT, "image_url": picture}, {"detail": one_of("auto", "low", "high")}
        ),
    },
)
ASSISTANT_CONTENT = tagged("type", {"output_text": INPUT_TEXT})
SYSTEM_CONTENT = tagged("type", {"input_text": INPUT_TEXT})


def message(content: Check) -> Check:
    """A message whose content has parts of this kind, at least one."""
    return fields({"type": TEXT, "role": TEXT, "content": listed(content, least=1)}, COMMON)


MCP = {"id": ITEM_ID, "type": TEXT}
ITEM = tagged(
    "type",
    {
        "message": tagged(
            "role",
            {
                "user": message(USER_CONTENT),
                "assistant": message(ASSISTANT_CONTENT),
                "system": message(SYSTEM_CONTENT),
            },
        ),
        "function_call": fields(
            {"type": TEXT, "name": NAME, "arguments": TEXT}, {**COMMON, "call_id": text(1)}
        ),
        "function_call_output": fields({"type": TEXT, "call_id": text(1), "output": TEXT}, COMMON),
        "mcp_approval_response": fields(
            {**MCP, "approval_request_id": TEXT, "approve": boolean}, {"reason": nullable(TEXT)}
        ),
        "mcp_approval_request": fields(
            {**MCP, "arguments": TEXT, "name": TEXT, "server_label": TEXT}
        ),
        "mcp_list_tools": fields(
            {"type": TEXT, "server_label": TEXT, "tools": listed(anything)}, {"id": ITEM_ID}
        ),
        "mcp_call": fields(
            {**MCP, "arguments": TEXT, "name": TEXT, "server_label": TEXT},
            {"approval_request_id": nullable(TEXT), "error": anything, "output": nullable(TEXT)},
        ),
    },
)


def input_item(where: str, value: object) -> None:
    """An item of a response's own context: a whole one, or a reference to one that exists."""
    if isinstance(value, dict) and value.get("type") == "item_reference":
        fields({"type": TEXT, "id": text(1)})(where, value)
    else:
        ITEM(where, value)


RESPONSE = fields(
    {},
    {
        "conversation": one_of("auto", "none"),
        "input": listed(input_item),
        "instructions": TEXT,
        "output_modalities": MODALITIES,
        "audio": fields({}, {"output": fields({}, {"format": FORMAT, "voice": VOICE})}),
        "tools": listed(TOOL, most=128),
        "tool_choice": TOOL_CHOICE,
        "max_output_tokens": tokens,
        "metadata": nullable(mapping(text(1, 64), text(0, 512), 16)),
        "prompt": PROMPT,
        "reasoning": REASONING,
        "parallel_tool_calls": boolean,
    },
)


def event(
    required: Mapping[str, Check] | None = None, optional: Mapping[str, Check] | None = None
) -> Check:
    """A client event with these fields besides its type and its own id."""
    return fields(
        {"type": TEXT, **(required or {})},
        {"event_id": text(0, MAX_EVENT_ID), **(optional or {})},
    )


EVENT = tagged(
    "type",
    {
        "session.update": event({"session": SESSION}),
        "input_audio_buffer.append": event({"audio": base64_of()}),
        "input_audio_buffer.commit": event(),
        "input_audio_buffer.clear": event(),
        "conversation.item.create": event({"item": ITEM}, {"previous_item_id": nullable(TEXT)}),
        "conversation.item.retrieve": event({"item_id": text(1)}),
        "conversation.item.truncate": event(
            {"item_id": text(1), "content_index": integer(0), "audio_end_ms": integer(0)}
        ),
        "conversation.item.delete": event({"item_id": text(1)}),
        "response.create": event({}, {"response": RESPONSE}),
        "response.cancel": event({}, {"response_id": text(1)}),
        "output_audio_buffer.clear": event(),
    },
)


def parse(frame: str | bytes) -> Json:
    """The client event in a frame. Raises Refused, which names the event's own id."""
    if isinstance(frame, bytes):
        raise Refused("invalid_event", "Events must be text frames, this one was binary.")
    try:
        value = json.loads(frame)
    except (ValueError, RecursionError) as error:
        raise Refused("invalid_event", "The event is not valid JSON.") from error
    if not isinstance(value, dict):
        raise Refused("invalid_event", "The event is not a JSON object.")
    try:
        EVENT("", value)
    except Refused as refused:
        refused.event_id = word(value.get("event_id")) or None
        raise
    return value
