"""`voxglove call`: a recording as the caller; prints the conversation and where the time went."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...media import events as call_events
from ...media import wav
from ...media.pcm import Samples
from ...media.turns.latency import PART_NAMES
from ...media.virtual_loop import run_virtual
from ..build import Shared, open_shared
from ..config import Config
from ..config_reader import ConfigError
from ..logs import set_up
from ..wav_call import WavCall, WavResult, hold
from .options import (
    Agent,
    BaseUrl,
    Brain,
    ConfigFile,
    Model,
    Stt,
    Tts,
    Voice,
    configured,
    environment,
    parts_in_use,
    progress,
    secrets,
)


def call(
    wav_file: Annotated[Path, typer.Option("--wav", help="The caller: any audio file.")],
    out: Annotated[Path | None, typer.Option(help="Recording: left caller, right agent.")] = None,
    timeline: Annotated[Path | None, typer.Option(help="Call events as JSON lines.")] = None,
    record: Annotated[Path | None, typer.Option(help="Inputs of the turn machine.")] = None,
    stt: Stt = "",
    tts: Tts = "",
    model: Model = "",
    brain: Brain = "",
    base_url: BaseUrl = "",
    voice: Voice = "",
    agent: Agent = "",
    fast: Annotated[bool, typer.Option("--fast", help="Do not wait for real time.")] = False,
    hangup_after: Annotated[
        float | None,
        typer.Option(min=0, help="Hang up this many seconds after the recording's end."),
    ] = None,
    cost_factor: Annotated[
        float, typer.Option(min=0, help="Fixed inference costs times this, on a slow machine.")
    ] = 1.0,
    config: ConfigFile = None,
) -> int:
    """Call the agent with a recording and print the conversation."""
    settings = configured(
        config,
        stt=stt,
        tts=tts,
        model=model,
        agent=agent,
        brain=brain,
        base_url=base_url,
        voice=voice,
    )
    _log_what_matters(settings)
    audio = _caller(wav_file)
    for option, path in (("--out", out), ("--timeline", timeline), ("--record", record)):
        _check_place(option, path)
    progress("loading the models …")
    shared = asyncio.run(_open(settings))
    try:
        typer.echo(parts_in_use(settings, shared))
        order = WavCall(
            audio=audio,
            name=wav_file.stem,
            agent=settings.agent,
            out=out,
            timeline=timeline,
            record=record,
            fast=fast,
            hangup_after_s=hangup_after,
            cost_factor=cost_factor,
            on_progress=lambda seconds: progress(f"{seconds:6.0f} s", line=False),
        )
        run = run_virtual if fast else asyncio.run
        result = run(_hold(shared, order))
    finally:
        shared.close()
    progress("")
    typer.echo("\n".join(report(result)))
    return 0 if result.completed else 1


def _caller(path: Path) -> Samples:
    """The recording, read before anything slow happens."""
    try:
        return wav.read(path)
    except wav.AudioFileError as error:
        raise ConfigError("--wav", str(path), str(error)) from None


def _check_place(option: str, path: Path | None) -> None:
    """Told before the call that it cannot be kept, not after it."""
    if path is None:
        return
    if path.is_dir():
        raise ConfigError(option, str(path), "it is a folder; name a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(option, str(path), f"its folder cannot be made: {error}") from None


def _log_what_matters(settings: Config) -> None:
    """Warnings, as lines for a person; everything only to who asked for `debug`."""
    config = settings.log
    level = config.level if config.level in ("debug", "error") else "warning"
    set_up(replace(config, level=level, json=False), secrets(settings))


async def _open(settings: Config) -> Shared:
    shared = await open_shared(settings, environment())
    await shared.warm()
    return shared


async def _hold(shared: Shared, order: WavCall) -> WavResult:
    """The call, and then the model's connections go, in the loop that used them."""
    try:
        return await hold(shared, order)
    finally:
        await shared.model.aclose()


def report(result: WavResult) -> Iterator[str]:
    """The conversation, a latency table, and how the call ended, line by line."""
    yield from _conversation(result)
    yield ""
    yield from _latency(result)
    how = "completed" if result.completed else "not completed"
    yield f"{how}: {result.reason}, {result.late} late results"


def _conversation(result: WavResult) -> Iterator[str]:
    for at, event in result.events:
        stamp = f"{at / call_events.RATE:8.2f} s"
        match event:
            case call_events.Transcript(role="user", partial=False):
                yield f"{stamp}  caller  {event.text}"
            case call_events.Transcript(role="assistant", partial=False):
                cut = f" [not heard: {(event.unheard or '').strip()}]" if event.interrupted else ""
                yield f"{stamp}  agent   {event.heard or event.text}{cut}"
            case call_events.Tool(event="started"):
                yield f"{stamp}  tool    {event.name} {event.input}"
            case call_events.Turn(event="dropped"):
                yield f"{stamp}  dropped {event.text!r}: {event.reason}"
            case call_events.Problem():
                yield f"{stamp}  problem {event.code} ({event.stage}): {event.message}"


def _latency(result: WavResult) -> Iterator[str]:
    rows = [
        event
        for _, event in result.events
        if isinstance(event, call_events.Metric) and event.name == "turn_latency"
    ]
    if not rows:
        return
    yield "turn  total ms  " + "  ".join(f"{name:>8}" for name in PART_NAMES)
    for row in rows:
        shares = {part.name: part.ms for part in row.parts or ()}
        cells = "  ".join(f"{shares.get(name, 0):8.0f}" for name in PART_NAMES)
        yield f"{row.turn or 0:4}  {row.total_ms or 0:8.0f}  {cells}"
