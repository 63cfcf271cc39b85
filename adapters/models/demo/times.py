"""Clock times in speech: "7.30", "730", "seven thirty p m", "half past seven", "at ate".

Owned by `understand`. An hour from 1 to 11 without "am" or "morning" is an hour after noon:
people phone a restaurant about lunch and dinner. Never reads a clock.
"""

from __future__ import annotations

import re
from datetime import time

from .words import MISHEARD, UNITS, alternatives

_HOURS = {word: value for word, value in UNITS.items() if value <= 12}
_H = rf"(?:{alternatives(_HOURS)}|1[0-2]|0?[1-9])"
_HH = rf"(?:{alternatives(_HOURS, MISHEARD)}|1\d|2[0-3]|0?[1-9])"
_LATE = rf"(?:{alternatives({w: v for w, v in UNITS.items() if v > 12})}|twenty (?:one|two|three))"
_MINUTES = {
    "hundred": 0, "oh five": 5, "o five": 5, "ten": 10, "fifteen": 15, "twenty": 20,
    "twenty five": 25, "thirty": 30, "forty": 40, "forty five": 45, "fifty": 50, "thirdy": 30,
    "dirty": 30, "thirteen": 30,
}  # fmt: skip
_MIN = rf"(?:{alternatives(_MINUTES)}|[0-5]\d)"
_PEOPLE = r"(?! (?:people|persons?|guests?|adults?|of us|pax|hours?|minutes?|days?|weeks?|tables?))"
_HALF_OF_DAY = r"(?: (?P<half>am|pm|in the (?:morning|evening|afternoon)|at night))?"
_TIME = re.compile(
    rf"""(?<!\S)(?:
      (?P<clock>\d{{1,2}}:\d{{2}})
    | half\ (?:past|passed|pass|part)?\ ?(?P<halfpast>{_HH})\b
    | (?:a\ )?quarter\ (?P<qdir>past|passed|after|to|two|too|till|before)\ (?P<quarter>{_HH})\b
    | (?P<delta>five|ten|twenty\ five|twenty|5|10|20|25)\ (?:minutes\ )?
      (?P<ddir>past|passed|after|to|till|before)\ (?P<deltahour>{_H})\b
    | (?P<hour>{_H}|{_LATE}|1\d|2[0-3])\ (?P<minute>{_MIN})\b
    | (?:at\ )(?P<misheard>{_HH})\ (?P<misminute>{_MIN})\b
    | (?P<digits>\d{{3,4}})\b
    | (?P<oclock>{_HH}|{_LATE})\ (?:o'clock|oclock|o\ clock|a\ clock)
    | (?P<named>noon|midday|midnight)
    | (?P<halved>{_H})(?=\ (?:am|pm|in\ the\ (?:morning|evening|afternoon)|at\ night)\b)
    | (?:at|around|about|by|until|till)\ (?:around\ |about\ |like\ )?(?P<at>{_HH})\b
    ){_PEOPLE.replace(" ", chr(92) + " ")}{_HALF_OF_DAY.replace(" ", chr(92) + " ")}(?!\S)""",
    re.VERBOSE,
)
_REFUSED = re.compile(r"\b(?:not|instead of|rather than)(?: at)? ?$")
_MORNING = re.compile(r"(?<!good )\bmorning\b")


def find_times(text: str) -> list[tuple[time, tuple[int, int]]]:
    """Every time in `text` with its span, in order; one that follows "not" is left out."""
    morning = _MORNING.search(text) is not None
    found: list[tuple[time, tuple[int, int]]] = []
    for match in _TIME.finditer(text):
        if _REFUSED.search(text[: match.start()]):
            continue
        value = _value(match)
        if value is not None:
            found.append((on_the_clock(*value, half=match["half"], morning=morning), match.span()))
    return found


def on_the_clock(hour: int, minute: int, *, half: str | None = None, morning: bool = False) -> time:
    """The time of day meant by a spoken hour and minute, after noon unless said otherwise."""
    before_noon = half in ("am", "in the morning") or (morning and half is None)
    if before_noon:
        return time(0 if hour == 12 else hour, minute)
    return time(hour + 12 if 1 <= hour <= 11 else hour, minute)


def hour_of(word: str) -> int:
    """The hour a word names: 1 to 23, mishearings included."""
    if word.isdecimal():
        return int(word)
    if word in MISHEARD:
        return MISHEARD[word]
    return sum(UNITS.get(part, 0) for part in word.split())


def _value(match: re.Match[str]) -> tuple[int, int] | None:
    if match["named"]:
        return (0, 0) if match["named"] == "midnight" else (12, 0)
    if match["clock"] or match["digits"]:
        return _digits(match["clock"] or match["digits"])
    if match["halfpast"]:
        return hour_of(match["halfpast"]), 30
    if match["quarter"]:
        return _beside(match["qdir"], 15, hour_of(match["quarter"]))
    if match["deltahour"]:
        minutes = _MINUTES.get(match["delta"]) or {"five": 5}.get(match["delta"])
        return _beside(match["ddir"], minutes or int(match["delta"]), hour_of(match["deltahour"]))
    hour = match["hour"] or match["misheard"]
    if hour:
        minute = match["minute"] or match["misminute"]
        return hour_of(hour), _MINUTES[minute] if minute in _MINUTES else int(minute)
    return hour_of(match["oclock"] or match["halved"] or match["at"]), 0


def _digits(word: str) -> tuple[int, int] | None:
    hour, minute = int(word[:-2].rstrip(":")), int(word[-2:])
    return (hour, minute) if hour < 24 and minute < 60 else None


def _beside(direction: str, minutes: int, hour: int) -> tuple[int, int]:
    if direction in ("past", "passed", "after"):
        return hour, minutes
    return (hour - 1 or 12, 60 - minutes)
