"""Streaming sample-rate conversion: a rational polyphase FIR in numpy.

Owned by whoever owns the stream; one `Resampler` per stream and direction. The taps are integers
held in float64, so every product and sum is exact (|sum| < 2^41; a float64 is exact to 2^53). The
output therefore cannot depend on chunking, threads, BLAS or CPU. Never drifts: counts are integers.

Design: Kaiser-windowed sinc (Oppenheim and Schafer, "Discrete-Time Signal Processing", 7.6), 3 ms
to each side, beta 9.3: stop band -93 dB, transition 1 kHz below the lower Nyquist. That would cut
into the telephone band, so 8 kHz pairs have their own edges: up from 8 kHz the pass band ends at
4 kHz itself, down to 8 kHz beta is 6.5 (3.4 kHz -0.2 dB, 4 kHz below -58 dB).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np
import numpy.typing as npt

from .errors import MediaValueError
from .pcm import Samples

RATES = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)
"""Rates whose pairs are tested; any other pair works while its table stays small."""

DELAY_S = 0.003
_BITS = 24
_BETA, _BETA_TELEPHONE = 9.3, 6.5
_MAX_TABLE = 2_000_000
_SLICE = 48_000
"""Input samples converted at a time: bounds the memory of one long feed."""


@dataclass(frozen=True, slots=True)
class _Kernel:
    """One pair's filter as a matrix: `taps` turns a window of inputs into a block of outputs."""

    up: int
    down: int
    delay: int
    advance: int
    taps: npt.NDArray[np.float64]


def _prototype(src: int, dst: int, up: int, half: int) -> npt.NDArray[np.float64]:
    """The low-pass at rate src*up, `half` taps to each side of its centre."""
    fs = src * up
    beta = _BETA_TELEPHONE if dst == 8_000 and src > dst else _BETA
    attenuation = beta / 0.1102 + 8.7
    width = (attenuation - 7.95) / (2.285 * 2 * half) / (2 * np.pi)
    # An 8 kHz line is band-limited already: keep all of it, its image starts above 4 kHz.
    edge = 4_000 / fs if src == 8_000 else min(src, dst) / 2 / fs - width / 2
    n = np.arange(-half, half + 1)
    taps: npt.NDArray[np.float64] = 2 * edge * np.sinc(2 * edge * n) * np.kaiser(2 * half + 1, beta)
    return taps * up


