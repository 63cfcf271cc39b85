"""Timelines as comparable text: what may differ between two runs of the same call is left out.

Owned by the tests of this folder. Pure.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping

_RATING = re.compile(r":\d\.\d+$")
"""A detector's probability at the end of a reason: its last digit depends on the processor."""


def plain(lines: Iterable[Mapping[str, object]]) -> list[str]:
    """One JSON text a line, without `ms`, `*_ms` and `clock` (DESIGN 6, CONTRACTS A)."""
    return [_text(_without_time(line)) for line in lines]


def golden(lines: Iterable[Mapping[str, object]]) -> list[str]:
    """As `plain`, and without probabilities, which another processor rounds differently."""
    return [_text(_without_ratings(_without_time(line))) for line in lines]


def said(lines: Iterable[str]) -> list[str]:
    """The texts of the committed turns, in order."""
    events = [json.loads(line) for line in lines]
    return [
        event["text"]
        for event in events
        if event["type"] == "turn" and event["event"] == "committed"
    ]


def difference(expected: list[str], got: list[str], name: str) -> str:
    """A unified diff with three lines around each change; empty when there is none."""
    return "\n".join(
        difflib.unified_diff(expected, got, f"{name}: expected", f"{name}: got", lineterm="")
    )


def _text(line: object) -> str:
    return json.dumps(line, ensure_ascii=False)


def _without_time(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            key: _without_time(item)
            for key, item in value.items()
            if key not in ("ms", "clock") and not str(key).endswith("_ms")
        }
    if isinstance(value, (list, tuple)):
        return [_without_time(item) for item in value]
    return value


def _without_ratings(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    kept = {key: item for key, item in value.items() if key != "p"}
    if isinstance(kept.get("reason"), str):
        kept["reason"] = _RATING.sub("", str(kept["reason"]))
    return kept
