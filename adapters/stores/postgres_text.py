"""Text that PostgreSQL can hold: any Python string there and back, and keys that fit an index.

PostgreSQL's text knows neither NUL nor lone surrogates, and an index row must stay below 2.7 kB.
Pure functions; nothing here knows a table.
"""

from __future__ import annotations

import hashlib
import re

MARK = "\x1a"
"""SUBSTITUTE: the control character made for this; itself written escaped."""

MAX_KEY_BYTES = 512
"""Longest key kept as it is. Three of them fit one index row."""

_UNSTORABLE = re.compile(f"[\x00{MARK}\ud800-\udfff]")
_ESCAPED = re.compile(f"{MARK}([0-9a-f]{{4}})")
_HEAD = 64


def storable(text: str) -> str:
    """The text with NUL, lone surrogates and the mark written as the mark and four hex digits."""
    return _UNSTORABLE.sub(lambda found: f"{MARK}{ord(found[0]):04x}", text)


def restored(stored: str) -> str:
    """The inverse of storable."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), stored)


def optional(text: str | None) -> str | None:
    """storable() for a text that may be absent."""
    return None if text is None else storable(text)


def index_key(text: str) -> str:
    """A key for an index: the text itself, or its beginning and its digest where it is long.

    Two texts share no key: what storable() makes never holds the mark before a number sign.
    """
    safe = storable(text)
    raw = safe.encode()
    if len(raw) <= MAX_KEY_BYTES:
        return safe
    return f"{safe[:_HEAD]}{MARK}#{hashlib.sha256(raw).hexdigest()}"
