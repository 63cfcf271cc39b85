"""The turn detector port: has the caller finished, and if not, how long to wait.

A detector is asked after speech ended and answers with a *hold*: milliseconds to wait counted from
the end of speech, not from the answer (row 62). Nobody here counts time: bounding a slow detector,
committing and cancelling a hold is the turn machine's business. CONTRACTS E; spec/voice 5.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

WINDOW_SAMPLES = 128_000
"""Most audio a detector gets: 8 s at 16 kHz."""
CONTEXT_TURNS = 4
"""Earlier turns a detector gets (spec/voice 5.1)."""


@dataclass(frozen=True, slots=True)
class ContextTurn:
    """One earlier turn of the conversation."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseEma:
    """How long this caller pauses inside a turn: an average that stretches the longer holds.

    A value; `after` gives the next one. Seeded with 700 ms, which stretches nothing.
    """

    ms: float = 700.0

    def after(self, gap_ms: float) -> PauseEma:
        """With the gap between the end of speech and the next speech; only 0-5 s teaches."""
        if not 0 <= gap_ms <= 5000:
            return self
        return PauseEma(ms=0.7 * self.ms + 0.3 * gap_ms)

    def stretch(self, hold_ms: int) -> int:
        """A hold for this caller: over 500 ms times 1..3, at most 2,800 ms (spec/voice 5.2)."""
        if hold_ms <= 500:
            return hold_ms
        return min(2800, round(hold_ms * min(3.0, max(1.0, self.ms / 700))))


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnQuery:
    """What a detector may look at.

    `audio`: int16 mono at 16 kHz, shape [n], n <= 128,000, ending where the question is asked;
    None when none was kept. `silence_ms`: how long the caller has been silent. `again`: asked once
    before about the same silence.
    """

    transcript: str
    audio: npt.NDArray[np.int16] | None = None
    context: Sequence[ContextTurn] = ()
    silence_ms: int = 0
    again: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Commit when the caller has been silent for `hold_ms` since speech ended; 0 = now.

    `p`: the detector's probability that the turn is over. `ask_again_ms`: worth another question
    at this silence, before the hold is over.
    """

    hold_ms: int
    reason: str
    p: float | None = None
    ask_again_ms: int | None = None


class DetectorError(Exception):
    """A detector failed. The cause is kept; the tiers decide and the call goes on."""


class TurnDetector(Protocol):
    """Anything that decides ends of turns. One instance may serve many calls at once."""

    async def decide(self, query: TurnQuery) -> Decision:
        """Answer one question. Raises DetectorError; may be cancelled at any moment without harm,
        and the newest question of a caller is the only one whose answer counts."""
        ...
