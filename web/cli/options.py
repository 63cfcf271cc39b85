"""What the commands share: the configuration with the command line over it, and its options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..config import Config, PartConfig, load

ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="Configuration file (default ./voxglove.yaml).")
]
Stt = Annotated[str, typer.Option("--stt", help="Recogniser: whisper[:folder].")]
Tts = Annotated[str, typer.Option("--tts", help="Voice: piper_onnx[:voice.onnx], flite.")]
Model = Annotated[
    str,
    typer.Option("--model", help="auto, demo, openai[:model], ollama[:model], scripted:echo."),
]
Agent = Annotated[str, typer.Option("--agent", help="A name under `agents`, or module:factory.")]


def environment() -> Mapping[str, str]:
    """The process's environment: read here, handed on."""
    return os.environ


def configured(
    path: Path | None, *, stt: str = "", tts: str = "", model: str = "", agent: str = ""
) -> Config:
    """The configuration with what the command line says over it. Raises ConfigError."""
    config = load(path, environment())
    changes: dict[str, object] = {}
    for key, text in (("stt", stt), ("tts", tts), ("model", model)):
        if text:
            name, _, arg = text.partition(":")
            changes[key] = PartConfig(name=name, arg=arg)
    if ":" in agent:
        changes |= {"agents": {**config.agents, "own": agent}, "agent": "own"}
    elif agent:
        changes["agent"] = agent
    return replace(config, **changes)  # type: ignore[arg-type]
