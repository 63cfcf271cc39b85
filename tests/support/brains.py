"""Small brains for tests of `Call`: one that records, echoes, and does as it is told.

Owned by the test that made it. Has no turns, no texts and no history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from voxglove.media.brain import Command
from voxglove.media.format import PIPELINE, AudioFormat
from voxglove.media.frame import AudioFrame
from voxglove.media.line import Line
from voxglove.media.transport import Signal

Script = Callable[[Line], Awaitable[None]]


class ScriptedBrain:
    """Runs `script` on the line, then lives until cancelled. Keeps all it hears."""

    def __init__(
        self,
        script: Script | None = None,
        *,
        format: AudioFormat = PIPELINE,
        ends: bool = False,
        stop_takes_s: float = 0.0,
        deaf_to_cancels: int = 0,
    ) -> None:
        self.input_format = format
        self.frames: list[AudioFrame] = []
        self.signals: list[Signal] = []
        self.commands: list[Command] = []
        self.line: Line | None = None
        self.refuses: Exception | None = None
        """What `hear` raises from now on."""
        self.stopped = asyncio.Event()
        self._script = script
        self._ends = ends
        self._stop_takes_s = stop_takes_s
        self._deaf = deaf_to_cancels

    @property
    def heard_pcm(self) -> bytes:
        """All input, joined."""
        return b"".join(frame.pcm for frame in self.frames)

    async def run(self, line: Line) -> None:
        self.line = line
        try:
            if self._script is not None:
                await self._script(line)
            while not self._ends:
                await self._wait()
        finally:
            if self._stop_takes_s:
                await asyncio.sleep(self._stop_takes_s)
            self.stopped.set()

    def hear(self, frame: AudioFrame) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.frames.append(frame)

    def signal(self, signal: Signal) -> None:
        self.signals.append(signal)

    def command(self, command: Command) -> asyncio.Future[None]:
        self.commands.append(command)
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    async def _wait(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not self._deaf:
                raise
            self._deaf -= 1


class EchoBrain(ScriptedBrain):
    """Plays back what it hears, as segment 0, while the line takes it."""

    def __init__(self) -> None:
        super().__init__(self._echo)
        self._queue: asyncio.Queue[AudioFrame] = asyncio.Queue(500)

    def hear(self, frame: AudioFrame) -> None:
        super().hear(frame)
        if not self._queue.full():
            self._queue.put_nowait(frame)

    async def _echo(self, line: Line) -> None:
        while True:
            await line.play(0, await self._queue.get())
