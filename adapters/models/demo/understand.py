"""What one user turn means: intents, slots, yes or no. A pure function of text, day and question.

Owned by `state`. Tolerant of what a small recogniser writes ("table for to", "at ate", "730");
any Unicode text gives a Frame, and text that means nothing gives an empty one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, time
from enum import StrEnum

from .dates import day_number, find_dates
from .intents import Intent, find_intents
from .names import bare_name, find_name
from .parties import find_party
from .times import find_times, on_the_clock
from .words import MISHEARD, Utterance, mask, number, utterance


class Ask(StrEnum):
    """The question that is open."""

    PARTY = "party"
    DATE = "date"
    TIME = "time"
    NAME = "name"
    CONFIRM = "confirm"
    WHICH = "which"
    WHAT_CHANGE = "what_change"
    NUMBER = "number"
    TRANSFER = "transfer"
    ANYTHING = "anything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """What a table is booked by; None is not known yet."""

    party: int | None = None
    date: date | None = None
    time: time | None = None
    name: str | None = None

    def over(self, older: Slots) -> Slots:
        """These values, the older ones where there are none."""
        return Slots(
            party=self.party if self.party is not None else older.party,
            date=self.date or older.date,
            time=self.time if self.time is not None else older.time,
            name=self.name or older.name,
        )

    @property
    def empty(self) -> bool:
        return self == Slots()


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The meaning of one turn.

    `number` is a number that could be people or an hour; `choice` counts from 1, -1 is the last;
    `fields` are slots named without a value ("change the time"); `mine` says that an existing
    booking was spoken of.
    """

    intents: tuple[Intent, ...] = ()
    slots: Slots = Slots()
    yes: bool | None = None
    number: int | None = None
    choice: int | None = None
    fields: frozenset[Ask] = frozenset()
    mine: bool = False

    @property
    def empty(self) -> bool:
        return self == Frame()


_YES = re.compile(
    r"\b(?:yes|yeah|yep|yup|yea|ya|sure|correct|right|exactly|absolutely|perfect|okay|ok|fine"
    r"|great|lovely|certainly|definitely|affirmative|indeed|of course|please do|go ahead"
    r"|good(?! (?:morning|evening|afternoon|day|night|bye))|do it|book it|uh huh|mm hm|mhm|mm hmm"
    r"|alright|all right|that works|works for me|confirm|confirmed|why not)\b"
)
_NO = re.compile(
    r"^(?:uh |um |oh |er |well |sorry )*(?:no|nope|nah|know)\b(?! problem| worries)"
    r"|\bnot (?:right|correct|quite|that|really|what|good)\b|\b(?:wrong|incorrect)\b"
    r"|\b(?:isn't|ain't|is not) (?:right|correct|it)\b|\bthat's not\b|\bno$"
    r"|\bno (?:thanks|thank you|wait|sorry|not|no)\b|\b(?:do not|don't)\b"
)
_NO_BUT_RIGHT = re.compile(
    r"\bno (?:no )?(?:that's|that is|it's|all) (?:right|correct|fine|good)\b"
)
_UNSURE = re.compile(r"\b(?:i )?(?:don't|do not) (?:know|mind|care)\b|\bnot sure\b|\bno idea\b")
_FIELDS = {
    Ask.PARTY: re.compile(r"\b(?:people|persons?|guests|party|number|how many)\b"),
    Ask.DATE: re.compile(r"\b(?:the|another|different|other|which) (?:day|date)\b|^(?:day|date)$"),
    Ask.TIME: re.compile(
        r"\b(?:the|another|different|other) (?:time|hour)\b|\bo'?clock\b|^(?:the )?time\b"
    ),
    Ask.NAME: re.compile(r"\bname\b"),
}
_MOVED = re.compile(r"\b(?:move|moved|reschedule|push|shift)\b.* to \w+$")
_MINE = re.compile(r"\b(?:my|our|existing|that) (?:\w+ )?(?:booking|reservation|table)\b")
_CHOICES = {"first": 1, "earlier": 1, "former": 1, "second": 2, "third": 3, "later": -1, "last": -1}
_CHOICE = re.compile(rf"\bthe ({'|'.join(_CHOICES)})\b|\b({'|'.join(_CHOICES)}) (?:one|booking)\b")


