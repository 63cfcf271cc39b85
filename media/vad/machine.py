"""The VAD's frame machine: from speech probabilities to start, confirmed, misfire and end.

Pure: counts frames, reads no clock, does no I/O. Owned by the detector that feeds it (`energy`,
`silero`), which shares `Slicer` too. Never looks at samples: only the detector does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import MediaValueError
from ..pcm import Samples
from .port import FRAME, RATE, VadEvent, VadEventKind

_WEAK_CONFIRM = 3
"""Speech heard only through the ducked thresholds must last this much longer (spec/voice 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VadConfig:
    """Thresholds and times of the frame machine; times are rounded up to 32 ms frames.

    A frame is voiced at `positive`, silent below `negative`; between the two nothing changes.
    While ducked the lower pair decides start and end, `positive` still decides confirmation.
    Raises MediaValueError naming the field.
    """

    positive: float = 0.5
    negative: float = 0.35
    ducked_positive: float = 0.3
    ducked_negative: float = 0.2
    onset_ms: int = 96
    confirm_ms: int = 250
    silence_ms: int = 192

    def __post_init__(self) -> None:
        pairs = (("negative", "positive"), ("ducked_negative", "ducked_positive"))
        for low, high in pairs:
            below, above = getattr(self, low), getattr(self, high)
            if not 0 < below < above < 1:
                given = f"{below} with {high} {above}"
                raise MediaValueError(low, given, f"use 0 < {low} < {high} < 1")
        for name in ("onset_ms", "confirm_ms", "silence_ms"):
            if getattr(self, name) < 1:
                raise MediaValueError(name, str(getattr(self, name)), "use 1 ms or more")


def frames_in(ms: float) -> int:
    """32 ms frames that cover `ms`."""
    return max(1, math.ceil(ms * RATE / 1000 / FRAME))


class Slicer:
    """Cuts chunks of any length into the detector's frames, each with its position.

    What `feed` gives is to be used before the next one: its memory is written again then.
    """

    def __init__(self) -> None:
        self._carry = np.zeros(FRAME, np.int16)
        self._spare = np.zeros(FRAME, np.int16)
        """The frame that was given out; it and `_carry` take turns."""
        self._held = 0
        """Samples in `_carry`."""
        self._next: int | None = None

    def feed(self, samples: Samples, at: int) -> list[tuple[int, Samples]]:
        """(position, 512 samples) for each frame that is whole now."""
        if at != self._next:
            self._held = 0
        held, count = self._held, len(samples)
        self._next = at + count
        if held + count < FRAME:
            self._carry[held : held + count] = samples
            self._held = held + count
            return []
        frames: list[tuple[int, Samples]] = []
        used = FRAME - held if held else 0
        if used:
            whole = self._carry
            whole[held:] = samples[:used]
            self._carry, self._spare = self._spare, whole
            frames.append((at - held, whole))
        while count - used >= FRAME:
            frames.append((at + used, samples[used : used + FRAME]))
            used += FRAME
        self._held = count - used
        self._carry[: count - used] = samples[used:]
        return frames

    def reset(self) -> None:
        """Drop the samples that wait for a whole frame."""
        self._held = 0
        self._next = None


class VadMachine:
    """Frame by frame: `step(p, at)` returns what this frame decides, nothing or more.

    Idle until `onset_ms` of frames in a row stay above the negative threshold, beginning with a
    voiced one: that is a start, dated to the first. Confirmed after `confirm_ms` of frames at the
    base threshold, or three times that of weaker ones. Over after `silence_ms` of silent frames.
    """

    def __init__(self, config: VadConfig | None = None) -> None:
        self.config = config or VadConfig()
        self._onset_frames = frames_in(self.config.onset_ms)
        self._confirm_frames = frames_in(self.config.confirm_ms)
        self._silence_frames = frames_in(self.config.silence_ms)
        self.duck(False)
        self.reset()

    @property
    def voiced(self) -> bool:
        """True from a start until its misfire or end."""
        return self._started

    @property
    def pause(self) -> int | None:
        """Where confirmed speech paused, unless a voiced frame has taken the silence back."""
        return self._last if self._confirmed and self._silent else None

    def duck(self, on: bool) -> None:
        """Choose the thresholds of the next frame."""
        config = self.config
        self._positive, self._negative = config.positive, config.negative
        if on:
            self._positive = min(config.ducked_positive, config.positive)
            self._negative = min(config.ducked_negative, config.negative)

    def reset(self) -> None:
        """Back to idle; emits nothing. The ducking stays: it is the agent's state, not ours."""
        self._started = False
        self._confirmed = False
        self._onset = 0
        """First sample of the first voiced frame."""
        self._last = 0
        """Sample after the last voiced frame."""
        self._run = 0
        """Frames since the onset; 0 means idle."""
        self._strong = 0
        self._weak = 0
        self._silent = 0

    def step(self, prob: float, at: int) -> list[VadEvent]:
        """Count the frame at `at` with speech probability `prob`."""
        if prob >= self._positive:
            return self._voiced_frame(prob, at)
        if not self._run:  # idle: only a voiced frame means anything
            return []
        if prob < self._negative:
            return self._silent_frame(prob, at)
        return self._held_frame(prob, at)

    def _voiced_frame(self, prob: float, at: int) -> list[VadEvent]:
        if not self._run:
            self._onset = at
        self._weak += 1
        self._strong += prob >= self.config.positive
        self._silent = 0
        self._last = at + FRAME
        return self._advance(prob, at)

    def _held_frame(self, prob: float, at: int) -> list[VadEvent]:
        """Between the thresholds: speech goes on, silence is not taken back."""
        if not self._silent:
            self._last = at + FRAME
        return self._advance(prob, at)

    def _silent_frame(self, prob: float, at: int) -> list[VadEvent]:
        if not self._started:
            self.reset()
            return []
        self._silent += 1
        if self._silent < self._silence_frames:
            return []
        kind: VadEventKind = "end" if self._confirmed else "misfire"
        event = VadEvent(kind, at + FRAME, self._last, prob)
        self.reset()
        return [event]

    def _advance(self, prob: float, at: int) -> list[VadEvent]:
        self._run += 1
        events: list[VadEvent] = []
        if not self._started and self._run >= self._onset_frames:
            self._started = True
            events.append(VadEvent("start", at + FRAME, self._onset, prob))
        if self._started and not self._confirmed and self._enough():
            self._confirmed = True
            events.append(VadEvent("confirmed", at + FRAME, self._onset, prob))
        return events

    def _enough(self) -> bool:
        need = self._confirm_frames
        return self._strong >= need or self._weak >= _WEAK_CONFIRM * need
