"""Content parts in the forms both of OpenAI's wires share.

Pure functions. What a wire has no place for is named in words, so that the model knows of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from mimetypes import guess_extension

from ...core.messages import ContentPart, ContentSource, Message
from ...core.view import merge_user_messages, paired_results

Json = dict[str, object]


def repaired(messages: Sequence[Message]) -> list[Message]:
    """Users in a row as one message, each call directly followed by one result (core row 33)."""
    return merge_user_messages(paired_results(messages))


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
