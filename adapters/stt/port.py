"""The speech-to-text port: what a recogniser reports, and the one object a call holds of it.

One instance serves one call and is fed from the audio path, so every input method is synchronous
and returns at once. Spans are input samples of the call (16 kHz), never wall clock: text belongs
to the turn in which it was spoken (DESIGN 5.5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...media.frame import AudioFrame


@dataclass(frozen=True, slots=True)
class Partial:
    """Words so far for the audio of [start, end); later reports of the span replace it."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Final:
    """The recogniser's last word on [start, end). Blank text: nobody spoke there."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Problem:
    """The recogniser failed; `fatal` when it will not come back by itself."""

    code: str
    message: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class Closed:
    """The recogniser is gone for good (reconnects are exhausted)."""

    reason: str


SttEvent = Partial | Final | Problem | Closed
SttSink = Callable[[SttEvent], None]


class SpeechToText(Protocol):
    """One recogniser on one call."""

    @property
    def name(self) -> str:
        """`whisper`, `scripted`, …: for the timeline and the log."""
        ...

    @property
    def continuous(self) -> bool:
        """True when it segments by itself and wants all audio: it is never gated, and reports
        partials unasked. False: it hears gated speech and answers `flush` and `ask`."""
        ...

    async def connect(self, sink: SttSink) -> None:
        """Get ready to hear; events go to `sink`, on the loop, in order.

        Raises adapters.errors.ConnectionFailed. May be called again after `aclose`.
        """
        ...

    def send_audio(self, frame: AudioFrame) -> None:
        """Caller audio at its place (`frame.at`); a jump in `at` is a gap. Never blocks; audio a
        recogniser cannot take now is ringed by it, not refused."""
        ...

    def flush(self, end: int) -> None:
        """The utterance ended at sample `end`: answer with one `Final` for what was heard since
        the last committed span. Always answered, blank if nothing was said."""
        ...

    def ask(self, end: int) -> None:
        """Report a `Partial` for what was heard up to `end`, soon. Always answered unless a
        `flush` or a later `ask` overtakes it."""
        ...

    def speculate(self, end: int | None) -> None:
        """The caller paused at sample `end` and may have said all: whoever answers `flush` may
        make the answer to `flush(end)` ready, and reports nothing. None: it was no end. A
        `flush` of another end, an `ask` or a later pause supersede it."""
        ...

    def settle(self, end: int) -> None:
        """Everything before sample `end` belongs to a committed or dropped turn: forget it."""
        ...

    async def aclose(self) -> None:
        """Stop, drop what is unanswered, free sockets and memory. Idempotent."""
        ...


SttFactory = Callable[[], SpeechToText]