def understand(said: str, *, today: date, asked: Ask | None = None) -> Frame:
    """The Frame of one turn, given the question that was open. Never raises."""
    words = utterance(said)
    choice = _choice(words.text, asked)
    dates = [] if choice and asked is Ask.WHICH else find_dates(words.text, today)
    masked = mask(words.text, [span for _, span in dates])
    times = find_times(masked)
    masked = mask(masked, [span for _, span in times])
    party, span = find_party(masked, strict=asked is Ask.TIME)
    masked = mask(masked, [span] if span else [])
    slots = Slots(
        party=party,
        date=dates[-1][0] if dates else None,
        time=times[-1][0] if times else None,
        name=_name(words, masked, asked),
    )
    frame = Frame(
        intents=find_intents(words.text),
        slots=slots,
        yes=_yes_or_no(words.text),
        number=None if choice else _bare_number(masked, slots, asked),
        choice=choice,
        fields=_fields(masked, slots),
        mine=_MINE.search(words.text) is not None,
    )
    return _answered(frame, masked, today, asked)


def _answered(frame: Frame, masked: str, today: date, asked: Ask | None) -> Frame:
    """A bare number read as the answer to the open question."""
    slots, value = frame.slots, frame.number
    if asked is Ask.DATE and slots.date is None:
        found = find_dates(f"the {masked.strip('# ')}", today)
        if found:
            return replace(frame, slots=replace(slots, date=found[-1][0]), number=None)
        if value is not None:
            found = find_dates(f"the {value}th", today)
            day = found[-1][0] if found and day_number(f"{value}th") else None
            return replace(frame, slots=replace(slots, date=day), number=None)
    if value is None:
        return frame
    if slots.time is None and value <= 23 and _MOVED.search(masked):
        return replace(frame, slots=replace(slots, time=on_the_clock(value, 0)), number=None)
    if asked is Ask.PARTY and slots.party is None:
        return replace(frame, slots=replace(slots, party=value), number=None)
    if asked is Ask.TIME and slots.time is None and 1 <= value <= 23:
        return replace(frame, slots=replace(slots, time=on_the_clock(value, 0)), number=None)
    if asked is Ask.WHICH and frame.choice is None:
        return replace(frame, choice=value, number=None)
    return frame


def _bare_number(masked: str, slots: Slots, asked: Ask | None) -> int | None:
    """The last number that is neither date, time nor party; mishearings if one was asked for."""
    words = masked.split()
    expected = asked in (Ask.PARTY, Ask.TIME) and len(words) <= 4
    if slots.name is not None and not expected:
        return None
    for word in reversed(words):
        value = number(word)
        if value is not None and 1 <= value <= 60:
            return value
    if expected and words and words[-1] in MISHEARD and slots == Slots():
        return MISHEARD[words[-1]]
    return None


def _name(words: Utterance, masked: str, asked: Ask | None) -> str | None:
    polite = {Intent.HELLO, Intent.THANKS, Intent.BOOK}
    asked_for = asked is Ask.NAME and set(find_intents(words.text)) <= polite
    name = find_name(words, masked, asked=asked_for)
    if name is None and asked in (Ask.CONFIRM, Ask.WHAT_CHANGE) and _NO.search(words.text):
        return bare_name(words, masked)
    return name


def _yes_or_no(text: str) -> bool | None:
    text = _UNSURE.sub("", text)
    if _NO_BUT_RIGHT.search(text):
        return True
    if _NO.search(text):
        return False
    return True if _YES.search(text) else None


def _choice(text: str, asked: Ask | None) -> int | None:
    match = _CHOICE.search(text) if asked is Ask.WHICH else None
    return _CHOICES[match[1] or match[2]] if match else None


def _fields(masked: str, slots: Slots) -> frozenset[Ask]:
    return frozenset(
        ask
        for ask, pattern in _FIELDS.items()
        if getattr(slots, ask.value) is None and pattern.search(masked)
    )
