"""Images, videos and documents as parts of Gemini's wire: inline bytes, or an address.

What Gemini does not read (a foreign picture format, an office document) is named, so that the model
knows of it (spec core 6). Pure. Source: `google-genai` types.Blob, types.FileData.
"""

from __future__ import annotations

from ...core.messages import ContentPart, ContentSource
from .media_parts import inline_bytes, inlined, note, web_address

Part = dict[str, object]

IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
TEXT = "text/plain"


def media_part(part: ContentPart) -> Part:
    """The part of an image, video or document."""
    if part.source is not None:
        source = inlined(part.source)
        media_type = _media_type(part, source)
        address, raw = web_address(source), inline_bytes(source)
        if media_type is not None and address is not None:
            return {"file_data": {"file_uri": address, "mime_type": media_type}}
        if media_type is not None and raw:
            return {"inline_data": {"data": raw, "mime_type": media_type}}
    return {"text": note(part)}


def _media_type(part: ContentPart, source: ContentSource) -> str | None:
    """The type under which Gemini reads it; None: not at all."""
    given = source.media_type
    match part.type:
        case "image" if given in IMAGES:
            return given
        case "video" if given.startswith("video/"):
            return given
        case "document" if given == "application/pdf":
            return given
        case "document" if given.startswith("text/"):
            return TEXT
    return None
