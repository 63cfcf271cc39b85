"""Where a turn's marks come together: from the end of speech to the first sound of its answer.

Pure; the arithmetic is media/turns/latency's. It measures nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..media.turns.latency import TurnLatency, TurnMarks, turn_latency
from .vocabulary import Timing


@dataclass(slots=True)
class ReplyMarks:
    """Input samples at which the answer had its first words and its first sound. What says that
    it is on its way is neither."""

    first_text: int | None = None
    first_audio: int | None = None
    sounded: bool = False


def latency_of(timing: Timing, marks: ReplyMarks, output: int) -> TurnLatency:
    """The parts of the turn decided as `timing` says, whose answer sounds at sample `output`."""
    return turn_latency(
        TurnMarks(
            speech_end=timing.speech_end,
            vad_end=timing.vad_end,
            # A turn that waited for more than its text waited for its own decision.
            decided=timing.held if timing.text > timing.held else timing.commit,
            text=max(timing.text, timing.commit),
            first_text=marks.first_text,
            first_audio=marks.first_audio,
            output=output,
        )
    )
