"""Where the time of one turn went: from the caller's last voiced sample to the first sound back.

Pure arithmetic on sample positions of one clock; measures nothing itself, decides nothing. Each
part names the setting that owns it, so that a slow turn says what to change (DESIGN 5.12).

    speech_end -> vad_end -> decided -> text -> first_text -> first_audio -> output
              vad_wait    turn       stt    agent         tts            output

Stages overlap in reality (a recogniser may be done before the turn is decided): a mark that comes
before an earlier stage's mark costs nothing, so the parts always sum to the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import MediaValueError
from ..events import LatencyPart

PartName = Literal["vad_wait", "turn", "stt", "agent", "tts", "output"]
PART_NAMES: tuple[PartName, ...] = get_args(PartName)

SETTINGS: Mapping[PartName, str] = {
    "vad_wait": "vad.silence_ms",
    "turn": "turn.hold_ms",
    "stt": "stt",
    "agent": "model",
    "tts": "tts",
    "output": "line",
}
"""The config key that owns each part unless the caller knows a closer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMarks:
    """Positions of one turn in samples of one clock. None: the stage left no mark, it cost nothing.

    Raises MediaValueError when the sound began before the speech ended.
    """

    speech_end: int
    """Last voiced sample of the caller."""
    vad_end: int | None = None
    """The detector declared the end of speech."""
    decided: int | None = None
    """The turn was committed."""
    text: int | None = None
    """The text that was sent to the agent was complete."""
    first_text: int | None = None
    """The agent's first speakable piece was there."""
    first_audio: int | None = None
    """The synthesiser's first sample was there."""
    output: int
    """The first sample of the answer was played."""

    def __post_init__(self) -> None:
        if self.output < self.speech_end:
            given = f"{self.output} before speech_end {self.speech_end}"
            raise MediaValueError("output", given, "give both on the same clock, in samples")


@dataclass(frozen=True, slots=True)
class TurnLatency:
    """The parts, in stage order, all six; their `ms` sum exactly to `total_ms`."""

    total_ms: int
    parts: tuple[LatencyPart, ...]


def turn_latency(
    marks: TurnMarks, rate: int = 16_000, settings: Mapping[PartName, str] = SETTINGS
) -> TurnLatency:
    """Split a turn into its parts. Whole milliseconds, rounded so that the sum is exact.

    Each part is cut down to whole milliseconds and the ones with the largest remainders get the
    missing ones, so no part is off by 1 ms or more.
    """
    if rate <= 0:
        raise MediaValueError("rate", str(rate), "use the rate of the positions in Hz")
    samples = _durations(marks)
    total_ms = (sum(samples) * 1000 + rate // 2) // rate
    whole = [count * 1000 // rate for count in samples]
    order = sorted(range(len(samples)), key=lambda i: (-(samples[i] * 1000 % rate), i))
    for index in order[: total_ms - sum(whole)]:
        whole[index] += 1
    parts = tuple(
        LatencyPart(name=name, ms=ms, setting=settings.get(name, SETTINGS[name]))
        for name, ms in zip(PART_NAMES, whole, strict=True)
    )
    return TurnLatency(total_ms, parts)


def _durations(marks: TurnMarks) -> list[int]:
    """Samples of each stage, each mark held between its predecessor and the end."""
    ends = (marks.vad_end, marks.decided, marks.text, marks.first_text, marks.first_audio)
    durations: list[int] = []
    reached = marks.speech_end
    for mark in (*ends, marks.output):
        end = reached if mark is None else min(max(mark, reached), marks.output)
        durations.append(end - reached)
        reached = end
    return durations
