"""`voxglove models`: which model files this machine has, and what to do about missing ones."""

from __future__ import annotations

from pathlib import Path

import typer

from ...media.models import ModelStatus, table
from ..config import Config
from .options import ConfigFile, configured

EXIT_MODEL = 3
KEYS = {"stt": "whisper-tiny.en", "tts": "piper-joe", "vad": "silero-vad", "turn": "smart-turn"}
"""Which locked model each key of `models` in the configuration replaces."""


def models(config: ConfigFile = None) -> int:
    """Print the table of model files; exit code 3 when one is missing or damaged."""
    rows = files(configured(config))
    typer.echo("\n".join(_lines(rows)))
    return 0 if all(row.remedy is None for row in rows) else EXIT_MODEL


def files(config: Config) -> list[ModelStatus]:
    """The state of each model file, looked for where `config` says."""
    chosen = {
        name: Path(getattr(config.models, key)).expanduser()
        for key, name in KEYS.items()
        if getattr(config.models, key)
    }
    return table(chosen)


def _lines(rows: list[ModelStatus]) -> list[str]:
    width = max(len(row.name) for row in rows)
    lines = []
    for row in rows:
        lines.append(f"{row.name:<{width}}  {row.state:<8}  {row.licence:<14}  {row.upstream}")
        if row.path is not None:
            lines.append(f"{'':<{width}}  {row.path}")
        if row.remedy is not None:
            lines.append(f"{'':<{width}}  to mend it: {row.remedy}")
    return lines
