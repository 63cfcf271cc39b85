"""Echo guard: is the voice coming in our own, back from the caller's loudspeaker?

Owned by a call's brain, which asks before it lets a voice interrupt. Compares short-time spectra,
not samples: rooms, codecs and clock skew move samples, the pattern of loud and soft in 15 bands
stays. Removes nothing from the audio and never decides what to do about an echo. Pure numpy; the
work of one verdict is bounded by its window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .errors import MediaValueError
from .pcm import Samples

RATE = 16_000
_NOTHING = np.zeros(0, np.int16)
_HOP, _WINDOW = 160, 320
_EDGES_HZ = (
    *(200, 300, 400, 510, 630, 770, 920, 1_080),
    *(1_270, 1_480, 1_720, 2_000, 2_320, 2_700, 3_150, 3_700),
)
"""Critical bands inside the telephone band (Zwicker, 1961)."""

_SHORT_MS, _LONG_MS = 96, 250
_SILENT = 1e4
"""Band power of a hop below which nothing was played: under -80 dBFS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoConfig:
    """Delays searched and what counts as an echo.

    Below `long_correlation` a window of 250 ms is no echo; at 96 ms, where chance resemblance is
    higher, `short_correlation` is asked; between, the line between the two. An echo is never
    louder than `max_level_db` relative to what was played. Raises MediaValueError.
    """

    min_lag_ms: int = 40
    max_lag_ms: int = 400
    window_ms: int = 500
    long_correlation: float = 0.82
    short_correlation: float = 0.90
    max_level_db: float = -6.0

    def __post_init__(self) -> None:
        if not 0 <= self.min_lag_ms < self.max_lag_ms:
            given = f"{self.min_lag_ms} with max_lag_ms {self.max_lag_ms}"
            raise MediaValueError("min_lag_ms", given, "use 0 <= min_lag_ms < max_lag_ms")
        if self.window_ms < _SHORT_MS:
            raise MediaValueError("window_ms", str(self.window_ms), f"use {_SHORT_MS} ms or more")


@dataclass(frozen=True, slots=True)
class EchoVerdict:
    """The best match found: its correlation (-1..1), delay and level relative to the far end."""

    is_echo: bool
    correlation: float = 0.0
    lag_ms: int = 0
    level_db: float = 0.0


class EchoGuard:
    """`hear` every input frame; ask `verdict` when a voice would interrupt.

    `reference(at, samples)` gives the far end as it was played at those input samples, 16 kHz,
    zeros where nothing played (`Line.reference`); it is asked for at most max_lag + window back.
    """

    def __init__(
        self, reference: Callable[[int, int], Samples], config: EchoConfig | None = None
    ) -> None:
        self.config = config or EchoConfig()
        self._reference = reference
        self.window = self.config.window_ms * RATE // 1000
        """Samples of the caller's side that a verdict looks at, at most."""
        self._near: deque[Samples] = deque()
        """At least the last `window_ms` of the caller's side, in the pieces that came."""
        self._held = 0
        self._end = 0

    def hear(self, at: int, samples: Samples) -> None:
        """Remember the caller's side. Where `at` does not continue, what came before is dropped.

        Keeps `samples` themselves, not a copy: they are not to be changed afterwards.
        """
        if at != self._end:
            self._near.clear()
            self._held = 0
        self._near.append(samples)
        self._held += len(samples)
        while self._held - len(self._near[0]) >= self.window:
            self._held -= len(self._near.popleft())
        self._end = at + len(samples)

    def verdict(self, start: int) -> EchoVerdict:
        """Is what was heard since input sample `start` our own voice? Looks at the last window.

        With less than 96 ms to look at, or silence at the far end, it is not.
        """
        near = np.concatenate((_NOTHING, *self._near))[-self.window :]
        near = near[max(0, len(near) - max(0, self._end - start)) :]
        if len(near) < _SHORT_MS * RATE // 1000:
            return EchoVerdict(False)
        lags = self.config.max_lag_ms * RATE // 1000
        first = self._end - len(near)
        far = _bands(self._reference(first - lags, len(near) + lags))
        correlation, lag_hops, level_db = self._best(_bands(near), far)
        echo = correlation >= self._needed(len(near)) and level_db <= self.config.max_level_db
        return EchoVerdict(echo, correlation, lag_hops * _HOP * 1000 // RATE, level_db)

    def _best(
        self, near: npt.NDArray[np.float64], far: npt.NDArray[np.float64]
    ) -> tuple[float, int, float]:
        """Correlation, delay in hops and level in dB of the delay that fits best."""
        count, per_hop = len(near), 1000 * _HOP // RATE
        shape = _envelopes(near)
        shape -= shape.mean(axis=0)
        # Oldest position first: row k of every sum below is the delay `newest - k`.
        newest = len(far) - count
        played = _sums(far.sum(axis=1, keepdims=True), count)[:, 0]
        envelopes = _envelopes(far)
        windows = np.lib.stride_tricks.sliding_window_view(envelopes, count, axis=0)
        products = np.tensordot(windows, shape.T, axes=2)
        spread = _sums(envelopes**2, count) - _sums(envelopes, count) ** 2 / count
        norms = np.sqrt(np.maximum(spread.sum(axis=1) * np.vdot(shape, shape), 1e-9))
        lags = newest - np.arange(newest + 1)
        usable = (played >= _SILENT * count) & (lags >= self.config.min_lag_ms // per_hop)
        if not usable.any():
            return 0.0, 0, 0.0
        found = np.where(usable, products / norms, -1.0)
        best = int(np.argmax(found))
        level_db = 10 * np.log10(max(float(near.sum()), 1.0) / float(played[best]))
        return float(found[best]), int(lags[best]), float(level_db)

    def _needed(self, samples: int) -> float:
        """The correlation asked of a window of that length."""
        ms = samples * 1000 / RATE
        share = min(1.0, max(0.0, (ms - _SHORT_MS) / (_LONG_MS - _SHORT_MS)))
        short, long = self.config.short_correlation, self.config.long_correlation
        return short + share * (long - short)


_HANN = np.hanning(_WINDOW + 1)[:-1]
_BINS = tuple(round(edge * _WINDOW / RATE) for edge in _EDGES_HZ)


def _bands(samples: Samples) -> npt.NDArray[np.float64]:
    """Power per 10 ms hop and band, shape [hops, 15]."""
    windows = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), _WINDOW)
    spectrum = np.fft.rfft(windows[::_HOP] * _HANN, axis=-1)
    power = spectrum.real**2 + spectrum.imag**2
    bands: npt.NDArray[np.float64] = np.add.reduceat(power[:, : _BINS[-1]], _BINS[:-1], axis=1)
    return bands


def _envelopes(bands: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compressed power: loud bands must not decide alone."""
    return np.asarray(np.sqrt(np.sqrt(bands)))


def _sums(rows: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Sum over each run of `count` rows, shape [rows - count + 1, columns]."""
    total = np.cumsum(np.pad(rows, ((1, 0), (0, 0))), axis=0)
    return np.asarray(total[count:] - total[:-count])
