"""The turn machine's inputs as JSON lines: written by `--record`, read back to replay a call.

Only these replay the reducer; the timeline holds what came of them (CONTRACTS A). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import get_args

from .vocabulary import TurnEvent

_TYPES: Mapping[str, type[TurnEvent]] = {kind.__name__: kind for kind in get_args(TurnEvent)}


class TurnLogError(ValueError):
    """A line that is no turn event: names what is wrong with it."""


def encode(event: TurnEvent) -> dict[str, object]:
    """`event` as a JSON object."""
    return {
        "event": type(event).__name__,
        **{item.name: getattr(event, item.name) for item in fields(event)},
    }


def decode(line: Mapping[str, object]) -> TurnEvent:
    """The event that `encode` made `line` of. Raises TurnLogError naming the field."""
    kind = _TYPES.get(str(line.get("event")))
    if kind is None:
        raise TurnLogError(f"event: {line.get('event')!r} is no turn event; use a --record file")
    values = {key: value for key, value in line.items() if key != "event"}
    unknown = values.keys() - {item.name for item in fields(kind)}
    if unknown:
        raise TurnLogError(f"{kind.__name__}: unknown field {sorted(unknown)[0]!r}")
    try:
        return kind(**values)  # type: ignore[arg-type]
    except TypeError as error:
        raise TurnLogError(f"{kind.__name__}: {error}") from error
