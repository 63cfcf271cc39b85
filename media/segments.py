"""The pieces of speech a line plays: what was given, sent and heard of each.

Owned by `Line`; pure counting. It outlives a carrier, so that an answer interrupted by a lost
socket still knows what was heard. A segment that was cut is dead: its number opens no new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .errors import MediaValueError
from .playback import Chunk
from .resample import Resampler


@dataclass(frozen=True, slots=True)
class Heard:
    """How much of a segment a person heard: `samples` at its own rate, of `total` given.

    `complete` = all of it, and there is no more to come. `estimated` = the carrier's clock is.
    """

    segment: int
    samples: int
    total: int
    complete: bool
    estimated: bool


@dataclass(slots=True)
class Segment:
    """`given` counts samples at `rate` (the speaker's); `sent`, `heard` count output samples.

    `lag` = samples at `rate` by which resampling made the output late.
    """

    key: int
    rate: int
    out_rate: int
    resampler: Resampler
    lag: int = 0
    given: int = 0
    sent: int = 0
    heard: int = 0
    finished: bool = False
    started: bool = False

    @property
    def complete(self) -> bool:
        """Everything of it was heard."""
        return self.finished and self.heard >= self.sent

    def report(self, *, estimated: bool) -> Heard:
        """The person's share, in the segment's own samples."""
        samples = max(0, self.heard * self.rate // self.out_rate - self.lag)
        if self.complete:
            samples = self.given
        return Heard(self.key, min(samples, self.given), self.given, self.complete, estimated)

    def rebase(self, out_rate: int) -> None:
        """The next carrier plays at `out_rate`. The old resampler was flushed before."""
        self.sent = self.sent * out_rate // self.out_rate
        self.heard = self.heard * out_rate // self.out_rate
        self.resampler = Resampler(self.rate, out_rate)
        self.lag += self.resampler.delay
        self.out_rate = out_rate


class Segments:
    """All segments still of interest, by number; numbers only grow."""

    def __init__(self) -> None:
        self._open: dict[int, Segment] = {}
        self._floor = -1
        """Highest number that was cut or ended: nothing up to it opens again."""
        self._cut_floor = -1

    def get(self, key: int, rate: int, out_rate: int) -> Segment | None:
        """The segment, opened if new; None when it was cut or has ended.

        Raises MediaValueError when it was opened at another rate.
        """
        segment = self._open.get(key)
        if segment is None and key > self._floor:
            resampler = Resampler(rate, out_rate)
            segment = Segment(key, rate, out_rate, resampler, resampler.delay)
            self._open[key] = segment
        if segment is not None and segment.rate != rate:
            raise MediaValueError(
                "frame.format.rate", f"{rate} Hz", f"segment {key} began at {segment.rate} Hz"
            )
        return segment

    def find(self, key: int) -> Segment | None:
        """The segment if it is open."""
        return self._open.get(key)

    def alive(self, chunk: Chunk) -> bool:
        """Whether `chunk` may still be played: all but what was cut, for an estimate may have
        ended a segment whose last samples a correction brings back."""
        return chunk.segment > self._cut_floor

    def cut(self) -> list[Segment]:
        """Kill all of them; late writes of their numbers vanish."""
        dead = list(self._open.values())
        self._floor = self._cut_floor = max([self._floor, *self._open])
        self._open.clear()
        return dead

    def end(self, segment: Segment) -> None:
        """It was heard to its end: nothing is left to count."""
        del self._open[segment.key]
        self._floor = max(self._floor, segment.key)

    @property
    def none(self) -> bool:
        """Whether none is open."""
        return not self._open

    def complete(self) -> list[Segment]:
        """The open ones that were heard to their end, oldest first."""
        return [one for one in self._open.values() if one.finished and one.complete]

    def all(self) -> list[Segment]:
        """The open ones, oldest first."""
        return list(self._open.values())


def note_played(segments: Iterable[Segment], parts: Iterable[Chunk]) -> None:
    """`parts` were heard."""
    by_key = {segment.key: segment for segment in segments}
    for part in parts:
        if (segment := by_key.get(part.segment)) is not None:
            segment.heard = max(segment.heard, part.end)


def note_unplayed(segments: Iterable[Segment], behind: Iterable[Chunk]) -> None:
    """`behind` was not heard after all: an estimate had granted too much."""
    by_key = {segment.key: segment for segment in segments}
    for part in behind:
        if (segment := by_key.get(part.segment)) is not None:
            segment.heard = min(segment.heard, part.offset)
