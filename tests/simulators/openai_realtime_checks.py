"""How a field of a client event is checked: small checks that compose, and the refusal they raise.

Pure. A check gets the field's name as the provider writes it (`session.tools[0].name`) and its
value; it returns nothing, or raises Refused with the provider's code. protocols/openai-realtime
section 5.1 lists the codes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping

Json = dict[str, object]
Check = Callable[[str, object], None]

MAX_AUDIO_CHARACTERS = 15 * 1024 * 1024
"""Base64 in one frame (protocols/openai-realtime section 4)."""


class Refused(Exception):
    """A client event that the provider does not take; `event_id` is the client's, if any."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param
        self.event_id: str | None = None


def wrong(where: str, value: object, wanted: str) -> Refused:
    """What a field is that has a bad value."""
    shown = repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "…"
    return Refused("invalid_value", f"Invalid value for '{where}': {shown}, {wanted}.", where)


def anything(where: str, value: object) -> None:
    """Any JSON value."""


def boolean(where: str, value: object) -> None:
    if not isinstance(value, bool):
        raise wrong(where, value, "expected a boolean")


def text(least: int = 0, most: int | None = None) -> Check:
    """A string of so many characters."""

    def check(where: str, value: object) -> None:
        if not isinstance(value, str):
            raise wrong(where, value, "expected a string")
        if len(value) < least or (most is not None and len(value) > most):
            raise wrong(where, value, f"expected {least} to {most} characters")

    return check


def matching(pattern: str) -> Check:
    """A string of a form."""

    def check(where: str, value: object) -> None:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise wrong(where, value, f"expected a string that matches '{pattern}'")

    return check


def integer(least: int, most: int | None = None) -> Check:
    """A whole number within bounds; a boolean is none."""

    def check(where: str, value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong(where, value, "expected an integer")
        if value < least or (most is not None and value > most):
            raise wrong(where, value, f"expected {least} to {most}")

    return check


def number(least: float, most: float) -> Check:
    """A number within bounds; a boolean is none."""

    def check(where: str, value: object) -> None:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise wrong(where, value, "expected a number")
        if not least <= value <= most:
            raise wrong(where, value, f"expected {least} to {most}")

    return check


def one_of(*known: object) -> Check:
    """One of a few values."""

    def check(where: str, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value not in known:
            names = ", ".join(repr(one) for one in known)
            raise wrong(where, value, f"supported values are: {names}")

    return check


def nullable(inner: Check) -> Check:
    """`null`, or what `inner` takes."""

    def check(where: str, value: object) -> None:
        if value is not None:
            inner(where, value)

    return check


def listed(inner: Check, least: int = 0, most: int | None = None) -> Check:
    """An array of what `inner` takes."""

    def check(where: str, value: object) -> None:
        if not isinstance(value, list):
            raise wrong(where, value, "expected an array")
        if len(value) < least or (most is not None and len(value) > most):
            raise wrong(where, value, f"expected {least} to {most} elements")
        for index, one in enumerate(value):
            inner(f"{where}[{index}]", one)

    return check


def either(plain: Check, structured: Check) -> Check:
    """`structured` for an object or an array, `plain` for every other value."""

    def check(where: str, value: object) -> None:
        (structured if isinstance(value, (dict, list)) else plain)(where, value)

    return check


def mapping(key: Check, inner: Check, most: int) -> Check:
    """An object with names of the client's choice."""

    def check(where: str, value: object) -> None:
        if not isinstance(value, dict):
            raise wrong(where, value, "expected an object")
        if len(value) > most:
            raise wrong(where, value, f"expected at most {most} pairs")
        for name, one in value.items():
            key(f"{where} key", name)
            inner(f"{where}.{name}", one)

    return check


def fields(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """An object with exactly these fields: unknown ones are refused, required ones missed."""
    known = {**required, **(optional or {})}

    def check(where: str, value: object) -> None:
        if not isinstance(value, dict):
            raise wrong(where, value, "expected an object")
        for name in value:
            if name not in known:
                at = join(where, name)
                raise Refused("unknown_parameter", f"Unknown parameter: '{at}'.", at)
        for name in required:
            if name not in value:
                raise missing(join(where, name))
        for name, one in value.items():
            known[name](join(where, name), one)

    return check


def tagged(tag: str, kinds: Mapping[str, Check]) -> Check:
    """An object whose field `tag` says which of `kinds` it is."""

    def check(where: str, value: object) -> None:
        if not isinstance(value, dict):
            raise wrong(where, value, "expected an object")
        at = join(where, tag)
        if tag not in value:
            raise missing(at)
        one_of(*kinds)(at, value[tag])
        kinds[value[tag]](where, value)

    return check


def base64_of(at_most: int = MAX_AUDIO_CHARACTERS) -> Check:
    """Standard base64 with its padding."""

    def check(where: str, value: object) -> None:
        if not isinstance(value, str):
            raise wrong(where, value, "expected a string")
        if len(value) > at_most:
            raise wrong(where, value, f"expected at most {at_most} characters")
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise wrong(where, value, "expected base64") from error

    return check


def picture(where: str, value: object) -> None:
    """An image as a data URL with sound base64, or an address of the web."""
    if isinstance(value, str) and value.startswith(("https://", "http://")):
        return
    head, comma, data = value.partition(",") if isinstance(value, str) else ("", "", "")
    if not comma or not re.fullmatch(r"data:image/(png|jpeg);base64", head):
        raise wrong(where, value, "expected a data URL of a png or jpeg image")
    base64_of()(where, data)


def missing(where: str) -> Refused:
    return Refused("missing_required_parameter", f"Missing required parameter: '{where}'.", where)


def join(where: str, name: str) -> str:
    """The name of a field inside `where`."""
    return f"{where}.{name}" if where else name


def part(value: object, *names: str) -> Json:
    """The object at a path of names, {} where there is none: for JSON that was checked before."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def parts(value: object) -> list[Json]:
    """The objects of an array, [] where there is none: for JSON that was checked before."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def word(value: object) -> str:
    """A string, "" for anything else."""
    return value if isinstance(value, str) else ""


def whole(value: object, otherwise: int = 0) -> int:
    """An integer, `otherwise` for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
