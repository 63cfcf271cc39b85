"""The commands under one name, and what each way to fail means as an exit code (CONTRACTS C).

A command's module is imported when it is asked for: a server that starts pays for no other one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import typer

from ...adapters.errors import AdapterError
from ...core.errors import CoreError
from ...media.errors import MediaError
from ...media.models import ModelCorrupt, ModelMissing
from ..config_reader import ConfigError

EXIT_FAILED, EXIT_USAGE, EXIT_MODEL, EXIT_INTERRUPTED = 1, 2, 3, 130


def run_command(arguments: list[str]) -> int:
    """Run one command; returns its exit code."""
    try:
        code = program(arguments)(arguments, standalone_mode=False)
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


def program(arguments: Sequence[str] = ()) -> typer.Typer:
    """The program with the command that `arguments` name; with all of them where they name none
    (help, a typing error)."""
    app = typer.Typer(
        name="voxglove",
        help="One AI agent on every line a person can talk through.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    # One command alone would become the program itself, without its name.
    app.callback()(_options)
    named = _COMMANDS.get(arguments[0]) if arguments else None
    for add in (named,) if named is not None else _COMMANDS.values():
        add(app)
    return app


def _options() -> None:
    """One AI agent on every line a person can talk through."""


def _serve(app: typer.Typer) -> None:
    # Its import reads every root certificate of the machine, and lets go of the interpreter
    # meanwhile: most of it costs no time beside our own imports.
    threading.Thread(target=_import_http, name="import http").start()
    from .serve import serve

    app.command()(serve)


def _import_http() -> None:
    with suppress(ImportError):  # the import that needs it will say so
        import aiohttp.web  # noqa: F401


def _call(app: typer.Typer) -> None:
    from .call import call

    app.command()(call)


def _doctor(app: typer.Typer) -> None:
    from .doctor import doctor

    app.command()(doctor)


def _models(app: typer.Typer) -> None:
    from .models import models

    app.command()(models)


def _config(app: typer.Typer) -> None:
    from .configuration import config

    app.add_typer(config, name="config")


_COMMANDS: dict[str, Callable[[typer.Typer], None]] = {
    "serve": _serve,
    "call": _call,
    "doctor": _doctor,
    "models": _models,
    "config": _config,
}


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
