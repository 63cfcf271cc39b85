"""The commands under one name, and what each way to fail means as an exit code (CONTRACTS C)."""

from __future__ import annotations

import typer

from ...adapters.errors import AdapterError
from ...core.errors import CoreError
from ...media.errors import MediaError
from ...media.models import ModelCorrupt, ModelMissing
from ..config_reader import ConfigError
from .call import call
from .configuration import config
from .doctor import doctor
from .models import models
from .serve import serve

EXIT_FAILED, EXIT_USAGE, EXIT_MODEL, EXIT_INTERRUPTED = 1, 2, 3, 130

app = typer.Typer(
    name="voxglove",
    help="One AI agent on every line a person can talk through.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(serve)
app.command()(call)
app.command()(doctor)
app.command()(models)
app.add_typer(config, name="config")


def run_command(arguments: list[str]) -> int:
    """Run one command; returns its exit code."""
    try:
        code = app(arguments, standalone_mode=False)
    except typer.Exit as left:
        return left.exit_code
    except typer.Abort:
        return EXIT_INTERRUPTED
    except (ModelMissing, ModelCorrupt) as error:
        return _fail(error, EXIT_MODEL)
    except ConfigError as error:
        return _fail(error, EXIT_USAGE)
    except Exception as error:
        return _refused(error)
    return code if isinstance(code, int) else 0


def _refused(error: Exception) -> int:
    """Usage errors of the parser, and failures with a plain sentence; anything else is a bug and
    keeps its traceback."""
    show = getattr(error, "show", None)
    if callable(show):
        show()
        return int(getattr(error, "exit_code", EXIT_USAGE))
    if isinstance(error, MediaError | AdapterError | CoreError | OSError):
        return _fail(error, EXIT_FAILED)
    raise error


def _fail(error: Exception, code: int) -> int:
    typer.echo(f"voxglove: {error}", err=True)
    return code
