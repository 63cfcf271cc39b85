"""G.711 mu-law and A-law, the 8 kHz telephone codings, as lookup tables.

Free functions on arrays; the tables are built once at import from the recommendation's formulas
(ITU-T G.711, tables 1a to 2b). Never resamples.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .pcm import Samples

Bytes = npt.NDArray[np.uint8]

_BIAS = 132
"""What mu-law adds before it takes the logarithm, in 16-bit units."""


def _ulaw_values() -> Samples:
    """Table 2b: code (transmitted inverted) to 16-bit sample. A set sign bit on the wire is +."""
    code = ~np.arange(256, dtype=np.uint8) & 0xFF
    mantissa, exponent = (code & 0x0F).astype(np.int32), (code >> 4 & 0x07).astype(np.int32)
    magnitude = (((mantissa << 3) + _BIAS) << exponent) - _BIAS
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def _alaw_values() -> Samples:
    """Table 1b: code (transmitted with every other bit inverted) to 16-bit sample."""
    code = np.arange(256, dtype=np.uint8) ^ 0x55
    mantissa, exponent = (code & 0x0F).astype(np.int32), (code >> 4 & 0x07).astype(np.int32)
    linear = (mantissa << 4) + 8
    magnitude = np.where(exponent == 0, linear, (linear + 256) << np.maximum(exponent - 1, 0))
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.int16)


def _segment(magnitude: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Number of the chord, 0..7: the position of the leading bit above bit 7."""
    bounds = np.array([1 << bit for bit in range(8, 15)])
    return np.asarray(np.searchsorted(bounds, magnitude, side="right"), np.int32)


def _ulaw_codes() -> Bytes:
    """Table 2a for every 16-bit sample, indexed by the sample's bits as unsigned."""
    samples = np.arange(65_536, dtype=np.uint16).view(np.int16).astype(np.int32)
    # The recommendation codes 14 bits; the two lowest are dropped before the bias is added.
    magnitude = np.minimum(np.abs(samples >> 2) << 2, 32_635) + _BIAS
    segment = _segment(magnitude)
    code = segment << 4 | magnitude >> (segment + 3) & 0x0F
    return np.asarray(~np.where(samples < 0, code | 0x80, code) & 0xFF, np.uint8)


def _alaw_codes() -> Bytes:
    """Table 1a for every 16-bit sample, indexed by the sample's bits as unsigned."""
    samples = np.arange(65_536, dtype=np.uint16).view(np.int16).astype(np.int32)
    # 13 bits; a negative sample is mirrored in one's complement, so -1 and 0 are one step apart.
    magnitude = np.where(samples < 0, ~(samples >> 3), samples >> 3) << 3
    segment = _segment(magnitude)
    code = segment << 4 | magnitude >> np.where(segment > 0, segment + 3, 4) & 0x0F
    return (np.where(samples < 0, code, code | 0x80) ^ 0x55).astype(np.uint8)


_ULAW_VALUES, _ALAW_VALUES = _ulaw_values(), _alaw_values()
_ULAW_CODES, _ALAW_CODES = _ulaw_codes(), _alaw_codes()


def ulaw_encode(samples: Samples) -> bytes:
    """PCMU bytes, one per sample. Silence is 0xFF."""
    return _ULAW_CODES[samples.view(np.uint16)].tobytes()


def ulaw_decode(data: bytes) -> Samples:
    """Samples of PCMU bytes, -32,124..32,124."""
    return _ULAW_VALUES[np.frombuffer(data, np.uint8)]


def alaw_encode(samples: Samples) -> bytes:
    """PCMA bytes, one per sample. Silence is 0xD5."""
    return _ALAW_CODES[samples.view(np.uint16)].tobytes()


def alaw_decode(data: bytes) -> Samples:
    """Samples of PCMA bytes, -32,256..32,256."""
    return _ALAW_VALUES[np.frombuffer(data, np.uint8)]
