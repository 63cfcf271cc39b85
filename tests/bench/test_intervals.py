"""Medians and ratios with their intervals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import intervals

Values = st.lists(st.floats(0.1, 1_000), min_size=1, max_size=12)


def test_nothing_has_no_median() -> None:
    assert intervals.median([]) is None
    assert intervals.median([math.nan]) is None


@given(Values)
def test_the_interval_holds_the_median_and_lies_within_the_values(values: list[float]) -> None:
    found = intervals.median(values)
    assert found is not None
    assert min(values) <= found.low <= found.value <= found.high <= max(values)


def test_a_ratio_is_of_medians_and_its_interval_narrows_with_more_rounds() -> None:
    few = intervals.ratio([1.0, 2.0, 3.0], [8.0, 10.0, 12.0])
    many = intervals.ratio([1.0, 2.0, 3.0] * 20, [8.0, 10.0, 12.0] * 20)
    assert few is not None and many is not None
    assert few.value == many.value == pytest.approx(0.2)
    assert many.high - many.low < few.high - few.low


def test_a_ratio_to_nothing_or_to_zero_is_none() -> None:
    assert intervals.ratio([1.0], []) is None
    assert intervals.ratio([1.0], [0.0]) is None
