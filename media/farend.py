"""The far end: what a person heard of us, laid on the input clock.

Owned by `Line`. Feeds the echo guard's reference and the recorder's agent track. A run of sound
stays one piece however unevenly a carrier's clock advances; it is anchored anew after silence, or
when the two clocks have drifted apart. Never decides what was played: it is told.
"""

from __future__ import annotations

from collections import deque
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
        self._pieces: deque[Samples] = deque()
        """What was played, and what silence lay between, up to `_end`: at least REFERENCE of it."""
        self._held = 0
        self._known = 0
        """How much of it counts: a second, less what was said anew."""
        self._end = 0
        self._running = False

    def begin(self, rate: int) -> None:
        """The carrier plays at `rate` from here on."""
        self._rest()
        self._rate, self._tap = rate, Resampler(rate, RATE)

    @property
    def sounding(self) -> bool:
        """Whether `tick` has something to note: sound, or that it stopped."""
        return self._running or bool(self._parts)

    def played(self, parts: Iterable[Chunk]) -> None:
        """`parts` sounded since the last tick."""
        self._parts += [part.pcm for part in parts]

    def tick(self, at: int) -> None:
        """The input clock reached `at`: what sounded since the last tick ends about here."""
        if not self._parts:
            self._rest()
            return
        pcm = np.frombuffer(b"".join(self._parts), dtype="<i2")
        self._parts.clear()
        if self._rate != RATE:
            pcm = self._tap.feed(pcm)
            # The resampler's output is late by a constant; the sound itself was not.
            at -= self._tap.delay * RATE // self._rate
        close = self._running and abs(at - self._end - len(pcm)) <= DRIFT
        self._put(self._end if close else at - len(pcm), pcm)
        self._running = True

    def reference(self, at: int, samples: int) -> Samples:
        """What was played over input samples [at, at + samples), zeros where nothing was."""
        out = np.zeros(samples, np.int16)
        end = self._end
        for piece in reversed(self._pieces):
            start = end - len(piece)
            low, high = max(at, start), min(at + samples, end)
            if low < high:
                out[low - at : high - at] = piece[low - start : high - start]
            end = start
            if end <= at:
                break
        out[: min(samples, max(0, self._end - self._known - at))] = 0
        return out

    def _rest(self) -> None:
        """Sound has stopped: the resampler gives its tail, and the next run begins clean."""
        if self._running:
            self._running = False
            self._put(self._end, self._tap.flush())

    def _put(self, start: int, pcm: Samples) -> None:
        missing, samples = start - self._end, len(pcm)
        known = self._known
        if missing:
            known = max(0, known + missing)
            if missing > 0:
                self._keep(np.zeros(min(missing, REFERENCE), np.int16))
            else:
                self._take_back(-missing)
        self._known = min(REFERENCE, known + samples)
        self._end = start + samples
        if samples:
            self._keep(pcm)
            if self._record is not None:
                self._record(start, pcm)

    def _keep(self, pcm: Samples) -> None:
        """Pieces are joined only when somebody asks: 50 arrive a second, questions are rare."""
        if not len(pcm):
            return
        self._pieces.append(pcm)
        self._held += len(pcm)
        while self._held - len(self._pieces[0]) >= REFERENCE:
            self._held -= len(self._pieces.popleft())

    def _take_back(self, samples: int) -> None:
        """The newest `samples` are said anew."""
        while samples and self._pieces:
            last = self._pieces.pop()
            kept = last[: max(0, len(last) - samples)]
            samples -= len(last) - len(kept)
            self._held -= len(last)
            self._keep(kept)
