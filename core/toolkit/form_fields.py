"""The fields of a form: what a model may ask for, and what a person may answer to each.

Pure: a field and a raw value in, the parsed value or a ValueError in words for people out. A model
writes the patterns, so they run on an engine that takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from math import isfinite
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import SchemaError

from .asking import Choice, Label, unique_values

FieldType = Literal["text", "textarea", "number", "email", "tel", "date", "select", "checkbox"]
WORDS: frozenset[FieldType] = frozenset({"text", "textarea", "email", "tel"})
MOST_CHARACTERS = 4_000
"""Of one answer in words, whatever `max` says."""

EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")
MOST_EMAIL_CHARACTERS = 254
TELEPHONE = re.compile(r"\+?[\d\s()./-]+")
DIGITS = range(3, 16)
"""Of a telephone number: from a short code to the longest of E.164."""

Limit = int | float | str


class FormField(BaseModel):
    """One field. `min` and `max` are numbers for `number`, ISO dates for `date`, and numbers of
    characters for words; `select` and `checkbox` have neither."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    name: str = Field(
        pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$", description="key of the answer, such as email"
    )
    label: Label = Field(description="what the user reads")
    type: FieldType = "text"
    required: bool = Field(
        default=False, description="true: must be filled in; a checkbox must be ticked"
    )
    help: Annotated[str, Field(max_length=300)] = Field(
        default="", description="a line under the field"
    )
    placeholder: Annotated[str, Field(max_length=120)] = ""
    options: Annotated[list[Choice], AfterValidator(unique_values)] = Field(
        default=[], max_length=40, description="only for select"
    )
    min: Limit | None = Field(
        default=None, description="smallest number, first ISO date, or fewest characters"
    )
    max: Limit | None = Field(
        default=None, description="largest number, last ISO date, most characters"
    )
    pattern: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="regular expression that the whole text must match"
    )
    pattern_hint: Annotated[str, Field(max_length=200)] = Field(
        default="", description="what fits the pattern, in words for the user"
    )
    default: str | int | float | bool | None = Field(default=None, description="filled in already")

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if (self.type == "select") != bool(self.options):
            raise ValueError("options: give some to a select, and to nothing else")
        if self.pattern is not None:
            if self.type not in WORDS:
                raise ValueError(f"pattern: a {self.type} has none; leave it out")
            _matcher(self.pattern)
        low, high = (_limit(self, side) for side in ("min", "max"))
        if low is not None and high is not None and low > high:  # type: ignore[operator]
            raise ValueError("min: is above max")
        if self.default is not None:
            try:
                check_field(self, self.default)
            except ValueError as error:
                raise ValueError(f"default: does not fit the field: {error}") from error
        return self


def check_field(field: FormField, raw: object) -> object:
    """The parsed answer, None for one that was left empty; ValueError says what would fit."""
    if field.type == "checkbox":
        return _checkbox(field, raw)
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        if field.required:
            raise ValueError("Fill this in.")
        return None
    return _CHECKS[field.type](field, raw)


def _checkbox(field: FormField, raw: object) -> bool:
    ticked = False if raw is None else raw
    if not isinstance(ticked, bool):
        raise ValueError("Tick the box or leave it.")
    if field.required and not ticked:
        raise ValueError("Tick this box to go on.")
    return ticked


def _words(field: FormField, raw: object) -> str:
    if not isinstance(raw, str):
        raise ValueError("Write some words.")
    text = raw.strip()
    low, high = _limit(field, "min"), _limit(field, "max")
    if isinstance(low, int) and len(text) < low:
        raise ValueError(f"Write at least {low} characters.")
    most = min(high, MOST_CHARACTERS) if isinstance(high, int) else MOST_CHARACTERS
    if len(text) > most:
        raise ValueError(f"Write at most {most} characters.")
    if field.pattern is not None and not _matches(field.pattern, text):
        raise ValueError(field.pattern_hint or "This does not have the form that is asked for.")
    return text


def _email(field: FormField, raw: object) -> str:
    text = _words(field, raw)
    if len(text) > MOST_EMAIL_CHARACTERS or not EMAIL.fullmatch(text):
        raise ValueError("Write an address such as name@example.org.")
    return text


def _telephone(field: FormField, raw: object) -> str:
    text = _words(field, raw)
    digits = sum(letter.isdigit() for letter in text)
    if not TELEPHONE.fullmatch(text) or digits not in DIGITS:
        raise ValueError("Write a telephone number such as +44 20 7946 0000.")
    return text


def _number(field: FormField, raw: object) -> int | float:
    number = _as_number(raw)
    low, high = _limit(field, "min"), _limit(field, "max")
    if isinstance(low, int | float) and number < low:
        raise ValueError(f"Choose {low} or more.")
    if isinstance(high, int | float) and number > high:
        raise ValueError(f"Choose {high} or less.")
    return number


def _date(field: FormField, raw: object) -> date:
    day = _as_date(raw)
    first, last = _limit(field, "min"), _limit(field, "max")
    if isinstance(first, date) and day < first:
        raise ValueError(f"Choose {first.isoformat()} or later.")
    if isinstance(last, date) and day > last:
        raise ValueError(f"Choose {last.isoformat()} or earlier.")
    return day


def _select(field: FormField, raw: object) -> str:
    for option in field.options:
        if option.value == raw:
            return option.value
    raise ValueError("Choose one of the options.")


_CHECKS: Mapping[FieldType, Callable[[FormField, object], object]] = {
    "text": _words,
    "textarea": _words,
    "email": _email,
    "tel": _telephone,
    "number": _number,
    "date": _date,
    "select": _select,
}


def _as_number(raw: object) -> int | float:
    if isinstance(raw, str):
        try:
            raw = float(raw)
        except ValueError:
            raise ValueError("Write a number.") from None
        raw = int(raw) if raw.is_integer() else raw
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not isfinite(raw):
        raise ValueError("Write a number.")
    return raw


def _as_date(raw: object) -> date:
    try:
        return date.fromisoformat(raw.strip() if isinstance(raw, str) else "")
    except ValueError:
        raise ValueError("Write a date as year-month-day, such as 2030-01-31.") from None


def _limit(field: FormField, side: Literal["min", "max"]) -> int | float | date | None:
    """The limit in the field's own unit; ValueError, to the model, where it has none."""
    raw = field.min if side == "min" else field.max
    if raw is None:
        return None
    try:
        if field.type == "date":
            return _as_date(raw)
        number = _as_number(raw)
    except ValueError:
        unit = "an ISO date" if field.type == "date" else "a number"
        raise ValueError(f"{side}: must be {unit} for a {field.type}") from None
    if field.type == "number":
        return number
    if field.type not in WORDS:
        raise ValueError(f"{side}: a {field.type} has none; leave it out")
    if not isinstance(number, int) or number < 0:
        raise ValueError(f"{side}: must be a number of characters for a {field.type}")
    return number


@lru_cache(maxsize=128)
def _matcher(pattern: str) -> TypeAdapter[str]:
    """Python's own `re` could be made to run for hours by a pattern; this engine cannot."""
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=f"^(?:{pattern})$")])
    except SchemaError as error:
        raise ValueError(
            "pattern: is no regular expression without look-around and back-references"
        ) from error


def _matches(pattern: str, text: str) -> bool:
    try:
        _matcher(pattern).validate_python(text)
    except ValidationError:
        return False
    return True
