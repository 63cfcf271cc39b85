"""What both peers' systems under test share: the command line, the doors, the tone, the texts.

The contract is bench/README.md. Runs in a peer's own environment, so it imports nothing of voxglove
and nothing of a peer: aiohttp and the standard library only. Owned by the one process of a system
under test; it never touches a frame of audio.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import math
import os
import resource
import signal
import time
from array import array
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

RATE = 16_000
FRAME_S = 0.02
FRAME_SAMPLES = 320
FRAME_BYTES = 2 * FRAME_SAMPLES
HEARD = "I would like to book a table please."
GREETING = "Hello, this is the bench speaking."
AMPLITUDE, HZ = 12_000, 440
ENDING_S = 1.5
"""SIGTERM has to end the process within 2 s, so an orderly end gets this long and no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line of bench/README.md; delays in seconds, as both peers want them."""

    port: int
    echo: bool
    by_silence: bool
    min_silence_s: float
    stt_s: float
    model_s: float
    tts_s: float
    sentences: int
    tone_ms: int
    greet_ms: int
    later_text: str

    @property
    def answer(self) -> str:
        """What the fake model says: `sentences` sentences of more than 20 characters."""
        numbers = ("one", "two", "three", "four", "five", "six", "seven", "eight")
        said = (numbers[index % len(numbers)] for index in range(self.sentences))
        return " ".join(f"This is sentence number {number}." for number in said)

    def heard(self, segment: int) -> str:
        """What the fake recogniser writes of segment number `segment` of a call, from 0."""
        return self.later_text if segment else HEARD

    def spoken_ms(self, text: str) -> int:
        """How long the fake voice sounds for `text`."""
        return self.greet_ms if text.strip() == GREETING else self.tone_ms


@dataclass(slots=True)
class Calls:
    """The calls alive now, of one process."""

    alive: set[asyncio.Task[None]] = field(default_factory=set)


OneCall = Callable[[web.Request], Awaitable[web.WebSocketResponse]]


def parse(description: str) -> Options:
    """Read the command line; unknown options end the process with a usage message."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mode", choices=("call", "echo"), default="call")
    parser.add_argument("--turn", choices=("vad", "default"), default="vad")
    parser.add_argument("--min-silence-ms", type=int, default=400)
    for name in ("stt", "model", "tts"):
        parser.add_argument(f"--{name}-ms", type=float, default=100)
    parser.add_argument("--sentences", type=int, default=1)
    parser.add_argument("--tone-ms", type=int, default=4_000)
    parser.add_argument("--greet-ms", type=int, default=0)
    parser.add_argument("--later-text", default=HEARD)
    given = parser.parse_args()
    return Options(
        port=given.port,
        echo=given.mode == "echo",
        by_silence=given.turn == "vad",
        min_silence_s=given.min_silence_ms / 1000,
        stt_s=given.stt_ms / 1000,
        model_s=given.model_ms / 1000,
        tts_s=given.tts_ms / 1000,
        sentences=given.sentences,
        tone_ms=given.tone_ms,
        greet_ms=given.greet_ms,
        later_text=given.later_text,
    )


def tone(ms: int) -> bytes:
    """`ms` of the bench's sine, PCM16LE at 16 kHz."""
    step = 2 * math.pi * HZ / RATE
    wave = (round(AMPLITUDE * math.sin(step * n)) for n in range(RATE * ms // 1000))
    return array("h", wave).tobytes()


def open_line() -> web.WebSocketResponse:
    """The socket of a call: no compression and no heartbeat, as nothing here needs either."""
    return web.WebSocketResponse(compress=False, autoping=True)


def serve(options: Options, one_call: OneCall) -> None:
    """Serve `one_call` on /call, and /stats, until SIGTERM; prints `ready PORT` once it listens.

    A call still open at the end is cancelled; one that will not end is left to the process's end.
    """
    asyncio.run(_serve(options, one_call))
    # Threads of a peer's libraries must not hold the end up.
    os._exit(0)


async def _serve(options: Options, one_call: OneCall) -> None:
    calls = Calls()

    async def call(request: web.Request) -> web.WebSocketResponse:
        task = asyncio.current_task()
        if task is not None:
            calls.alive.add(task)
        try:
            return await one_call(request)
        finally:
            if task is not None:
                calls.alive.discard(task)

    async def stats(request: web.Request) -> web.Response:
        if request.query.get("trim"):
            _trim()
        return web.json_response(_stats(len(calls.alive)))

    app = web.Application()
    app.add_routes([web.get("/call", call), web.get("/stats", stats)])
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", options.port, backlog=256).start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(f"ready {options.port}", flush=True)
    await stop.wait()
    for task in calls.alive:
        task.cancel()
    if calls.alive:
        await asyncio.wait(tuple(calls.alive), timeout=ENDING_S)
    os._exit(0)


def _trim() -> None:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def _stats(calls: int) -> dict[str, float]:
    """The /stats document. Neither peer forks here, so the process is all there is of it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime + ended.ru_utime + ended.ru_stime
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "cpu_s": cpu,
        "rss_bytes": pages * resource.getpagesize(),
        "wall": time.monotonic(),
        "calls": calls,
    }
