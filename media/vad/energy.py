"""Energy VAD: a frame's level against an adaptive noise floor. numpy only, a few microseconds.

Owned by its call. Used where no model is wanted or none can be loaded; it hears loud noise as
speech, so it fails open: in doubt the recogniser gets the audio.
"""

from __future__ import annotations

from collections import deque

from ..errors import MediaValueError
from ..pcm import Samples, rms
from .machine import Slicer, VadConfig, VadMachine
from .port import VadEvent

_DOWN, _UP = 0.2, 0.02
"""How fast the floor follows frames without speech, per frame (spec/voice 3)."""

_MINIMUM_FRAMES = 96
"""About 3 s: speech pauses within that time, steady noise does not (minimum statistics, Martin)."""

_LOUD, _LOUD_RATIO = 0.1, 1.6
"""Above this level the ratio shrinks: loud noise must not hide a voice 4 dB above it."""


class EnergyVad:
    """Detects voice where the RMS exceeds max(threshold, multiplier x noise floor).

    The floor starts at no more than `threshold / multiplier`, so a loud first frame is heard and
    cannot deafen the detector. Steady noise is absorbed: by averaging where no speech is assumed,
    by the minimum of the last 3 s where it is. `prob` is min(1, rms / (2 x threshold in force)).
    Raises MediaValueError for a threshold outside 0..0.5 or a multiplier of 1 or less.
    """

    def __init__(
        self,
        config: VadConfig | None = None,
        *,
        threshold: float = 0.01,
        multiplier: float = 3.0,
    ) -> None:
        if not 0 < threshold <= 0.5:
            raise MediaValueError("threshold", str(threshold), "use an RMS in 0..0.5, e.g. 0.01")
        if multiplier <= 1:
            raise MediaValueError("multiplier", str(multiplier), "use more than 1, e.g. 3")
        self._threshold = threshold
        self._multiplier = multiplier
        self._machine = VadMachine(config)
        self._slicer = Slicer()
        self.reset()

    @property
    def voiced(self) -> bool:
        """True from a start until its misfire or end."""
        return self._machine.voiced

    @property
    def prob(self) -> float:
        """Level of the last frame as a probability: 0.5 is the threshold in force."""
        return self._prob

    @property
    def pause(self) -> int | None:
        """See `Vad.pause`."""
        return self._machine.pause

    @property
    def floor(self) -> float:
        """The noise floor learned so far, RMS 0..1."""
        return self._floor

    def process(self, frame: Samples, at: int) -> list[VadEvent]:
        """See `Vad.process`."""
        events: list[VadEvent] = []
        for position, samples in self._slicer.feed(frame, at):
            events += self._machine.step(self._probability(rms(samples)), position)
        return events

    def duck(self, on: bool) -> None:
        """See `Vad.duck`."""
        self._machine.duck(on)

    def reset(self) -> None:
        """See `Vad.reset`."""
        self._machine.reset()
        self._slicer.reset()
        self._floor = self._threshold / self._multiplier
        self._recent: deque[float] = deque(maxlen=_MINIMUM_FRAMES)
        self._prob = 0.0

    def _probability(self, level: float) -> float:
        wanted = self._multiplier * self._floor
        quiet_enough = min(wanted, max(_LOUD, _LOUD_RATIO * self._floor))
        threshold = max(self._threshold, quiet_enough)
        self._learn(level, threshold)
        self._prob = min(1.0, level / (2 * threshold))
        return self._prob

    def _learn(self, level: float, threshold: float) -> None:
        self._recent.append(level)
        if level < threshold:
            rate = _DOWN if level < self._floor else _UP
            self._floor += rate * (level - self._floor)
        elif len(self._recent) == _MINIMUM_FRAMES:
            self._floor = max(self._floor, min(self._recent))
