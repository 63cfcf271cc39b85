"""Messages, tool calls and tool results: the values history is made of.

Frozen and comparable; a store keeps them as JSON (`encode_message`, `decode_message`) and every
flag survives the trip (spec core 5, 19.4). Nothing here reads or writes a store.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Literal, TypedDict

from pydantic import TypeAdapter

from .encoding import json_bytes, whole_text

Sender = Literal["user", "agent"]
Playback = Literal["pending", "settled"]
ResultStatus = Literal["success", "error", "aborted"]
FrameworkContext = Literal["runtime", "inbox", "event", "history"]
IdSource = Callable[[str], str]
MEDIA_ONLY = "[multimodal message]"
"""The text of a user message whose parts have none."""


@dataclass(frozen=True, slots=True)
class ContentSource:
    """Where a media part's bytes are: inline (base64 `data`) or at a `url`."""

    type: Literal["base64", "url"]
    media_type: str
    data: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class ContentPart:
    """One part of a multimodal message; text parts carry `text`, media parts `source`."""

    type: Literal["text", "image", "video", "document"]
    text: str | None = None
    source: ContentSource | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to run a tool; `input_args` is a dict, or the raw text if it was not JSON."""

    tool_name: str
    input_args: object
    id: str = ""
    provider_options: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class ToolResultData:
    """A tool's outcome. Only `data` and, unless it succeeded, `message` ever reach a model."""

    status: ResultStatus
    data: object = None
    message: str | None = None
    render_data: object = None
    summary: str | None = None
    generate_summary_args: object = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one terminal result of a call; `duration_ms` covers permission wait and retries."""

    tool_name: str
    call_id: str
    result: ToolResultData
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of history.

    `playback` is set on assistant text that is spoken: `pending` until playback was cut or
    drained, then `settled` with `heard`/`unheard` splitting `text`. While pending, `heard` may
    hold the last reported progress. `interrupted` says the text was cut, `estimated` that the
    playback clock was an estimate. `context_id` names the provider whose value a message with
    framework_context `history` holds.
    """

    sender: Sender
    text: str = ""
    id: str = ""
    content: tuple[ContentPart, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    playback: Playback | None = None
    heard: str | None = None
    unheard: str | None = None
    interrupted: bool = False
    estimated: bool = False
    is_tool_results: bool = False
    is_compaction: bool = False
    is_compaction_request: bool = False
    is_skill_injection: bool = False
    pre_modified_text: str | None = None
    reasoning_content: str | None = None
    framework_context: FrameworkContext | None = None
    context_id: str | None = None
    provider_options: Mapping[str, object] | None = None

    @property
    def is_user_turn(self) -> bool:
        """True for what a person said or typed; false for everything the framework wrote."""
        return (
            self.sender == "user"
            and not self.is_tool_results
            and not self.tool_results
            and not self.is_compaction
            and not self.is_compaction_request
            and not self.is_skill_injection
            and self.framework_context is None
        )


class MessagePatch(TypedDict, total=False):
    """The fields an amendment may change; absent keys keep their value."""

    text: str
    content: tuple[ContentPart, ...]
    tool_results: tuple[ToolResult, ...]
    playback: Playback | None
    heard: str | None
    unheard: str | None
    interrupted: bool
    estimated: bool
    pre_modified_text: str | None


def apply_patch(message: Message, patch: MessagePatch) -> Message:
    """The amended message. Unknown keys raise TypeError."""
    return replace(message, **patch)


def with_text(message: Message, text: str) -> Message:
    """A user message with another wording; the first one is kept as pre_modified_text.

    Of content parts the first text part carries the new text, other text parts go, media stay at
    their place.
    """
    if text == message.text:
        return message
    first = message.text if message.pre_modified_text is None else message.pre_modified_text
    return replace(
        message, text=text, content=_content_with(message.content, text), pre_modified_text=first
    )


def _content_with(content: tuple[ContentPart, ...], text: str) -> tuple[ContentPart, ...]:
    """The parts with `text` in place of theirs; none stay none."""
    if not content:
        return ()
    at = next((at for at, part in enumerate(content) if part.type == "text"), len(content))
    media = [part for part in content[at:] if part.type != "text"]
    return (*content[:at], ContentPart("text", text=text), *media)


def random_id(prefix: str) -> str:
    """A collision-free id such as `msg_4f…`."""
    return f"{prefix}_{uuid.uuid4().hex}"


def sequential_ids(scope: str) -> IdSource:
    """Ids `msg_<scope>_1`, `call_<scope>_2`, … for runs that must be repeatable to the byte.

    Unique only while `scope` is (a call id is); do not use it to reopen an old store.
    """
    count = 0

    def next_id(prefix: str) -> str:
        nonlocal count
        count += 1
        return f"{prefix}_{scope}_{count}"

    return next_id


_DEFAULTS = tuple((field.name, field.default) for field in fields(Message))


@cache
def _adapter() -> TypeAdapter[Message]:
    """Made when the first message is stored: it costs as much as the whole module."""
    return TypeAdapter(Message)


def encode_message(message: Message) -> bytes:
    """JSON of every field that is not at its default, by the rules of encoding.json_bytes."""
    changed = {
        name: value for name, default in _DEFAULTS if (value := getattr(message, name)) != default
    }
    return json_bytes(changed)


def decode_message(raw: bytes | str) -> Message:
    """The inverse of encode_message; raises pydantic.ValidationError on foreign JSON."""
    return _adapter().validate_json(raw)


def data_text(data: object) -> str:
    """A tool's data as a model reads it: a string as it is, anything else as JSON.

    Total, and always text that UTF-8 can carry: see encoding.json_bytes.
    """
    return whole_text(data) if isinstance(data, str) else json_bytes(data).decode()


def result_text(result: ToolResultData) -> str:
    """What a model is told about a result (spec core 4, 19.10): never `null` for an abort."""
    if result.status == "success":
        return data_text(result.data)
    head = "Error" if result.status == "error" else "Aborted"
    body = f"\n{data_text(result.data)}" if result.data is not None else ""
    return f"{head}: {result.message or 'no details'}{body}"


def aborted_result(reason: str | None) -> ToolResultData:
    """The result of a call that was stopped; the model reads the message, never `null`."""
    return ToolResultData("aborted", None, f"This tool call was stopped: {reason or 'aborted'}.")
