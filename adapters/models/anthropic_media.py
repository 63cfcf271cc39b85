"""Images and documents as blocks of Anthropic's Messages wire.

Images, PDF and plain text are shown; of anything else (video, a foreign picture format, a text at
an address) the model reads that it is there (spec core 6). Pure.
Source: `anthropic` types/image_block_param, types/document_block_param.
"""

from __future__ import annotations

from base64 import b64encode

from ...core.messages import ContentPart, ContentSource
from .media_parts import inline_bytes, inlined, note, web_address

Block = dict[str, object]

IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
PDF = "application/pdf"


def media_block(part: ContentPart) -> Block:
    """The block of an image, video or document."""
    wire = None
    if part.source is not None:
        source = inlined(part.source)
        if part.type == "image":
            wire = _image(source)
        elif part.type == "document":
            wire = _document(source)
    if wire is None:
        return {"type": "text", "text": note(part)}
    block: Block = {"type": part.type, "source": wire}
    if part.type == "document" and part.name:
        block["title"] = part.name
    return block


def _image(source: ContentSource) -> Block | None:
    return _url(source) or (_inline(source) if source.media_type in IMAGES else None)


def _document(source: ContentSource) -> Block | None:
    if source.media_type == PDF:
        return _url(source) or _inline(source)
    if not source.media_type.startswith("text/"):
        return None
    text = inline_bytes(source).decode(errors="replace")
    return {"type": "text", "media_type": "text/plain", "data": text} if text.strip() else None


def _url(source: ContentSource) -> Block | None:
    address = web_address(source)
    return None if address is None else {"type": "url", "url": address}


def _inline(source: ContentSource) -> Block | None:
    raw = inline_bytes(source)
    if not raw:
        return None
    return {
        "type": "base64",
        "media_type": source.media_type,
        "data": b64encode(raw).decode(),
    }
