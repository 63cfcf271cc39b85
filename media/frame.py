"""One slice of PCM with its place in its stream. A value; it owns its bytes and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .errors import MediaValueError
from .format import PIPELINE, AudioFormat

_set = object.__setattr__

FRAME_MS = 20
"""Length of a frame everywhere inside the audio path (DESIGN 2)."""


@dataclass(frozen=True, slots=True, init=False)
class AudioFrame:
    """PCM bytes of `format`, starting at sample index `at` of their stream.

    `source` names the speaker where a line has several. Raises MediaValueError when the bytes
    are no whole number of samples: a torn frame is refused whole, never shifted by a byte.
    """

    pcm: bytes
    format: AudioFormat = PIPELINE
    at: int = 0
    source: str | None = None

    # Written out: a hundred a second are made per call, and the generated one with its
    # `__post_init__` costs a third more.
    def __init__(
        self, pcm: bytes, format: AudioFormat = PIPELINE, at: int = 0, source: str | None = None
    ) -> None:
        if len(pcm) % (2 * format.channels):
            raise MediaValueError(
                "pcm",
                f"{len(pcm)} bytes",
                f"send whole {format.bytes_per_sample}-byte samples",
            )
        _set(self, "pcm", pcm)
        _set(self, "format", format)
        _set(self, "at", at)
        _set(self, "source", source)

    @property
    def samples(self) -> int:
        """Samples per channel in this frame."""
        return len(self.pcm) // (2 * self.format.channels)

    @property
    def end(self) -> int:
        """Index of the first sample after this frame."""
        return self.at + len(self.pcm) // (2 * self.format.channels)

    def array(self) -> npt.NDArray[np.int16]:
        """A read-only view: shape [samples] for mono, [samples, channels] otherwise."""
        flat = np.frombuffer(self.pcm, dtype="<i2")
        return flat if self.format.channels == 1 else flat.reshape(-1, self.format.channels)


def silence(samples: int, format: AudioFormat = PIPELINE, at: int = 0) -> AudioFrame:
    """A frame of `samples` zeros."""
    return AudioFrame(bytes(samples * format.bytes_per_sample), format, at)
