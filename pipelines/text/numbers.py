"""English number words for the spoken text: cardinals, ordinals, years, clock times, digits.

Pure functions over small integers and digit strings, used by the rules of `spoken`. They never
raise for the strings those rules match; longer digit runs than fifteen are read digit by digit.
"""

from __future__ import annotations

MAX_DIGITS = 15

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_SMALL = (
    *DIGITS,
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = (
    (10**12, "trillion"),
    (10**9, "billion"),
    (10**6, "million"),
    (1000, "thousand"),
)
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}


def cardinal(value: int) -> str:
    """`value` (0 .. 10^15 - 1) in words: 1204 -> "one thousand two hundred and four"."""
    if value < 20:
        return _SMALL[value]
    if value < 100:
        tens, one = divmod(value, 10)
        return _TENS[tens] + (f"-{_SMALL[one]}" if one else "")
    if value < 1000:
        hundreds, rest = divmod(value, 100)
        return f"{_SMALL[hundreds]} hundred" + (f" and {cardinal(rest)}" if rest else "")
    size, name = next(scale for scale in _SCALES if value >= scale[0])
    high, rest = divmod(value, size)
    joint = " and " if 0 < rest < 100 else " "
    return f"{cardinal(high)} {name}" + (f"{joint}{cardinal(rest)}" if rest else "")


def ordinal(value: int) -> str:
    """`value` as an ordinal: 21 -> "twenty-first"."""
    words = cardinal(value)
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    head, last = words[:cut], words[cut:]
    if last in _IRREGULAR_ORDINALS:
        return head + _IRREGULAR_ORDINALS[last]
    return head + (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")


def year(value: int) -> str:
    """A year as it is said: 1999 -> "nineteen ninety-nine", 2005 -> "two thousand five"."""
    high, low = divmod(value, 100)
    if not 1000 <= value <= 2999 or value % 1000 < 10:
        return cardinal(value).replace(" and ", " ")
    if low == 0:
        return f"{cardinal(high)} hundred"
    return f"{cardinal(high)} {'oh ' if low < 10 else ''}{cardinal(low)}"


def digits(text: str, zero: str = "zero") -> str:
    """Every ASCII digit of `text`, one by one."""
    return " ".join(DIGITS[int(c)] if c != "0" else zero for c in text if c in "0123456789")


def amount(text: str) -> str:
    """A written amount: "1,204.50" -> "one thousand two hundred and four point five zero"."""
    whole, _, fraction = text.replace(",", "").partition(".")
    return integer(whole) + (f" point {digits(fraction)}" if fraction else "")


def integer(text: str) -> str:
    """A run of digits: a quantity, or digit by digit with a leading zero or beyond 15 digits."""
    if len(text) > MAX_DIGITS or (len(text) > 1 and text[0] == "0"):
        return digits(text)
    return cardinal(int(text)) if text else DIGITS[0]


def clock(hour: int, minute: int, half: str | None = None) -> str:
    """A time of day. `half` "a" or "p" gives "seven thirty p m"; None reads the 24-hour dial."""
    if minute:
        words = f"{cardinal(hour)} {'oh ' if minute < 10 else ''}{cardinal(minute)}"
    elif half:
        words = cardinal(hour)
    elif hour in (0, 24):
        return "midnight"
    else:
        words = cardinal(hour) + (" o'clock" if hour <= 12 else " hundred")
    return f"{words} {half} m" if half else words
