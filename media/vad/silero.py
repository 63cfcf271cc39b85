"""Silero VAD v6 on onnxruntime: one shared session, recurrent state per call.

The model file (MIT) lies in `data/` with its licence; its hash is in `models.lock`. The session
is shared by all calls of the process and thread-safe; a `SileroVad` is owned by its call. Runs
inline, about 0.1 ms a frame; never on a thread, never downloads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import MediaError
from ..inference import BindableSession, Binding, onnx_session
from ..models import locate
from ..pcm import FULL_SCALE, Floats, Samples
from .energy import EnergyVad
from .machine import Slicer, VadConfig, VadMachine
from .port import FRAME, RATE, Vad, VadEvent

_CONTEXT = 64
"""Samples of the frame before that the model wants in front of each frame."""

_STATE = (2, 1, 128)

_SCALE = np.float32(1 / FULL_SCALE)
"""A power of two: the product is as exact as `to_float`'s quotient."""

_DIMENSIONS = (("batch", 1), ("sequence", _CONTEXT + FRAME))
"""The model takes 8 kHz and several callers at once; ours is one shape, a fifth cheaper."""

_FALLBACK_THRESHOLD, _FALLBACK_MULTIPLIER = 0.006, 2.0
"""Energy detector in place of the model: rather too eager than deaf (spec/voice 3)."""


class SileroVad:
    """Silero's probabilities through the frame machine. Raises nothing after construction."""

    def __init__(self, session: BindableSession, config: VadConfig | None = None) -> None:
        self._model = _Model(session)
        self._machine = VadMachine(config)
        self._slicer = Slicer()
        self.prob = 0.0
        """See `Vad.prob`."""
        self.pause: int | None = None
        """See `Vad.pause`."""

    @property
    def voiced(self) -> bool:
        """True from a start until its misfire or end."""
        return self._machine.voiced

    def process(self, frame: Samples, at: int) -> list[VadEvent]:
        """See `Vad.process`."""
        events: list[VadEvent] = []
        for position, samples in self._slicer.feed(frame, at):
            self.prob = self._model.infer(samples)
            events += self._machine.step(self.prob, position)
            self.pause = self._machine.pause
        return events

    def duck(self, on: bool) -> None:
        """See `Vad.duck`."""
        self._machine.duck(on)

    def reset(self) -> None:
        """See `Vad.reset`."""
        self._machine.reset()
        self._slicer.reset()
        self._model.reset()
        self.prob, self.pause = 0.0, None


class _Model:
    """The model's memory of one call, bound to the session once: a run reads one state and writes
    the other, and makes no array. A tenth cheaper than handing arrays in and out."""

    def __init__(self, session: BindableSession) -> None:
        self._session = session
        self._heard: Floats = np.zeros(_CONTEXT + FRAME, np.float32)
        self._before, self._frame = self._heard[:_CONTEXT], self._heard[_CONTEXT:]
        self._end = self._heard[-_CONTEXT:]
        self._states: Floats = np.zeros((2, *_STATE), np.float32)
        self._output: Floats = np.zeros(1, np.float32)
        self._rate = np.array(RATE, np.int64)
        # The runtime writes into these arrays by address: they live and stay as long as `self`.
        self._bindings = [self._bound(0), self._bound(1)]
        self._turn = 0

    def infer(self, samples: Samples) -> float:
        """Probability of speech in the next 512 samples."""
        self._before[:] = self._end
        np.multiply(samples, _SCALE, out=self._frame)
        self._session.run_with_iobinding(self._bindings[self._turn])
        self._turn ^= 1
        return self._output.item()

    def reset(self) -> None:
        """Forget what was heard."""
        self._heard.fill(0)
        self._states.fill(0)

    def _bound(self, turn: int) -> Binding:
        binding = self._session.io_binding()
        before, after = self._states[turn], self._states[1 - turn]
        inputs = (("input", self._heard, (1, len(self._heard))), ("state", before, _STATE))
        for name, array, shape in inputs:
            binding.bind_input(name, "cpu", 0, np.float32, shape, array.ctypes.data)
        binding.bind_input("sr", "cpu", 0, np.int64, (), self._rate.ctypes.data)
        for name, array, shape in (("output", self._output, (1, 1)), ("stateN", after, _STATE)):
            binding.bind_output(name, "cpu", 0, np.float32, shape, array.ctypes.data)
        return binding


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
