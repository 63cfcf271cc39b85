"""How many people: "table for 2", "for to", "four of us", "just me", "two adults and two kids".

Owned by `understand`.
"""

from __future__ import annotations

import re

from .words import MISHEARD, UNITS, alternatives, number

_N = rf"(?:{alternatives(UNITS)}|\d{{1,2}})"
_NN = rf"(?:{alternatives(UNITS, MISHEARD)}|\d{{1,2}})"
_HEADS = r"(?:people|persons?|guests?|adults?|of us|pax|diners?|covers|heads)"
_AFTER = r"(?! (?:hours?|minutes?|days?|weeks?|nights?|o'clock|thirty|fifteen|forty|tables?)\b)"
_PARTY = re.compile(
    rf"""(?<!\S)(?:
      (?P<adults>{_N})\ adults?\ and\ (?P<children>{_N}|a)\ (?:kids?|child(?:ren)?|bab(?:y|ies))
    | (?P<alone>just\ (?:for\ )?me|only\ (?:for\ )?me|(?:by|for)\ myself|on\ my\ own|alone)
    | (?P<pair>(?:me|myself)\ and\ my\ \w+|my\ \w+\ and\ (?:i|me|myself)|both\ of\ us|a\ couple)
    | (?:tables?|reservation|booking|seats?|dinner|lunch|meal|room|spot|place)\ (?:for|four|4|of)\
      (?:the\ )?(?P<table>{_NN})\b{_AFTER.replace(" ", chr(92) + " ")}
    | (?P<heads>{_NN})\ {_HEADS.replace(" ", chr(92) + " ")}
    | party\ of\ (?P<party>{_NN})
    | (?:we're|we\ are|we\ will\ be|we'll\ be|there's|there\ are|there\ will\ be|there'll\ be)\
      (?:just\ |only\ )?(?P<we>{_N})\b{_AFTER.replace(" ", chr(92) + " ")}
    | for\ (?:the\ )?(?P<weak>{_N}|(?:to|too|for|ate)(?=\ (?:\#|please|people)|$))\b
      {_AFTER.replace(" ", chr(92) + " ")}
    )(?!\S)""",
    re.VERBOSE,
)
_REFUSED = re.compile(r"\b(?:not|instead of|rather than)(?: for)? ?$")


def find_party(text: str, *, strict: bool) -> tuple[int | None, tuple[int, int] | None]:
    """The last party size and its span; `strict` leaves "for eight" out: it may be an hour."""
    found: tuple[int | None, tuple[int, int] | None] = (None, None)
    for match in _PARTY.finditer(text):
        if _REFUSED.search(text[: match.start()]) or (strict and match["weak"]):
            continue
        value = _value(match)
        if value is not None and value >= 1:
            found = value, match.span()
    return found


def _value(match: re.Match[str]) -> int | None:
    if match["alone"]:
        return 1
    if match["pair"]:
        return 2
    if match["adults"]:
        children = 1 if match["children"] == "a" else number(match["children"]) or 0
        return (number(match["adults"]) or 0) + children
    word = match["table"] or match["heads"] or match["party"] or match["we"] or match["weak"]
    return number(word, misheard=True)
