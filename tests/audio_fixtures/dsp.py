"""Exact sound arithmetic for the fixtures: the same bytes on every machine.

Lives here: the few operations the fixture generator needs (gain, filter, resample, mix, mu-law,
reproducible noise). Owned by `tests/audio_fixtures`; imports nothing of voxglove, so a defect in
`media/` can never hide in the material that is meant to find it.

Samples, filter taps and envelopes are integers held in float64 while they are summed. Every sum
stays far below 2**53, so no order of summation and no vector width can change a bit. Random
numbers are raw PCG64 output, whose stream numpy guarantees. Never used on a live call.
"""

import wave
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
SCALE = 1 << 15

Pcm = NDArray[np.int16]
Wave = NDArray[np.float64]


def samples(ms: float) -> int:
    """Whole samples in `ms` milliseconds at 16 kHz."""
    return round(ms * RATE / 1000)


def pcm16(x: Wave) -> Pcm:
    """Round to the nearest integer and clip to int16."""
    return np.clip(np.rint(x), -32768, 32767).astype(np.int16)


def quantised(x: Wave) -> Wave:
    """Round to multiples of 2**-15, so that later sums are exact."""
    return np.asarray(np.rint(x * SCALE) / SCALE, dtype=np.float64)


def gain(x: Wave | Pcm, db: float) -> Wave:
    """Scale by `db` decibels; the factor is a multiple of 2**-20, the result whole samples."""
    factor = round(10 ** (db / 20) * (1 << 20)) / (1 << 20)
    return np.asarray(np.rint(x.astype(np.float64) * factor), dtype=np.float64)


def rms(x: Wave | Pcm) -> float:
    """Root mean square in sample units; 0.0 for an empty array."""
    if x.size == 0:
        return 0.0
    whole = np.rint(x).astype(np.int64)
    return float(np.sqrt(float(np.sum(whole * whole)) / whole.size))


def at_level(x: Wave | Pcm, dbfs: float, peak: int = 32_000) -> Wave:
    """Scale so that the RMS is `dbfs` (0 = an RMS of 32768), or less where `peak` would be passed.

    Silence stays silence.
    """
    level = rms(x)
    if level == 0.0:
        return x.astype(np.float64)
    highest = float(np.max(np.abs(x.astype(np.float64))))
    ratio = min(10 ** (dbfs / 20) * SCALE / level, peak / highest)
    return gain(x, 20 * float(np.log10(ratio)))


def noise(count: int, seed: int) -> Wave:
    """White noise, uniform in [-16384, 16383], from the raw PCG64 stream of `seed`."""
    raw = np.random.PCG64(seed).random_raw(count)
    return (raw >> np.uint64(49)).astype(np.float64) - 16384.0


def draws(count: int, seed: int) -> list[float]:
    """`count` numbers in [0, 1) from the raw stream of `seed`."""
    raw = np.random.PCG64(seed).random_raw(count)
    return [int(value >> 11) / (1 << 53) for value in raw.tolist()]


@lru_cache(maxsize=64)
def _band_taps(low_hz: float, high_hz: float, count: int) -> Wave:
    n = np.arange(count) - (count - 1) / 2

    def low(hz: float) -> Wave:
        return np.asarray(2 * hz / RATE * np.sinc(2 * hz / RATE * n), dtype=np.float64)

    return quantised((low(high_hz) - low(low_hz)) * np.hamming(count))


def band(x: Wave, low_hz: float, high_hz: float, taps: int = 129) -> Wave:
    """Linear-phase band-pass (windowed sinc), same length as the input."""
    return np.asarray(np.rint(np.convolve(x, _band_taps(low_hz, high_hz, taps), "same")))


def shaped(x: Wave, envelope: Wave) -> Wave:
    """Multiply by an envelope in [0, 1]; the envelope is quantised first."""
    return np.asarray(np.rint(x * quantised(envelope)), dtype=np.float64)


def decay(count: int, rise_ms: float, fall_ms: float) -> Wave:
    """A burst's envelope: linear rise, then exponential fall with time constant `fall_ms`."""
    n = np.arange(count, dtype=np.float64)
    rise = max(1, samples(rise_ms))
    fall = np.exp(-np.maximum(n - rise, 0) / max(1, samples(fall_ms)))
    return np.asarray(np.minimum(1.0, n / rise) * fall, dtype=np.float64)


@lru_cache(maxsize=64)
def _phase_table(up: int, down: int, half: int) -> Wave:
    """Row p holds the taps for an output that lies p/up of a sample after an input sample."""
    cutoff = min(1.0, up / down) * 0.95
    offset = np.arange(-half + 1, half + 1)[None, :] - np.arange(up)[:, None] / up
    window = np.cos(np.pi * offset / (2 * half)) ** 2
    return quantised(cutoff * np.sinc(cutoff * offset) * window)


def resample(x: Pcm, up: int, down: int, half: int = 32) -> Pcm:
    """Resample by `up/down`; the output has ceil(len * up / down) samples.

    Also the speed control: `up/down` = 10/11 plays the sound 10 % faster and higher.
    """
    if up == down or x.size == 0:
        return x.copy()
    table = _phase_table(up, down, half)
    count = -(-x.size * up // down)
    ticks = np.arange(count, dtype=np.int64) * down
    padded = np.concatenate([np.zeros(half), x.astype(np.float64), np.zeros(half + 1)])
    first = ticks // up + 1
    out = np.zeros(count)
    for tap in range(2 * half):
        out += padded[first + tap] * table[ticks % up, tap]
    return pcm16(out)


def mix(tracks: Sequence[tuple[Wave | Pcm, int]], length: int | None = None) -> Pcm:
    """Add tracks, each at its start sample; clips, and cuts what lies past `length`."""
    end = max((at + x.size for x, at in tracks), default=0) if length is None else length
    out = np.zeros(end)
    for x, at in tracks:
        part = x[: max(0, end - at)]
        out[at : at + part.size] += part
    return pcm16(out)


def join(parts: Sequence[Pcm | int]) -> Pcm:
    """Concatenate sounds and silences (an int is that many zero samples)."""
    blocks = [np.zeros(p, dtype=np.int16) if isinstance(p, int) else p for p in parts]
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.int16)


def mulaw_round_trip(x: Pcm) -> Pcm:
    """Through ITU-T G.711 mu-law and back: the quantisation of a North American phone line."""
    wide = x.astype(np.int64)
    magnitude = np.minimum(np.abs(wide), 32635) + 132
    exponent = np.floor(np.log2(magnitude)).astype(np.int64) - 7
    step = np.left_shift(np.int64(1), exponent + 3)
    mantissa = (magnitude // step) & 0x0F
    decoded = ((mantissa * 2 + 33) << (exponent + 2)) - 132
    return np.asarray(np.sign(wide) * decoded, dtype=np.int16)


def write_wav(path: Path, x: Pcm, rate: int = RATE) -> None:
    """Write mono 16-bit PCM with the plain 44-byte header, so that equal sound is equal bytes."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(x.astype("<i2").tobytes())
