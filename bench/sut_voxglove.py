"""voxglove as a system under test: its own doors, its own calls, fakes behind the ports.

The contract is bench/README.md. Run it as `python -m bench.sut_voxglove`; it prints `ready PORT`
and serves until SIGTERM. `--profile FILE` writes what cProfile saw from the first `/stats` on.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import ctypes
import gc
import json
import logging
import os
import resource
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from bench.fakes import (
    GREETING,
    TEXT,
    FixedModel,
    FixedStt,
    Script,
    Silence,
    ToneTts,
    sound_of,
)
from voxglove.core.agent import Agent
from voxglove.core.builder import Glove
from voxglove.core.factory import CallInfo as AgentCallInfo
from voxglove.media.brain import Command, Narrate
from voxglove.media.call import Call
from voxglove.media.format import PIPELINE, AudioFormat
from voxglove.media.frame import AudioFrame
from voxglove.media.line import Line
from voxglove.media.transport import CallInfo, Signal
from voxglove.media.vad.machine import VadConfig
from voxglove.media.vad.silero import load_vad
from voxglove.web.app import create_app
from voxglove.web.brains import OpenedModel
from voxglove.web.build import DEMO, Shared, call_factory
from voxglove.web.calls import BuiltCall, CallFactory
from voxglove.web.config import CallConfig, Config, LogConfig, PartConfig, ServerConfig
from voxglove.web.frontdesk.bookings import Bookings
from voxglove.web.server import SERVER
from voxglove.web.stack import Part, Speech, open_speech


def options() -> argparse.Namespace:
    """The command line of bench/README.md."""
    parser = argparse.ArgumentParser(description="voxglove as the bench's system under test.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mode", choices=("call", "echo"), default="call")
    parser.add_argument("--turn", choices=("vad", "default"), default="vad")
    parser.add_argument("--min-silence-ms", type=int, default=400)
    for name in ("stt", "model", "tts"):
        parser.add_argument(f"--{name}-ms", type=float, default=100)
    parser.add_argument("--sentences", type=int, default=1)
    parser.add_argument("--tone-ms", type=int, default=4_000)
    parser.add_argument("--greet-ms", type=int, default=0)
    parser.add_argument("--later-text", default=TEXT)
    parser.add_argument("--record", default="", help="folder for recordings")
    parser.add_argument("--profile", type=Path)
    return parser.parse_args()


def config(given: argparse.Namespace) -> Config:
    """Defaults but for what the contract fixes."""
    vad = VadConfig()
    if given.turn == "vad":  # the silence is the turn rule's; the detector's own is part of it
        vad = replace(vad, silence_ms=min(vad.silence_ms, given.min_silence_ms))
    return Config(
        server=ServerConfig(port=given.port),
        call=CallConfig(record_dir=given.record),
        stt=PartConfig(name="scripted"),
        tts=PartConfig(name="scripted"),
        vad=vad,
        log=LogConfig(level="warning"),
    )


def shared_parts(given: argparse.Namespace) -> Shared:
    """What `open_shared` makes of a configuration, with the bench's fakes in their places."""
    settings = config(given)
    script = Script(
        stt_ms=given.stt_ms,
        model_ms=given.model_ms,
        tts_ms=given.tts_ms,
        sentences=given.sentences,
        tone_ms=given.tone_ms,
        greet_ms=given.greet_ms,
        later_text=given.later_text,
    )

    def agent(info: AgentCallInfo) -> Agent:
        return Glove(model=FixedModel(script)).build()

    return Shared(
        config=settings,
        factories={DEMO: agent},
        speech=speech(
            settings, script, hold_ms=given.min_silence_ms if given.turn == "vad" else None
        ),
        model=OpenedModel(lambda: FixedModel(script), "fixed", "the bench's", local=True),
        bookings=Bookings(":memory:"),
        clock=datetime.now,
    )


