"""What vendors' wires need to know about images, videos and documents. Pure; knows no JSON."""

from __future__ import annotations

from base64 import b64decode

from ...core.messages import ContentPart, ContentSource


def inlined(source: ContentSource) -> ContentSource:
    """A `data:` address as what it carries; anything else as it is."""
    head, found, data = (source.url or "").partition(";base64,")
    if source.type != "url" or not found or not head.startswith("data:"):
        return source
    return ContentSource("base64", head.removeprefix("data:"), data=data)


def inline_bytes(source: ContentSource) -> bytes:
    """What an inline source carries; nothing for an address, or for what is no base64."""
    if source.type != "base64" or not source.data:
        return b""
    try:
        return b64decode("".join(source.data.split()), validate=True)
    except ValueError:
        return b""


def web_address(source: ContentSource) -> str | None:
    """The address, where a provider can fetch it."""
    fetchable = (source.url or "").startswith(("https://", "http://"))
    return source.url if source.type == "url" and fetchable else None


def note(part: ContentPart) -> str:
    """What a model reads in place of a part that its wire cannot show (spec core 6)."""
    named = " ".join(word for word in (part.type, part.name) if word)
    return f"[{named} cannot be shown here]"
