"""The audio of an utterance that no turn has taken yet, in pieces a batch recogniser can read.

Owned by one recogniser of one call. Free of I/O and of any clock: positions are samples of the
call, which the gate may have sent with pauses left out. It never decides when somebody stopped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...media.pcm import Samples

RATE = 16_000

LONGEST = 28 * RATE
"""Longest piece; an utterance beyond it is cut at the quietest place near the end of it."""

CUT_SEARCH = 6 * RATE
"""The quietest place is looked for in this much of a piece's end."""

TAIL = RATE * 96 // 1000
"""Audio after an utterance's end that is read with it: `end` is dated back to the last voiced
frame, and a final s or t comes after it. As much as was heard when a pause is speculated on: both
read the same samples, so speculation cannot change a text (docs/decisions/0009)."""

LONGEST_GAP = RATE // 2
"""A pause that was left out is given to the model as silence, of at most this length."""

_QUIET = RATE // 10


@dataclass(slots=True, eq=False)
class Piece:
    """Audio of [start, end), pauses shortened. `text` is filled by whoever reads it first."""

    start: int
    end: int
    samples: Samples
    text: str | None = None


class Utterance:
    """What was said since the last settled sample."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._stretches: list[_Stretch] = []
        self._reads: dict[int, int] = {}

    def add(self, at: int, samples: Samples) -> Piece | None:
        """Append audio. A jump in `at` is a pause; what lies before audio already kept is dropped.

        Returns the piece that was finished by it, if the utterance grew beyond `LONGEST`.
        """
        last = self._stretches[-1] if self._stretches else None
        if last is not None:
            samples = samples[max(0, last.end - at) :]
            at = max(at, last.end)
        if last is not None and at == last.end:
            last.append(samples)
        elif len(samples):
            self._stretches.append(_Stretch(at, samples))
        return self._finish_piece() if self._length() > LONGEST else None

    def before(self, end: int) -> tuple[int, tuple[Piece, ...]]:
        """First unsettled sample, and the pieces up to `end` with its tail.

        Settling `end` later forgets exactly what this read.
        """
        pieces = self.peek(end)
        if any(stretch.start < end + TAIL for stretch in self._stretches):
            self._reads[end] = pieces[-1].end
        return min(pieces[0].start, end) if pieces else end, pieces

    def peek(self, end: int) -> tuple[Piece, ...]:
        """The pieces of `before`, without a promise: what is settled later knows nothing of it."""
        until = end + TAIL
        pieces = [piece for piece in self._pieces if piece.start < until]
        open_ones = [stretch for stretch in self._stretches if stretch.start < until]
        if open_ones:
            read = min(until, open_ones[-1].end)
            pieces.append(Piece(open_ones[0].start, read, _join(open_ones, until)))
        return tuple(pieces)

    def settle(self, end: int) -> None:
        """Forget everything before `end`, and the tail that was read for it."""
        upto = max([end, *(read for asked, read in self._reads.items() if asked <= end)])
        self._reads = {asked: read for asked, read in self._reads.items() if asked > end}
        self._pieces = [piece for piece in self._pieces if (piece.start + piece.end) // 2 > upto]
        self._forget(upto)

    def _forget(self, upto: int) -> None:
        self._stretches = [stretch for stretch in self._stretches if stretch.end > upto]
        if self._stretches:
            self._stretches[0].forget(upto)

    def _length(self) -> int:
        """Samples of the open stretches joined."""
        total, end = 0, None
        for stretch in self._stretches:
            gap = 0 if end is None else min(stretch.start - end, LONGEST_GAP)
            total += gap + len(stretch)
            end = stretch.end
        return total

    def _finish_piece(self) -> Piece:
        start = self._stretches[0].start
        joined = _join(self._stretches, self._stretches[-1].end)
        size = _quietest(joined)
        end = _position(self._stretches, size)
        piece = Piece(start, end, joined[:size])
        self._pieces.append(piece)
        self._forget(end)
        return piece


class _Stretch:
    """Audio without a hole."""

    def __init__(self, start: int, samples: Samples) -> None:
        self.start = start
        self._parts = [samples]
        self._length = len(samples)

    def __len__(self) -> int:
        return self._length

    @property
    def end(self) -> int:
        return self.start + self._length

    def append(self, samples: Samples) -> None:
        self._parts.append(samples)
        self._length += len(samples)

    def array(self) -> Samples:
        """All of it; kept joined, so that asking often costs little."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0]

    def forget(self, upto: int) -> None:
        """Drop what lies before sample `upto`."""
        kept = self.array()[max(0, upto - self.start) :]
        self.start = self.end - len(kept)
        self._parts, self._length = [kept], len(kept)


def _join(stretches: list[_Stretch], until: int) -> Samples:
    parts: list[Samples] = []
    end: int | None = None
    for stretch in stretches:
        if end is not None:
            parts.append(np.zeros(min(stretch.start - end, LONGEST_GAP), np.int16))
        parts.append(stretch.array()[: max(0, until - stretch.start)])
        end = stretch.end
    return np.concatenate(parts)


def _position(stretches: list[_Stretch], index: int) -> int:
    """Call position of sample `index` of the joined audio; a pause counts as its end."""
    end: int | None = None
    for stretch in stretches:
        index -= 0 if end is None else min(stretch.start - end, LONGEST_GAP)
        if index <= len(stretch):
            return stretch.start + max(index, 0)
        index -= len(stretch)
        end = stretch.end
    return stretches[-1].end


def _quietest(joined: Samples) -> int:
    """Middle of the quietest 100 ms within the last `CUT_SEARCH` of `LONGEST`."""
    first = LONGEST - CUT_SEARCH
    window = joined[first:LONGEST].astype(np.float64) ** 2
    sums = np.convolve(window, np.ones(_QUIET), mode="valid")[:: _QUIET // 4]
    return first + int(np.argmin(sums)) * (_QUIET // 4) + _QUIET // 2
