"""Frames of GPT-Live: the queue of those to send, limits of their texts, fields read with care.

Owned by `live_wire.py` and what it is made of. Never decides what is said.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from .codec import Frame

CONTENT_TOKENS = 500
"""Most tokens of one appended text."""
BYTES_PER_TOKEN = 3
"""Cautious: English has four, code and Chinese fewer. We have no tokeniser of this model."""
MAX_PIECES = 33
"""An appended text has at most this many pieces: as much as whole instructions may have."""


class Outbox:
    """Frames to send, in order, with ids that count."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []
        self._count = 0

    def put(self, type: str, **fields: object) -> str:
        """Queue an event and give its id. None stays in: delegation_id is required and nullable."""
        self._count += 1
        event_id = f"vg_{self._count}"
        self._frames.append(json.dumps({"type": type, "event_id": event_id, **fields}))
        return event_id

    def put_audio(self, audio: str) -> None:
        """Queue sound (base64). Never acknowledged, so it has no id."""
        self._frames.append(json.dumps({"type": "session.input_audio.append", "audio": audio}))

    def append(self, kind: str, content: str, delegation_id: str | None = None) -> tuple[str, bool]:
        """Queue a text for the model, in pieces where it is too long for one.

        `kind` is instructions, thinking or commentary. Gives the last piece's event id, "" for a
        blank text, and whether something had to be left out.
        """
        texts, event_id = pieces(content), ""
        for text in texts[:MAX_PIECES]:
            event_id = self.put(f"session.{kind}.append", delegation_id=delegation_id, content=text)
        return event_id, len(texts) > MAX_PIECES

    def take(self) -> list[Frame]:
        """All frames that wait; each is given once."""
        frames, self._frames = self._frames, []
        return frames


def tokens(text: str) -> int:
    """About how many tokens a text has; rather too many than too few."""
    return math.ceil(len(text.encode(errors="replace")) / BYTES_PER_TOKEN)


def pieces(text: str, limit: int = CONTENT_TOKENS) -> list[str]:
    """`text` in pieces of at most `limit` tokens, cut between words where that is possible."""
    return list(_pieces(text.strip(), limit * BYTES_PER_TOKEN))


def _pieces(text: str, size: int) -> Iterator[str]:
    while text:
        head = beginning(text, size)
        if len(head) < len(text):
            space = max(head.rfind(" "), head.rfind("\n"))
            head = head[:space] if space > len(head) // 2 else head
        yield head.strip()
        text = text[len(head) :].strip()


def beginning(text: str, size: int) -> str:
    """As many characters as fit into `size` bytes of UTF-8."""
    return text.encode(errors="replace")[:size].decode(errors="ignore")
