"""How written dates and times are said: the forms behind the rules of `spoken_rules`.

Each function takes its rule's match and gives the words, or None for a date that cannot be one
(month 13), which is then left as written. Pure.
"""

from __future__ import annotations

import re

from . import numbers
from . import spoken_tables as tables

Match = re.Match[str]


def _time(text: str) -> tuple[int, int | None, str | None]:
    parts = re.match(r"(\d{1,2})(?::(\d\d))?\s?([AaPp])?", text)
    if parts is None:
        return 0, None, None
    hour, minute, half = parts.groups()
    return int(hour), None if minute is None else int(minute), half.lower() if half else None


def clock(match: Match) -> str | None:
    hour, minute, half = _time(match.group())
    if half and not 1 <= hour <= 12:
        half = None
    return numbers.clock(hour, minute or 0, half)


def clock_range(match: Match) -> str:
    """9-5pm: the first time is a bare hour, its half is heard from the second."""
    (hour, minute, half), last = _time(match["cr_from"]), _time(match["cr_to"])
    bare = minute is None and half is None
    first = numbers.cardinal(hour) if bare else numbers.clock(hour, minute or 0, half)
    return f"{first} to {numbers.clock(last[0], last[1] or 0, last[2])}"


def days(match: Match) -> str:
    first, last = match["dy_from"], match["dy_to"]
    return f"{tables.DAYS[first[:3].lower()]} to {tables.DAYS[last[:3].lower()]}"


def _date(month: int, day: int, year: str | None) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    said = f"{tables.MONTHS[month - 1]} {numbers.ordinal(day)}"
    return f"{said}, {numbers.year(int(year))}" if year else said


def iso(match: Match) -> str | None:
    said = _date(int(match["iso_m"]), int(match["iso_d"]), match["iso_y"])
    if said is None or not match["iso_t"]:
        return said
    hour, minute, _ = _time(match["iso_t"])
    return f"{said} at {numbers.clock(hour, minute or 0)}"


def slash_date(match: Match) -> str | None:
    """Month first, as in the United States, unless only day first can be meant."""
    first, second = int(match["sd_a"]), int(match["sd_b"])
    day_first = first > 12 or match["sd_s"] == "."
    month, day = (second, first) if day_first else (first, second)
    return _date(month, day, match["sd_y"])


def _month(text: str) -> int:
    names = [name[:3].lower() for name in tables.MONTHS]
    return names.index(text[:3].lower()) + 1


def month_day(match: Match) -> str | None:
    return _date(_month(match["md_m"]), int(match["md_d"]), match["md_y"])


def day_month(match: Match) -> str | None:
    day = int(match["dm_d"])
    if not 1 <= day <= 31:
        return None
    said = f"the {numbers.ordinal(day)} of {tables.MONTHS[_month(match['dm_m']) - 1]}"
    return f"{said}, {numbers.year(int(match['dm_y']))}" if match["dm_y"] else said
