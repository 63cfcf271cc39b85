"""Written text to spoken text for an English voice, and the way back from one to the other.

Pure and total: any Unicode gives a result. Our rules (`spoken_rules`) go first, what they leave
goes through voxnorm's scanner, everything else is said as written. Every changed stretch is kept
as a pair with what it became, so that a place in the sound can be traced to the stored text
(CONTRACTS D). Findings/spine-checks e. It never learns what was played.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from ...media.turns.heard import SpanPair, spoken_offset, written_offset

MAX_CHARS = 1000
"""Texts are normalised in stretches of at most about this, cut at a space: bounds the work."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """`text` is what the synthesiser gets; `pairs` cover both texts in order, without gaps."""

    text: str
    pairs: tuple[SpanPair, ...]

    def written_offset(self, spoken: int) -> int:
        """The written offset of a spoken one; inside a changed stretch, where that begins."""
        return written_offset(self.pairs, spoken)

    def spoken_offset(self, written: int) -> int:
        """The spoken offset of a written one; inside a changed stretch, where that begins."""
        return spoken_offset(self.pairs, written)


def to_spoken(text: str) -> Spoken:
    """`text` as it is said in English. Never raises; what no rule knows is said as written."""
    said: list[str] = []
    pairs: list[SpanPair] = []
    written = spoken = 0

    def add(end: int, words: str, literal: bool) -> None:
        nonlocal written, spoken
        pairs.append(SpanPair(written, end, spoken, spoken + len(words), literal))
        said.append(words)
        written, spoken = end, spoken + len(words)

    for start, end, words in _changes(text):
        if start > written:
            add(start, text[written:start], literal=True)
        add(end, words, literal=False)
    if written < len(text):
        add(len(text), text[written:], literal=True)
    return Spoken("".join(said), tuple(pairs))


def _changes(text: str) -> Iterator[tuple[int, int, str]]:
    """Every changed stretch (start, end, words), in order and apart from each other."""
    rules, speak = _rules()
    for low, high in _stretches(text):
        part = text if (low, high) == (0, len(text)) else text[low:high]
        reached = position = 0
        while match := rules.search(part, position):
            words = speak(match)
            if words is None or match.start() == match.end():
                position = match.start() + 1
                continue
            yield from _general(part, reached, match.start(), low)
            reached = position = match.end()
            if words != match.group():
                yield low + match.start(), low + match.end(), words
        yield from _general(part, reached, len(part), low)


@cache
def _rules() -> tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]]:
    """Our own rules' pattern, and what says a match of it. Imported like `_scanner`."""
    from .spoken_rules import PATTERN, speak

    return PATTERN, speak


@cache
def _scanner() -> tuple[re.Pattern[str], tuple[str, ...], Callable[[str, re.Match[str]], str]]:
    """voxnorm's pattern, the kinds of its tokens, and what says one. Imported for the first
    sentence that is spoken, or by `preload`."""
    from voxnorm.en import verbalize
    from voxnorm.tokens import TOKEN_KINDS, TOKEN_PATTERN

    return TOKEN_PATTERN, tuple(TOKEN_KINDS), verbalize


def preload() -> None:
    """Import what the first sentence needs: some 50 ms that nobody should wait for in a call."""
    _rules()
    _scanner()


def _general(part: str, start: int, end: int, shift: int) -> Iterator[tuple[int, int, str]]:
    """What voxnorm makes of the stretch our rules left."""
    if start == end:
        return
    pattern, kinds, verbalize = _scanner()
    for match in pattern.finditer(part, start, end):
        words = verbalize(_kind(match, kinds), match)
        if words != match.group():
            yield shift + match.start(), shift + match.end(), words


def _kind(match: re.Match[str], kinds: tuple[str, ...]) -> str:
    groups = match.re.groupindex
    return next(kind for kind in kinds if kind in groups and match[kind] is not None)


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while len(text) - start > MAX_CHARS:
        cut = text.rfind(" ", start, start + MAX_CHARS) + 1
        end = cut if cut > start else start + MAX_CHARS
        yield start, end
        start = end
    yield start, len(text)
