"""Structured logs: one JSON object a line, nothing secret in it, nothing spoken unless allowed.

Owned by the server's start. Redacts twice: by value (every configured secret) and by pattern (what
looks like a credential), and blanks every field whose key has a `pii` segment.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TextIO

from aiohttp.http_exceptions import HttpProcessingError

from .config import LogConfig
from .config_reader import MASK

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

PATTERNS: tuple[re.Pattern[str], ...] = (
    re.compile(r"\bsk-[A-Za-z0-9_-]{8,}"),
    re.compile(r"(?i)\b(?:bearer|basic|digest)\s+[A-Za-z0-9+/=._~-]{8,}"),
    re.compile(r"(?i)\b(?:token|api[_-]?key|client_secret|password|secret)=[^\s&\"']+"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?"),
    re.compile(r"(?i)\b[a-z][a-z0-9+.-]*://[^\s/@:]+:[^\s/@]+@"),
)
"""Provider keys, Authorization values, key=value pairs, signed tokens, credentials in URLs."""

SECRET_KEYS = re.compile(r"(?i)(?:^|_)(?:secret|password|token|authorization|api_?key|apikey)$")


class Redactor:
    """Takes secrets out of text and fields."""

    def __init__(self, secrets: Iterable[str] = (), *, pii: bool = False) -> None:
        # Longest first: a secret that contains another one goes whole.
        self._secrets = tuple(sorted({s for s in secrets if len(s) >= 4}, key=len, reverse=True))
        self._pii = pii

    def text(self, text: str) -> str:
        """`text` with every secret masked."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        for pattern in PATTERNS:
            text = pattern.sub(MASK, text)
        return text

    def field(self, key: str, value: object) -> object:
        """The value of a field, masked if its key or its text says so."""
        if SECRET_KEYS.search(key):
            return MASK
        if not self._pii and "pii" in re.split(r"[._-]", key.lower()):
            return "(pii)"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {str(name): self.field(str(name), below) for name, below in value.items()}
        if isinstance(value, list | tuple):
            return [self.field("", item) for item in value]
        return value if isinstance(value, int | float | bool | None) else self.text(str(value))


class _Formatter(logging.Formatter):
    """Constant message plus fields, in UTC."""

    def __init__(self, redactor: Redactor, write: Callable[[dict[str, object]], str]) -> None:
        super().__init__()
        self._redactor = redactor
        self._write = write

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {
            "at": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redactor.text(record.getMessage()),
        }
        for key, value in vars(record).items():
            if key not in _STANDARD:
                line[key] = self._redactor.field(key, value)
        if record.exc_info:
            line["error"] = self._redactor.text(self.formatException(record.exc_info))
        return self._write(line)


def _as_json(line: dict[str, object]) -> str:
    return json.dumps(line, default=str)


def _as_text(line: dict[str, object]) -> str:
    """Whatever a field holds stays on its line; a traceback's lines are set apart by `| `."""
    head = f"{line.pop('at')} {str(line.pop('level')):<7} {_one_line(line.pop('message'))}"
    error = str(line.pop("error", ""))
    tail = " ".join(f"{key}={_one_line(value)}" for key, value in line.items())
    below = "".join(f"\n  | {_one_line(row)}" for row in error.splitlines())
    return f"{head}  {tail}{below}"


def _one_line(value: object) -> str:
    """`value` without anything that could begin a line of its own or move a terminal's cursor."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(value))


def is_worth_a_line(record: logging.LogRecord) -> bool:
    """False for what the HTTP library says of a stranger's bad bytes: it answers 400, and anyone
    could fill the log with them."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


def handler(
    config: LogConfig, secrets: Iterable[str] = (), stream: TextIO | None = None
) -> logging.Handler:
    """A handler that writes redacted lines to `stream` (stderr)."""
    made = logging.StreamHandler(stream or sys.stderr)
    redactor = Redactor(secrets, pii=config.pii)
    made.setFormatter(_Formatter(redactor, _as_json if config.json else _as_text))
    return made


def set_up(config: LogConfig, secrets: Iterable[str] = ()) -> None:
    """Send this process's logs through one redacting handler. Replaces earlier handlers."""
    root = logging.getLogger()
    root.handlers[:] = [handler(config, secrets)]
    root.setLevel(config.level.upper())
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    if config.level != "debug":
        logging.getLogger("aiohttp.server").addFilter(is_worth_a_line)
