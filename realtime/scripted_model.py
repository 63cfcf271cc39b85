"""The ear and the mouth of the scripted provider: when a turn ends, and how an answer goes out."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ..core.messages import ToolCall
from .events import (
    LOST,
    Audio,
    ItemDone,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    ToolCalls,
    Words,
)

WINDOW_MS = 20
LOUD = 300.0
"""Root mean square of 16-bit samples above which a window is speech."""
WORD_MS = 240
CHUNK_MS = 100
MAX_QUEUED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Why the model works now: `text` was said or typed, `instruction` came with a request,
    `results` are the tools' outputs by call id."""

    by: Literal["speech", "text", "request", "results"]
    text: str = ""
    instruction: str = ""
    results: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One response: speech, then calls, after `after_s`. Empty text and no calls: it has nothing
    to say, and still is a response."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    after_s: float = 0.05


Answer = Callable[[Asked], Reply]


def echo(asked: Asked) -> Reply:
    """Says what it was told."""
    return Reply(text=asked.text or asked.instruction or " ".join(asked.results.values()))


def hum(text: str, rate: int) -> bytes:
    """240 ms of a plain tone for each word."""
    time = np.arange(len(text.split()) * WORD_MS * rate // 1000) / rate
    return (np.sin(2 * np.pi * 440 * time) * 4_000).astype("<i2").tobytes()


@dataclass(frozen=True, slots=True)
class Heard:
    """The caller began at `start_ms`, or spoke until `end_ms`; `text` where the script tells."""

    start_ms: int
    end_ms: int | None = None
    text: str = ""


class Ear:
    """Where turns begin and end in the sound of one connection: by its energy, unless `expect`
    said where, or the host says when."""

    def __init__(self, rate: int, silence_ms: int, detects: bool) -> None:
        self._rate = rate
        self._silence_ms = silence_ms
        self._detects = detects
        self._ms = 0
        self._start: int | None = None
        self._loud_until = 0
        self._expected: deque[tuple[str, int, int]] = deque()

    def expect(self, text: str, start_ms: int, end_ms: int) -> None:
        """`text` is said from `start_ms` to `end_ms`; from now on energy decides nothing."""
        self._expected.append((text, start_ms, end_ms))

    def hear(self, sound: bytearray) -> Iterator[Heard]:
        """All the sound so far; yields what is new in it."""
        size = self._rate * WINDOW_MS // 1000
        while (self._ms // WINDOW_MS + 1) * size * 2 <= len(sound):
            at = self._ms // WINDOW_MS * size
            window = np.frombuffer(bytes(sound[at * 2 : (at + size) * 2]), "<i2")
            self._ms += WINDOW_MS
            if self._detects:
                yield from self._window(self._is_loud(window.astype(np.float64)))

    def begin(self) -> None:
        """The host hears the user begin."""
        if self._start is None:
            self._start = self._ms

    def end(self) -> Heard | None:
        """The host ends the turn; None: it had not begun."""
        start, self._start = self._start, None
        return None if start is None else Heard(start, self._ms, self._text())

    def _is_loud(self, window: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> bool:
        if self._expected:
            _, start, end = self._expected[0]
            return start < self._ms <= end
        return bool(np.sqrt(np.mean(window**2)) > LOUD)

    def _window(self, loud: bool) -> Iterator[Heard]:
        if loud:
            self._loud_until = self._ms
            if self._start is None:
                self._start = self._ms - WINDOW_MS
                yield Heard(self._start)
        elif self._start is not None and self._ms - self._loud_until >= self._silence_ms:
            start, self._start = self._start, None
            yield Heard(start, self._loud_until, self._text())

    def _text(self) -> str:
        return self._expected.popleft()[0] if self._expected else ""


class Mouth:
    """Says one answer after the other. Its `run` is a task of the connection's group."""

    def __init__(
        self,
        rate: int,
        speak: Callable[[str, int], bytes],
        speed: float,
        emit: Callable[[RealtimeEvent], None],
    ) -> None:
        self._rate = rate
        self._speak = speak
        self._speed = speed
        self._emit = emit
        self._waiting: deque[tuple[Reply, str, str]] = deque(maxlen=MAX_QUEUED)
        self._woken = asyncio.Event()
        self._cut = asyncio.Event()
        self._closed = False
        self._response = ""
        self.responses = 0
        self.speaking = ""
        """The item that is being spoken, "" for none."""

    def say(self, reply: Reply, prefix: str, request_id: str) -> None:
        """Queue an answer behind those that wait."""
        self._waiting.append((reply, prefix, request_id))
        self._woken.set()

    def cut(self) -> None:
        """End the response that runs, if one does."""
        self._cut.set()

    def close(self) -> None:
        """Nothing more is said; what is open is closed, as a provider's adapter does."""
        if not self._closed and self._response:
            if self.speaking:
                self._emit(ItemDone(self.speaking))
            self._emit(ResponseDone(self._response, "cancelled", LOST))
        self._closed = True
        self._woken.set()
        self._cut.set()

    async def run(self, answered: Callable[[], None]) -> None:
        """Say what is queued until `close`."""
        while not self._closed:
            if not self._waiting:
                self._woken.clear()
                await self._woken.wait()
                continue
            reply, prefix, request_id = self._waiting.popleft()
            await asyncio.sleep(reply.after_s)
            if not self._closed:
                await self._respond(reply, prefix, request_id)
                answered()

    async def _respond(self, reply: Reply, prefix: str, request_id: str) -> None:
        self.responses += 1
        response = f"response-{prefix}-{self.responses}"
        self._response = response
        self._cut.clear()
        self._emit(ResponseStarted(response, request_id))
        whole = not reply.text or await self._speech(f"item-{prefix}-{self.responses}", reply.text)
        if whole and reply.calls:
            self._emit(ToolCalls(response, reply.calls))
        self._emit(ResponseDone(response, "completed" if whole else "cancelled"))
        self._response = ""

    async def _speech(self, item: str, text: str) -> bool:
        """Words, then sound faster than real time. False: it was cut."""
        self.speaking = item
        pcm = self._speak(text, self._rate)
        size = self._rate * CHUNK_MS // 1000 * 2
        self._emit(Words("assistant", item, text))
        for at in range(0, len(pcm), size):
            if self._cut.is_set():
                break
            self._emit(Audio(item, pcm[at : at + size]))
            with suppress(TimeoutError):
                async with asyncio.timeout(CHUNK_MS / 1000 / self._speed):
                    await self._cut.wait()
        whole = not self._cut.is_set()
        if whole:
            self._emit(Words("assistant", item, text, True))
        self.speaking = ""
        self._emit(ItemDone(item))
        return whole
