"""What the commands share: the configuration with the command line over it, and its options."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...adapters.credentials import find
from ..config import CASCADE, Config, PartConfig, load
from ..config_reader import ConfigError

if TYPE_CHECKING:  # it holds the whole house, and a server wants to read its configuration first
    from ..build import Shared

ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="Configuration file (default ./voxglove.yaml).")
]
Stt = Annotated[str, typer.Option("--stt", help="Recogniser: whisper[:folder].")]
Tts = Annotated[str, typer.Option("--tts", help="Voice: piper_onnx[:voice.onnx], flite.")]
Model = Annotated[
    str,
    typer.Option("--model", help="auto, demo, openai[:model], ollama[:model], scripted:echo."),
]
Brain = Annotated[
    str,
    typer.Option(
        "--brain", help="cascade, or a realtime model: openai[:model], gemini[:model], gpt-live."
    ),
]
BaseUrl = Annotated[
    str, typer.Option("--base-url", help="Where that provider's protocol is spoken, ws[s]://….")
]
Voice = Annotated[str, typer.Option("--voice", help="The realtime model's voice.")]
Agent = Annotated[str, typer.Option("--agent", help="A name under `agents`, or module:factory.")]


def environment() -> Mapping[str, str]:
    """The process's environment: read here, handed on."""
    return os.environ


def configured(
    path: Path | None,
    *,
    stt: str = "",
    tts: str = "",
    model: str = "",
    agent: str = "",
    brain: str = "",
    base_url: str = "",
    voice: str = "",
) -> Config:
    """The configuration with what the command line says over it. Raises ConfigError."""
    config = load(path, environment())
    changes: dict[str, object] = {}
    for key, text in (("stt", stt), ("tts", tts), ("model", model)):
        if text:
            name, _, arg = text.partition(":")
            changes[key] = PartConfig(name=name, arg=arg)
    changes["brain"] = _brain(config.brain, brain, base_url=base_url, voice=voice)
    if ":" in agent:
        changes |= {"agents": {**config.agents, agent: agent}, "agent": agent}
    elif agent and agent not in config.known_agents:
        known = ", ".join(sorted(config.known_agents))
        raise ConfigError("agent", agent, f"use module:factory, or one of {known}")
    elif agent:
        changes["agent"] = agent
    return replace(config, **changes)  # type: ignore[arg-type]


def _brain(configured: PartConfig, text: str, **options: str) -> PartConfig:
    """The brain with what the command line says over it. Another provider than the configured one
    takes none of its options but the greeting, which is the agent's. Raises ConfigError for options
    of a brain that has none."""
    name, _, arg = text.partition(":")
    kept = configured.options
    if text and name != configured.name:
        mine = {} if name == CASCADE else kept
        kept = {key: value for key, value in mine.items() if key == "greeting"}
    given = {key: value for key, value in options.items() if value}
    part = PartConfig(
        name=name or configured.name,
        arg=arg or ("" if text else configured.arg),
        options={**kept, **given},
    )
    if part.name == CASCADE and given:
        option = "--" + next(iter(given)).replace("_", "-")
        raise ConfigError(option, "(given)", "name a realtime model with --brain as well")
    return part


def secrets(config: Config) -> tuple[str, ...]:
    """All that no log may show: what is configured, and every provider's key. Those of realtime
    models are among them."""
    from ...adapters.models.create import KEY_VARIABLES

    keys = [find(environment(), name) for name in KEY_VARIABLES]
    return (*config.secrets, *(key.reveal() for key in keys if key is not None))


def progress(text: str, *, line: bool = True) -> None:
    """Tell a person who waits; a pipe or a log is not told. Goes to stderr."""
    if sys.stderr.isatty():
        typer.echo(text if line else f"\r{text}", nl=line, err=True)


def parts_in_use(config: Config, shared: Shared) -> str:
    """One line: which agent, model, recogniser and voice there are, and why this model."""
    if shared.realtime is not None:
        from ..realtime import brain_in_use

        return f"agent {config.agent}, realtime {brain_in_use(config, shared.realtime)}"
    speech = shared.speech
    if config.agent in shared.factories:
        mind = f"agent {config.agent} with its own model"
    else:
        mind = f"agent {config.agent}, model {shared.model.name} ({shared.model.why})"
    return f"{mind}, stt {speech.name('stt')}, tts {speech.name('tts')}"
