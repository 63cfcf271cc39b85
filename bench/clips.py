"""What callers say: fixtures cut into ready-made WebSocket frames, with their labels.

Everything is made before a round begins. Clips come from `tests/audio_fixtures`; their labels are
the truth that latencies are measured from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bench.ws import BINARY, frame
from tests.audio_fixtures.load import VariantClass, fixture, variants

RATE, SAMPLES, FRAME_S = 16_000, 320, 0.02
QUESTIONS = ("utterance", "ask_hours", "booking_2", "booking_3", "booking_cancel", "booking_change")
"""One turn each, no pause inside."""
INTERRUPTIONS = ("ask_repeat", "ask_hours", "stop_100", "wait_100", "no_100", "booking_cancel")

SILENCE = frame(BINARY, bytes(2 * SAMPLES))


@dataclass(frozen=True, slots=True)
class Clip:
    """`frames` ready to send; speech lies in samples [start, end)."""

    name: str
    frames: tuple[bytes, ...]
    start: int
    end: int


@lru_cache(maxsize=256)
def clip(name: str) -> Clip:
    """A fixture by name."""
    found = fixture(name)
    return cut(name, found.pcm, found.spans[0].start, found.spans[-1].end)


@lru_cache(maxsize=8)
def noises(kind: VariantClass) -> tuple[Clip, ...]:
    """All variants of a sound that must not (or must) interrupt."""
    return tuple(
        cut(one.name, one.render(), one.span().start, one.span().end) for one in variants(kind)
    )


def cut(name: str, pcm: np.ndarray[tuple[int], np.dtype[np.int16]], start: int, end: int) -> Clip:
    """`pcm` in whole frames, the last one filled up with silence."""
    whole = -(-pcm.size // SAMPLES) * SAMPLES
    padded = np.zeros(whole, "<i2")
    padded[: pcm.size] = pcm
    raw = padded.tobytes()
    pieces = (raw[at : at + 2 * SAMPLES] for at in range(0, len(raw), 2 * SAMPLES))
    return Clip(name, tuple(frame(BINARY, piece) for piece in pieces), start, end)


MARK_EVERY, MARKS = 5, 50


@lru_cache(maxsize=1)
def marked() -> tuple[bytes, ...]:
    """Frames that tell themselves apart: each fifth is loud, at a level that counts up to 50.

    Level k is 2,000 + 400 k throughout the frame; the others are silent.
    """
    made: list[bytes] = []
    for level in range(MARKS):
        loud = np.full(SAMPLES, 2_000 + 400 * level, "<i2").tobytes()
        made += [frame(BINARY, loud)] + [SILENCE] * (MARK_EVERY - 1)
    return tuple(made)


def level_of(sample: int) -> int:
    """Which mark a loud sample belongs to."""
    return round((sample - 2_000) / 400)
