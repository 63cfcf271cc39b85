"""What the caller heard of a segment: its text up to the sample that was played.

Owned by the line's segments (one `SegmentText` each); never plays, never reads a clock, never
changes history (the agent loop writes what `Heard` says). Spec/voice 11, rows 32, 33; field-faults
30-32; CONTRACTS D.

Two texts are in play. The *written* one is stored and shown, the *spoken* one went to the
synthesiser; `SpanPair`s say which stretch of one is which stretch of the other. Alignments are
offsets into the spoken text. The unit of hearing is the written word (a character in scripts
without spaces), or several words that one pair holds together ("7:30 pm").

A word counts as heard when at least half of its sound was played. Without alignments the place is
estimated in proportion, and then the last word counts only when the whole sound was played: the
whole text is never claimed on an estimate.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..errors import MediaValueError
from .words import is_unspaced

CHARS_PER_SECOND = 15
"""Speaking rate assumed while the length of the sound is not known yet (spec/voice 11)."""


class AlignedSpan(Protocol):
    """Spoken text [text_start, text_end) sounds in samples [sample_start, sample_end)."""

    @property
    def text_start(self) -> int: ...
    @property
    def text_end(self) -> int: ...
    @property
    def sample_start(self) -> int: ...
    @property
    def sample_end(self) -> int: ...


@dataclass(frozen=True, slots=True)
class SpanPair:
    """Written [written_start, written_end) is said as spoken [spoken_start, spoken_end).

    `literal`: the two stretches are the same characters, so places inside map one to one.
    """

    written_start: int
    written_end: int
    spoken_start: int
    spoken_end: int
    literal: bool = False


def written_offset(pairs: Sequence[SpanPair], spoken: int) -> int:
    """The written offset of a spoken one. Inside a changed stretch: where that stretch begins."""
    index = bisect_right(pairs, spoken, key=lambda pair: pair.spoken_start) - 1
    if index < 0:
        return 0
    pair = pairs[index]
    if spoken >= pair.spoken_end:
        return pair.written_end
    return pair.written_start + (spoken - pair.spoken_start if pair.literal else 0)


def spoken_offset(pairs: Sequence[SpanPair], written: int) -> int:
    """The spoken offset of a written one. Inside a changed stretch: where that stretch begins."""
    index = bisect_right(pairs, written, key=lambda pair: pair.written_start) - 1
    if index < 0:
        return 0
    pair = pairs[index]
    if written >= pair.written_end:
        return pair.spoken_end
    return pair.spoken_start + (written - pair.written_start if pair.literal else 0)


@dataclass(frozen=True, slots=True)
class Heard:
    """`text` was heard, `unheard` was not; together they are the segment's written text.

    `estimated`: the border between them rests on a proportion, not on an alignment.
    """

    text: str
    unheard: str
    estimated: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing but spaces was left unheard."""
        return not self.unheard.strip()


