"""What the Live API takes: every client event with its fields, and the refusals in its words.

Pure. The config is strict: an unknown field is refused with `error.param` (protocols/openai-live
sections 3, 4 and 8). What depends on the state of a session stands in `gpt_live_session`.
"""

from __future__ import annotations

import json

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
    matching,
    nullable,
    one_of,
    part,
    parts,
    tagged,
    text,
    word,
    wrong,
)

__all__ = ["Json", "Refused", "part", "parts", "read", "word"]

CHARS_PER_TOKEN = 4
CONTENT_TOKENS = 500
INSTRUCTION_TOKENS = 16_384
HISTORY_MESSAGES = 128
HISTORY_TOKENS = 8_192
FIXTURE_BYTES = 30 * 24_000 * 2
MODELS = ("gpt-live-1", "gpt-live-1.1")
VOICES = frozenset(
    {
        *("alloy", "ash", "ballad", "beacon", "bossa", "cedar", "cinder", "coral", "delta", "echo"),
        *("gleam", "marin", "meridian", "quartz", "ripple", "sage", "shida", "shimmer", "stone"),
        *("tempo", "verse", "vesper", "willow"),
    }
)


def capped(tokens: int, least: int = 0) -> Check:
    """A text of at most so many tokens, by the four characters that one has about."""

    def check(where: str, value: object) -> None:
        text(least)(where, value)
        if len(str(value)) > tokens * CHARS_PER_TOKEN:
            raise wrong(where, value, f"expected at most {tokens} tokens")

    return check


def model(where: str, value: object) -> None:
    if value not in MODELS:
        raise Refused("model_not_found", f"The model {value!r} does not exist.", where)


def built_in(where: str, value: object) -> None:
    if value not in VOICES:
        raise Refused("forbidden", f"Voice {value!r} is not available.", where)


def an_object(where: str, value: object) -> None:
    if not isinstance(value, dict):
        raise wrong(where, value, "expected an object")


def _message(role: str, *kinds: str) -> Check:
    """A message of history: exactly one part."""
    content = listed(fields({"text": text()}, {"type": one_of(*kinds)}), 1, 1)
    more: dict[str, Check] = {"type": one_of("message"), "id": text()}
    more["status"] = one_of("incomplete", "completed")
    return fields({"role": one_of(role), "content": content}, more)


HISTORY = tagged(
    "role",
    {
        "developer": _message("developer", "input_text"),
        "user": _message("user", "input_text"),
        "assistant": _message("assistant", "output_text", "text"),
    },
)
FORMAT = tagged(
    "type",
    {
        "audio/pcm": fields({"type": anything, "rate": one_of(16_000, 24_000)}),
        "audio/pcmu": fields({"type": anything, "rate": one_of(8_000)}),
        "audio/pcma": fields({"type": anything, "rate": one_of(8_000)}),
    },
)
TOOL = tagged(
    "type",
    {
        "function": fields(
            {"type": anything, "name": matching("[A-Za-z0-9_-]{1,64}")},
            {
                "description": nullable(text()),
                "parameters": nullable(an_object),
                "strict": nullable(boolean),
            },
        ),
        "web_search": fields({"type": anything}),
    },
)
BACKEND: dict[str, Check] = {
    "model": text(1),
    "instructions": nullable(text()),
    "max_output_tokens": nullable(integer(1)),
    "parallel_tool_calls": nullable(boolean),
    "reasoning": fields(
        {},
        {
            "effort": one_of("none", "minimal", "low", "medium", "high", "xhigh"),
            "summary": one_of("concise", "detailed", "auto"),
        },
    ),
    "service_tier": text(1),
    "text": fields({}, {"verbosity": one_of("low", "medium", "high")}),
    "tool_choice": either(one_of("auto", "none", "required"), anything),
    "tools": listed(TOOL),
}
DELAY: dict[str, Check] = {"acknowledgement_delay_ms": integer(0)}


def _backend(*, update: bool) -> Check:
    needed = {} if update else {"model": BACKEND["model"]}
    config = fields(needed, BACKEND)
    if update:
        return fields({"type": anything}, {"responses": config, **DELAY})
    return fields({"type": anything, "responses": config}, DELAY)


def _delegation(*, update: bool) -> Check:
    client = fields({"type": anything}, DELAY)
    return nullable(tagged("type", {"client": client, "responses": _backend(update=update)}))


SESSION = fields(
    {"model": model},
    {
        "instructions": nullable(capped(INSTRUCTION_TOKENS)),
        "input": listed(HISTORY, 0, HISTORY_MESSAGES),
        "audio": fields(
            {},
            {
                "format": FORMAT,
                "output": fields(
                    {}, {"voice": either(built_in, fields({"id": matching("voice_.+")}))}
                ),
            },
        ),
        "delegation": _delegation(update=False),
        "store": boolean,
        "safety_identifier": text(1),
    },
)
UPDATE = fields({}, {"delegation": _delegation(update=True)})

ITEM = tagged(
    "type",
    {
        "function_call_output": fields(
            {"type": anything, "call_id": text(1, 64), "output": text()}, {"id": text()}
        ),
        "message": fields(
            {
                "type": anything,
                "role": one_of("user", "developer", "system"),
                "content": either(
                    text(), listed(fields({"type": one_of("input_text"), "text": text()}), 1)
                ),
            },
            {"id": text(), "status": text()},
        ),
    },
)
_APPEND: dict[str, Check] = {
    "delegation_id": nullable(text(1)),
    "content": capped(CONTENT_TOKENS, 1),
}
_EVENTS: dict[str, dict[str, Check]] = {
    "session.start": {"session": SESSION},
    "session.update": {"session": UPDATE},
    "session.input_audio.append": {"audio": base64_of()},
    "session.input_audio.mute": {},
    "session.input_audio.unmute": {},
    "session.instructions.append": _APPEND,
    "session.thinking.append": _APPEND,
    "session.commentary.append": _APPEND,
    "session.output_audio.fixture.play": {"audio": base64_of(FIXTURE_BYTES * 4 // 3)},
    "response.item.create": {"item": ITEM},
    "response.create": {},
    "session.close": {},
}


def read(frame: str | bytes) -> Json:
    """The client event in a frame, checked field by field. Raises Refused."""
    try:
        event = json.loads(frame) if isinstance(frame, str) else None
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise Refused("invalid_json", "Expected a text frame with a JSON object.")
    kind = word(event.get("type"))
    try:
        if kind not in _EVENTS:
            known = ", ".join(_EVENTS)
            raise Refused(
                "unknown_event",
                f"Unknown event '{kind}'. Supported client events: {known}.",
                "type",
            )
        fields({"type": anything, **_EVENTS[kind]}, {"event_id": text(1, 512)})("", event)
        if kind == "session.start":
            _check_history(part(event, "session"))
    except Refused as refused:
        refused.event_id = word(event.get("event_id")) or None
        raise
    return event


def _check_history(session: Json) -> None:
    """All of it together."""
    items = parts(session.get("input"))
    texts = [word(one.get("text")) for item in items for one in parts(item.get("content"))]
    if sum(map(len, texts)) > HISTORY_TOKENS * CHARS_PER_TOKEN:
        too_long = f"'session.input' has more than {HISTORY_TOKENS} tokens."
        raise Refused("invalid_value", too_long, "session.input")
