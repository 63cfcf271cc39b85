"""The end of a turn without a model: four tiers read off the transcript alone.

Stateless and pure; decides alone, and where a turn detector has no answer. CONTRACTS E,
spec/voice 5.1 with section 24: the question comes first, and a short last word alone is no
dictation (W-21: "Can you help me?" must not wait two seconds).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Tier = Literal["empty", "question", "dictation", "statement", "unfinished"]

_CLOSERS = " \t\r\n\"'”’»)]}」』"
_QUESTION = tuple("?!？！؟")
_STATEMENT = tuple(".…。।॥۔｡．")
_SPLIT = re.compile(r"[\s\-–—,]+")
_TRAILING = re.compile(r"[^\w]+$")

_SHORT_WORDS = frozenset(
    ("am", "an", "as", "at", "be", "by", "do", "go", "ha", "he", "hi", "if", "in", "is", "it")
    + ("me", "mr", "ms", "my", "no", "of", "oh", "ok", "on", "or", "so", "to", "tv", "uh", "um")
    + ("up", "us", "we", "ya", "ah", "id", "im")
)
"""Two-letter words of ordinary speech: never spelling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiers:
    """Hold of each tier in milliseconds from the end of speech."""

    question_ms: int = 0
    statement_ms: int = 600
    unfinished_ms: int = 900
    dictation_ms: int = 2000

    def __post_init__(self) -> None:
        for name in ("question_ms", "statement_ms", "unfinished_ms", "dictation_ms"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: {getattr(self, name)} cannot be used; use 0 or more")

    def hold(self, tier: Tier) -> int:
        """The hold of `tier`; nothing said holds nothing."""
        return {
            "empty": 0,
            "question": self.question_ms,
            "statement": self.statement_ms,
            "unfinished": self.unfinished_ms,
            "dictation": self.dictation_ms,
        }[tier]


def tier_of(transcript: str) -> Tier:
    """The tier of a transcript, in order: empty, question, dictation, statement, unfinished."""
    text = transcript.rstrip(_CLOSERS)
    if not text:
        return "empty"
    if text.endswith(_QUESTION):
        return "question"
    if is_dictation(text):
        return "dictation"
    return "statement" if text.endswith(_STATEMENT) else "unfinished"


def is_question(transcript: str) -> bool:
    """Whether the transcript ends as a question."""
    return transcript.rstrip(_CLOSERS).endswith(("?", "？", "؟"))


def is_dictation(transcript: str) -> bool:
    """Whether the caller is reading out digits or letters: a digit last, or two spelled tokens.

    A spelled token has one or two characters and is no ordinary short word; "a" and "I" count as
    letters only beside another.
    """
    tokens = [_TRAILING.sub("", token) for token in _SPLIT.split(transcript)]
    tokens = [token for token in tokens if token]
    if not tokens:
        return False
    if tokens[-1][-1].isdigit():
        return True
    spelled = 0
    for token in reversed(tokens):
        if not _is_spelled(token):
            break
        spelled += 1
    return spelled >= 2


def is_spelling(transcript: str) -> bool:
    """Whether the caller says nothing but letters and digits, at least one letter among them.

    A lone letter is hardly ever an answer, it is the first of several (field fault 22); digits
    alone may well be one. "X7L" counts: recognisers join what is spelled.
    """
    tokens = [_TRAILING.sub("", token) for token in _SPLIT.split(transcript)]
    tokens = [token for token in tokens if token]
    if not tokens or not all(_is_spelled(token) or _CODE.fullmatch(token) for token in tokens):
        return False
    letters = [token for token in tokens if not token.isdigit()]
    return any(letter.lower() not in ("a", "i") for letter in letters)


_CODE = re.compile(r"(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z\d]+")


def _is_spelled(token: str) -> bool:
    return (
        len(token) <= 2
        and token.isascii()
        and token.isalnum()
        and token.lower() not in _SHORT_WORDS
    )
