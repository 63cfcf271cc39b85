"""Fields of a provider's JSON, read with care: what a peer sends may be anything, reading it never
raises. Shared by all codecs; pure. What a field means is their business.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping

from .codec import Frame

Json = Mapping[str, object]


def parsed(frame: Frame) -> Json | None:
    """The object in a frame; None where it holds none."""
    try:
        value = json.loads(frame)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text(of: Json, name: str) -> str:
    """A field that should be text, "" where it is none."""
    value = of.get(name)
    return value if isinstance(value, str) else ""


def inner(of: Json, name: str) -> Json:
    """A field that should be an object, empty where it is none."""
    value = of.get(name)
    return value if isinstance(value, dict) else {}


def each(of: Json, name: str) -> Iterator[Json]:
    """The objects of a field that should be a list of them."""
    value = of.get(name)
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, dict))


def number(of: Json, name: str) -> float | None:
    """A field that should be a number, None where it is no finite one."""
    value = of.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def whole(of: Json, name: str) -> int | None:
    """A field that should be a count or milliseconds, None where it is no number."""
    found = number(of, name)
    return None if found is None else int(found)


def count(of: Json, name: str) -> int:
    """A field that should be a count, as a number or as text; 0 where it is none."""
    value = of.get(name)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return max(0, whole(of, name) or 0)
