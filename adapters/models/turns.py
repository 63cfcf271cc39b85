"""What a stored message shows to a model, before any wire gives it a form. Pure; knows no JSON."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.encoding import whole_text
from ...core.messages import ContentPart, Message

BEGUN = "[The conversation begins.]"
"""The user's turn on wires that want one first, where there is none."""
SILENT = "[The user said nothing.]"
"""The same in the middle and at the end."""


def agent_text(message: Message) -> str:
    """What the agent said. Media of its own is not sent (spec core 6)."""
    if message.text:
        return whole_text(message.text)
    texts = (part.text for part in message.content if part.type == "text" and part.text)
    return whole_text("\n".join(texts))


def user_parts(message: Message) -> Iterator[ContentPart]:
    """The parts of a user message, its text first where no part says it; blank text is left out."""
    if message.text.strip() and not any(part.type == "text" for part in message.content):
        yield ContentPart("text", text=message.text)
    for part in message.content:
        if part.type != "text" or (part.text is not None and part.text.strip()):
            yield part
