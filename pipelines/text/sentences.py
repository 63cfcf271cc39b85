"""Cuts an agent's token stream into pieces worth speaking: sentences, and a short first chunk.

One `SentenceBuffer` per reply, owned by the reply task. Lossless: the pieces put together are the
input, character for character; how the input was cut into tokens makes no difference. It never
changes text and knows nothing of voices. Spec/voice 6, W-20, rows 41-43; findings/local-speech 5.

A stop is decided only when the next character that is not a space is known: "$3." may become
"$3.14", "Dr. " is a title, "p.m. on" goes on in lower case. `flush` decides without it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

STOPS = ".!?…"
WIDE_STOPS = "。！？｡．؟।॥۔"
CLAUSE_MARKS = ",;:"
WIDE_CLAUSE_MARKS = "，、；：،؛"
CLOSERS = "\"')]}»”’›」』）】》〉］*_`"

_MARK = re.compile(rf"[{re.escape(STOPS + WIDE_STOPS + CLAUSE_MARKS + WIDE_CLAUSE_MARKS)}]|\s+")
_STOP_RUN = re.compile(rf"[{re.escape(STOPS + WIDE_STOPS)}]+[{re.escape(CLOSERS)}]*")
_LAST_WORD = re.compile(r"(?:[^\W_]|[.'’&])+$")
_NUMBERED = re.compile(r"\s*[(\[]?\d{1,3}$")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")

_TITLES = frozenset(
    (
        "dr",
        "mr",
        "mrs",
        "ms",
        "mx",
        "prof",
        "rev",
        "hon",
        "gen",
        "col",
        "capt",
        "cmdr",
        "lt",
        "sgt",
        "maj",
        "sen",
        "rep",
        "gov",
        "pres",
        "fr",
        "mt",
        "ft",
        "vs",
    )
)
"""A name or another word always follows: never the end of a sentence."""

_ABBREVIATIONS = frozenset(
    (
        "e.g",
        "i.e",
        "cf",
        "approx",
        "ca",
        "al",
        "fig",
        "figs",
        "eq",
        "vol",
        "pp",
        "ed",
        "eds",
        "nr",
        "ext",
        "tel",
        "max",
        "min",
        "avg",
        "temp",
        "incl",
        "excl",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "mon",
        "tue",
        "tues",
        "wed",
        "thu",
        "thur",
        "thurs",
        "fri",
    )
)
"""Something follows more often than not; only the end of the text ends the sentence."""

_BEFORE_NUMBERS = frozenset(("no", "nos", "p", "art", "sec", "ch", "op", "st"))
"""Abbreviations only in front of a digit."""

_NOT_STREET_NAMES = frozenset(
    (
        "the",
        "in",
        "at",
        "on",
        "of",
        "a",
        "an",
        "and",
        "for",
        "near",
        "to",
        "from",
        "by",
        "with",
        "visit",
        "see",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceConfig:
    """How pieces are cut.

    `first_clause_words`: the first chunk of a reply may end at , ; : after this many words.
    `first_words`: it ends after this many words when `first_patience` words came without any mark.
    `max_chars`: no piece is longer; it is then cut at its last clause, else word, else here.
    """

    first_clause_words: int = 2
    first_words: int = 5
    first_patience: int = 8
    max_chars: int = 240

    def __post_init__(self) -> None:
        if not 1 <= self.first_words <= self.first_patience:
            given = f"{self.first_words} with first_patience {self.first_patience}"
            raise ValueError(f"first_words: {given} cannot be used; use 1..first_patience")
        if self.max_chars < 2:
            raise ValueError(f"max_chars: {self.max_chars} cannot be used; use 2 or more")


DEFAULTS = SentenceConfig()


class SentenceBuffer:
    """Feed `push` with tokens, speak what it returns, and `flush` when the text is complete."""

    def __init__(self, config: SentenceConfig = DEFAULTS) -> None:
        self._config = config
        self._pending = ""
        self._first = True

    @property
    def pending(self) -> str:
        """Text that was pushed and not returned yet."""
        return self._pending

    def push(self, token: str) -> list[str]:
        """Add text; the pieces it completed, in order, each with its trailing spaces."""
        self._pending += token
        return self._take(final=False)

    def flush(self) -> list[str]:
        """The rest as pieces; the buffer is empty and the next text has a first chunk again."""
        pieces = self._take(final=True)
        if self._pending:
            pieces.append(self._pending)
        self.reset()
        return pieces

    def reset(self) -> None:
        """Forget what is pending, as if new."""
        self._pending = ""
        self._first = True

    def _take(self, *, final: bool) -> list[str]:
        pieces: list[str] = []
        start = 0
        while start < len(self._pending):
            window = self._pending[start : start + self._config.max_chars + 1]
            last = final and len(self._pending) - start <= self._config.max_chars
            end = _Scan(window, self._config, self._first, last).piece_end()
            if end is None or (final and end >= len(self._pending) - start):
                break
            pieces.append(window[:end])
            start += end
            self._first = False
        self._pending = self._pending[start:]
        return pieces


def split_sentences(text: str, config: SentenceConfig = DEFAULTS) -> list[str]:
    """All of `text` in pieces at once, without a first chunk. Together they are `text`."""
    pieces: list[str] = []
    start = 0
    while start < len(text):
        window = text[start : start + config.max_chars + 1]
        last = len(text) - start <= config.max_chars
        end = _Scan(window, config, False, last).piece_end() or len(window)
        pieces.append(window[:end])
        start += end
    return pieces


class _Scan:
    """One pass from the left over the pending text for the end of its first piece.

    Candidates are judged in order and each verdict depends on a bounded stretch of text after it,
    so it comes out the same for every way the text arrives in tokens. It sees one character
    more than a piece may have; when that does not decide it, the piece is cut by length.
    """

    def __init__(self, text: str, config: SentenceConfig, first: bool, final: bool) -> None:
        self._text = text
        self._config = config
        self._first = first
        self._final = final
        self._words = 0
        self._word_cut = 0
        self._last_clause = 0
        self._last_space = 0

    def piece_end(self) -> int | None:
        """End of the first piece, or None while the text does not decide it."""
        index = len(self._text) - len(self._text.lstrip())
        counted = index
        while match := _MARK.search(self._text, index):
            if self._text[counted : match.start()].strip():
                self._words += match.group().isspace()
            verdict = self._judge(match)
            if verdict == 0:
                break
            if verdict is not None:
                return verdict
            index = self._past(match)
            if match.group().isspace():
                counted = match.end()
        return self._too_long()

    def _past(self, match: re.Match[str]) -> int:
        run = _STOP_RUN.match(self._text, match.start())
        return run.end() if run else match.end()

    def _judge(self, match: re.Match[str]) -> int | None:
        """The piece's end at this mark; None: it does not end here; 0: not known yet."""
        mark = match.group()
        if mark.isspace():
            return self._at_space(match)
        if mark in STOPS or mark in WIDE_STOPS:
            return self._at_stop(match)
        return self._at_clause(match)

    def _at_space(self, match: re.Match[str]) -> int | None:
        follows = self._next_visible(match.end())
        if "\n" in match.group():
            return 0 if follows is None and not self._final else match.end()
        if follows is None:
            return 0
        self._last_space = match.end()
        if self._first and self._words == self._config.first_words and not self._word_cut:
            self._word_cut = match.end()
        if self._first and self._words >= self._config.first_patience and self._word_cut:
            return self._word_cut
        return None

    def _at_stop(self, match: re.Match[str]) -> int | None:
        run = _STOP_RUN.match(self._text, match.start())
        end = run.end() if run else match.end()
        if end == len(self._text):
            return end if self._final else 0
        after = self._spaces_to(end)
        if self._is_wide(match, end):
            follows = self._next_visible(end)
            return after if follows is not None or self._final else 0
        if after == end:
            return None
        follows = self._next_visible(end)
        if follows is None:
            return after if self._final else 0
        return after if self._ends_sentence(match, follows) else None

    def _is_wide(self, match: re.Match[str], end: int) -> bool:
        """A full-width stop, or a plain one between two characters of an unspaced script."""
        if any(char in WIDE_STOPS for char in self._text[match.start() : end]):
            return True
        before, after = self._text[match.start() - 1 : match.start()], self._text[end]
        return "\u3040" <= before <= "\u9fff" and "\u3040" <= after <= "\u9fff"

    def _at_clause(self, match: re.Match[str]) -> int | None:
        wide = match.group() in WIDE_CLAUSE_MARKS
        end = match.end()
        if end == len(self._text):
            return None if self._final else 0
        after = self._spaces_to(end)
        if after == end and not wide:
            return None
        if self._next_visible(end) is None and not self._final:
            return 0
        self._last_clause = after
        words = self._words + 1 + self._unspaced_words(match.start())
        if self._first and words >= self._config.first_clause_words:
            return after
        return None

    def _unspaced_words(self, end: int) -> int:
        """Words in unspaced script before `end`: two characters count as one."""
        return sum("\u3040" <= char <= "\u9fff" for char in self._text[:end]) // 2

    def _ends_sentence(self, match: re.Match[str], follows: str) -> bool:
        if follows.islower():
            return False
        stop = self._text[match.start() : self._past(match)]
        if not stop.startswith(".") or stop.startswith(".."):
            return True
        before = self._text[: match.start()]
        if _NUMBERED.fullmatch(before):
            return False
        word = _LAST_WORD.search(before)
        return word is None or not self._is_abbreviation(word, follows)

    def _is_abbreviation(self, match: re.Match[str], follows: str) -> bool:
        word = match.group()
        lower = word.lower()
        if lower in _TITLES or lower in _ABBREVIATIONS:
            return not (lower in _TITLES and lower == "dr" and not follows.isalpha())
        if lower in _BEFORE_NUMBERS and follows.isdigit():
            return True
        if lower == "st":
            return self._is_saint(match.start())
        return word != "I" and word.isupper() and bool(_INITIALS.fullmatch(word)) and len(word) == 1

    def _is_saint(self, start: int) -> bool:
        """Saint before a name, but Street after one: "5th St. The", "Main St. The"."""
        before = self._text[:start].split()
        if not before:
            return True
        last = before[-1]
        if last[0].isdigit():
            return False
        named = last[0].isupper() and len(before) > 1
        return not named or last.lower() in _NOT_STREET_NAMES

    def _spaces_to(self, index: int) -> int:
        while index < len(self._text) and self._text[index].isspace():
            index += 1
        return index

    def _next_visible(self, index: int) -> str | None:
        index = self._spaces_to(index)
        return self._text[index] if index < len(self._text) else None

    def _too_long(self) -> int | None:
        """Where to cut a piece that outgrew the limit; None while it has not."""
        limit = self._config.max_chars
        if len(self._text) <= limit:
            return None
        clause = self._last_clause if self._last_clause > limit // 3 else 0
        return clause or self._last_space or limit
