"""`voxglove serve`: the server, with the keyless local stack unless told otherwise."""

from __future__ import annotations

import asyncio
import errno
import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ...pipelines.text.spoken import preload
from ..config import Config, TlsConfig
from ..config_reader import ConfigError
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

if TYPE_CHECKING:  # imported while the models are opened, in `serve`
    from ..build import Shared
    from ..stack import Speech

ADDRESS_ERRORS = (errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL)


def serve(
    target: Annotated[
        str, typer.Argument(help="Your own agent as module:factory; default: the demo.")
    ] = "",
    config: ConfigFile = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "",
    port: Annotated[int, typer.Option("--port", help="Port; 0 picks a free one.")] = -1,
    tls: Annotated[
        bool, typer.Option("--tls", help="https with a self-signed certificate.")
    ] = False,
    stt: Stt = "",
    tts: Tts = "",
    model: Model = "",
    brain: Brain = "",
    base_url: BaseUrl = "",
    voice: Voice = "",
    agent: Agent = "",
) -> int:
    """Start the server and print the address to open in a browser."""
    settings = configured(
        config,
        stt=stt,
        tts=tts,
        model=model,
        agent=target or agent,
        brain=brain,
        base_url=base_url,
        voice=voice,
    )
    server = settings.server
    if host:
        server = replace(server, host=host)
    if port >= 0:
        server = replace(server, port=port)
    if tls:
        server = replace(server, tls=TlsConfig(mode="self-signed"))
    settings = replace(settings, server=server)
    from ..logs import set_up

    set_up(settings.log, secrets(settings))
    # Opening a model leaves the interpreter to others: meanwhile this thread imports the rest.
    with ThreadPoolExecutor(1, thread_name_prefix="models") as thread:
        opening = thread.submit(_open_models, settings)
        asyncio.run(_serve(settings, opening))
    return 0


async def _serve(settings: Config, opening: Future[Speech]) -> None:
    from ..build import open_shared

    progress("loading the models …")
    shared = await open_shared(settings, environment(), opening=lambda _: opening.result())
    try:
        for note in shared.speech.notes:
            typer.echo(f"note: {note}", err=True)
        typer.echo(parts_in_use(settings, shared))
        await _with_stores(settings, shared)
    finally:
        await shared.aclose()


async def _with_stores(settings: Config, shared: Shared) -> None:
    from ..stores import open_stores

    stores = await open_stores(settings.store, environment())
    if stores.durable:
        typer.echo(f"store: {stores.name}")
    try:
        await _listen(settings, replace(shared, stores=stores))
    finally:
        await stores.aclose()


def _open_models(settings: Config) -> Speech:
    from ..stack import open_warm

    return open_warm(settings)


async def _listen(settings: Config, shared: Shared) -> None:
    from ..app import Behind
    from ..app import serve as serve_app
    from ..build import call_factory

    loop = asyncio.get_running_loop()

    def announce(url: str) -> None:
        typer.echo(f"ready: open {url} and press the button (Ctrl-C stops)")
        loop.run_in_executor(None, preload)

    try:
        behind = Behind(stores=shared.stores, model=shared.model.make)
        await serve_app(settings, announce, build=call_factory(shared), behind=behind)
    except OSError as error:
        if error.errno not in ADDRESS_ERRORS:
            raise
        where = f"{settings.server.host}:{settings.server.port}"
        why = os.strerror(error.errno).lower()
        raise ConfigError(
            "server.port", where, f"{why}; use --port 0 or another, or --host"
        ) from None
