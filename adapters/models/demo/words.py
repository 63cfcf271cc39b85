"""What was said, as plain lower-case words: one spelling for numerals, dots and apostrophes.

Owned by `understand`. Pure text work over any Unicode input: nothing here raises on odd text,
reads a clock or knows the dialogue. Numbers longer than four digits are no numbers here.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_CARDINAL_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
_FILLER_WORDS = "uh um er erm ah oh hmm hm mm well so like please then okay ok hey and"

UNITS = {
    word: value
    for value, word in enumerate(
        _CARDINAL_WORDS.split(),
        start=1,
    )
}
# What a small recogniser writes for a spoken digit. Only read as digits where a number must stand.
MISHEARD = {"won": 1, "to": 2, "too": 2, "tu": 2, "tree": 3, "for": 4, "fore": 4, "fiver": 5}
MISHEARD |= {"sics": 6, "sicks": 6, "ate": 8, "ait": 8, "nein": 9}
FILLERS = frozenset(_FILLER_WORDS.split())

_TOKEN = re.compile(r"\d{1,2}:\d{2}(?!\d)|\d+(?:st|nd|rd|th)\b|\d+|[^\W\d_]+(?:'[^\W\d_]+)*")
_HALVES_OF_DAY = re.compile(r"(?<!\w)([ap])(?:\.\s?m\b\.?| m\b)", re.IGNORECASE)
_DOTTED_TIME = re.compile(r"(?<![\d.,$€£])(\d{1,2})\.(\d{2})(?![\d])")


@dataclass(frozen=True, slots=True)
class Word:
    """One word: `text` lower-case, `raw` as recognised, `start` its offset in `Utterance.text`."""

    text: str
    raw: str
    start: int


@dataclass(frozen=True, slots=True)
class Utterance:
    """The words of one or more joined user turns and their text, joined by single spaces."""

    words: tuple[Word, ...]
    text: str


def utterance(said: str) -> Utterance:
    """Split what was said into words; "7.30 p.m." becomes "7:30 pm", "seven-thirty" two words."""
    plain = unicodedata.normalize("NFKC", said).replace("\u2019", "'").replace("\u2018", "'")
    plain = _HALVES_OF_DAY.sub(r"\1m", plain)
    plain = _DOTTED_TIME.sub(r"\1:\2", plain)
    words: list[Word] = []
    at = 0
    for raw in _TOKEN.findall(plain):
        lower = raw.casefold()
        words.append(Word(lower, raw, at))
        at += len(lower) + 1
    return Utterance(tuple(words), " ".join(word.text for word in words))


def mask(text: str, spans: list[tuple[int, int]]) -> str:
    """`text` with the spans already understood overwritten by '#', offsets unchanged."""
    for start, end in spans:
        text = text[:start] + "#" * (end - start) + text[end:]
    return text


def number(word: str, *, misheard: bool = False) -> int | None:
    """The value of a number word or of up to four digits; None for any other word."""
    if word.isdecimal():
        return int(word) if len(word) <= 4 else None
    if misheard and word in MISHEARD:
        return MISHEARD[word]
    return UNITS.get(word)


def alternatives(*tables: dict[str, int]) -> str:
    """A regular expression for any key of the tables, the longest first."""
    keys = sorted({key for table in tables for key in table}, key=len, reverse=True)
    return "|".join(re.escape(key) for key in keys)
