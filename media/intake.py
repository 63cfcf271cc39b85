"""The input timeline: one unbroken 20 ms stream out of whatever a carrier delivers.

Owned by the `Call`. Holes become silence paced by the loop's clock, a burst that arrives late is
shed by as much as was filled, so that input positions stay on the clock (DTX, hold, a muted
track, a lost carrier: holds and sweeps of a brain never freeze). Reads no clock itself: it is
told the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .format import AudioFormat
from .frame import FRAME_MS, AudioFrame, silence
from .framer import Framer
from .pcm import downmix
from .resample import Resampler

FILL_AFTER_MS = 60
"""A hole this long is filled (DESIGN 2)."""

AHEAD_MS = 100
"""How far delivered audio may run ahead of the clock before what was filled is shed."""


@dataclass(slots=True)
class IntakeStatistics:
    """Samples of the brain's rate: invented as silence, and shed because they came too late."""

    filled: int = 0
    shed: int = 0


class Intake:
    """Frames of exactly 20 ms in `format`, numbered from 0 for the whole call."""

    def __init__(self, format: AudioFormat) -> None:
        self.format = format
        self.statistics = IntakeStatistics()
        self._frame = format.samples(FRAME_MS)
        self._framer = Framer(self._frame, format)
        self._resampler = Resampler(format.rate, format.rate)
        self._rate = format.rate
        self._gapless = True
        self._started: float | None = None
        self._last = 0.0
        self._debt = 0

    @property
    def at(self) -> int:
        """Input sample after the last frame that was completed."""
        return self._framer.at

    def attach(self, rate: int, *, gapless: bool, now: float) -> None:
        """A carrier of `rate` begins; its clock need not be filled when it is `gapless`."""
        if rate != self._rate:
            self._resampler, self._rate = Resampler(rate, self.format.rate), rate
        self._gapless = gapless
        self._last = now
        if self._started is None:
            self._started = now

    def detach(self) -> None:
        """No carrier: time goes on in silence."""
        self._gapless = False

    def take(self, frame: AudioFrame, now: float) -> Iterator[AudioFrame]:
        """The frames that `frame` (any length, the carrier's rate, any channels) completes."""
        self._last = now
        pcm = downmix(frame.array())
        if self._shed(len(pcm) * self.format.rate // self._rate, now):
            return
        for done in self._framer.feed(self._resampler.feed(pcm)):
            yield AudioFrame(done.pcm, done.format, done.at, frame.source)

    def gap(self, samples: int, now: float) -> Iterator[AudioFrame]:
        """The carrier says that `samples` (its rate) are lost: silence of that length."""
        self._last = now
        lost = self._resampler.feed(np.zeros(samples, np.int16))
        self.statistics.filled += len(lost)
        yield from self._framer.feed(lost)

    def fill_due(self) -> float | None:
        """The time at which the stream counts as broken, or None where it never does."""
        return None if self._gapless or self._started is None else self._last + FILL_AFTER_MS / 1000

    def fill(self, now: float) -> Iterator[AudioFrame]:
        """Silence up to the clock, if the stream is broken at `now`."""
        due = self.fill_due()
        if due is None or now < due or self._started is None:
            return
        while self.at + self._frame <= self._clock(now):
            self._debt += self._frame
            self.statistics.filled += self._frame
            yield from self._framer.feed(silence(self._frame, self.format).pcm)

    def _clock(self, now: float) -> int:
        started = now if self._started is None else self._started
        return round((now - started) * self.format.rate)

    def _shed(self, samples: int, now: float) -> bool:
        """Whether this delivery is late sound whose place silence already took."""
        ahead = self.at + samples - self._clock(now)
        if self._gapless or self._debt < samples or ahead <= self.format.samples(AHEAD_MS):
            return False
        self._debt -= samples
        self.statistics.shed += samples
        return True
