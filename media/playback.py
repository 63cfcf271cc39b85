"""Playback truth: which sample of which segment sits at which output position.

Pure bookkeeping for one attached carrier: told what was sent, cleared and corrected; tells what
was played and what lies behind a stop. Counts samples only; knows no transport and no clock.
Owned by `Line`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple


class Chunk(NamedTuple):
    """Mono 16-bit PCM of one segment: `offset` is its first sample within that segment."""

    segment: int
    offset: int
    pcm: bytes

    @property
    def samples(self) -> int:
        """Samples in `pcm`."""
        return len(self.pcm) // 2

    @property
    def end(self) -> int:
        """Segment sample after the last one."""
        return self.offset + len(self.pcm) // 2

    def slice(self, start: int, stop: int) -> Chunk:
        """Samples [start, stop) of this chunk."""
        if start <= 0 and stop >= self.samples:
            return self
        start = max(0, start)
        return Chunk(self.segment, self.offset + start, self.pcm[2 * start : 2 * stop])


class _Sent(NamedTuple):
    """A chunk and its place: output samples since its epoch began."""

    chunk: Chunk
    start: int
    end: int


@dataclass(slots=True)
class _Epoch:
    """Sound between two clears. `base` = output sample at which it began; `told` of its `length`
    output samples were told to be played."""

    index: int
    base: int
    length: int = 0
    told: int = 0
    behind: deque[_Sent] = field(default_factory=deque)
    """Told to the end."""
    ahead: deque[_Sent] = field(default_factory=deque)
    """Not told, or in part."""

    @property
    def end(self) -> int:
        """Output sample after the last one sent."""
        return self.base + self.length

    def parts(self, start: int, stop: int) -> Iterator[Chunk]:
        """The pieces within output samples [start, stop), in order."""
        low, high = start - self.base, stop - self.base
        for sent in chain(self.behind, self.ahead):
            if sent.start >= high:
                return
            if sent.end > low:
                yield sent.chunk.slice(low - sent.start, high - sent.start)

    def tell(self, high: int) -> list[Chunk]:
        """The pieces within [`told`, `high`), with `told` < `high` <= `length`; they are told."""
        parts, low = [], self.told
        while low < high:
            sent = self.ahead[0]
            parts.append(sent.chunk.slice(low - sent.start, high - sent.start))
            if sent.end <= high:
                self.behind.append(self.ahead.popleft())
            low = sent.end
        self.told = high
        return parts


class Playback:
    """The ledger of one carrier. Positions are output samples played since it was attached.

    The last `keep` played samples stay replayable, for a stop that turns out to lie earlier.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._live = _Epoch(0, 0)
        self._closed: _Epoch | None = None
        self._expired = False
        self._known = False

    @property
    def epoch(self) -> int:
        """Index of the epoch now open; the first is 0."""
        return self._live.index

    @property
    def end(self) -> int:
        """Output sample after the last one sent."""
        return self._live.end

    @property
    def advanced(self) -> int:
        """Output sample up to which `advance` has told what was played."""
        return self._live.base + self._live.told

    @property
    def finished(self) -> bool:
        """Whether `advance` has told all that was sent: it has nothing more to tell."""
        live = self._live
        return live.told >= live.length

    @property
    def fresh(self) -> bool:
        """Whether nothing was sent since the last stop (or at all)."""
        return not self._live.length

    @property
    def stop_known(self) -> bool:
        """Whether nothing was sent since a stop whose true position the carrier has told."""
        return self.fresh and self._known

    def append(self, chunk: Chunk) -> None:
        """`chunk` goes to the carrier behind all others."""
        live = self._live
        start = live.length
        live.length = end = start + chunk.samples
        live.ahead.append(_Sent(chunk, start, end))

    def retract(self, chunk: Chunk) -> bool:
        """The carrier never took `chunk`. False, and nothing changes, unless it is the last one
        of the open epoch: after a stop it was among what lay behind."""
        live = self._live
        if not live.ahead or live.ahead[-1].chunk is not chunk:
            return False
        live.length = live.ahead.pop().start
        return True

    def advance(self, played: int) -> list[Chunk]:
        """What was played since the last call, now that `played` output samples were."""
        live = self._live
        high = min(played - live.base, live.length)
        if high <= live.told:
            return []
        parts = live.tell(high)
        behind, floor = live.behind, high - self._keep
        while behind and behind[0].end <= floor:
            behind.popleft()
        return parts

    def close(self, stop: int) -> list[Chunk]:
        """The carrier was cleared at output sample `stop`: what lay behind it, in order."""
        closed = self._live
        stop = max(closed.base, min(stop, closed.end))
        self._closed = closed
        self._live = _Epoch(closed.index + 1, stop)
        self._expired = self._known = False
        return list(closed.parts(stop, closed.end))

    def expire(self) -> None:
        """What the carrier says from now on about the last stop comes too late."""
        self._expired = True

    def correct(self, epoch: int, pos: int) -> tuple[list[Chunk], list[Chunk]] | None:
        """The carrier's word: epoch `epoch` really stopped at `pos`.

        Every later position moves by the same amount: the carrier counts on from `pos` too.
        Returns what was played of it (as far as kept) and what lay behind, or None when it is
        not the last closed one, was corrected before, or is `expire`d: such words are ignored
        (DESIGN 2), but for the last kind's move of positions.
        """
        closed = self._closed
        if closed is None or closed.index != epoch:
            return None
        self._closed = None
        stop = max(closed.base, min(pos, closed.end))
        self._live.base = stop
        if self._expired:
            return None
        self._known = True
        return list(closed.parts(closed.base, stop)), list(closed.parts(stop, closed.end))
