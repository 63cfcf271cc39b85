"""How values become JSON that can be stored and sent.

Tools return what they like and callers type what they like; neither may make a history that
cannot be written. So this is total: what JSON cannot hold is written as near as it can be.
"""

import base64
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

from pydantic_core import from_json, to_json, to_jsonable_python

DEEPEST = 150
"""Levels of lists and objects that are written. Readers of JSON have a limit, and a history that
one value made unreadable would be lost."""

LEFT_OUT = "[not storable]"
"""Stands for what contains itself or lies too deep."""


def json_bytes(value: object) -> bytes:
    """`value` as JSON in UTF-8; raises only what the `__str__` of a value raises.

    Dataclasses and pydantic models become objects of all their fields, what JSON does not know
    becomes text, NaN and infinity null. Half a surrogate pair becomes U+FFFD, since no encoding
    can carry it; bytes that are no text become base64.
    """
    try:
        written = to_json(value, fallback=str, inf_nan_mode="null")
        if written.count(b"[") + written.count(b"{") > DEEPEST:
            from_json(written)  # the only way to be sure: it raises if this is too deep
    except (ValueError, TypeError, RecursionError):  # PydanticSerializationError is a ValueError
        return to_json(_plain(value, ()))
    return written


def whole_text(text: str) -> str:
    """`text` as UTF-8 can carry it: split surrogate pairs are joined, halves become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _plain(value: object, inside: tuple[int, ...]) -> object:
    """`value` of nothing but what JSON knows; `inside` are the ids of what it is part of."""
    if id(value) in inside or len(inside) > DEEPEST:
        return LEFT_OUT
    within = (*inside, id(value))
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {whole_text(str(key)): _plain(one, within) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(one, within) for one in value]
    return _leaf(value, within)


def _leaf(value: object, inside: tuple[int, ...]) -> object:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    try:
        known = to_jsonable_python(value, fallback=str)
    except (ValueError, TypeError, RecursionError):
        return whole_text(str(value))
    return known if known is None or isinstance(known, int) else _plain(known, inside)
