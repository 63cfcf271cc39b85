"""What voxglove talks to in the bench: a recogniser, a model and a voice of fixed delays.

The contract is bench/README.md; the peers' fakes behave alike. Owned by one call each. They do as
little as possible, so that what is measured is the system and not its fakes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import numpy as np

from voxglove.adapters.stt.port import Final, Partial, SttEvent, SttSink
from voxglove.adapters.tts.port import Alignment, Audio, Done, TtsEvent
from voxglove.core.cancel import AbortScope, CancelToken
from voxglove.core.events import ModelResponseComplete, TextDelta
from voxglove.core.messages import Message
from voxglove.core.model import ModelRequest, ModelResult, Notify
from voxglove.media.format import PIPELINE, AudioFormat
from voxglove.media.frame import AudioFrame
from voxglove.pipelines.detectors.port import Decision, TurnQuery

GREETING = "Hello, this is the bench speaking."
TEXT = "I would like to book a table please."
AMPLITUDE, HZ = 12_000, 440
PIECE = 1_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The delays and lengths of one run (bench/README.md)."""

    stt_ms: float = 100
    model_ms: float = 100
    tts_ms: float = 100
    sentences: int = 1
    tone_ms: int = 4_000
    greet_ms: int = 0
    later_text: str = TEXT

    @property
    def answer(self) -> str:
        """What the model says."""
        numbers = ("one", "two", "three", "four", "five", "six", "seven", "eight")
        said = (numbers[index % len(numbers)] for index in range(self.sentences))
        return " ".join(f"This is sentence number {number}." for number in said)


Sound = Callable[[str], bytes]
"""What a text sounds like."""


def sound_of(script: Script) -> Sound:
    """The same tone for every sentence, another length for the greeting; made once."""
    sentence, greeting = tone(script.tone_ms), tone(script.greet_ms)
    return lambda text: greeting if text.strip() == GREETING else sentence


def tone(ms: int) -> bytes:
    """`ms` of the bench's sine."""
    time = np.arange(PIPELINE.samples(ms)) / PIPELINE.rate
    wave = AMPLITUDE * np.sin(2 * np.pi * HZ * time)
    pcm: bytes = np.rint(wave).astype("<i2").tobytes()
    return pcm


class FixedStt:
    """A SpeechToText that hears the same words in everything. Not continuous."""

    name = "fixed"
    continuous = False

    def __init__(self, script: Script) -> None:
        self._script = script
        self._sink: SttSink | None = None
        self._start: int | None = None
        self._finals = 0
        self._asked: asyncio.TimerHandle | None = None
        self._ahead: tuple[int, float] | None = None
        """A pause that was announced: its end, and when the text for it would be ready."""

    async def connect(self, sink: SttSink) -> None:
        self._sink = sink

    def send_audio(self, frame: AudioFrame) -> None:
        if self._start is None:
            self._start = frame.at

    def flush(self, end: int) -> None:
        self._drop_ask()
        ready = self._ready(end)
        self._at(ready, Final(self._text(end), self._from(end), end))
        self._finals += 1
        self._start = None

    def ask(self, end: int) -> None:
        self._drop_ask()
        self._ahead = None
        ready = self._ready(end)
        self._asked = self._at(ready, Partial(self._text(end), self._from(end), end))

    def speculate(self, end: int | None) -> None:
        """A system may ask before it is sure; the delay counts from when it asked."""
        self._ahead = None if end is None else (end, self._ready(end))

    def settle(self, end: int) -> None:
        if self._start is not None:
            self._start = max(self._start, end)

    async def aclose(self) -> None:
        self._sink = None

    def _from(self, end: int) -> int:
        return end if self._start is None else min(self._start, end)

    def _text(self, end: int) -> str:
        if self._from(end) >= end:
            return ""
        return self._script.later_text if self._finals else TEXT

    def _drop_ask(self) -> None:
        if self._asked is not None:
            self._asked.cancel()
            self._asked = None

    def _ready(self, end: int) -> float:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == end:
            return ahead[1]
        return asyncio.get_running_loop().time() + self._script.stt_ms / 1000

    def _at(self, when: float, event: SttEvent) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        return loop.call_at(max(when, loop.time()), self._report, event)

    def _report(self, event: SttEvent) -> None:
        if self._sink is not None:
            self._sink(event)


class FixedModel:
    """A Model that gives the script's answer at once, `model_ms` after the request."""

    name = "fixed"

    def __init__(self, script: Script) -> None:
        self._script = script

    def set_system_prompt(self, prompt: str) -> None:
        """It has no use for one."""

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        answer = self._script.answer
        async with AbortScope(token):
            await asyncio.sleep(self._script.model_ms / 1000)
            notify(TextDelta(text=answer))
            notify(ModelResponseComplete(text=answer))
        return ModelResult(messages=(Message(sender="agent", text=answer),))


class ToneTts:
    """A TextToSpeech of one tone per text it is sent, `tts_ms` after it was sent."""

    name = "tone"
    format: AudioFormat = PIPELINE

    def __init__(self, sound: Sound, tts_ms: float) -> None:
        self._sound = sound
        self._delay_s = tts_ms / 1000
        self._texts: asyncio.Queue[tuple[float, str] | None] = asyncio.Queue(256)
        self._closed = False

    async def open(self) -> None:
        """Nothing to get ready."""

    def send_text(self, text: str) -> None:
        self._texts.put_nowait((asyncio.get_running_loop().time() + self._delay_s, text))

    def flush(self) -> None:
        self._texts.put_nowait(None)

    async def events(self) -> AsyncIterator[TtsEvent]:
        written = sounded = 0
        while (item := await self._texts.get()) is not None and not self._closed:
            due, text = item
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            pcm = self._sound(text)
            end = sounded + len(pcm) // 2
            yield Alignment(written, written + len(text), sounded, end)
            for at in range(0, len(pcm), 2 * PIECE):
                if self._closed:
                    return
                yield Audio(pcm[at : at + 2 * PIECE], PIPELINE)
            written, sounded = written + len(text), end
        if not self._closed:
            yield Done()

    async def aclose(self) -> None:
        self._closed = True
        if not self._texts.full():
            self._texts.put_nowait(None)


class Silence:
    """A TurnDetector that looks at nothing: a turn is over after `hold_ms` of silence."""

    def __init__(self, hold_ms: int) -> None:
        self._decision = Decision(hold_ms, "silence")

    async def decide(self, query: TurnQuery) -> Decision:
        return self._decision
