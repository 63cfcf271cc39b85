"""How times, days, parties and bookings are spoken. Pure; the text is written for the ear."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time

from .words import UNITS

_ORDINAL_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_MONTH_WORDS = (
    "January February March April May June July August September October November December"
)

_NUMBERS = {value: word for word, value in UNITS.items()}
_TENS = {20: "twenty", 30: "thirty", 40: "forty", 50: "fifty"}
_ORDINALS = dict(
    enumerate(
        _ORDINAL_WORDS.split(),
        start=1,
    )
) | {30: "thirtieth", 31: "thirty-first"}
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = _MONTH_WORDS.split()


def spoken_number(value: int) -> str:
    """1 to 59 in words, other numbers as digits."""
    if value in _NUMBERS:
        return _NUMBERS[value]
    tens, unit = value - value % 10, value % 10
    if tens in _TENS:
        return _TENS[tens] + (f"-{_NUMBERS[unit]}" if unit else "")
    return str(value)


def spoken_time(at: time) -> str:
    """ "half past seven", "seven o'clock", "quarter to eight"; morning hours say so."""
    if at.minute == 0 and at.hour in (0, 12):
        return "noon" if at.hour else "midnight"
    hour, following = (_NUMBERS[(at.hour + more - 1) % 12 + 1] for more in (0, 1))
    spoken = {
        0: f"{hour} o'clock",
        15: f"quarter past {hour}",
        30: f"half past {hour}",
        45: f"quarter to {following}",
    }.get(at.minute)
    if spoken is None:
        minutes = spoken_number(at.minute) if at.minute >= 10 else f"oh {_NUMBERS[at.minute]}"
        spoken = f"{hour} {minutes}"
    return f"{spoken} in the morning" if at.hour < 12 else spoken


def spoken_date(day: date, today: date, *, evening: bool = False) -> str:
    """ "tomorrow", "on Friday", "on Tuesday, December the ninth", as an adverb of its own."""
    ahead = (day - today).days
    if ahead == 0:
        return "tonight" if evening else "today"
    if ahead == 1:
        return "tomorrow"
    weekday = _WEEKDAYS[day.weekday()]
    if 2 <= ahead <= 6:
        return f"on {weekday}"
    month = _MONTHS[day.month - 1]
    return f"on {weekday}, {month} the {_ordinal(day.day)}" + (
        f", {day.year}" if not 0 <= ahead < 330 else ""
    )


def spoken_table(
    *,
    party: int | None,
    day: date | None,
    at: time | None,
    name: str | None,
    today: date,
    article: str = "a",
) -> str:
    """ "a table for two tomorrow at half past seven for Anna Smith", as far as it is known."""
    parts = [f"{article} table"]
    if party is not None:
        parts.append(f"for {spoken_number(party)}")
    if day is not None:
        parts.append(spoken_date(day, today, evening=at is not None and at.hour >= 17))
    if at is not None:
        parts.append(f"at {spoken_time(at)}")
    if name is not None:
        parts.append(f"for {name}")
    return " ".join(parts)


def one_of(items: Sequence[str], word: str = "or") -> str:
    """ "seven, eight or nine"."""
    if len(items) <= 1:
        return "".join(items)
    return f"{', '.join(items[:-1])} {word} {items[-1]}"


def sentence(text: str) -> str:
    """The text with a capital and a full stop."""
    if not text:
        return ""
    return text[:1].upper() + text[1:] + ("" if text[-1] in ".?!" else ".")


def _ordinal(day: int) -> str:
    if day in _ORDINALS:
        return _ORDINALS[day]
    return f"{_TENS[day - day % 10]}-{_ORDINALS[day % 10]}"
