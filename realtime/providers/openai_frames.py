"""Frames of OpenAI Realtime: those to send in order, fields of those that came read with care.

Owned by the codec and its parts. Pure. What a peer sends may be anything: reading never raises.
"""

from __future__ import annotations

import base64

from ...core.encoding import json_bytes
from .codec import Frame
from .reading import Json, text

RATE = 24_000
BYTES_PER_MS = RATE * 2 // 1000
MAX_PCM = 3 * 1024 * 1024
"""Bytes of sound in one frame; the provider takes 15 MiB of base64."""


class Outbox:
    """Frames to send, oldest first, and ids for what we make: they count."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []
        self._ids = 0

    def put(self, kind: str, event_id: str = "", **fields: object) -> None:
        """Queue a client event. `event_id` comes back in an error only."""
        named = {"event_id": event_id} if event_id else {}
        self._frames.append(json_bytes({"type": kind, **named, **fields}).decode())

    def put_audio(self, pcm: bytes) -> None:
        """Queue sound, in pieces where it is too long for one frame."""
        for at in range(0, len(pcm), MAX_PCM):
            sound = base64.b64encode(pcm[at : at + MAX_PCM]).decode()
            self.put("input_audio_buffer.append", audio=sound)

    def put_item(self, item: Json, after: str | None = None) -> str:
        """Queue a new item of the conversation and give its id. `after`: `root` for the front."""
        item_id = self.new_id()
        place = {} if after is None else {"previous_item_id": after}
        self.put("conversation.item.create", **place, item={"id": item_id, **item})
        return item_id

    def new_id(self) -> str:
        """An id of ours that was not used on this connection (the wire takes 32 characters)."""
        self._ids += 1
        return f"vg_{self._ids}"

    def take(self) -> list[Frame]:
        """All that wait; each is given once."""
        frames, self._frames = self._frames, []
        return frames


def sound(of: Json, name: str) -> bytes | None:
    """Bytes of a base64 field, None where it is no base64."""
    try:
        return base64.b64decode(text(of, name), validate=True)
    except ValueError:
        return None


def ms(pcm_bytes: int) -> int:
    """Milliseconds of so many bytes of sound, begun ones left out."""
    return pcm_bytes // BYTES_PER_MS
