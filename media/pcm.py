"""Small conversions on PCM samples: bytes, floats, channels, levels, base64.

Free functions on values; nothing here keeps a stream's state except `Base64Decoder`, which its
stream owns. Never resamples (see `resample`) and never cuts frames (see `framer`).
"""

from __future__ import annotations

import base64
import binascii
import math

import numpy as np
import numpy.typing as npt

from .errors import MediaValueError

Samples = npt.NDArray[np.int16]
"""Mono PCM, shape [samples]."""

Floats = npt.NDArray[np.float32]
"""Mono PCM scaled to -1..1, shape [samples]."""

FULL_SCALE = 32_768
SILENCE_DBFS = -120.0
"""What `dbfs` reports for digital silence: lower than any 16-bit signal."""


def samples_of(pcm: bytes) -> Samples:
    """Read-only int16 view of little-endian PCM. Raises MediaValueError on an odd length."""
    if len(pcm) % 2:
        raise MediaValueError("pcm", f"{len(pcm)} bytes", "send whole 2-byte samples")
    return np.frombuffer(pcm, dtype="<i2")


def pcm_of(samples: Samples) -> bytes:
    """Little-endian PCM bytes of int16 samples."""
    return samples.astype("<i2", copy=False).tobytes()


def to_float(samples: Samples) -> Floats:
    """int16 to float32 in -1..1: divided by 32,768 on both sides of zero (spec/voice 1)."""
    return samples.astype(np.float32) / np.float32(FULL_SCALE)


def to_int16(values: npt.NDArray[np.floating]) -> Samples:
    """Float in -1..1 to int16: times 32,768, rounded to nearest, clamped. NaN becomes 0."""
    scaled = np.rint(np.nan_to_num(values.astype(np.float64), nan=0.0) * FULL_SCALE)
    clamped: Samples = np.clip(scaled, -FULL_SCALE, FULL_SCALE - 1).astype(np.int16)
    return clamped


def downmix(frames: Samples) -> Samples:
    """Mean of the channels: shape [samples, channels] to [samples]; mono passes unchanged."""
    if frames.ndim == 1:
        return frames
    if frames.shape[1] == 1:
        return frames[:, 0]
    mixed: Samples = np.rint(frames.mean(axis=1, dtype=np.float64)).astype(np.int16)
    return mixed


def rms(samples: Samples) -> float:
    """Root mean square as a share of full scale, 0..1; 0 for no samples."""
    count = len(samples)
    if not count:
        return 0.0
    values = samples.astype(np.float64)
    return math.sqrt(values.dot(values) / count) / FULL_SCALE


def dbfs(samples: Samples) -> float:
    """RMS level in dB relative to full scale; `SILENCE_DBFS` for digital silence."""
    level = rms(samples)
    return 20 * math.log10(level) if level > 0 else SILENCE_DBFS


def encode_base64(samples: Samples) -> str:
    """PCM as base64 text, the form every realtime wire uses."""
    return base64.b64encode(pcm_of(samples)).decode("ascii")


class Base64Decoder:
    """Decodes a stream of base64 messages to samples; a byte left over joins the next message.

    Providers cut their audio anywhere: dropping an odd byte would shift all later audio by half
    a sample and turn it into noise.
    """

    def __init__(self) -> None:
        self._carry = b""

    @property
    def pending(self) -> int:
        """Bytes waiting for their other half: 0 or 1."""
        return len(self._carry)

    def feed(self, text: str | bytes) -> Samples:
        """Samples complete so far. Raises MediaValueError on text that is no base64."""
        try:
            data = self._carry + base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise MediaValueError("audio", "a string that is no base64", str(error)) from error
        whole = len(data) & ~1
        self._carry = data[whole:]
        return samples_of(data[:whole])

    def reset(self) -> None:
        """Forget the byte left over: the next message starts a new stream."""
        self._carry = b""
