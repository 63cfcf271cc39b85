"""Timelines as files: every call event as one JSON line (CONTRACTS A), in emission order.

A `TimelineFile` is a sink of one call. It writes through the file's buffer and flushes at each
line that ends something, so a killed process leaves whole lines.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO

from ..media.events import CallEnded, CallEvent, Response, to_line
from ..pipelines.log import encode, encode_config
from ..pipelines.machine import MachineConfig
from ..pipelines.vocabulary import TurnEvent


class TimelineFile:
    """Sink of a call's events. Raises OSError at construction when the file cannot be made."""

    def __init__(self, path: Path) -> None:
        self._file = _open(path)

    def __call__(self, at: int, event: CallEvent) -> None:
        """Write one event."""
        self._file.write(json.dumps(to_line(at, event), ensure_ascii=False, default=str) + "\n")
        if isinstance(event, Response | CallEnded):
            self._file.flush()

    def close(self) -> None:
        """No more events. Idempotent."""
        self._file.close()


class TurnLogFile:
    """Takes the turn machine's inputs; only this file replays the reducer."""

    def __init__(self, path: Path) -> None:
        self._file = _open(path)

    def begin(self, config: MachineConfig) -> None:
        """Write the first line: what the machine will decide by."""
        self._write(encode_config(config))

    def __call__(self, event: TurnEvent) -> None:
        """Write one event."""
        self._write(encode(event))

    def close(self) -> None:
        """No more events. Idempotent."""
        self._file.close()

    def _write(self, line: dict[str, object]) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _open(path: Path) -> IO[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A lone surrogate (a tool may say anything) becomes its JSON escape instead of an error.
    return path.open("w", encoding="utf-8", errors="backslashreplace")
