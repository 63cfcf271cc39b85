"""The shape of a PCM stream. Owned by nobody: a value. Never converts anything (see `resample`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .errors import MediaValueError

Encoding = Literal["pcm_s16le"]

MIN_RATE, MAX_RATE = 8_000, 48_000


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """Sample rate in Hz, channel count and sample encoding of a stream.

    Raises MediaValueError for a rate outside 8,000..48,000 Hz or a channel count below 1.
    """

    rate: int = 16_000
    channels: int = 1
    encoding: Encoding = "pcm_s16le"

    def __post_init__(self) -> None:
        if not MIN_RATE <= self.rate <= MAX_RATE:
            raise MediaValueError("rate", f"{self.rate} Hz", f"use {MIN_RATE}..{MAX_RATE} Hz")
        if self.channels < 1:
            raise MediaValueError("channels", str(self.channels), "use 1 or more")

    @property
    def bytes_per_sample(self) -> int:
        """Bytes of one sample of all channels."""
        return 2 * self.channels

    def samples(self, ms: float) -> int:
        """Samples (per channel) in `ms` milliseconds, rounded to the nearest."""
        return round(self.rate * ms / 1000)

    def ms(self, samples: int) -> float:
        """Milliseconds that `samples` samples last."""
        return samples * 1000 / self.rate


PIPELINE = AudioFormat()
"""16 kHz mono: what every brain that does not say otherwise hears (spec/voice 1)."""
