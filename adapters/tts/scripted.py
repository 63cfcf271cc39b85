"""A synthesiser with exact alignment: a fixed time per character, a recognisable sound per word.

`ScriptedVoice` is the factory a call holds; each `ScriptedTts` it makes serves one response. The
sound of a word depends on nothing but the word, so a test can say which word, and which sample of
it, was on the line. Nothing here runs a task of its own: delays are the reader's.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import cycle
from zlib import crc32

import numpy as np

from ...media.errors import MediaValueError
from ...media.format import PIPELINE, AudioFormat
from ...media.pcm import Samples, pcm_of
from ..errors import ConnectionFailed
from .port import Alignment, Audio, Done, Failed, TtsEvent

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long words last: `char_ms` per character, or `word_ms` for every word if given.

    Spaces take no time. Audio is delivered in pieces of `chunks` samples, in turn.
    """

    char_ms: float = 60
    word_ms: float | None = None
    open_ms: float = 0
    first_ms: float = 0
    chunk_ms: float = 0
    chunks: tuple[int, ...] = (1_600,)

    def __post_init__(self) -> None:
        if not self.chunks or min(self.chunks) < 1:
            raise MediaValueError("chunks", str(self.chunks), "use sizes of 1 sample or more")

    def samples(self, word: str, format: AudioFormat) -> int:
        """Samples that `word` lasts."""
        return format.samples(self.char_ms * len(word) if self.word_ms is None else self.word_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class TtsFaults:
    """What goes wrong in one response. Samples count the response's own audio."""

    open_fails: bool = False
    fails_at: int | None = None
    stalls_at: int | None = None
    never_done: bool = False


def word_sound(word: str, samples: int, format: AudioFormat = PIPELINE) -> Samples:
    """The sound of `word`: a tone of its own pitch under noise of its own, shape [samples]."""
    return _word_sound(word, samples, format.rate)


@lru_cache(maxsize=512)
def _word_sound(word: str, samples: int, rate: int) -> Samples:
    seed = crc32(word.encode())
    time = np.arange(samples) / rate
    tone = 6_000 * np.sin(2 * np.pi * (300 + 20 * (seed % 100)) * time)
    noise = np.random.default_rng(seed).integers(-1_500, 1_501, samples)
    sound: Samples = np.rint(tone + noise).astype(np.int16)
    sound.setflags(write=False)
    return sound


def render(
    texts: Sequence[str], timing: Timing | None = None, format: AudioFormat = PIPELINE
) -> tuple[Samples, list[Alignment]]:
    """What a response to `texts` (one per `send_text`) sounds like, whole, with its alignment."""
    timing = timing or Timing()
    sounds: list[Samples] = [np.zeros(0, np.int16)]
    alignments: list[Alignment] = []
    offset = at = 0
    for text in texts:
        for match in _WORD.finditer(text):
            length = timing.samples(match[0], format)
            sounds.append(word_sound(match[0], length, format))
            alignments.append(
                Alignment(offset + match.start(), offset + match.end(), at, at + length)
            )
            at += length
        offset += len(text)
    return np.concatenate(sounds), alignments


class ScriptedTts:
    """A TextToSpeech of the module docstring. Words never span two `send_text` calls."""

    def __init__(
        self,
        *,
        timing: Timing | None = None,
        format: AudioFormat = PIPELINE,
        faults: TtsFaults | None = None,
    ) -> None:
        self._timing = timing or Timing()
        self._format = format
        self._faults = faults or TtsFaults()
        self._chunks = cycle(self._timing.chunks)
        self._pending: deque[str] = deque()
        self._changed = asyncio.Event()
        self._opened = asyncio.Event()
        self._closed = asyncio.Event()
        self._text_at = 0
        self._sample_at = 0
        self.texts: list[str] = []
        """Every text handed to `send_text`."""
        self.flushes = 0
        """How often `flush` was called: once is right (row 35)."""

    @property
    def name(self) -> str:
        return "scripted"

    @property
    def format(self) -> AudioFormat:
        return self._format

    @property
    def closed(self) -> bool:
        """Whether `aclose` was called."""
        return self._closed.is_set()

    async def open(self) -> None:
        await asyncio.sleep(self._timing.open_ms / 1000)
        if self._faults.open_fails:
            raise ConnectionFailed("ERR_TTS_CONNECTION", "the scripted voice is unreachable")
        self._opened.set()

    def send_text(self, text: str) -> None:
        self.texts.append(text)
        self._pending.append(text)
        self._changed.set()

    def flush(self) -> None:
        self.flushes += 1
        self._changed.set()

    async def events(self) -> AsyncIterator[TtsEvent]:
        """Begins when `open` has returned."""
        if not await self._unless_closed(self._opened):
            return
        first = True
        while (text := await self._next_text()) is not None:
            if first and not await self._pause(self._timing.first_ms):
                return
            first = False
            async for event in self._speak(text):
                yield event
                if isinstance(event, Failed):
                    return
        if self._faults.never_done:
            await self._closed.wait()
        if not self.closed:
            yield Done()

    async def aclose(self) -> None:
        self._closed.set()
        self._changed.set()
        self._opened.set()
        self._pending.clear()

    async def _next_text(self) -> str | None:
        """The next text; None when everything flushed was given, or on close."""
        while not self.closed:
            if self._pending:
                return self._pending.popleft()
            if self.flushes:
                return None
            self._changed.clear()
            await self._changed.wait()
        return None

    async def _speak(self, text: str) -> AsyncIterator[TtsEvent]:
        """Audio pieces, each after the alignments of the words that begin in it."""
        sound, spans = render([text], self._timing, self._format)
        words = deque(self._placed(span) for span in spans)
        base, at = self._sample_at, 0
        while at < len(sound) and not self.closed:
            if self._reached(self._faults.fails_at):
                yield Failed("ERR_TTS_CONNECTION", "the scripted voice broke off")
                return
            if self._reached(self._faults.stalls_at):
                await self._closed.wait()
                return
            piece = sound[at : at + self._piece()]
            while words and words[0].sample_start < base + at + len(piece):
                yield words.popleft()
            at += len(piece)
            self._sample_at = base + at
            yield Audio(pcm_of(piece), self._format)
            if not await self._pause(self._timing.chunk_ms):
                return
        self._text_at += len(text)

    def _placed(self, span: Alignment) -> Alignment:
        return Alignment(
            self._text_at + span.text_start,
            self._text_at + span.text_end,
            self._sample_at + span.sample_start,
            self._sample_at + span.sample_end,
        )

    def _piece(self) -> int:
        """Samples of the next piece: up to the next fault, if one lies before its end."""
        size = next(self._chunks)
        stops = (self._faults.fails_at, self._faults.stalls_at)
        return min([size, *(at - self._sample_at for at in stops if at is not None)])

    def _reached(self, sample: int | None) -> bool:
        return sample is not None and self._sample_at >= sample

    async def _pause(self, ms: float) -> bool:
        """Wait; False when closed meanwhile."""
        if ms and not self.closed:
            await asyncio.sleep(ms / 1000)
        return not self.closed

    async def _unless_closed(self, event: asyncio.Event) -> bool:
        await event.wait()
        return not self.closed


@dataclass(kw_only=True)
class ScriptedVoice:
    """A TtsFactory that keeps what it made. `faults` go by number of the response, from 0."""

    timing: Timing = field(default_factory=Timing)
    format: AudioFormat = PIPELINE
    faults: Mapping[int, TtsFaults] = field(default_factory=dict)
    made: list[ScriptedTts] = field(default_factory=list)

    def __call__(self) -> ScriptedTts:
        """A synthesiser for the next response."""
        faults = self.faults.get(len(self.made))
        voice = ScriptedTts(timing=self.timing, format=self.format, faults=faults)
        self.made.append(voice)
        return voice
