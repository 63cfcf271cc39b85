"""Frames of Gemini Live: those to send, in order, and fields of those that came, read with care.

Owned by `gemini_wire.py` and its parts. Pure. What a peer sends may be anything: reading never
raises. Source: protocols/gemini-live 2 and 4.
"""

from __future__ import annotations

import base64
import binascii
import re

from ...core.encoding import json_bytes
from .codec import Frame
from .reading import Json, text

MAX_PCM = 512 * 1024
"""Bytes of sound in one frame."""
_STANDARD = str.maketrans("-_", "+/")


class Outbox:
    """Frames to send, oldest first. Until `open` only the setup goes out; the rest waits."""

    def __init__(self) -> None:
        self._now: list[Frame] = []
        self._later: list[Frame] = []
        self._open = False

    def put_setup(self, setup: Json) -> None:
        """The first frame."""
        self._now.append(_framed({"setup": setup}))

    def put(self, key: str, value: Json) -> None:
        """A frame of one kind: there is one key in each."""
        (self._now if self._open else self._later).append(_framed({key: value}))

    def put_first(self, key: str, value: Json) -> None:
        """A frame before those that wait for `open`."""
        self._later.insert(0, _framed({key: value}))

    def put_realtime(self, field: str, value: object) -> None:
        """One field of realtimeInput: there is one in each."""
        self.put("realtimeInput", {field: value})

    def put_media(self, field: str, data: bytes, mime: str) -> None:
        """Sound or a picture."""
        encoded = base64.b64encode(data).decode()
        self.put_realtime(field, {"mimeType": mime, "data": encoded})

    def put_audio(self, pcm: bytes, rate: int) -> None:
        """Sound, in pieces where it is too long for one frame."""
        for at in range(0, len(pcm), MAX_PCM):
            self.put_media("audio", pcm[at : at + MAX_PCM], f"audio/pcm;rate={rate}")

    def open(self) -> None:
        """The setup was taken."""
        self._open = True
        self._now += self._later
        self._later = []

    def clear(self) -> None:
        """Nothing can be sent any more."""
        self._now, self._later = [], []

    def take(self) -> list[Frame]:
        """All frames that may go; each is given once."""
        frames, self._now = self._now, []
        return frames


def _framed(message: Json) -> str:
    return json_bytes(message).decode()


def seconds(of: Json, name: str) -> float:
    """A duration such as "1.500s", 0 where there is none: a zero is left out on this wire."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)s", text(of, name))
    return float(found[1]) if found else 0.0


def samples(of: Json) -> bytes | None:
    """Whole 16-bit samples of a blob in either base64; None where it is none."""
    try:
        data = base64.b64decode(text(of, "data").translate(_STANDARD), validate=True)
    except (binascii.Error, ValueError):
        return None
    return data[: len(data) // 2 * 2]
