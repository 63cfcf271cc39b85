"""How much of a conversation goes into one message to a page. Pure.

A message holds 64 KiB, and one that is too long is not sent at all: so what is told about the
agent is cut to size here, newest first, and says that it was cut.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

MAX_ENTRIES = 200
"""Entries of a conversation that a page is told."""
MAX_CHARS = 40_000
"""JSON characters of one such message: well below the 64 KiB of a client's message."""
MAX_TEXT = 4_000
"""Characters of one text in it."""
MAX_VALUE = 6_000
"""JSON characters of one value that is no text: a tool's input, a finished card."""

Entry = dict[str, object]


def json_size(value: object) -> int | None:
    """Characters of `value` as JSON in plain ASCII; None where it has no JSON form."""
    try:
        return len(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None


def shortened(entry: Mapping[str, object], text: int = MAX_TEXT) -> Entry:
    """`entry` with long texts cut and large values left out."""
    found: Entry = {}
    for name, value in entry.items():
        if isinstance(value, str):
            found[name] = value if len(value) <= text else f"{value[: text - 1]}…"
        elif (size := json_size(value)) is not None and size <= MAX_VALUE:
            found[name] = value
    return found


def newest(entries: Sequence[Mapping[str, object]]) -> list[Entry]:
    """The last entries that fit, oldest first."""
    kept: list[Entry] = []
    room = MAX_CHARS
    for entry in reversed(entries[-MAX_ENTRIES:]):
        small = shortened(entry)
        room -= json_size(small) or 0
        if room < 0:
            break
        kept.append(small)
    return kept[::-1]


def first(entries: Sequence[Mapping[str, object]], text: int) -> tuple[Entry, ...]:
    """The first entries that fit, their texts cut to `text` characters."""
    kept: list[Entry] = []
    room = MAX_CHARS
    for entry in entries:
        small = shortened(entry, text)
        room -= json_size(small) or 0
        if room < 0:
            break
        kept.append(small)
    return tuple(kept)
