"""`voxglove doctor`: can this machine hold a call? Looks, and says what to do about it."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from typing import Literal

import typer

from ..brains import open_model
from ..config import Config
from ..config_reader import ConfigError
from .models import KEYS, files
from .options import ConfigFile, configured, environment

EXIT_FAILED = 1
Verdict = Literal["ok", "note", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    verdict: Verdict
    what: str
    remedy: str = ""


def doctor(config: ConfigFile = None) -> int:
    """Check Python, packages, model files, the port, who answers calls, and the text model."""
    settings = configured(config)
    findings = [finding for look in LOOKS for finding in look(settings)]
    for finding in findings:
        remedy = f"  -> {finding.remedy}" if finding.remedy else ""
        typer.echo(f"{finding.verdict:<4}  {finding.what}{remedy}")
    return EXIT_FAILED if any(finding.verdict == "fail" for finding in findings) else 0


def _python(settings: Config) -> Iterator[Finding]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    good = sys.version_info >= (3, 11)
    yield Finding(
        "ok" if good else "fail", f"Python {version}", "" if good else "use 3.11 or newer"
    )


def _packages(settings: Config) -> Iterator[Finding]:
    wanted = {
        "ctranslate2": "pip install 'voxglove[local]'",
        "sanotts": "pip install 'voxglove[local]'",
        "openai": "pip install 'voxglove[openai]'",
    }
    for name, remedy in wanted.items():
        found = find_spec(name) is not None
        yield Finding("ok" if found else "note", f"package {name}", "" if found else remedy)


def _models(settings: Config) -> Iterator[Finding]:
    for row in files(settings):
        if settings.brain.name != "cascade" and row.name != KEYS["vad"]:
            continue  # the provider hears and speaks
        verdict: Verdict = "ok" if row.remedy is None else "fail"
        yield Finding(verdict, f"model {row.name}: {row.state}", row.remedy or "")


def _port(settings: Config) -> Iterator[Finding]:
    host, port = settings.server.host, settings.server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            what = f"port {host}:{port}: {os.strerror(error.errno or 0).lower()}"
            yield Finding("note", what, "use --port 0 or another")
        else:
            yield Finding("ok", f"port {host}:{port} is free")


def _model(settings: Config) -> Iterator[Finding]:
    try:
        chosen = asyncio.run(open_model(settings.model, environment(), datetime.now))
    except ConfigError as error:
        yield Finding("fail", f"model {settings.model.text}", str(error))
    else:
        yield Finding("ok", f"model {chosen.name} ({chosen.why})")


def _brain(settings: Config) -> Iterator[Finding]:
    from ..realtime import brain_in_use, key_in_use, open_realtime  # half the house; serve waits

    try:
        adapter = open_realtime(settings, environment())
    except ConfigError as error:
        yield Finding("fail", f"brain {settings.brain.text}", str(error))
        return
    if adapter is None:
        yield Finding("ok", f"brain {settings.brain.name}")
    else:
        who, key = brain_in_use(settings, adapter), key_in_use(settings, environment())
        yield Finding("ok", f"brain {who} ({key})")


LOOKS: tuple[Callable[[Config], Iterator[Finding]], ...] = (
    _python,
    _packages,
    _models,
    _port,
    _brain,
    _model,
)
