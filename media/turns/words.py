"""Words as they are compared: what two recognisers' texts have in common.

A recogniser re-punctuates and re-cases its own text about once a second, so everything that asks
"is this new?" (dedupe, stillness, correction) compares words, never characters (spec/voice 5.2).
Pure functions over text; no state, no I/O. Never changes what is stored or shown.

A word is a run of Unicode letters, digits and combining marks, apostrophes inside it kept. Scripts
written without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) give one word per character, so that
a growing sentence has a growing list of words there too.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

TAIL_EXTENSION_CHARS = 24
"""A final that only appends fewer characters than this is a tail extension (row 66)."""

_APOSTROPHES = frozenset("'\u2019\u02bc\u2018\uff07")
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),
    (0x3040, 0x30FF),  # kana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),  # Han
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),
    (0x20000, 0x3FFFF),
)


@dataclass(frozen=True, slots=True)
class Word:
    """A normalised word and its place [start, end) in the text it came from."""

    text: str
    start: int
    end: int


def is_unspaced(char: str) -> bool:
    """Whether `char` belongs to a script written without spaces between words."""
    code = ord(char)
    return code >= 0x0E00 and any(low <= code <= high for low, high in _UNSPACED)


def spans(text: str) -> tuple[Word, ...]:
    """The words of `text` with their offsets, in order."""
    found: list[Word] = []
    start, index, length = 0, 0, len(text)
    while index < length:
        if not _is_word_char(text[index]):
            index += 1
            continue
        start = index
        index = _word_end(text, index)
        found.append(Word(_fold(text[start:index]), start, index))
    return tuple(found)


def words(text: str) -> tuple[str, ...]:
    """The words of `text`, case-folded and compatibility-normalised."""
    return tuple(word.text for word in spans(text))


def same_words(a: str, b: str) -> bool:
    """Whether two texts hold the same words, whatever their punctuation and case."""
    return words(a) == words(b)


def after_prefix(text: str, prefix: str) -> str:
    """The part of `text` after the words of `prefix`; `text` itself if they do not begin it.

    Punctuation that belongs to the last prefix word goes with it. Equal words give "".
    """
    head, found = words(prefix), spans(text)
    if not head or tuple(word.text for word in found[: len(head)]) != head:
        return text
    if len(found) == len(head):
        return ""
    return text[_opening(text, found[len(head) - 1].end, found[len(head)].start) :]


def split_words(text: str, count: int) -> tuple[str, str]:
    """`text` as its first `count` words, and the rest; punctuation stays with the word before."""
    found = spans(text)
    if count <= 0:
        return "", text
    if len(found) <= count:
        return text, ""
    cut = _opening(text, found[count - 1].end, found[count].start)
    return text[:cut].rstrip(), text[cut:]


FinalKind = Literal["same", "tail", "correction"]


def compare_final(sent: str, final: str) -> FinalKind:
    """How the confirming final differs from the text that was committed (row 66).

    "same": the same words. "tail": the same words and fewer than 24 characters appended.
    "correction": anything else; the user's message must be amended.
    """
    head, tail = words(sent), words(final)
    if head == tail:
        return "same"
    rest = after_prefix(final, sent)
    if head and tail[: len(head)] == head and len(rest.strip()) < TAIL_EXTENSION_CHARS:
        return "tail"
    return "correction"


def _is_word_char(char: str) -> bool:
    """A letter, digit or combining mark: `\\w` misses the marks that Indic words are made of."""
    return char.isalnum() or (char > "\u02ff" and unicodedata.category(char)[0] == "M")


def _word_end(text: str, index: int) -> int:
    """The end of the word that begins at `index`."""
    alone = is_unspaced(text[index])
    index += 1
    while index < len(text):
        char = text[index]
        if _is_word_char(char):
            mark = unicodedata.category(char)[0] == "M"
            if (alone or is_unspaced(char)) and not mark:
                break
        elif not (char in _APOSTROPHES and _joins(text, index)):
            break
        index += 1
    return index


def _joins(text: str, index: int) -> bool:
    """Whether the apostrophe at `index` stands between two letters of one word."""
    follower = text[index + 1 : index + 2]
    return text[index - 1].isalnum() and follower.isalnum() and not is_unspaced(follower)


def _fold(word: str) -> str:
    folded = unicodedata.normalize("NFKC", word).casefold()
    return "".join("'" if char in _APOSTROPHES else char for char in folded)


def _opening(text: str, last_end: int, next_start: int) -> int:
    """Where the next word's own text begins: after the spaces, before its opening marks."""
    index = next_start
    while index > last_end and not text[index - 1].isspace():
        index -= 1
    return next_start if index == last_end else index