def join_heard(parts: Iterable[Heard]) -> Heard:
    """The parts of one answer, in order, as one. Text after the first unheard word is unheard."""
    text, unheard, estimated = "", "", False
    for part in parts:
        estimated = estimated or part.estimated
        if unheard.strip():
            unheard += part.text + part.unheard
        else:
            text, unheard = text + unheard + part.text, part.unheard
    return Heard(text, unheard, estimated)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A word with what clings to it: written [.., end) and its spoken stretch."""

    end: int
    spoken_start: int
    spoken_end: int


class SegmentText:
    """The text of one segment and where its words lie in its sound.

    Grows as the synthesiser works: `add` text, `align` and `sound` as they arrive, `close` when it
    reports that it is done. `heard` may be asked at any moment and is monotone in `played`.
    All samples count from the segment's first sample at `rate`.
    """

    def __init__(self, rate: int = 16_000) -> None:
        if rate <= 0:
            raise MediaValueError("rate", str(rate), "use the output rate in Hz")
        self.rate = rate
        self.text = ""
        self._spoken = 0
        self._pairs: list[SpanPair] = []
        self._offsets = [0]
        self._samples = [0]
        self._total = 0
        self._closed = False

    def add(self, written: str, pairs: Sequence[SpanPair] = ()) -> None:
        """Append a piece. `pairs` cover it from its own zero; without them it is said as written.

        Raises MediaValueError when the pairs do not end where the written piece ends.
        """
        if not written and not pairs:
            return
        pairs = pairs or (SpanPair(0, len(written), 0, len(written), literal=True),)
        if pairs[-1].written_end != len(written):
            given = f"a cover of {pairs[-1].written_end} of {len(written)} characters"
            raise MediaValueError("pairs", given, "cover the whole written piece")
        before = len(self.text)
        for pair in pairs:
            self._pairs.append(
                SpanPair(
                    pair.written_start + before,
                    pair.written_end + before,
                    pair.spoken_start + self._spoken,
                    pair.spoken_end + self._spoken,
                    pair.literal,
                )
            )
        self.text += written
        self._spoken = self._pairs[-1].spoken_end

    def align(self, span: AlignedSpan) -> None:
        """Take one alignment. Spans come in text order; what runs backwards is clamped."""
        self._knot(span.text_start, span.sample_start)
        self._knot(span.text_end, span.sample_end)

    def sound(self, samples: int) -> None:
        """`samples` more samples of this segment exist."""
        self._total += max(0, samples)

    def close(self) -> None:
        """No more sound will come: from here the length is known."""
        self._closed = True

    def heard(self, played: int) -> Heard:
        """What was heard when `played` samples of this segment were played."""
        if played <= 0:
            return Heard("", self.text)
        length = max(self._total, self._samples[-1])
        if self._closed and 0 < length <= played:
            return Heard(self.text, "")
        units = self._units()
        timeline = self._timeline()
        aligned_to = self._offsets[-1]
        end, count = 0, 0
        for unit in units:
            begins, ends = timeline.after(unit.spoken_start), timeline.before(unit.spoken_end)
            if 2 * played < begins + ends:
                break
            if count == len(units) - 1 and unit.spoken_end > aligned_to:
                break
            end, count = unit.end, count + 1
        beyond = count < len(units) and units[count].spoken_end > aligned_to
        return Heard(self.text[:end], self.text[end:], estimated=beyond)

    def _knot(self, offset: int, sample: int) -> None:
        self._offsets.append(max(offset, self._offsets[-1]))
        self._samples.append(max(sample, self._samples[-1]))

    def _timeline(self) -> _Timeline:
        """The knots, closed by the end of the sound: known, or estimated from a speaking rate."""
        offsets, samples = list(self._offsets), list(self._samples)
        rest = self._spoken - offsets[-1]
        if rest > 0:
            end = self._total
            if not self._closed:
                end = max(end, samples[-1] + rest * self.rate // CHARS_PER_SECOND)
            offsets.append(self._spoken)
            samples.append(max(end, samples[-1]))
        return _Timeline(offsets, samples)

    def _units(self) -> list[_Unit]:
        """The written words, those joined where one changed pair spans several."""
        ends = [match.end() for match in re.finditer(r"\S+\s*|^\s+", self.text)]
        ends = _split_unspaced(self.text, ends)
        inside = [(p.written_start, p.written_end) for p in self._pairs if not p.literal]
        units: list[_Unit] = []
        start = 0
        for end in ends:
            if end != ends[-1] and _splits(inside, end):
                continue
            stop = start + len(self.text[start:end].rstrip())
            first, last = spoken_offset(self._pairs, start), spoken_offset(self._pairs, stop)
            units.append(_Unit(end, first, max(first, last)))
            start = end
        return units


@dataclass(frozen=True, slots=True)
class _Timeline:
    """Piecewise linear: spoken offset to sample. Two knots at one offset are a silence there."""

    offsets: list[int]
    samples: list[int]

    def after(self, offset: int) -> int:
        """The sample at which text from `offset` on begins to sound."""
        return self._between(bisect_right(self.offsets, offset), offset)

    def before(self, offset: int) -> int:
        """The sample at which text up to `offset` has sounded."""
        return self._between(bisect_left(self.offsets, offset), offset)

    def _between(self, index: int, offset: int) -> int:
        if index == 0:
            return self.samples[0]
        if index == len(self.offsets):
            return self.samples[-1]
        low, high = self.offsets[index - 1], self.offsets[index]
        if high == low:
            return self.samples[index]
        share = (self.samples[index] - self.samples[index - 1]) * (offset - low)
        return self.samples[index - 1] + share // (high - low)


def _split_unspaced(text: str, ends: list[int]) -> list[int]:
    """Further ends between the characters of scripts written without spaces."""
    if text.isascii():
        return ends
    found: list[int] = []
    start = 0
    for end in ends:
        for index in range(start + 1, end):
            if is_unspaced(text[index]) and text[index].isalnum():
                found.append(index)
        found.append(end)
        start = end
    return found


def _splits(inside: list[tuple[int, int]], offset: int) -> bool:
    """Whether `offset` lies strictly inside one of the changed stretches."""
    index = bisect_right(inside, offset, key=lambda span: span[0]) - 1
    return index >= 0 and inside[index][0] < offset < inside[index][1]