@lru_cache(maxsize=64)
def _kernel(src: int, dst: int) -> _Kernel:
    common = gcd(src, dst)
    up, down = dst // common, src // common
    delay = int(DELAY_S * src)
    half = delay * up
    # Small ratios: several periods a block, so that one matrix product does useful work.
    repeat = max(1, 16 // up) if up <= 8 else 1
    outputs, advance = up * repeat, down * repeat
    rows = ((outputs - 1) * down) // up + 2 * delay + 1
    if rows * outputs > _MAX_TABLE:
        known = ", ".join(map(str, RATES))
        raise MediaValueError("rate", f"{src} -> {dst} Hz", f"convert among {known} Hz")
    prototype = _prototype(src, dst, up, half)
    taps = np.zeros((rows, outputs))
    for column in range(outputs):
        first, phase = divmod(column * down, up)
        picked = prototype[::-1][np.arange(0, 2 * half + 1) % up == (up - phase) % up]
        start = first + (1 if phase else 0)
        taps[start : start + len(picked), column] = picked
    taps = np.rint(taps * 2.0**_BITS)
    for column in range(outputs):  # DC gain exactly 1 in every phase
        peak = int(np.argmax(np.abs(taps[:, column])))
        taps[peak, column] += 2.0**_BITS - taps[:, column].sum()
    taps.setflags(write=False)
    return _Kernel(up, down, delay, advance, taps)


class Resampler:
    """Converts mono int16 from `src` to `dst` Hz, chunk by chunk.

    Default ("count" mode, for live streams): after any feed exactly floor(fed * dst / src) samples
    have come out, and the signal is late by `delay` input samples, a constant to subtract from
    positions. `aligned=True` (for files): output k lies at input time k/dst, the last `delay` input
    samples come with `flush()`, and in total ceil(fed * dst / src) samples come out.

    Equal rates pass the samples through, without delay. Raises MediaValueError for a pair whose
    ratio needs too large a table.
    """

    def __init__(self, src: int, dst: int, *, aligned: bool = False) -> None:
        if src < 1 or dst < 1:
            raise MediaValueError("rate", f"{src} -> {dst} Hz", "use rates above 0 Hz")
        self.src, self.dst, self.aligned = src, dst, aligned
        self._kernel = None if src == dst else _kernel(src, dst)
        self.reset()

    @property
    def delay(self) -> int:
        """Input samples by which the output is late; 0 for equal rates and in aligned mode."""
        return 0 if self._kernel is None or self.aligned else self._kernel.delay

    def reset(self) -> None:
        """Start a new stream: silence before it, counts at zero."""
        margin = 0
        if self._kernel is not None:
            margin = self._kernel.delay if self.aligned else 2 * self._kernel.delay
        self._buffer = np.zeros(margin)
        self._fed = 0
        self._made = 0
        self._skip = 0

    def feed(self, samples: Samples) -> Samples:
        """The output that `samples` completes, shape [n]; the same bits for any chunking.

        Raises MediaValueError unless `samples` is a one-dimensional int16 array.
        """
        if samples.dtype != np.int16 or samples.ndim != 1:
            given = f"{samples.dtype} of {samples.ndim} dimensions"
            raise MediaValueError("samples", given, "send mono int16 (pcm.downmix, pcm.to_int16)")
        if self._kernel is None:
            return samples
        return _joined([self._feed(self._kernel, part) for part in _slices(samples)])

    def gap(self, samples: int) -> Samples:
        """Output for `samples` input samples that were lost: silence, counts stay exact."""
        if samples < 0:
            raise MediaValueError("samples", str(samples), "a gap is 0 or more samples long")
        if self._kernel is None:
            return np.zeros(samples, np.int16)
        settling = min(samples, self._kernel.taps.shape[0] + self._kernel.advance)
        head = self.feed(np.zeros(settling, np.int16))
        # The filter holds only zeros now: whole blocks change nothing but the counts.
        blocks, rest = divmod(samples - settling, self._kernel.advance)
        self._fed += blocks * self._kernel.advance
        skipped = blocks * self._kernel.taps.shape[1]
        self._made += skipped
        return _joined([head, np.zeros(skipped, np.int16), self.feed(np.zeros(rest, np.int16))])

    def flush(self) -> Samples:
        """The tail that the delay holds back. The next feed begins a new stream."""
        tail = np.zeros(0, np.int16)
        if self._kernel is not None:
            tail = self._feed(self._kernel, np.zeros(self._kernel.delay, np.int16))
        self.reset()
        return tail

    def _feed(self, kernel: _Kernel, samples: Samples) -> Samples:
        self._fed += len(samples)
        if self.aligned:
            due = -(-max(0, self._fed - kernel.delay) * kernel.up // kernel.down)
        else:
            due = self._fed * kernel.up // kernel.down
        self._buffer = np.concatenate((self._buffer, samples))
        return self._produce(kernel, due - self._made)

    def _produce(self, kernel: _Kernel, count: int) -> Samples:
        """The next `count` outputs, computed in whole blocks; the part made before is skipped."""
        if count <= 0:
            return np.zeros(0, np.int16)
        rows, outputs = kernel.taps.shape
        total = self._skip + count
        blocks = -(-total // outputs)
        # Columns past `total` would read input yet to come: they see zeros and are cut off.
        lacking = (blocks - 1) * kernel.advance + rows - len(self._buffer)
        held = np.concatenate((self._buffer, np.zeros(lacking))) if lacking > 0 else self._buffer
        windows = np.lib.stride_tricks.sliding_window_view(held, rows)[:: kernel.advance][:blocks]
        made = (np.ascontiguousarray(windows) @ kernel.taps).reshape(-1)[self._skip : total]
        whole, self._skip = divmod(total, outputs)
        self._buffer = self._buffer[whole * kernel.advance :]
        self._made += count
        np.rint(made * 2.0**-_BITS, out=made)
        return np.clip(made, -32_768, 32_767, out=made).astype(np.int16)


def resample_all(samples: Samples, src: int, dst: int) -> Samples:
    """A whole recording at another rate, aligned: ceil(len * dst / src) samples, no delay."""
    resampler = Resampler(src, dst, aligned=True)
    return _joined([resampler.feed(samples), resampler.flush()])


def _slices(samples: Samples) -> Iterator[Samples]:
    for start in range(0, len(samples), _SLICE):
        yield samples[start : start + _SLICE]


def _joined(parts: list[Samples]) -> Samples:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, np.int16)
