"""Plain data (YAML, environment) into frozen dataclasses, strictly, with errors people can use.

Pure but for `read_yaml`. Knows no key of the configuration: the dataclasses say what exists.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from ..adapters.credentials import Secret
from ..media.errors import MediaValueError

T = TypeVar("T")

MASK = "********"


class ConfigError(ValueError):
    """A key that cannot be used: names it, the value given and the remedy (exit code 2)."""

    def __init__(self, key: str, given: object, remedy: str) -> None:
        self.key, self.given, self.remedy = key, given, remedy
        super().__init__(f"{key}: {_shown(given)} cannot be used; {remedy}")

    def under(self, section: str) -> ConfigError:
        """The same error, seen from the section around it."""
        return ConfigError(f"{section}.{self.key}", self.given, self.remedy) if section else self


_SHORT = ""
"""Key of a shorthand in the table that the environment made of it."""


class _EnvText(str):
    """A value from the environment: text that may stand for a number, a flag or a list."""


def read_yaml(path: Path) -> dict[str, object]:
    """The mapping in a YAML file. Raises ConfigError for anything else."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = " ".join(str(error).split())[:200]
        raise ConfigError(str(path), "its text", f"it is no valid YAML: {where}") from None
    except OSError as error:
        raise ConfigError(str(path), "the file", f"it cannot be read: {error}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(str(path), data, "write `key: value` lines")
    return data


def merged_environment(
    data: Mapping[str, object], env: Mapping[str, str], prefix: str
) -> dict[str, object]:
    """`data` with PREFIX_SERVER__PORT=… laid over it; `__` goes one level down. Where a shorthand
    stands, a level below it changes that one value: BRAIN=openai and BRAIN__VOICE=cedar."""
    merged = _copy(data)
    for name, value in sorted(env.items()):
        if not name.startswith(prefix) or not name.removeprefix(prefix):
            continue
        *levels, last = name.removeprefix(prefix).lower().split("__")
        place = merged
        for level in levels:
            below = place.get(level)
            if not isinstance(below, dict):
                short: dict[str, object] = {_SHORT: below} if isinstance(below, str) else {}
                below = place[level] = short
            place = below
        place[last] = _EnvText(value)
    return merged


def read_section(kind: type[T], data: object, key: str = "") -> T:
    """An instance of the dataclass `kind` from a mapping. Raises ConfigError."""
    if isinstance(data, _EnvText):
        data = _parse(data, key)
    if kind.__name__ in _SHORTHANDS:
        data = _expanded(_SHORTHANDS[kind.__name__], data)
    if not isinstance(data, Mapping):
        given = _hidden(data)
        raise ConfigError(key or kind.__name__, given, "write a table of keys and values")
    hints = get_type_hints(kind)
    known = {item.name: hints[item.name] for item in fields(kind) if item.init}  # type: ignore[arg-type]
    values: dict[str, object] = {}
    for name, value in data.items():
        if name not in known:
            raise ConfigError(_join(key, str(name)), _hidden(value), _suggest(str(name), known))
        values[name] = _value(known[name], value, _join(key, name))
    try:
        return kind(**values)
    except ConfigError as error:
        raise error.under(key) from None
    except MediaValueError as error:
        name = error.field.rpartition(".")[2]
        raise ConfigError(_join(key, name), values.get(name), error.remedy) from None
    except (TypeError, ValueError) as error:
        raise ConfigError(key or kind.__name__, _hidden(data), str(error)) from None


def _value(kind: object, value: object, key: str) -> object:
    origin = get_origin(kind)
    if kind is Secret:
        return Secret(_text(value, key, secret=True))
    if isinstance(kind, type) and is_dataclass(kind):
        return read_section(kind, value, key)
    if kind is str:
        return _text(value, key)
    if isinstance(value, _EnvText):
        value = _parse(value, key)
    if origin in (tuple, frozenset):
        items = _list(get_args(kind)[0], value, key)
        return frozenset(items) if origin is frozenset else items
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(get_args(kind)[1], value, key)
    if origin in (types.UnionType, Union):
        return _either(get_args(kind), value, key)
    return _scalar(kind, value, key)


def _scalar(kind: object, value: object, key: str) -> object:
    if kind is object:
        return value
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if get_args(kind) and value in get_args(kind):
        return value
    raise ConfigError(key, value, f"write {_NAMES.get(kind, f'one of {get_args(kind)}')}")


_NAMES: Mapping[object, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def _text(value: object, key: str, *, secret: bool = False) -> str:
    if isinstance(value, str):
        return str(value)
    raise ConfigError(key, "(hidden)" if secret else value, 'write text; quote it: "…"')


def _list(kind: object, value: object, key: str) -> tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise ConfigError(key, _hidden(value), "write a list: [one, two]")
    return tuple(_value(kind, item, f"{key}[{index}]") for index, item in enumerate(value))


def _mapping(kind: object, value: object, key: str) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise ConfigError(key, value, "write a table of keys and values")
    return {str(name): _value(kind, item, _join(key, str(name))) for name, item in value.items()}


def _either(kinds: tuple[object, ...], value: object, key: str) -> object:
    if value is None and type(None) in kinds:
        return None
    errors = []
    for kind in kinds:
        try:
            return _value(kind, value, key)
        except ConfigError as error:
            errors.append(error)
    raise errors[0]


def _parse(value: _EnvText, key: str) -> object:
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(key, str(value), "the variable holds no valid YAML value") from None


def _suggest(name: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}there is no such key; known: {', '.join(known)}"


def _part(data: object) -> object:
    """`name[:arg]`, or a table whose other keys are options."""
    if isinstance(data, str):
        name, _, arg = data.partition(":")
        return {"name": name, "arg": arg}
    if isinstance(data, Mapping):
        own = {key: data[key] for key in ("name", "arg") if key in data}
        given = {key: value for key, value in data.items() if key not in ("name", "arg")}
        return {"name": "", **own, "options": given}
    return data


def _tls(data: object) -> object:
    """true, false, or a table with cert and key."""
    if isinstance(data, bool):
        return {"mode": "self-signed" if data else "off"}
    if isinstance(data, str):
        return {"mode": data}
    if isinstance(data, Mapping) and "mode" not in data:
        return {"mode": "files", **data}
    return data


def _store(data: object) -> object:
    """`kind[:place]`, or a table. A PostgreSQL address may stand alone."""
    if not isinstance(data, str):
        return data
    kind, _, place = data.partition(":")
    if kind in ("postgres", "postgresql") and place.startswith("//"):
        kind, place = "postgres", str(data)
    name = {"postgres": "dsn", "remote": "url"}.get(kind, "path")
    return {"kind": kind, name: place} if place else {"kind": kind}


def _expanded(shorthand: Callable[[object], object], data: object) -> object:
    """A shorthand written out, under what the environment says of single values."""
    if isinstance(data, Mapping) and _SHORT in data:
        short = shorthand(str(data[_SHORT]))
        above = {key: value for key, value in data.items() if key != _SHORT}
        data = {**short, **above} if isinstance(short, Mapping) else above
    return shorthand(data)


_SHORTHANDS = {"PartConfig": _part, "TlsConfig": _tls, "StoreConfig": _store}


def _copy(data: Mapping[str, object]) -> dict[str, object]:
    return {
        key: _copy(value) if isinstance(value, Mapping) else value for key, value in data.items()
    }


def _join(section: str, key: str) -> str:
    return f"{section}.{key}" if section else key


def _hidden(value: object) -> object:
    """A value under a key that might be a misspelt secret is not repeated, nor a table of some."""
    if isinstance(value, Mapping):
        return "(a table)"
    return "(hidden)" if isinstance(value, str) and len(value) >= 16 else value


def _shown(value: object) -> str:
    text = repr(str(value)) if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
