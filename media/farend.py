"""The far end: what a person heard of us, laid on the input clock.

Owned by `Line`. Feeds the echo guard's reference and the recorder's agent track. A run of sound
stays one piece however unevenly a carrier's clock advances; it is anchored anew after silence, or
when the two clocks have drifted apart. Never decides what was played: it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from .events import RATE
from .playback import Chunk
from .resample import Resampler

REFERENCE = RATE
"""Samples of far-end sound kept for the echo guard."""

DRIFT = RATE * 40 // 1000
"""A run of sound is anchored anew when it is this far from where the clock says."""

Samples = npt.NDArray[np.int16]
Record = Callable[[int, Samples], None]
"""Takes (input sample at 16 kHz, sound); must not raise."""


class FarEnd:
    """The last second of what was played, at 16 kHz, ending at input sample `end`."""

    def __init__(self, record: Record | None = None) -> None:
        self._record = record
        self._rate = RATE
        self._tap = Resampler(RATE, RATE)
        self._parts: list[bytes] = []
        self._pcm: Samples = np.zeros(0, np.int16)
        self._end = 0
        self._running = False

    def begin(self, rate: int) -> None:
        """The carrier plays at `rate` from here on."""
        self._rest()
        self._rate, self._tap = rate, Resampler(rate, RATE)

    def played(self, parts: Iterable[Chunk]) -> None:
        """`parts` sounded since the last tick."""
        self._parts += [part.pcm for part in parts]

    def tick(self, at: int) -> None:
        """The input clock reached `at`: what sounded since the last tick ends about here."""
        if not self._parts:
            self._rest()
            return
        pcm = self._tap.feed(np.frombuffer(b"".join(self._parts), dtype="<i2"))
        self._parts.clear()
        # The resampler's output is late by a constant; the sound itself was not.
        at -= self._tap.delay * RATE // self._rate
        close = self._running and abs(at - self._end - len(pcm)) <= DRIFT
        self._put(self._end if close else at - len(pcm), pcm)
        self._running = True

    def reference(self, at: int, samples: int) -> Samples:
        """What was played over input samples [at, at + samples), zeros where nothing was."""
        out = np.zeros(samples, np.int16)
        start = self._end - len(self._pcm)
        low, high = max(at, start), min(at + samples, self._end)
        if low < high:
            out[low - at : high - at] = self._pcm[low - start : high - start]
        return out

    def _rest(self) -> None:
        """Sound has stopped: the resampler gives its tail, and the next run begins clean."""
        if self._running:
            self._running = False
            self._put(self._end, self._tap.flush())

    def _put(self, start: int, pcm: Samples) -> None:
        missing = start - self._end
        if missing >= 0:
            before = np.concatenate((self._pcm, np.zeros(min(missing, REFERENCE), np.int16)))
        else:
            before = self._pcm[: max(0, len(self._pcm) + missing)]
        self._pcm = np.concatenate((before, pcm))[-REFERENCE:]
        self._end = start + len(pcm)
        if self._record is not None and len(pcm):
            self._record(start, pcm)
