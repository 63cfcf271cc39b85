"""Days in speech: "tomorrow", "on Friday", "next Tuesday", "the twelfth", "December 3rd".

Owned by `understand`. Everything is relative to the `today` it is given; never reads a clock.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from .words import UNITS, alternatives, number

_MONTH_WORDS = (
    "january february march april may june july august september october november december"
)
_ORDINAL_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = {name: index for index, name in enumerate(_WEEKDAYS)}
_WEEKDAY |= {"tues": 1, "chewsday": 1, "wensday": 2, "wendsday": 2, "thurs": 3, "fridays": 4}
_MONTHS = _MONTH_WORDS.split()
_MONTH = {name: index for index, name in enumerate(_MONTHS, start=1)}
_MONTH |= {name[:3]: index for index, name in enumerate(_MONTHS, start=1)} | {"sept": 9}
_ORDINALS = {
    word: value
    for value, word in enumerate(
        _ORDINAL_WORDS.split(),
        start=1,
    )
} | {"thirtieth": 30, "thirty first": 31, "forth": 4, "twelve": 12, "twelth": 12}
_ORDINALS |= {f"twenty {word}": 20 + value for word, value in list(_ORDINALS.items()) if value <= 9}
del _ORDINALS["twelve"], _ORDINALS["twenty forth"]
_ORD = rf"(?:{alternatives(_ORDINALS)}|\d{{1,2}}(?:st|nd|rd|th))"
_DAY = rf"(?:{_ORD}|twenty (?:one|two|three|four|five|six|seven|eight|nine)|thirty(?: one)?"
_DAY += rf"|{alternatives(UNITS)}|\d{{1,2}})"
_MON = alternatives(_MONTH)
_FEASTS = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "new year's eve": (12, 31),
    "new year's day": (1, 1),
}
_DATE = re.compile(
    rf"""(?<!\S)(?:on\ )?(?:
      (?P<iso>\d{{4}}\ \d{{2}}\ \d{{2}})
    | (?:the\ )?(?P<day1>{_DAY})\ (?:of\ )?(?P<month1>{_MON})(?:\ (?P<year1>20\d\d))?
    | (?P<month2>{_MON})\ (?:the\ )?(?P<day2>{_DAY})(?:\ (?P<year2>20\d\d)(?!\S))?
    | (?P<after>(?:the\ )?day\ after\ tomorrow)
    | (?P<tomorrow>tomorrow|tomorow|(?:to|too|two|2)\ (?:morrow|marrow)|the\ next\ day)
    | (?P<today>today|tonight|this\ (?:evening|afternoon|noon|lunch))
    | (?P<feast>christmas\ (?:day|eve)|new\ year's\ (?:day|eve))
    | in\ (?P<count>{alternatives(UNITS)}|a|\d{{1,2}})\ (?P<unit>days?|weeks?)
    | (?:a\ )?week\ (?:from\ )?(?P<week>today|tomorrow)
    | (?P<which>next|this|coming|this\ coming)\ (?P<weekday1>{alternatives(_WEEKDAY)})
    | (?P<weekday2>{alternatives(_WEEKDAY)})(?:\ the\ (?P<day4>{_ORD}))?
    | (?:the\ )(?P<day3>{_ORD})(?!\ (?:one|booking|table|option|reservation|time))
    )(?!\S)""",
    re.VERBOSE,
)
_REFUSED = re.compile(r"\b(?:not|instead of|rather than)(?: on)? ?$")


def find_dates(text: str, today: date) -> list[tuple[date, tuple[int, int]]]:
    """Every day in `text` with its span, in order; one that follows "not" is left out."""
    found: list[tuple[date, tuple[int, int]]] = []
    for match in _DATE.finditer(text):
        if _REFUSED.search(text[: match.start()]):
            continue
        value = _value(match, today)
        if value is not None:
            found.append((value, match.span()))
    return found


def day_number(word: str) -> int | None:
    """The day of the month an ordinal or number names: "third", "3rd", "twenty one", "3"."""
    if word in _ORDINALS:
        return _ORDINALS[word]
    tens, _, rest = word.partition(" ")
    if tens in ("twenty", "thirty"):
        return {"twenty": 20, "thirty": 30}[tens] + (UNITS.get(rest, 0))
    return number(word.rstrip("stndrh") if word[:1].isdecimal() else word)


def _value(match: re.Match[str], today: date) -> date | None:
    if match["iso"]:
        return _made(*(int(part) for part in match["iso"].split()))
    if match["feast"]:
        month_day = _FEASTS[match["feast"]]
        this_year = date(today.year, *month_day)
        return this_year if this_year >= today else date(today.year + 1, *month_day)
    month = match["month1"] or match["month2"]
    if month:
        return _in_month(match, _MONTH[month], today)
    if match["day3"]:
        return _day_of_month(day_number(match["day3"]) or 0, today)
    if match["weekday1"] or match["weekday2"]:
        return _weekday(match, today)
    return _relative(match, today)


def _relative(match: re.Match[str], today: date) -> date | None:
    if match["count"]:
        count = 1 if match["count"] == "a" else number(match["count"]) or 0
        return today + timedelta(days=count * (7 if match["unit"].startswith("week") else 1))
    if match["week"]:
        return today + timedelta(days=7 + (match["week"] == "tomorrow"))
    days = 2 if match["after"] else 1 if match["tomorrow"] else 0
    return today + timedelta(days=days)


def _in_month(match: re.Match[str], month: int, today: date) -> date | None:
    day = day_number(match["day1"] or match["day2"]) or 0
    year = match["year1"] or match["year2"]
    if year:
        return _made(int(year), month, day)
    this_year = _made(today.year, month, day)
    if this_year is None or this_year >= today:
        return this_year or _made(today.year + 1, month, day)
    return _made(today.year + 1, month, day)


def _day_of_month(day: int, today: date) -> date | None:
    year, month = today.year, today.month
    for _ in range(13):
        candidate = _made(year, month, day)
        if candidate is not None and candidate >= today:
            return candidate
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return None


def _weekday(match: re.Match[str], today: date) -> date:
    """ "next Tuesday" is the one of the following calendar week; the read-back names the date."""
    if match["day4"]:
        dated = _day_of_month(day_number(match["day4"]) or 0, today)
        if dated is not None:
            return dated
    weekday = _WEEKDAY[match["weekday1"] or match["weekday2"]]
    if match["which"] == "next":
        return today + timedelta(days=7 - today.weekday() + weekday)
    ahead = (weekday - today.weekday()) % 7
    if ahead == 0 and match["which"] is None:
        ahead = 7
    return today + timedelta(days=ahead)


def _made(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
