"""Content parts, texts and arguments in the forms both of OpenAI's wires share.

Pure functions. What a wire has no place for is named in words, so that the model knows of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from mimetypes import guess_extension

from ...core.encoding import json_bytes, whole_text
from ...core.messages import ContentPart, ContentSource, Message
from ...core.view import merge_user_messages, paired_results

Json = dict[str, object]


def repaired(messages: Sequence[Message]) -> list[Message]:
    """Users in a row as one message, each call directly followed by one result (core row 33)."""
    return merge_user_messages(paired_results(messages))


def agent_text(message: Message) -> str:
    """What the agent said. Media of its own is not sent (spec core 6)."""
    if message.text:
        return whole_text(message.text)
    texts = (part.text for part in message.content if part.type == "text" and part.text)
    return whole_text("\n".join(texts))


def user_parts(message: Message) -> Sequence[ContentPart]:
    """The parts of a user message, its text first where no part says it; empty for plain text."""
    if message.content and message.text and all(part.type != "text" for part in message.content):
        return (ContentPart("text", text=message.text), *message.content)
    return message.content


def media_url(source: ContentSource) -> str:
    """Where the bytes are: an address, or the bytes themselves as a data URL."""
    if source.type == "url":
        return source.url or ""
    return f"data:{source.media_type};base64,{source.data or ''}"


def file_name(part: ContentPart) -> str:
    """A document's name; OpenAI wants one."""
    if part.name:
        return part.name
    extension = guess_extension(part.source.media_type) if part.source is not None else None
    return f"document{extension or ''}"


def unseen(part: ContentPart) -> str:
    """The note in place of a part that this wire cannot show."""
    named = f" {part.name}" if part.name else ""
    return f"[{part.type}{named} cannot be shown here]"


def arguments_text(arguments: object) -> str:
    """A call's arguments as the JSON text of an object, which is all that servers take back.

    Text that was no object (the model's own mistake) is kept readable inside one.
    """
    if isinstance(arguments, str):
        parsed = parsed_arguments(arguments)
        arguments = parsed if isinstance(parsed, dict) else {"invalid_json": arguments}
    elif not isinstance(arguments, dict):
        arguments = {"value": arguments}
    return json_bytes(arguments).decode()


def parsed_arguments(raw: str) -> object:
    """A call's arguments as a dict, or the raw string when it is no JSON object (spec core 6)."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    return value if isinstance(value, dict) else raw
