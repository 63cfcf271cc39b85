"""The text-to-speech port: one synthesiser object per model response (spec/voice 8).

Text goes in sentence by sentence, audio and alignments come out in order. Offsets are into the
*spoken* text handed to `send_text` (all of it, concatenated); the speaker maps them to the written
text. Sample positions count the response's own samples at the audio's format.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from ...media.format import AudioFormat


@dataclass(frozen=True, slots=True)
class Audio:
    """PCM of any length, whole samples."""

    pcm: bytes
    format: AudioFormat


@dataclass(frozen=True, slots=True)
class Alignment:
    """Spoken text [text_start, text_end) sounds in samples [sample_start, sample_end)."""

    text_start: int
    text_end: int
    sample_start: int
    sample_end: int


@dataclass(frozen=True, slots=True)
class Done:
    """All text that was flushed has been delivered as audio."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The synthesiser failed; `code` is a wire code (ERR_TTS_CONNECTION, ERR_TTS_STALLED, …)."""

    code: str
    message: str


TtsEvent = Audio | Alignment | Done | Failed


class TextToSpeech(Protocol):
    """One response's voice."""

    @property
    def name(self) -> str:
        """`piper`, `scripted`, …: for the timeline and the log."""
        ...

    @property
    def format(self) -> AudioFormat:
        """Format of the audio it will deliver."""
        ...

    async def open(self) -> None:
        """Get ready. Raises adapters.errors.ConnectionFailed; `send_text` may come before."""
        ...

    def send_text(self, text: str) -> None:
        """Queue text to be spoken, in order; legal before `open` has returned (row 37)."""
        ...

    def flush(self) -> None:
        """No more text: finish and report `Done`. Called once."""
        ...

    def events(self) -> AsyncIterator[TtsEvent]:
        """Everything it delivers, in order, ending after `Done` or `Failed`, or after `aclose`.
        Iterated once. Cancelling the reader loses at most the event it was waiting for."""
        ...

    async def aclose(self) -> None:
        """Drop what is unspoken and free everything. Idempotent."""
        ...


TtsFactory = Callable[[], TextToSpeech]