def speech(settings: Config, script: Script, *, hold_ms: int | None) -> Speech:
    """Silero, and either no turn model at all or the one that ships."""
    parts = {name: Part("fixed") for name in ("stt", "tts", "vad", "turn")}
    load_vad(settings.vad)
    sound, silence = sound_of(script), Silence(hold_ms or 0)
    made = Speech(
        stt=lambda jobs: FixedStt(script),
        tts=lambda jobs: ToneTts(sound, script.tts_ms),
        vad=lambda: load_vad(settings.vad).vad,
        detector=lambda jobs: silence,
        parts=parts,
    )
    if hold_ms is not None:
        return made
    with tempfile.NamedTemporaryFile("w", suffix=".json") as nothing:
        nothing.write("[]")
        nothing.flush()
        scripted = PartConfig(name="scripted", arg=nothing.name)
        opened = open_speech(replace(settings, stt=scripted))
    return replace(opened, stt=made.stt, tts=made.tts)


def greeted(build: CallFactory, greet_ms: int) -> CallFactory:
    """`build`, but each call begins with a narration."""

    @asynccontextmanager
    async def made(info: CallInfo, survivors: asyncio.TaskGroup) -> AsyncIterator[BuiltCall]:
        async with build(info, survivors) as built:
            loop = asyncio.get_running_loop()
            loop.call_later(0.001, partial(greet, built.call))
            yield built

    def greet(call: Call) -> None:
        try:
            call.command(Narrate(GREETING))
        except RuntimeError:  # built, and not running yet
            asyncio.get_running_loop().call_later(0.001, partial(greet, call))

    return made if greet_ms else build


class EchoBrain:
    """Plays every frame that it hears."""

    input_format: AudioFormat = PIPELINE

    def __init__(self) -> None:
        self._frames: asyncio.Queue[AudioFrame] = asyncio.Queue(50)

    async def run(self, line: Line) -> None:
        while True:
            await line.play(1, await self._frames.get())

    def hear(self, frame: AudioFrame) -> None:
        if not self._frames.full():
            self._frames.put_nowait(frame)

    def signal(self, signal: Signal) -> None:
        """Nothing matters to an echo."""

    def command(self, command: Command) -> asyncio.Future[None]:
        raise RuntimeError("an echo takes no commands")


def echo_calls(
    info: CallInfo, survivors: asyncio.TaskGroup
) -> AbstractAsyncContextManager[BuiltCall]:
    """A CallFactory of echoes."""

    @asynccontextmanager
    async def made() -> AsyncIterator[BuiltCall]:
        yield BuiltCall(call=Call(EchoBrain(), info))

    return made()


def stats_of(calls: Callable[[], int], profile: cProfile.Profile | None) -> Handler:
    """The /stats door. The profile runs from the first question to the last."""

    async def stats(request: web.Request) -> web.Response:
        if profile is not None:
            profile.disable()
        if request.query.get("trim") == "1":
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        answer = {
            "cpu_s": sum(one.ru_utime + one.ru_stime for one in used),
            "rss_bytes": resident_bytes(),
            "wall": time.monotonic(),
            "calls": calls(),
        }
        if profile is not None:
            profile.enable()
        return web.Response(text=json.dumps(answer), content_type="application/json")

    return stats


def resident_bytes() -> int:
    """This process in memory, now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def serve(given: argparse.Namespace) -> None:
    """Serve until SIGTERM."""
    # CPU time of this thread: the wall's would show the neighbours as well.
    profile = cProfile.Profile(time.thread_time) if given.profile else None
    shared = shared_parts(given) if given.mode == "call" else None
    if shared is None:
        app = create_app(config(given), echo_calls)
    else:
        app = create_app(shared.config, greeted(call_factory(shared), given.greet_ms))
    app.router.add_get("/stats", stats_of(lambda: app[SERVER].registry.active, profile))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await web.TCPSite(runner, "127.0.0.1", given.port).start()
        print(f"ready {given.port}", flush=True)
        await stop.wait()
    finally:
        if profile is not None:
            profile.disable()
            profile.dump_stats(given.profile)
        await runner.cleanup()
        if shared is not None:
            shared.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(serve(options()))
