"""What the caller's few words over the agent's voice mean: go on, stop, or a turn of their own.

Pure functions and one table. The barge-in policy asks here what a report says; nothing here cuts
or resumes. Small recognisers spell the same hum in a dozen ways, so hums are matched by shape and
the rest by phrase. Sources: findings/field-faults 26, 27; CONTRACTS E.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .words import words

Kind = Literal["empty", "backchannel", "stop", "words"]

_HUM = re.compile(
    r"m+|h+m+|m+h+m*|m+h+u+h*|u+h+|u+h+m+|u+m+|u+h+u+h+|a+h+|a+h+a+|o+h+|e+r+m*|h+u+h*|h+"
)
"""The last two are what is left of an "uh-huh" that a recogniser breaks off."""
_NOISE_TAG = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|\*[^*]*\*|<[^<>]*>|♪[^♪]*♪?")
"""What recognisers write for sounds that are no words: [BLANK_AUDIO], (coughs), *sighs*."""

_MAX_PHRASE = 4


def _phrases(*texts: str) -> frozenset[tuple[str, ...]]:
    return frozenset(words(text) for text in texts)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The phrases of one language, as word tuples (see `words`).

    `fillers` decide nothing alone but may stand beside a stop phrase ("please stop now").
    `max_words` bounds both kinds: more words than that are a turn whatever they are.
    """

    backchannels: frozenset[tuple[str, ...]]
    stops: frozenset[tuple[str, ...]]
    fillers: frozenset[tuple[str, ...]] = frozenset()
    max_words: int = 6


ENGLISH = Lexicon(
    backchannels=_phrases(
        *("yeah", "yea", "ya", "yah", "yep", "yup", "yes", "aye", "ok", "okay", "o k", "kay", "k"),
        *("right", "sure", "sure thing", "alright", "all right", "i see", "got it", "gotcha"),
        *("go on", "go ahead", "of course", "exactly", "indeed", "true", "cool", "nice", "great"),
        *("good", "fine", "perfect", "wow", "really", "makes sense", "that makes sense"),
        *("i know", "i understand", "understood", "fair enough", "no problem", "no worries"),
        *("no way", "thats right", "that's right", "thats true", "that's true", "sounds good"),
        *("very good", "oh really", "interesting", "definitely", "absolutely", "thanks"),
    ),
    stops=_phrases(
        *("stop", "wait", "no", "nope", "nah", "hold on", "hang on", "listen", "pause", "enough"),
        *("that's enough", "thats enough", "quiet", "be quiet", "shut up", "silence", "cancel"),
        *("never mind", "nevermind", "forget it", "excuse me", "hold it", "hold up", "halt"),
        *("one moment", "one second", "one sec", "just a second", "just a moment", "a second"),
        *("just a minute", "a moment", "a minute", "wait a minute", "wait a second", "not now"),
        *("stop it", "stop that", "stop talking", "stop speaking", "no thanks", "no thank you"),
        *("let me talk", "let me speak", "slow down", "hush", "okay stop", "time out", "whoa"),
    ),
    fillers=_phrases(
        *("please", "now", "hey", "hello", "just", "i said", "oh", "sorry", "there", "so", "but"),
        *("well", "right now", "for", "thank you", "can you", "could you", "would you", "will you"),
    ),
)


def classify(text: str, lexicon: Lexicon = ENGLISH) -> Kind:
    """What `text`, reported while the agent speaks, amounts to.

    "empty": no word at all (punctuation, noise tags). "backchannel": only signs of listening.
    "stop": nothing but a stop phrase, with fillers and backchannels around it at most.
    "words": everything else, and any of the above beyond `lexicon.max_words` words.
    """
    spoken = words(_NOISE_TAG.sub(" ", text))
    if not spoken:
        return "empty"
    if len(spoken) > lexicon.max_words:
        return "words"
    kinds = _cover(spoken, lexicon)
    if kinds is None or kinds == {"filler"}:
        return "words"
    if "stop" in kinds:
        return "stop"
    return "words" if "filler" in kinds else "backchannel"


def _cover(spoken: tuple[str, ...], lexicon: Lexicon) -> set[str] | None:
    """The kinds of the phrases that tile `spoken`, longest first; None if a word is left over."""
    kinds: set[str] = set()
    index = 0
    while index < len(spoken):
        for size in range(min(_MAX_PHRASE, len(spoken) - index), 0, -1):
            kind = _kind_of(spoken[index : index + size], lexicon)
            if kind is not None:
                kinds.add(kind)
                index += size
                break
        else:
            return None
    return kinds


def _kind_of(phrase: tuple[str, ...], lexicon: Lexicon) -> str | None:
    if phrase in lexicon.stops:
        return "stop"
    if phrase in lexicon.backchannels:
        return "backchannel"
    if len(phrase) == 1 and _HUM.fullmatch(phrase[0]):
        return "backchannel"
    return "filler" if phrase in lexicon.fillers else None
