"""Silero VAD v6 on onnxruntime: one shared session, recurrent state per call.

The model file (MIT) lies in `data/` with its licence; its hash is in `models.lock`. The session
is shared by all calls of the process and thread-safe; a `SileroVad` is owned by its call. Runs
inline, about 0.1 ms a frame; never on a thread, never downloads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import MediaError
from ..inference import OnnxSession, onnx_session
from ..models import locate
from ..pcm import FULL_SCALE, Floats, Samples
from .energy import EnergyVad
from .machine import Slicer, VadConfig, VadMachine
from .port import FRAME, RATE, Vad, VadEvent

_CONTEXT = 64
"""Samples of the frame before that the model wants in front of each frame."""

_SCALE = np.float32(1 / FULL_SCALE)
"""A power of two: the product is as exact as `to_float`'s quotient."""

_DIMENSIONS = (("batch", 1), ("sequence", _CONTEXT + FRAME))
"""The model takes 8 kHz and several callers at once; ours is one shape, a fifth cheaper."""

_FALLBACK_THRESHOLD, _FALLBACK_MULTIPLIER = 0.006, 2.0
"""Energy detector in place of the model: rather too eager than deaf (spec/voice 3)."""


class SileroVad:
    """Silero's probabilities through the frame machine. Raises nothing after construction."""

    def __init__(self, session: OnnxSession, config: VadConfig | None = None) -> None:
        self._session = session
        self._machine = VadMachine(config)
        self._slicer = Slicer()
        self._input: Floats = np.zeros((1, _CONTEXT + FRAME), np.float32)
        self._feed: dict[str, npt.NDArray[np.generic]] = {
            "input": self._input,
            "sr": np.array(RATE, np.int64),
        }
        self.reset()

    @property
    def voiced(self) -> bool:
        """True from a start until its misfire or end."""
        return self._machine.voiced

    @property
    def prob(self) -> float:
        """Speech probability of the last whole frame."""
        return self._prob

    @property
    def pause(self) -> int | None:
        """See `Vad.pause`."""
        return self._machine.pause

    def process(self, frame: Samples, at: int) -> list[VadEvent]:
        """See `Vad.process`."""
        events: list[VadEvent] = []
        for position, samples in self._slicer.feed(frame, at):
            self._prob = self._infer(samples)
            events += self._machine.step(self._prob, position)
        return events

    def duck(self, on: bool) -> None:
        """See `Vad.duck`."""
        self._machine.duck(on)

    def reset(self) -> None:
        """See `Vad.reset`."""
        self._machine.reset()
        self._slicer.reset()
        self._input.fill(0)
        self._feed["state"] = np.zeros((2, 1, 128), np.float32)
        self._prob = 0.0

    def _infer(self, samples: Samples) -> float:
        heard = self._input[0]
        heard[:_CONTEXT] = heard[-_CONTEXT:]
        np.multiply(samples, _SCALE, out=heard[_CONTEXT:])
        output, self._feed["state"] = self._session.run(None, self._feed)
        return float(output[0, 0])


@dataclass(frozen=True, slots=True)
class LoadedVad:
    """A detector, and why it is not the one asked for (None: it is)."""

    vad: Vad
    problem: str | None = None


def load_vad(config: VadConfig | None = None, *, path: Path | None = None) -> LoadedVad:
    """Silero from `path` or the file shipped here; the energy detector if that cannot be loaded.

    A missing model never costs a call: `problem` then holds one sentence to show the operator.
    """
    try:
        session = onnx_session(locate("silero-vad", path), dimensions=_DIMENSIONS)
        return LoadedVad(SileroVad(session, config))
    except (MediaError, ImportError) as error:
        energy = EnergyVad(config, threshold=_FALLBACK_THRESHOLD, multiplier=_FALLBACK_MULTIPLIER)
        return LoadedVad(energy, f"Silero VAD not loaded, using the energy VAD: {error}")
