"""Content parts in the forms both of OpenAI's wires share.

Pure functions. What a wire has no place for is named in words, so that the model knows of it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from mimetypes import guess_extension

from ...core.messages import ContentPart, ContentSource, Message
from ...core.view import merge_user_messages, paired_results
from .media_parts import inline_bytes, inlined, web_address

Json = dict[str, object]

IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})


def repaired(messages: Sequence[Message]) -> list[Message]:
    """Users in a row as one message, each call directly followed by one result (core row 33)."""
    return merge_user_messages(paired_results(messages))


def user_parts(message: Message) -> Sequence[ContentPart]:
    """The parts of a user message, its text first where no part says it; empty for plain text."""
    if message.content and message.text and all(part.type != "text" for part in message.content):
        return (ContentPart("text", text=message.text), *message.content)
    return message.content


def media_url(source: ContentSource) -> str | None:
    """Where the bytes are: an address of the web, or a data URL; None: nothing that could be sent.

    One part that the server cannot read would refuse every later request of the conversation.
    """
    source = inlined(source)
    address, raw = web_address(source), inline_bytes(source)
    if address is not None or not raw:
        return address
    return f"data:{source.media_type};base64,{b64encode(raw).decode()}"


def image_url(source: ContentSource) -> str | None:
    """The same for pictures, which have to be of a format that servers know."""
    source = inlined(source)
    known = source.type == "url" or source.media_type in IMAGES
    return media_url(source) if known else None


def file_name(part: ContentPart) -> str:
    """A document's name; OpenAI wants one."""
    if part.name:
        return part.name
    extension = guess_extension(part.source.media_type) if part.source is not None else None
    return f"document{extension or ''}"
