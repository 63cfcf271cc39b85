"""`voxglove config`: the effective configuration with its sources and advice, and the reference."""

from __future__ import annotations

from pathlib import Path

import typer

from ..config import DEFAULT_FILE, load
from ..config_docs import page
from ..config_reader import read_yaml
from ..config_report import report
from .options import ConfigFile, environment

config = typer.Typer(help="The configuration.", no_args_is_help=True)


@config.callback()
def _group() -> None:
    """The configuration."""


@config.command()
def check(path: ConfigFile = None) -> int:
    """Print every key with its value and source; exit code 2 names what is wrong."""
    settings = load(path, environment())
    file = path or Path(DEFAULT_FILE)
    data = read_yaml(file) if file.is_file() else None
    typer.echo(report(settings, environment(), data).text())
    return 0


@config.command()
def reference() -> int:
    """Print the reference of every key as Markdown (docs/configuration.md)."""
    typer.echo(page(), nl=False)
    return 0
