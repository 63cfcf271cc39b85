"""Names in speech: "my name is anna smith", "Anna Smith.", "under Smith", "S M I T H".

Owned by `understand`. A name needs a cue ("my name is"), capitals behind a weak cue ("I'm Anna"),
or the question for it just asked. Never guesses a name out of ordinary words.
"""

from __future__ import annotations

import re

from .words import FILLERS, UNITS, Utterance, Word

_ORDINARY_WORDS = (
    "a an the i i'm i'd i'll it it's its is was be my me we our us you your yours he she they "
    "this that these those there here what which who when where why how of on in at to too "
    "for from by with under about or and but not no nope yes yeah yep yup sure right correct "
    "exactly ok okay please thanks thank hello hi hey good morning evening afternoon bye "
    "goodbye night just actually sorry wait can could would will should do does did don't "
    "have has had want like need book booking booked table tables reservation reserve cancel "
    "change move find people person persons guests time day date name today tomorrow tonight "
    "noon midnight am pm o'clock half quarter past open close closed hours free available "
    "make more less again repeat slower human calling looking fine great perfect wrong maybe "
    "only also still never mind forget all so see speak talk let's going want wanted that's "
    "what's i've everything nothing anything something same other another different later "
    "earlier one two letter capital dash hyphen space last first new spelled under robot real "
    "done ready out up down if then as are were been am"
)
_LEAD_IN_WORDS = "yes yeah yep sure it's its it is that's that the name be would"

_STRONG = re.compile(
    r"\b(?:my (?:full |last |first )?name is|my name's|(?<!what )(?:the )?name(?:'s| is| was)"
    r"|the name should be|name (?:to|should be|as)|under the name(?: of)?|under|in the name of"
    r"|name of|call me|spell(?:ed|s|t)?(?: it)?(?: as| like)?)(?=\s)"
)
_WEAK = re.compile(r"\b(?:this is|it's|it is|its|i'm|i am|for|that's|that is|and)(?=\s)")
_NO_NAME = frozenset(_ORDINARY_WORDS.split()) | frozenset(UNITS)
_DROP = FILLERS | frozenset(_LEAD_IN_WORDS.split())


def find_name(said: Utterance, masked: str, *, asked: bool) -> str | None:
    """The last name given, in title case, or None. `asked`: the name was the open question."""
    for pattern, needs_capitals in ((_STRONG, False), (_WEAK, not asked)):
        cues = [match.end() for match in pattern.finditer(masked)]
        for cue in reversed(cues):
            name = _run(said, masked, cue, needs_capitals)
            if name is not None:
                return name
    return _whole(said, masked) if asked else None


def bare_name(said: Utterance, masked: str) -> str | None:
    """A correction that is only a name, "No, Hannah Smith.": capitals, nothing else said."""
    words = [word for word in said.words if word.text not in _DROP | {"no", "nope"}]
    if not words or not all(word.raw[:1].isupper() for word in words):
        return None
    return _joined(words) if _all_names(words, masked) else None


def _run(said: Utterance, masked: str, cue: int, needs_capitals: bool) -> str | None:
    """The name that starts behind offset `cue`, as far as its words are name words."""
    run: list[Word] = []
    for word in said.words:
        if word.start < cue:
            continue
        if not run and word.text in _DROP and len(word.text) > 1:
            continue
        if not _is_name(word, masked) and not (len(word.text) == 1 and word.text.isalpha()):
            break
        if needs_capitals and not word.raw[:1].isupper():
            break
        run.append(word)
    return _joined(run) if 1 <= len(_letters_joined(run)) <= 5 else None


def _whole(said: Utterance, masked: str) -> str | None:
    words = [word for word in said.words if word.text not in _DROP]
    if "#" in masked:  # "Anna Smith, for two tomorrow": what is left must be capitals
        words = [word for word in words if _is_name(word, masked)]
        if not all(word.raw[:1].isupper() for word in words):
            return None
    letters = len(words) >= 2 and all(len(word.text) == 1 for word in words)
    if not letters and not _all_names(words, masked):
        return None
    return _joined(words)


def _all_names(words: list[Word], masked: str) -> bool:
    return 1 <= len(_letters_joined(words)) <= 4 and all(
        _is_name(word, masked) or (len(word.text) == 1 and word.text.isalpha()) for word in words
    )


def _is_name(word: Word, masked: str) -> bool:
    if masked[word.start : word.start + 1] == "#" or word.text in _NO_NAME:
        return False
    return word.text.replace("'", "").isalpha() and len(word.text) <= 40


def _joined(words: list[Word]) -> str | None:
    """Title case; a spelling replaces the word it sounds like: "Smith, S M Y T H" is Smyth."""
    parts = _letters_joined(words)
    if len(parts) >= 2 and len(words) > len(parts):
        spelled = parts[-1]
        if len(spelled) > 2 and parts[-2][:1].casefold() == spelled[:1].casefold():
            parts = [*parts[:-2], spelled]
    parts = [part for part in parts if len(part) > 1] or parts
    named = " ".join(_title(part) for part in parts)
    return named if len(named) > 1 else None


def _letters_joined(words: list[Word]) -> list[str]:
    """The words with every run of single letters made one word."""
    parts: list[str] = []
    spelling = False
    for word in words:
        single = len(word.text) == 1
        if single and spelling:
            parts[-1] += word.raw
        else:
            parts.append(word.raw)
        spelling = single
    return parts


def _title(part: str) -> str:
    mixed = part[:1].isupper() and not part.isupper()
    return part if mixed else part[:1].upper() + part[1:].lower()
