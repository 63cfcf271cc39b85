"""The audio oracle: what a recording proves, measured without trusting the code under test.

Lives here: pure functions from int16 (or float) mono samples to numbers, and domain asserts on
top. Owned by the test suite; numpy only, imports nothing of voxglove. It never decides what is
right: thresholds belong to the test that asks.

Levels are dB relative to int16 full scale (0 dBFS = an RMS of 32768). Positions are samples.
Method: findings/transports F (tone fit per 100 ms, holes at 20 ms, sign of the correlation).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FULL_SCALE = 32768.0
FLOOR_DB = -120.0
RATE = 16_000

Sound = NDArray[np.int16] | NDArray[np.float64]
Levels = NDArray[np.float64]


class Span(NamedTuple):
    """Half-open interval of samples."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Tone:
    """A sine found in a recording. SNRs leave out 200 ms at each end of the active region.

    `snr_whole_db` fits one sine to everything: a slipped or repeated sample ruins it.
    `snr_100ms_*` fit each 100 ms alone: they survive a slip but not distortion.
    """

    span: Span
    holes: int
    amplitude: float
    snr_whole_db: float
    snr_100ms_median_db: float
    snr_100ms_min_db: float


@dataclass(frozen=True, slots=True)
class Match:
    """How a recording contains a reference: `recording[n] ~ gain * reference[n - lag]`."""

    lag: int
    gain: float
    correlation: float
    snr_db: float

    @property
    def inverted(self) -> bool:
        """True when the best match has the wrong sign (a phase flip)."""
        return self.correlation < 0


def level_db(x: Sound) -> float:
    """RMS in dBFS; -120 for silence or an empty array."""
    if x.size == 0:
        return FLOOR_DB
    power = float(np.mean(np.square(x.astype(np.float64)))) / FULL_SCALE**2
    return max(FLOOR_DB, 10 * float(np.log10(max(power, 1e-12))))


