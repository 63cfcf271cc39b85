"""A brain without an agent, for tests of everything around it: it says back what was typed.

Each answer is a tone as long as its text (60 ms a character), so that positions mean words.
`ask` and `permit` show a slot and say which answer it got.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np

from voxglove.core.display import DisplayChange, DisplayStack
from voxglove.media.brain import (
    ClientBargeIn,
    Command,
    Commit,
    Interrupt,
    Mute,
    Say,
)
from voxglove.media.call import Call, CallPolicy
from voxglove.media.events import Interruption, Mode, Response, Slot, SlotRemoved, Transcript, Turn
from voxglove.media.format import PIPELINE, AudioFormat
from voxglove.media.frame import AudioFrame
from voxglove.media.line import Line
from voxglove.media.transport import CallInfo, Signal
from voxglove.web.calls import BuiltCall, CallFactory
from voxglove.web.wire import Reject, Resolve

MS_PER_CHAR = 60


class EchoBrain:
    """`heard_samples` counts the caller's audio; `typed` keeps what was said."""

    def __init__(self) -> None:
        self.input_format: AudioFormat = PIPELINE
        self.heard_samples = 0
        self.loud_samples = 0
        self.typed: list[str] = []
        self.commands: list[Command] = []
        self.display = DisplayStack()
        self._line: Line | None = None
        self._jobs: asyncio.Queue[tuple[Say, asyncio.Future[None]]] = asyncio.Queue(64)
        self._voice = np.zeros(0, np.int16)
        self._turn = 0
        self._speaking = ""

    async def run(self, line: Line) -> None:
        self._line = line
        unsubscribe = self.display.subscribe(self._on_display)
        line.emit(Mode(mode="listening"))
        try:
            while True:
                say, done = await self._jobs.get()
                await self._answer(line, say.text)
                if not done.done():
                    done.set_result(None)
        finally:
            unsubscribe()
            self._line = None

    def hear(self, frame: AudioFrame) -> None:
        self.heard_samples += frame.samples
        if np.abs(frame.array()).max(initial=0) > 500:
            self.loud_samples += frame.samples
            self._voice = np.concatenate((self._voice, frame.array()))[-8_000:]

    def pitch(self) -> float:
        """Strongest frequency (Hz) of the last half second of loud input."""
        spectrum = np.abs(np.fft.rfft(self._voice * np.hanning(len(self._voice))))
        return float(np.argmax(spectrum)) * PIPELINE.rate / len(self._voice)

    def signal(self, signal: Signal) -> None:
        return None

    def command(self, command: Command) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._line is None:
            raise RuntimeError("not running")
        self.commands.append(command)
        match command:
            case Say():
                self._jobs.put_nowait((command, done))
                return done
            case Interrupt() | ClientBargeIn() if self._line.unplayed:
                self._cut(self._line)
            case Mute() | Commit() | _:
                pass
        done.set_result(None)
        return done

    async def _answer(self, line: Line, text: str) -> None:
        self._turn += 1
        turn = self._turn
        self.typed.append(text)
        line.emit(Transcript(role="user", text=text, partial=False, source="typed", turn=turn))
        line.emit(Turn(event="committed", reason="typed", text=text, turn=turn))
        line.emit(Mode(mode="thinking"))
        if text in ("ask", "permit"):
            text = await self._ask(text)
        answer = f"You said: {text}"
        self._speaking = answer
        line.emit(Transcript(role="assistant", text=answer, partial=True, turn=turn))
        line.emit(Response(event="started", turn=turn))
        line.emit(Mode(mode="speaking"))
        for frame in tone(len(answer) * MS_PER_CHAR):
            await line.play(turn, frame)
        await line.finish(turn)
        await line.drain()
        if self._speaking:
            self._speaking = ""
            self._heard(line, turn, answer, len(answer), interrupted=False)
            line.emit(Response(event="ended", text=answer, turn=turn))
        line.emit(Mode(mode="listening"))

    async def _ask(self, kind: str) -> str:
        if kind == "permit":
            wanted = {"toolName": "book_table", "toolInput": {"guests": 2, "time": "19:00"}}
            return str(await self.display.push_and_wait("permission_request", wanted))
        props = {"title": "Shall I book it?", "options": ["Yes", "No"]}
        return str(await self.display.push_and_wait("generic", props))

    def _cut(self, line: Line) -> None:
        answer, self._speaking = self._speaking, ""
        cut = line.cut()
        samples = sum(heard.samples for heard in cut.heard)
        chars = min(len(answer), samples * 1000 // (PIPELINE.rate * MS_PER_CHAR))
        line.emit(Interruption(event="cut", reason="command", out=cut.out, turn=self._turn))
        self._heard(line, self._turn, answer, chars, interrupted=True)
        line.emit(Response(event="cut", out=cut.out, heard=answer[:chars], turn=self._turn))

    def _heard(self, line: Line, turn: int, text: str, chars: int, *, interrupted: bool) -> None:
        line.emit(
            Transcript(
                role="assistant",
                text=text,
                partial=False,
                turn=turn,
                heard=text[:chars],
                unheard=text[chars:],
                interrupted=interrupted,
                estimated=True,
            )
        )

    def _on_display(self, change: DisplayChange) -> None:
        if self._line is None:
            return
        slot = change.slot
        if change.kind == "removed":
            self._line.emit(SlotRemoved(id=slot.id))
        else:
            self._line.emit(
                Slot(id=slot.id, renderer=slot.renderer, input=slot.input, strategy=slot.strategy)
            )


def tone(ms: int, hz: float = 440.0) -> list[AudioFrame]:
    """A sine at half scale in 20 ms frames."""
    samples = PIPELINE.samples(ms)
    wave = (16_000 * np.sin(2 * np.pi * hz * np.arange(samples) / PIPELINE.rate)).astype("<i2")
    return [
        AudioFrame(wave[at : at + 320].tobytes(), PIPELINE, at) for at in range(0, samples, 320)
    ]


class EchoCalls:
    """A call factory; `brains` holds the brain of every call begun, by call id."""

    def __init__(self, policy: CallPolicy | None = None) -> None:
        self.brains: dict[str, EchoBrain] = {}
        self.calls: dict[str, Call] = {}
        self.closed: list[str] = []
        self.fail = False
        self._policy = policy or CallPolicy()

    @property
    def factory(self) -> CallFactory:
        return self._build

    @asynccontextmanager
    async def _build(
        self, info: CallInfo, survivors: asyncio.TaskGroup
    ) -> AsyncIterator[BuiltCall]:
        if self.fail:
            raise RuntimeError("the models are on holiday")
        brain = self.brains[info.call_id] = EchoBrain()
        call = self.calls[info.call_id] = Call(brain, info, self._policy)

        def answer(request: Resolve | Reject) -> bool:
            if isinstance(request, Resolve):
                return brain.display.resolve(request.id, request.value)
            return brain.display.reject(request.id, request.reason)

        try:
            yield BuiltCall(call=call, answer=answer, assistant="Echo")
        finally:
            self.closed.append(info.call_id)
            self.brains.pop(info.call_id)
            self.calls.pop(info.call_id)
