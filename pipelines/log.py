"""The turn machine's inputs as JSON lines: written by `--record`, read back to replay a call.

The first line holds the numbers the machine decided by, each other one an event. Only these replay
the reducer; the timeline holds what came of them (CONTRACTS A). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TypeVar, get_args, get_origin, get_type_hints

from .state import MachineConfig
from .vocabulary import TurnEvent

CONFIG = "config"
"""The one key of a log's first line."""

T = TypeVar("T")

_TYPES: Mapping[str, type[TurnEvent]] = {kind.__name__: kind for kind in get_args(TurnEvent)}


class TurnLogError(ValueError):
    """A line that is no turn event: names what is wrong with it."""


def read_log(lines: Iterable[Mapping[str, object]]) -> tuple[MachineConfig, Iterator[TurnEvent]]:
    """A recorded call, ready for `machine.replay`. Raises TurnLogError for a first line without
    `config`; the events raise it as they are read."""
    rest = iter(lines)
    first = next(rest, {})
    if CONFIG not in first:
        raise TurnLogError("the first line has no config; use a --record file")
    return decode_config(first), (decode(line) for line in rest)


def encode_config(config: MachineConfig) -> dict[str, object]:
    """The first line of a log."""
    return {CONFIG: _plain(config)}


def decode_config(line: Mapping[str, object]) -> MachineConfig:
    """What `encode_config` made `line` of; numbers that are missing have their defaults. Raises
    TurnLogError."""
    try:
        return _section(MachineConfig, line[CONFIG])
    except (KeyError, TypeError, ValueError) as error:
        raise TurnLogError(f"config: {error}") from error


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, frozenset):
        return sorted(list(phrase) for phrase in value)
    return value


def _section(kind: type[T], data: object) -> T:
    """An instance of the dataclass `kind`; the only sets in one are sets of phrases, and
    the only tuples hold texts."""
    if not isinstance(data, Mapping):
        raise TypeError(f"{kind.__name__} is no object")
    hints = get_type_hints(kind)
    values: dict[str, object] = {}
    for name, value in data.items():
        known = hints[name]
        if isinstance(known, type) and is_dataclass(known):
            values[name] = _section(known, value)
        elif isinstance(value, list) and get_origin(known) is tuple:
            values[name] = tuple(value)
        elif isinstance(value, list):
            values[name] = frozenset(tuple(phrase) for phrase in value)
        else:
            values[name] = value
    return kind(**values)


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
