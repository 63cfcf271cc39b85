"""One caller: sends a frame every 20 ms, plays what comes as a client would, and notes the times.

Owned by the round that made it; one connection, one script. A script is a Python generator that
yields the next frame and looks at the caller when it wants to know what was heard. Nothing is
judged here: `measures` reads the log when the round is over.
"""

from __future__ import annotations

import asyncio
import json
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter

from bench import ws
from bench.clips import FRAME_S, RATE, SILENCE, Clip

LOUD = 200
ACK_TICKS = 5

Kind = str
"""`plain` (bench/README.md) or `voxglove` (its own doors)."""


@dataclass(frozen=True, slots=True)
class Mark:
    """`clip` was said; its first frame was sent at `at` (seconds)."""

    kind: str
    clip: str
    at: float
    start: int
    end: int

    def time(self, sample: int) -> float:
        """When sample `sample` was spoken: a frame is sent when its last sample was recorded."""
        return self.at - FRAME_S + sample / RATE


@dataclass(slots=True)
class Log:
    """What happened on one call, in seconds of `perf_counter`."""

    marks: list[Mark] = field(default_factory=list)
    arrivals: list[tuple[float, bytes, bool]] = field(default_factory=list)
    """When, PCM, whether it is loud."""
    clears: list[float] = field(default_factory=list)
    lags: array[float] = field(default_factory=lambda: array("d"))
    sent: array[float] = field(default_factory=lambda: array("d"))
    connected: float = 0.0
    failed: str = ""


class Playout:
    """What a client still holds of what it was sent: it plays at once and in real time."""

    def __init__(self) -> None:
        self.epoch = self.played = 0
        self._held = 0
        self._at = 0.0

    def add(self, samples: int, now: float) -> None:
        self.advance(now)
        self._held += samples

    def advance(self, now: float) -> bool:
        """Play up to `now`; whether anything was there to play."""
        passed = min(self._held, round((now - self._at) * RATE)) if self._held else 0
        self.played += passed
        self._held -= passed
        self._at = now
        return passed > 0

    def clear(self, epoch: int, now: float) -> None:
        """Drop what is held and open the epoch after `epoch`."""
        self.advance(now)
        self._held, self.epoch = 0, epoch + 1


Script = Callable[["Caller"], Iterator[bytes]]


class Caller:
    """Opened by `connect`, then driven by the loop's timers until the script ends."""

    def __init__(self, kind: Kind, port: int, script: Script) -> None:
        self.log = Log()
        self.last_loud = 0.0
        """When loud sound came last."""
        self.holding = False
        """Set by a script: frames wait, as on a network that stalls, and go out together after."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._kind, self._port = kind, port
        self._script = script(self)
        self._playout = Playout()
        self._connection: ws.Connection | None = None
        self._held: list[bytes] = []
        self._due = 0.0
        self._ticks = 0

    async def connect(self) -> None:
        """Open the call and begin to send. A refusal ends the caller; the log says why."""
        path = "/call"
        began = perf_counter()
        try:
            if self._kind == "voxglove":
                status, body = await ws.http(self._port, "POST", "/session")
                if status != 201:
                    raise ws.Refused(f"POST /session: {status} {body[:200]!r}")
                path = f"/ws?token={json.loads(body)['token']}"
            self._connection = await ws.connect(self._port, path, self._received)
        except (ws.Refused, OSError, TimeoutError) as error:
            self._end(f"{type(error).__name__}: {error}")
            return
        self.log.connected = began
        self._due = asyncio.get_running_loop().time()
        self._tick()

    async def hang_up(self) -> None:
        """Close the connection, if it is open."""
        if self._connection is not None:
            await self._connection.close()

    def say(self, kind: str, clip: Clip) -> Iterator[bytes]:
        """Frames of `clip`, marked."""
        self.log.marks.append(Mark(kind, clip.name, perf_counter(), clip.start, clip.end))
        yield from clip.frames

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        frame = next(self._script, None)
        if frame is None or self._connection is None or self._connection.closed.done():
            self._end("" if frame is None else "the server hung up")
            return
        now = perf_counter()
        self._held.append(frame)
        if not self.holding:
            self._connection.send(b"".join(self._held))
            self._held.clear()
        self.log.lags.append(loop.time() - self._due)
        self.log.sent.append(now)
        self._ticks += 1
        if self._kind == "voxglove" and self._ticks % ACK_TICKS == 0 and self._playout.advance(now):
            self._tell(t="playback", epoch=self._playout.epoch, pos=self._playout.played)
        self._due += FRAME_S
        loop.call_at(self._due, self._tick)

    def _received(self, opcode: int, payload: bytes, now: float) -> None:
        if opcode == ws.BINARY:
            loud = max(array("h", payload), default=0) >= LOUD
            self.log.arrivals.append((now, payload, loud))
            self._playout.add(len(payload) // 2, now)
            if loud:
                self.last_loud = now
        elif opcode == ws.TEXT and b'"clear"' in payload:
            message = json.loads(payload)
            if message.get("t") == "clear":
                self._clear(int(message.get("epoch", 0)), now)

    def _clear(self, epoch: int, now: float) -> None:
        self.log.clears.append(now)
        self._playout.clear(epoch, now)
        if self._kind == "voxglove":
            self._tell(t="cleared", epoch=epoch, pos=self._playout.played)

    def _tell(self, **message: object) -> None:
        if self._connection is not None:
            self._connection.send(ws.frame(ws.TEXT, json.dumps(message).encode()))

    def _end(self, why: str) -> None:
        self.log.failed = why
        if not self.done.done():
            self.done.set_result(None)


def silence(ms: float) -> Iterator[bytes]:
    """Nothing, for a while."""
    for _ in range(round(ms / 20)):
        yield SILENCE
