"""The VAD port: what a voice activity detector reports, and how it is fed.

Values and one Protocol; the call's brain owns its detector. Nothing here decides anything: the
rules are in `machine`, the probabilities come from `energy` or `silero`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from ..pcm import Samples

RATE = 16_000
"""Every detector hears 16 kHz mono."""

FRAME = 512
"""Samples a decision is made on: 32 ms, what Silero v5 and later need."""

VadEventKind = Literal["start", "confirmed", "misfire", "end"]


@dataclass(frozen=True, slots=True)
class VadEvent:
    """One decision about the caller's voice. Positions are samples of the input clock.

    start: tentative speech, may still turn out to be nothing. confirmed: it is speech.
    misfire: a start that was never confirmed is over. end: confirmed speech is over.
    `at` is where the stream stood when this was decided; `position` is what it is about: the first
    sample of the first voiced frame (start, confirmed) or the sample after the last voiced frame
    (misfire, end). `prob` is the probability of the frame that decided.
    """

    kind: VadEventKind
    at: int
    position: int
    prob: float


class Vad(Protocol):
    """A detector for one caller. Not thread-safe; all methods are synchronous."""

    @property
    def voiced(self) -> bool:
        """True from a start until its misfire or end."""
        ...

    @property
    def prob(self) -> float:
        """Speech probability 0..1 of the last whole frame; 0 before the first."""
        ...

    @property
    def pause(self) -> int | None:
        """Where confirmed speech paused, from its first silent frame until a voiced one or its
        end: the position that end would have. None while nothing pauses."""
        ...

    def process(self, frame: Samples, at: int) -> list[VadEvent]:
        """Hear mono int16 at 16 kHz, any length, whose first sample is `at`; the events it decides.

        The events of a stream do not depend on how it is cut into calls (voice row 18). Where `at`
        does not continue the last call, the samples waiting for a whole frame are dropped.
        """
        ...

    def duck(self, on: bool) -> None:
        """The agent speaks (on) or not: thresholds for a caller half hidden by echo suppression."""
        ...

    def reset(self) -> None:
        """Forget speech in progress and learned state. Emits nothing (voice row 20)."""
        ...
