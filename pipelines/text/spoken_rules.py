"""Our written-to-spoken rules for English, in front of the general normaliser.

One alternation of named rules; `spoken` walks its matches. Each rule says what its written form
sounds like, or None to leave it. What stands here is what the general normaliser leaves written by
charter (ambiguous dates, `St.`, `#`, codes, mail order) or says badly for a synthesiser
(findings/spine-checks e). Pure; no rule looks further than its own match and the text around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from . import numbers
from . import spoken_tables as tables
from . import spoken_times as times

Match = re.Match[str]

_N = r"(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,15})?"
_CLEAN = r"(?<![\w.,:/#$€£¥@+-])"
_END = r"(?![\w@])(?![.,:/-]\d)"
_DOT = r"(?:\.(?!\s*$|[\"'”’)\]]*\s+[A-Z]))?"
_DASH = r"\s?[-–—]\s?"
_AMPM = r"[AaPp](?:[Mm]|\.\s?[Mm](?:\.(?!\s*$|\s+[A-Z]))?)(?![A-Za-z])"
_CLOCK = rf"(?:[01]?\d|2[0-4])(?::[0-5]\d)?(?:\s?{_AMPM})?"

_DAY = r"(?:Mon|Tue(?:s)?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)"
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_TLDS = r"(?:com|org|net|io|ai|co|uk|de|fr|eu|dev|app|edu|gov|info|us|ca|au|nz|ch|at|nl|es|it)"
_HOST = rf"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{{0,62}})\.){{1,6}}{_TLDS}"
_PATH = r"(?:[/?#][A-Za-z0-9\-._~:/?#@!$&*+;=%]*[A-Za-z0-9/=_-]|/)?"

_UNIT = "|".join(re.escape(unit) for unit in sorted(tables.UNITS, key=len, reverse=True))
_CAPITAL_FOLLOWS = re.compile(r"\.?\s+[A-Z]")


def _spell(letters: str) -> str:
    return " ".join(letters.upper())


def _numeral(text: str) -> str:
    """The digits of a code: a quantity up to two digits, digit by digit beyond."""
    return numbers.digits(text) if len(text) > 2 or text[0] == "0" else numbers.cardinal(int(text))


def _address(text: str) -> str:
    """A URL or mail address piece by piece."""
    said: list[str] = []
    for piece in re.findall(r"[A-Za-z]+|\d+|.", text):
        if piece.isdigit():
            said.append(numbers.digits(piece))
        elif piece.isalpha():
            said.append(_spell(piece) if piece in tables.SPELLED and said else piece)
        elif piece in tables.URL_WORDS:
            said.append(tables.URL_WORDS[piece])
    return " ".join(said)


def _url(match: Match) -> str:
    text = re.sub(r"^(?:https?://)?(?:www\.)?", "", match.group(), flags=re.IGNORECASE)
    return _address(re.split(r"[?#]", text)[0].rstrip("/"))


def _money(match: Match) -> str:
    symbol = (match["mo_s"] or match["mo_t"]).strip()
    one, many, cent, cents = tables.MONEY[tables.MONEY_CODES.get(symbol, symbol)]
    text = (match["mo_n"] or match["mo_a"]).replace(",", "")
    multiple, upper = match["mo_m"], match["mo_r"]
    minus = "minus " if match["mo_neg"] else ""
    if upper:
        return f"{minus}{numbers.amount(text)} to {numbers.amount(upper)} {many}"
    if multiple:
        word = tables.MULTIPLES.get(multiple.strip().lower(), multiple.strip().lower())
        return f"{minus}{numbers.amount(text)} {word} {many}"
    whole, _, fraction = text.partition(".")
    if len(fraction) == 2 and cent and len(whole) <= numbers.MAX_DIGITS:
        return minus + _coins(int(whole), int(fraction), (one, many), (cent, cents))
    return f"{minus}{numbers.amount(text)} {one if text == '1' else many}"


def _coins(whole: int, part: int, big: tuple[str, str], small: tuple[str, str]) -> str:
    said = [f"{numbers.cardinal(whole)} {big[whole != 1]}"] if whole or not part else []
    if part:
        said.append(f"{numbers.cardinal(part)} {small[part != 1]}")
    return " and ".join(said)


def _phone(match: Match) -> str:
    groups = re.findall(r"\d+", match.group())
    plus = "plus " if match.group().startswith("+") else ""
    return plus + ", ".join(numbers.digits(group) for group in groups)


def _measure(match: Match) -> str:
    low, high, unit = match["un_n"], match["un_r"], match["un_u"].replace(" ", "")
    one, many = tables.UNITS[unit]
    minus = "minus " if match["un_neg"] else ""
    if high:
        return f"{minus}{numbers.amount(low)} to {numbers.amount(high)} {many}"
    if match["un_h"]:
        return f"{minus}{numbers.amount(low)} {one}"
    return f"{minus}{numbers.amount(low)} {one if low == '1' else many}"


def _range(match: Match) -> str | None:
    low, high = match["ra_a"], match["ra_b"]
    if int(low) >= int(high):
        return None
    if len(low) == 4 and len(high) == 4:
        return f"{numbers.year(int(low))} to {numbers.year(int(high))}"
    return f"{numbers.integer(low)} to {numbers.integer(high)}"


def _version(match: Match) -> str:
    parts = [numbers.integer(part) for part in match["ve_n"].split(".")]
    named = match["ve_w"] or match["ve_v"]
    return ("version " if named else "") + " point ".join(parts)


def _ip(match: Match) -> str:
    return " dot ".join(numbers.digits(part) for part in match.group().split("."))


def _hash(match: Match) -> str:
    return f"number {_numeral(match['ha_n'])}"


def _code(match: Match) -> str | None:
    text = match.group()
    if not (any(c.isdigit() for c in text) and any(c.isalpha() for c in text)):
        return None
    said = [
        _spell(part) if part.isalpha() else _numeral(part)
        for part in re.findall(r"[A-Z]+|\d+", text)
    ]
    return " ".join(said)


def _word_code(match: Match) -> str:
    return f"{match['wc_w']} {_numeral(match['wc_n'])}"


def _digit_code(match: Match) -> str:
    return f"{match['dc_w']}{numbers.digits(match['dc_n'], zero='oh')}"


def _year(match: Match) -> str:
    return f"{match['ye_w']}{numbers.year(int(match['ye_n']))}"


def _decade(match: Match) -> str:
    said = match["de_n"]
    if len(said) == 4 and said.endswith("000"):
        return numbers.cardinal(int(said)) + "s"
    words = numbers.year(int(said))
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"


def _street(match: Match) -> str | None:
    """A street, unless a name follows that the word titles: "Visit St. Louis", "Ask Dr. Smith"."""
    name, word = match["sr_n"], match["sr_w"]
    if word in ("St", "Dr") and _CAPITAL_FOLLOWS.match(match.string, match.end()):
        before = match.string[: match.start()].rstrip()
        opens = not before or before[-1] in ".!?:" or name.lower() in tables.NO_STREET_NAMES
        if not name[0].isdigit() and (word == "Dr" or opens):
            return None
    number = re.match(r"\d+", name)
    said = numbers.ordinal(int(number.group())) if number else name
    return f"{said} {tables.STREETS[word]}"


def _short(match: Match) -> str:
    return tables.SHORT[match["ab_w"].lower()]


RULES: dict[str, tuple[str, Callable[[Match], str | None]]] = {
    "markup": (r"</?[A-Za-z][^<>]{0,120}>", lambda m: m.group()),
    "link": (
        r"\[(?P<li_t>[^\[\]\n]{1,120})\]\(https?://[^()\s]{1,300}\)",
        lambda m: m["li_t"],
    ),
    "email": (
        r"(?<![\w.@+-])(?:mailto:)?(?P<em>[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@"
        r"(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,18})(?![\w@])",
        lambda m: _address(m["em"]),
    ),
    "url": (
        rf"(?<![\w.@/-])(?:(?:https?://|www\.)[A-Za-z0-9-]{{1,63}}(?:\.[A-Za-z0-9-]{{1,63}}){{0,6}}"
        rf"(?::\d{{1,5}})?{_PATH}|{_HOST}(?![\w-]){_PATH})",
        _url,
    ),
    "days": (rf"\b(?P<dy_from>{_DAY})\.?{_DASH}(?P<dy_to>{_DAY})\b", times.days),
    "day": (
        r"\b(?P<da>Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)(?:\.(?=,| \d)|(?=,? (?:\d|at \d)))",
        lambda m: tables.DAYS[m["da"][:3].lower()],
    ),
    "clock_range": (
        rf"{_CLEAN}(?P<cr_from>{_CLOCK}){_DASH}(?P<cr_to>(?:[01]?\d|2[0-4])"
        rf"(?::[0-5]\d(?:\s?{_AMPM})?|\s?{_AMPM})){_END}",
        times.clock_range,
    ),
    "clock": (
        rf"{_CLEAN}(?:(?:0?[1-9]|1[0-2])(?::[0-5]\d)?\s?{_AMPM}|(?:[01]?\d|2[0-3]):[0-5]\d|24:00)"
        rf"{_END}",
        times.clock,
    ),
    "ratio": (
        rf"{_CLEAN}(?P<rt_a>\d{{1,2}}):(?P<rt_b>\d{{1,2}}){_END}",
        lambda m: f"{numbers.integer(m['rt_a'])} to {numbers.integer(m['rt_b'])}",
    ),
    "iso": (
        rf"{_CLEAN}(?P<iso_y>[12]\d{{3}})-(?P<iso_m>[01]?\d)-(?P<iso_d>[0-3]?\d)"
        rf"(?:T(?P<iso_t>\d\d:\d\d)(?::\d\d)?Z?)?{_END}",
        times.iso,
    ),
    "slash_date": (
        rf"{_CLEAN}(?P<sd_a>[0-3]?\d)(?P<sd_s>[/.])(?P<sd_b>[0-3]?\d)(?P=sd_s)"
        rf"(?P<sd_y>[12]\d{{3}}){_END}",
        times.slash_date,
    ),
    "month_day": (
        rf"\b(?P<md_m>{_MONTH})\s(?P<md_d>[0-3]?\d)(?:st|nd|rd|th)?(?:,?\s(?P<md_y>[12]\d{{3}}))?{_END}",
        times.month_day,
    ),
    "day_month": (
        rf"{_CLEAN}(?:[Tt]he\s)?(?P<dm_d>[0-3]?\d)(?:st|nd|rd|th)?\s(?:of\s)?(?P<dm_m>{_MONTH})"
        rf"(?:,?\s(?P<dm_y>[12]\d{{3}}))?(?![\w])",
        times.day_month,
    ),
    "phone": (
        r"(?<![\w+.,/-])(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)|\d{1,4})(?:[ .-]\d{2,4}){1,4}|\+\d{8,15}"
        r"|(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[.-]\d{4}|\d{3}-\d{4}"
        r"|0\d{2,4}(?: \d{3,4}){2})(?![\w-])",
        _phone,
    ),
    "money": (
        rf"(?<![\w.,])(?P<mo_neg>[-−])?(?:(?P<mo_s>[$€£¥₹]|(?:USD|EUR|GBP|JPY|INR)\s)(?P<mo_n>{_N})"
        rf"(?:[-–][$€£¥₹]?(?P<mo_r>{_N})|(?P<mo_m>[KkMB](?![A-Za-z])|bn\b|\s(?:thousand|million|billion)\b))?"
        rf"|(?P<mo_a>{_N})\s?(?P<mo_t>[€£]|(?:USD|EUR|GBP|JPY|INR)\b))(?![\d])",
        _money,
    ),
    "measure": (
        rf"(?<![\w.,:/#$€£¥@+-])(?P<un_neg>[-−])?(?P<un_n>{_N})(?:[-–](?P<un_r>{_N}))?"
        rf"(?:(?P<un_h>-)|\s)?(?P<un_u>(?:°\s[CF])|{_UNIT})(?![\w²/°'’])",
        _measure,
    ),
    "ip": (rf"{_CLEAN}\d{{1,3}}(?:\.\d{{1,3}}){{3}}{_END}", _ip),
    "version": (
        rf"(?<![\w.])(?:(?P<ve_w>[Vv]ersion\s)[vV]?(?P<ve_a>)|(?P<ve_v>[vV]))?(?P<ve_n>\d{{1,4}}"
        rf"(?:\.\d{{1,4}}){{2,3}}|(?<=[vV])\d{{1,4}}(?:\.\d{{1,4}})?){_END}",
        _version,
    ),
    "hash": (rf"(?<![\w&#])#(?P<ha_n>\d{{1,15}}){_END}", _hash),
    "hashtag": (r"(?<![\w&#])#(?P<ht>[A-Za-z]\w*)", lambda m: f"hashtag {m['ht']}"),
    "number_sign": (r"\bNo\.\s?(?P<ns>\d{1,6})\b", lambda m: f"number {numbers.integer(m['ns'])}"),
    "fraction": (
        r"(?<![\w/.,])(?:24/7|1/2|[12]/3|[13]/4)(?![\w/])|[½¼¾⅓⅔]",
        lambda m: tables.FRACTIONS.get(m.group(), "twenty-four seven"),
    ),
    "height": (
        r"(?<![\w.])(?P<he_f>\d)['’′](?P<he_i>1?\d)[\"”″]",
        lambda m: f"{numbers.integer(m['he_f'])} feet {numbers.integer(m['he_i'])} inches",
    ),
    "product": (
        rf"{_CLEAN}(?P<pr_a>{_N})(?P<pr_x>[x×])(?P<pr_b>{_N}){_END}",
        lambda m: (
            numbers.amount(m["pr_a"])
            + (" by " if m["pr_x"] == "x" else " times ")
            + numbers.amount(m["pr_b"])
        ),
    ),
    "range": (
        rf"{_CLEAN}(?P<ra_a>[1-9]\d{{0,3}})[-–](?P<ra_b>[1-9]\d{{0,3}})(?![\w–-])(?![.,:/]\d)",
        _range,
    ),
    "decade": (r"(?<![\w])['’]?(?P<de_n>[12]\d\d0|[2-9]0)s\b", _decade),
    "digit_code": (
        r"\b(?P<dc_w>(?:HTTP|[Ee]rror|[Ss]tatus|PIN|[Cc]ode|[Ff]light|[Gg]ate|[Rr]oom|[Ee]xt\.?"
        r"|[Ee]xtension|[Cc]all|[Dd]ial|[Ee]nding in)\s(?:is\s)?)"
        r"(?P<dc_n>\d{3,8})(?![\w])(?![.,:/-]\d)",
        _digit_code,
    ),
    "year": (
        r"\b(?P<ye_w>(?:[Ii]n|[Bb]orn|[Ff]ounded|[Ss]ince|[Uu]ntil|[Bb]efore|[Aa]fter|[Yy]ear|[Dd]uring)\s)"
        r"(?P<ye_n>1[1-9]\d\d|20\d\d)(?![\w%])(?![.,:/-]\d)(?!\s(?:people|of|more|other)\b)",
        _year,
    ),
    "code": (
        r"(?<![\w-])(?:[A-Z]{1,4}-\d{2,12}|[A-Z]{1,3}\d{2,12}|(?=[A-Z0-9]*\d[A-Z0-9]*[A-Z]"
        r"|[A-Z0-9]*[A-Z][A-Z0-9]*\d[A-Z])[A-Z0-9]{4,16})(?:-[A-Z0-9]{1,12})*(?![\w-])",
        _code,
    ),
    "word_code": (r"(?<![\w-])(?P<wc_w>[A-Z]{5,})-(?P<wc_n>\d{1,4})(?![\w-])", _word_code),
    "saint": (
        r"(?<![A-Z0-9a-z])St\.\s(?=[A-Z][a-z])(?<!(?<=\w )[A-Z]St\. )",
        lambda m: "Saint ",
    ),
    "street": (
        rf"(?P<sr_n>(?:\b\d{{1,3}}(?:st|nd|rd|th)|\b[A-Z][a-z]+))\s(?P<sr_w>St|Ave|Blvd|Rd|Ln|Hwy|Sq|Dr)\b"
        rf"{_DOT}",
        _street,
    ),
    "title": (
        r"\b(?P<ti>Dr|Mrs?|Ms|Prof|Rev|Capt|Lt|Sgt)\.(?=\s[A-Z])",
        lambda m: tables.TITLES[m["ti"]],
    ),
    "short": (
        rf"\b(?P<ab_w>e\.g|i\.e|etc|vs|approx|incl|dept|Jr|Sr|Inc|Ltd)\b(?:(?<=\.[a-z]){_DOT}|(?<=vs)\.|\.(?!\s*$|\s+[A-Z])|(?=\.))",
        _short,
    ),
    "initials": (
        r"\b(?:[A-Z]\.){2,4}(?!\s*$|\s+[A-Z])",
        lambda m: _spell(m.group().replace(".", "")),
    ),
    "with": (r"(?<!\S)w/(?:o\b)?(?=\s|\w)", lambda m: "without" if "o" in m.group() else "with"),
    "sign": (
        r"(?<=\s)[&+=×](?=\s)|(?<![\w.])~(?=\d)|(?<=\w)&(?=\w)",
        lambda m: tables.SIGNS[m.group()],
    ),
    "emphasis": (
        r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}|`{1,3}|(?m:^[ \t]*(?:#{1,6}|[-*•])[ \t]+)",
        lambda m: "",
    ),
    "emoji": (
        "[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d\U000e0020-\U000e007f]+",
        lambda m: "",
    ),
}

PATTERN = re.compile("|".join(f"(?P<{name}>{rule})" for name, (rule, _) in RULES.items()), re.ASCII)


def speak(match: Match) -> str | None:
    """What a match of PATTERN sounds like; None to leave it to others."""
    name = next(name for name in RULES if match[name] is not None)
    said = RULES[name][1](match)
    return None if said is None else _spaced(match, said)


def _spaced(match: Match, said: str) -> str:
    """Words never touch a letter or digit of the text around them."""
    if not said:
        return said
    before = match.string[match.start() - 1 : match.start()]
    after = match.string[match.end() : match.end() + 1]
    if before.isalnum() and not said[0].isspace():
        said = f" {said}"
    return f"{said} " if after.isalnum() and not said[-1].isspace() else said
