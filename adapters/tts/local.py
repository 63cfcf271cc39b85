"""Speech from a voice on this machine: one response, one synthesis job per sentence.

The part that is the same for every local voice. `LocalTts` serves one response; the `Voice` behind
it is shared by the process and works on the inference pool, through the call's `Jobs`. Sentences
are made in order, the first one alone, because somebody waits for it in silence; then at most
`AHEAD` before they are wanted, so a cut answer wastes little. Nothing
here knows a model or a program.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...media.errors import MediaError
from ...media.format import AudioFormat
from ...media.inference import Jobs
from ...media.pcm import Samples, pcm_of
from ..errors import AdapterError
from .port import Alignment, Audio, Done, Failed, TtsEvent

AHEAD = 2
"""Sentences whose audio may be made before the reader asks for it."""

PIECE_MS = 100
LEAD_MS = 10
"""Silence left in front of a sentence: the rest only delays the first sound."""

_QUIET = 327  # -40 dBFS: above the voices' breath, below any consonant
_WORD = re.compile(r"\S+")
_PAUSES = ".?!,;:"


@dataclass(frozen=True, slots=True)
class Clip:
    """One sentence: its audio, and where its words sound, positions within text and audio."""

    samples: Samples
    words: tuple[Alignment, ...]


class Voice(Protocol):
    """A voice of this machine. `synthesise` runs on the inference pool, maybe twice at once."""

    @property
    def name(self) -> str: ...

    @property
    def format(self) -> AudioFormat: ...

    def synthesise(self, text: str) -> Clip:
        """The sentence as audio; no samples when nothing in it can be spoken."""
        ...


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    clip: asyncio.Future[Clip]


class LocalTts:
    """A TextToSpeech over `voice`. Each `send_text` is one sentence or clause."""

    def __init__(self, voice: Voice, jobs: Jobs) -> None:
        self._voice = voice
        self._jobs = jobs
        self._texts: deque[str] = deque()
        self._sentences: deque[_Sentence] = deque()
        self._changed = asyncio.Event()
        self._sounding = False
        """Whether the first sentence is made."""
        self._flushed = False
        self._closed = False

    @property
    def name(self) -> str:
        return self._voice.name

    @property
    def format(self) -> AudioFormat:
        return self._voice.format

    async def open(self) -> None:
        """Nothing to open: the voice is loaded."""

    def send_text(self, text: str) -> None:
        """Queue a sentence; its synthesis starts now unless `AHEAD` wait already."""
        if not self._closed:
            self._texts.append(text)
            self._fill()

    def flush(self) -> None:
        self._flushed = True
        self._changed.set()

    async def events(self) -> AsyncIterator[TtsEvent]:
        """A sentence's words are aligned before the audio they begin in."""
        text_at = sample_at = 0
        while (sentence := await self._next()) is not None:
            error = None if sentence.clip.cancelled() else sentence.clip.exception()
            if error is not None:
                yield _failure(self.name, error)
                return
            if sentence.clip.cancelled():
                return
            clip = sentence.clip.result()
            for event in _paced(clip, text_at, sample_at, self.format):
                yield event
                if self._closed:
                    return
            text_at += len(sentence.text)
            sample_at += len(clip.samples)
        if not self._closed:
            yield Done()

    async def aclose(self) -> None:
        """Sentences not made yet are never made; one being made is discarded."""
        self._closed = True
        self._texts.clear()
        for sentence in self._sentences:
            sentence.clip.cancel()
        self._sentences.clear()
        self._changed.set()

    async def _next(self) -> _Sentence | None:
        """The next sentence, its clip done; None after the last flushed one, or on close."""
        while not self._closed:
            if self._sentences and self._sentences[0].clip.done():
                sentence = self._sentences.popleft()
                self._sounding = True
                self._fill()
                return sentence
            if self._flushed and not self._sentences:
                return None
            self._changed.clear()
            await self._changed.wait()
        return None

    def _fill(self) -> None:
        """Submit sentences up to `AHEAD`, counting the one the reader waits for."""
        most = AHEAD if self._sounding else 1
        while self._texts and len(self._sentences) < most:
            text = self._texts.popleft()
            try:
                clip = self._jobs.submit("tts", self._voice.synthesise, text)
            except MediaError as error:
                clip = asyncio.get_running_loop().create_future()
                clip.set_exception(error)
            clip.add_done_callback(lambda _: self._changed.set())
            self._sentences.append(_Sentence(text, clip))


def trimmed(samples: Samples, format: AudioFormat) -> Samples:
    """Without the silence in front, but for `LEAD_MS`. Sound quieter than -40 dBFS is silence."""
    loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > _QUIET)
    if not len(loud):
        return samples[:0]
    return samples[max(0, int(loud[0]) - format.samples(LEAD_MS)) :]


def aligned(text: str, samples: Samples, weights: Sequence[float] | None = None) -> Clip:
    """`samples` with the words of `text` spread over them by weight: an estimate.

    `weights` has one entry per word; without it a word weighs its letters, and a mark of
    punctuation as much as three. Silence at the end belongs to no word.
    """
    words = list(_WORD.finditer(text))
    loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > _QUIET)
    if not words or not len(loud):
        return Clip(samples, ())
    if weights is None or len(weights) != len(words):
        weights = [_letters(match[0]) for match in words]
    edges = np.concatenate([[0.0], np.cumsum(weights)])
    # The pause behind the last word's full stop is not sounded: it weighs nothing.
    edges[-1] -= min(_pause(words[-1][0]), float(weights[-1]) / 2)
    places = np.rint(edges / edges[-1] * (int(loud[-1]) + 1)).astype(int).tolist()
    return Clip(
        samples,
        tuple(
            Alignment(match.start(), match.end(), start, end)
            for match, start, end in zip(words, places[:-1], places[1:], strict=True)
        ),
    )


def _letters(word: str) -> float:
    return sum(char.isalnum() for char in word) + _pause(word) + 0.5


def _pause(word: str) -> float:
    return 3.0 if word[-1] in _PAUSES else 0.0


def _paced(clip: Clip, text_at: int, at: int, format: AudioFormat) -> Iterator[TtsEvent]:
    """The clip in pieces, each behind the alignments of the words that begin in it."""
    words = deque(clip.words)
    size = format.samples(PIECE_MS)
    for start in range(0, len(clip.samples), size):
        piece = clip.samples[start : start + size]
        while words and words[0].sample_start < start + len(piece):
            word = words.popleft()
            yield Alignment(
                text_at + word.text_start,
                text_at + word.text_end,
                at + word.sample_start,
                at + word.sample_end,
            )
        yield Audio(pcm_of(piece), format)


def _failure(name: str, error: BaseException) -> Failed:
    code = error.code if isinstance(error, MediaError | AdapterError) else "ERR_TTS_FAILED"
    return Failed(code, f"{name} failed: {error}")