def levels_db(x: Sound, rate: int = RATE, frame_ms: float = 10) -> Levels:
    """RMS in dBFS of each frame of `frame_ms`; a last partial frame counts as a frame."""
    size = round(rate * frame_ms / 1000)
    count = -(-x.size // size)
    padded = np.zeros(count * size)
    padded[: x.size] = x
    power = np.mean(padded.reshape(count, size) ** 2, axis=1) / FULL_SCALE**2
    return np.asarray(np.maximum(FLOOR_DB, 10 * np.log10(np.maximum(power, 1e-12))))


def _runs(flags: NDArray[np.bool_]) -> list[Span]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [Span(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def energy_spans(
    x: Sound,
    rate: int = RATE,
    *,
    threshold_db: float = -50.0,
    merge_ms: float = 200,
    min_ms: float = 40,
    frame_ms: float = 10,
) -> list[Span]:
    """Loud stretches, after the mean (DC) is removed.

    Gaps shorter than `merge_ms` belong to the stretch; stretches shorter than `min_ms` are clicks.
    Bounds are whole frames, the last one cut at the end of the recording.
    """
    centred = x.astype(np.float64) - (float(np.mean(x)) if x.size else 0.0)
    frames = _runs(levels_db(centred, rate, frame_ms) >= threshold_db)
    merged: list[Span] = []
    for run in frames:
        if merged and (run.start - merged[-1].end) * frame_ms < merge_ms:
            merged[-1] = Span(merged[-1].start, run.end)
        else:
            merged.append(run)
    size = round(rate * frame_ms / 1000)
    return [
        Span(run.start * size, min(run.end * size, x.size))
        for run in merged
        if (run.end - run.start) * frame_ms >= min_ms
    ]


def _active(x: Sound, rate: int, frame_ms: float, floor: float) -> NDArray[np.bool_]:
    """Per frame of the active region: is it at least `floor` of the loudest frame?"""
    amplitude = 10 ** (levels_db(x, rate, frame_ms) / 20)
    loud = amplitude >= max(floor * float(amplitude.max(initial=0.0)), 10 ** (FLOOR_DB / 20) * 2)
    where = np.flatnonzero(loud)
    return loud[where[0] : where[-1] + 1] if where.size else loud[:0]


def hole_count(x: Sound, rate: int = RATE, *, frame_ms: float = 20, floor: float = 0.05) -> int:
    """Frames inside the active region that fall below `floor` of the loudest frame's RMS.

    Meant for steady signals (tones, noise); speech has pauses of its own.
    """
    active = _active(x, rate, frame_ms, floor)
    return int(np.count_nonzero(~active))


def _fit(y: Levels, hz: float, rate: int) -> tuple[float, float]:
    """Least-squares sine of known frequency plus DC: (SNR in dB, amplitude)."""
    t = np.arange(y.size) / rate
    basis = np.stack(
        [np.sin(2 * np.pi * hz * t), np.cos(2 * np.pi * hz * t), np.ones_like(t)], axis=1
    )
    coefficients, *_ = np.linalg.lstsq(basis, y, rcond=None)
    model = basis @ coefficients
    noise = max(float(np.sum((y - model) ** 2)), 1e-9)
    snr = 10 * float(np.log10(max(float(np.sum(model**2)), 1e-9) / noise))
    return snr, float(np.hypot(coefficients[0], coefficients[1]))


def tone(x: Sound, hz: float, rate: int = RATE) -> Tone:
    """Measure a sine of `hz`. Raises ValueError without 600 ms of active sound."""
    size = round(rate * 0.02)
    amplitude = 10 ** (levels_db(x, rate, 20) / 20)
    where = np.flatnonzero(amplitude >= 0.05 * float(amplitude.max(initial=0.0)))
    if where.size * 20 < 600 or float(amplitude.max()) < 1e-5:
        raise ValueError("tone: less than 600 ms of sound; record a longer tone")
    span = Span(int(where[0]) * size, min((int(where[-1]) + 1) * size, x.size))
    inner = x[span.start + rate // 5 : span.end - rate // 5].astype(np.float64)
    whole, height = _fit(inner, hz, rate)
    step = rate // 10
    parts = [_fit(inner[i : i + step], hz, rate)[0] for i in range(0, inner.size - step + 1, step)]
    return Tone(
        span=span,
        holes=hole_count(x, rate),
        amplitude=height,
        snr_whole_db=whole,
        snr_100ms_median_db=float(np.median(parts)),
        snr_100ms_min_db=min(parts),
    )


def match(recording: Sound, reference: Sound) -> Match:
    """Find the reference in the recording by cross-correlation (FFT), then fit gain and SNR.

    A negative lag means that the recording starts inside the reference. Raises ValueError when
    either side is empty or silent.
    """
    rec, ref = recording.astype(np.float64), reference.astype(np.float64)
    if not (np.any(rec) and np.any(ref)):
        raise ValueError("match: recording or reference is silent")
    size = 1 << int(np.ceil(np.log2(rec.size + ref.size)))
    spectrum = np.fft.rfft(rec, size) * np.conj(np.fft.rfft(ref, size))
    cross = np.fft.irfft(spectrum, size)
    peak = int(np.argmax(np.abs(cross)))
    lag = peak if peak < rec.size else peak - size
    start, skip = max(lag, 0), max(-lag, 0)
    count = min(rec.size - start, ref.size - skip)
    a, b = rec[start : start + count], ref[skip : skip + count]
    energy_a, energy_b, dot = float(a @ a), float(b @ b), float(a @ b)
    gain = dot / max(energy_b, 1e-9)
    residual = float(np.sum((a - gain * b) ** 2))
    return Match(
        lag=lag,
        gain=gain,
        correlation=dot / max(float(np.sqrt(energy_a * energy_b)), 1e-9),
        snr_db=10 * float(np.log10(max(gain * gain * energy_b, 1e-9) / max(residual, 1e-9))),
    )


def first_loud_sample(
    x: Sound, rate: int = RATE, *, after: int = 0, threshold_db: float = -45.0
) -> int | None:
    """First sample at or after `after` that opens a loud 5 ms; None when there is none.

    The position is refined inside the 5 ms to the first sample above the threshold's amplitude.
    """
    tail = x[after:].astype(np.float64)
    loud = np.flatnonzero(levels_db(tail, rate, 5) >= threshold_db)
    if loud.size == 0:
        return None
    size = round(rate * 0.005)
    start = int(loud[0]) * size
    above = np.abs(tail[start : start + size]) >= FULL_SCALE * 10 ** (threshold_db / 20)
    return after + start + int(np.argmax(above))


def loud_ms(x: Sound, rate: int = RATE, *, threshold_db: float = -50.0) -> float:
    """Milliseconds (in 10 ms frames) at or above the threshold."""
    return 10.0 * int(np.count_nonzero(levels_db(x, rate) >= threshold_db))


def overlap_ms(a: Sound, b: Sound, rate: int = RATE, *, threshold_db: float = -50.0) -> float:
    """Milliseconds in which both tracks are loud at once (10 ms frames)."""
    count = min(a.size, b.size)
    loud_a = levels_db(a[:count], rate) >= threshold_db
    loud_b = levels_db(b[:count], rate) >= threshold_db
    return 10.0 * int(np.count_nonzero(loud_a & loud_b))


def uncovered_ms(
    x: Sound, spans: list[Span], rate: int = RATE, *, threshold_db: float = -50.0
) -> float:
    """Loud milliseconds that lie outside all spans."""
    rest = x.astype(np.float64) - (float(np.mean(x)) if x.size else 0.0)
    for span in spans:
        rest[span.start : span.end] = 0.0
    return loud_ms(rest, rate, threshold_db=threshold_db)


def assert_silent_after(
    x: Sound, ms: float, rate: int = RATE, *, threshold_db: float = -60.0
) -> None:
    """No 5 ms at or above the threshold from `ms` (milliseconds into `x`) to the end."""
    start = round(ms * rate / 1000)
    loud = first_loud_sample(x, rate, after=start, threshold_db=threshold_db)
    assert loud is None, (
        f"sound at {loud * 1000 / rate:.1f} ms ({level_db(x[loud : loud + rate // 50]):.1f} dBFS), "
        f"expected silence from {ms:.1f} ms on"
    )


def assert_resumed_exactly(x: Sound, reference: Sound, pause: Span) -> None:
    """With the pause taken out, the sound is the reference bit for bit (invariant 3)."""
    assert not np.any(x[pause.start : pause.end]), f"sound inside the pause {pause}"
    played = np.concatenate([x[: pause.start], x[pause.end :]])
    count = min(played.size, reference.size)
    wrong = np.flatnonzero(played[:count] != reference[:count])
    assert wrong.size == 0, f"first differing sample {int(wrong[0])}, pause began at {pause.start}"
    assert not np.any(played[count:]) and not np.any(reference[count:]), "lengths differ in sound"
