"""Medians, ratios of medians, and how sure we are of them. Pure.

Rounds are the unit that is drawn again: values inside a round share the machine's mood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

DRAWS = 4_000
SEED = 20_26


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with the interval that holds it with 95 %."""

    value: float
    low: float
    high: float


def median(values: Sequence[float]) -> Estimate | None:
    """Of one value per round."""
    kept = _finite(values)
    if not kept.size:
        return None
    return _estimate(float(np.median(kept)), np.median(_drawn(kept, 0), axis=1))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Estimate | None:
    """Median of ours over median of theirs; None when there is nothing or it is no number."""
    above, below = _finite(ours), _finite(theirs)
    if not above.size or not below.size or np.median(below) <= 0 or np.median(above) <= 0:
        return None
    top, bottom = np.median(_drawn(above, 0), axis=1), np.median(_drawn(below, 1), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = top / bottom
    return _estimate(float(np.median(above) / np.median(below)), drawn[np.isfinite(drawn)])


def _finite(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    found = np.array(values, np.float64)
    return found[np.isfinite(found)]


def _drawn(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], stream: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    random = np.random.default_rng((SEED, stream))
    return values[random.integers(0, values.size, (DRAWS, values.size))]


def _estimate(value: float, drawn: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Estimate:
    low, high = np.quantile(drawn, (0.025, 0.975)) if drawn.size else (value, value)
    return Estimate(value, float(low), float(high))
