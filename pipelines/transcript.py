"""The words of the turn being spoken, kept by audio span.

A value and pure functions, owned by the turn machine. A recogniser's report replaces what it
overlaps; what belongs to a committed turn never comes back into the next one (DESIGN 5.5).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..media.turns.words import words


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of input samples [start, end)."""

    text: str
    start: int
    end: int
    final: bool


@dataclass(frozen=True, slots=True)
class Transcript:
    """Pieces in order of their spans. `changed_at`: the sample at which its *words* last changed
    (re-punctuation is no change, spec 5.2). `settled`: audio before it is no longer ours."""

    pieces: tuple[Piece, ...] = ()
    changed_at: int = 0
    settled: int = 0

    @property
    def text(self) -> str:
        """All words so far."""
        return " ".join(piece.text.strip() for piece in self.pieces if piece.text.strip())

    @property
    def start(self) -> int | None:
        """First sample of the first piece."""
        return self.pieces[0].start if self.pieces else None

    @property
    def end(self) -> int | None:
        """Sample after the last piece."""
        return self.pieces[-1].end if self.pieces else None

    def put(self, piece: Piece, at: int) -> Transcript:
        """`piece` was reported at sample `at`; it replaces the pieces it is about."""
        kept = [old for old in self.pieces if not _replaces(piece, old)]
        if piece.text.strip():
            kept.append(piece)
        kept.sort(key=lambda item: item.start)
        after = replace(self, pieces=tuple(kept))
        changed = words(after.text) != words(self.text)
        return replace(after, changed_at=at) if changed else after

    def forget(self, start: int) -> Transcript:
        """What was heard from `start` on was nobody's."""
        return replace(self, pieces=tuple(old for old in self.pieces if old.end <= start))

    def settle(self, end: int, at: int) -> Transcript:
        """Everything that began before `end` is done with."""
        kept = tuple(piece for piece in self.pieces if piece.start >= end and piece.end > end)
        return Transcript(kept, at, max(self.settled, end))


EDGE = 1_600
"""Spans of neighbouring pieces may overlap by 100 ms, in samples."""


def _replaces(new: Piece, old: Piece) -> bool:
    """Whether `new` is a later report of what `old` was: it begins no later, or most of one of them
    lies in the other. A neighbour whose span is dated a little early erases no words."""
    if (new.start, new.end) == (old.start, old.end):
        return True
    overlap = min(new.end, old.end) - max(new.start, old.start)
    if overlap <= 0:
        return False
    shorter = min(old.end - old.start, new.end - new.start)
    return new.start <= old.start + EDGE or 2 * overlap > shorter
