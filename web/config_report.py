"""What `voxglove config check` prints: every key, its value, where it came from, and advice.

Pure. Secrets are masked. The command line prints and sets the exit code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass

from ..adapters.credentials import Secret
from .auth import is_loopback
from .config import ENV_PREFIX, Config, PartConfig
from .config_reader import MASK


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One key of the configuration; `source` is default, file or environment."""

    key: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class ConfigReport:
    """The effective configuration, and what a person should know about it."""

    lines: tuple[ReportLine, ...]
    advice: tuple[str, ...]

    def text(self) -> str:
        """For a terminal."""
        width = max(len(line.key) for line in self.lines)
        rows = [f"{line.key:<{width}}  {line.value}  ({line.source})" for line in self.lines]
        return "\n".join([*rows, *(f"note: {note}" for note in self.advice)])


def report(
    config: Config, env: Mapping[str, str], file_data: Mapping[str, object] | None = None
) -> ConfigReport:
    """Describe `config`; `env` and `file_data` are what it was read from."""
    flat = set(_keys(file_data or {}))
    names = {name.removeprefix(ENV_PREFIX).lower() for name in env if name.startswith(ENV_PREFIX)}

    def source(key: str) -> str:
        if any(_lies_in(key, name) for name in map(_dotted, names)):
            return "environment"
        return "file" if any(_lies_in(key, name) for name in flat) else "default"

    lines = tuple(ReportLine(key, value, source(key)) for key, value in _flatten(config, ""))
    return ConfigReport(lines, tuple(_advice(config)))


def _advice(config: Config) -> Iterator[str]:
    server = config.server
    if not is_loopback(server.host):
        if server.tls.mode == "off":
            yield "browsers give a microphone only to https pages: set server.tls, or use a proxy"
        if not server.api_keys:
            yield "server.api_keys is empty: only browser pages of an allowed origin may call"
    if "*" in server.origins:
        yield "server.origins has *: any web page may open calls here"
    if config.webrtc.enabled and not is_loopback(server.host) and not config.webrtc.ice_servers:
        yield "webrtc.ice_servers is empty: callers behind strict networks need a TURN server"
    if not server.secret.reveal():
        yield "server.secret is empty: tokens end with the process"


def _flatten(value: object, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, PartConfig) and not value.options:
        yield key, value.text
    elif isinstance(value, PartConfig):
        yield from _flatten({"name": value.name, "arg": value.arg, **value.options}, key)
    elif isinstance(value, Secret):
        yield key, MASK if value.reveal() else "(none)"
    elif is_dataclass(value) and not isinstance(value, type):
        for item in fields(value):
            yield from _flatten(getattr(value, item.name), f"{key}.{item.name}".lstrip("."))
    elif isinstance(value, Mapping) and value:
        for name, below in value.items():
            yield from _flatten(below, f"{key}.{name}")
    elif isinstance(value, tuple):
        yield from _listed(value, key)
    elif isinstance(value, frozenset):
        phrases = sorted(" ".join(item) if isinstance(item, tuple) else str(item) for item in value)
        yield key, f"{len(phrases)} phrases: {', '.join(phrases[:3])}, …"
    else:
        yield key, _plain(value)


def _listed(value: tuple[object, ...], key: str) -> Iterator[tuple[str, str]]:
    """Tables of a list line by line, anything else on one line."""
    if any(is_dataclass(item) and not isinstance(item, Secret) for item in value):
        for index, item in enumerate(value):
            yield from _flatten(item, f"{key}[{index}]")
        return
    shown = [MASK if isinstance(item, Secret) else str(item) for item in value]
    yield key, f"[{', '.join(shown)}]"


def _plain(value: object) -> str:
    """As one would write it into the file."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return "{}" if isinstance(value, Mapping) else str(value) or '""'


def _keys(data: Mapping[str, object], above: str = "") -> Iterator[str]:
    for name, value in data.items():
        key = f"{above}.{name}".lstrip(".")
        if isinstance(value, Mapping) and value:
            yield from _keys(value, key)
        else:
            yield key


def _lies_in(key: str, name: str) -> bool:
    return key == name or key.startswith((f"{name}.", f"{name}["))


def _dotted(name: str) -> str:
    return name.replace("__", ".")
