"""The bad network does what it is asked: shares, runs, order, clocks; and again the same."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.impaired import impaired
from voxglove.media.errors import MediaValueError
from voxglove.media.impair import REORDER_MS, Impairer, Impairment

STEP_S = 0.02
COUNT = 20_000


def sent(count: int = COUNT) -> list[tuple[float, int]]:
    return [(n * STEP_S, n) for n in range(count)]


def arrived(what: Impairment, seed: int = 3) -> list[tuple[float, int]]:
    return impaired(sent(), what, seed)


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.2, 0.5])
@pytest.mark.parametrize("burst", [1, 5, 10])
def test_the_share_lost_is_the_share_asked_for_however_long_the_bursts(
    loss: float, burst: int
) -> None:
    got = {number for _, number in arrived(Impairment(loss=loss, burst=burst))}
    runs = [
        len(list(run)) for missing, run in groupby(range(COUNT), lambda n: n not in got) if missing
    ]
    assert sum(runs) / COUNT == pytest.approx(loss, rel=0.15)
    alone = [length for length in runs if length <= burst]
    assert len(alone) >= len(runs) * (1 - 2 * loss), "longer runs are bursts that touch by chance"
    if burst > 1 and loss <= 0.05:
        assert set(range(1, burst + 1)) <= set(runs)


def test_all_lost_and_none_lost() -> None:
    all_lost = Impairer(Impairment(loss=1))
    assert not any(all_lost.arrivals(n * STEP_S) for n in range(200))
    assert arrived(Impairment()) == sent()
    assert not Impairment(burst=4).active and Impairment(jitter_ms=1).active


def test_uniform_jitter_fills_its_range_and_gaussian_its_bell() -> None:
    flat = [at - n * STEP_S for at, n in arrived(Impairment(jitter_ms=100))]
    assert min(flat) >= 0 and 0.098 < max(flat) <= 0.1
    assert sum(flat) / len(flat) == pytest.approx(0.05, rel=0.05)
    bell = [at - n * STEP_S for at, n in arrived(Impairment(jitter_ms=90, spread="gaussian"))]
    assert 0.6 < sum(delay < 0.03 for delay in bell) / len(bell) < 0.75, "one sigma"
    assert max(bell) <= 0.18


def test_a_queue_keeps_the_order_and_a_free_network_does_not() -> None:
    numbers = [n for _, n in arrived(Impairment(jitter_ms=150, queued=True))]
    assert numbers == sorted(numbers)
    numbers = [n for _, n in arrived(Impairment(jitter_ms=150))]
    assert numbers != sorted(numbers)


def test_reordered_packets_come_behind_two_others() -> None:
    got = arrived(Impairment(reorder=0.05))
    late = [(at, n) for at, n in got if at > n * STEP_S + 1e-9]
    assert len(late) / COUNT == pytest.approx(0.05, rel=0.15)
    assert all(at - n * STEP_S == pytest.approx(REORDER_MS / 1000) for at, n in late)


def test_duplicates_are_the_share_asked_for() -> None:
    assert len(arrived(Impairment(duplicate=0.1))) / COUNT == pytest.approx(1.1, rel=0.02)


@pytest.mark.parametrize("ppm", [-200.0, 200.0])
def test_a_skewed_clock_drifts_by_so_much(ppm: float) -> None:
    at, number = arrived(Impairment(skew_ppm=ppm))[-1]
    assert at == pytest.approx(number * STEP_S * (1 + ppm / 1e6), abs=1e-9)


@given(
    st.builds(
        Impairment,
        loss=st.floats(0, 0.5),
        burst=st.integers(1, 10),
        jitter_ms=st.floats(0, 300),
        queued=st.booleans(),
        reorder=st.floats(0, 0.3),
        duplicate=st.floats(0, 0.3),
    ),
    st.integers(0, 1 << 30),
)
def test_any_way_is_repeatable_ordered_in_time_and_never_early(what: Impairment, seed: int) -> None:
    got = impaired(sent(200), what, seed)
    assert got == impaired(sent(200), what, seed)
    assert [at for at, _ in got] == sorted(at for at, _ in got)
    assert all(at >= n * STEP_S for at, n in got) and got[0] == (0.0, 0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("loss", 1.1),
        ("loss", float("nan")),
        ("burst", 0),
        ("burst", 11),
        ("jitter_ms", 301),
        ("jitter_ms", -1),
        ("skew_ppm", 3_000),
        ("reorder", -0.1),
    ],
)
def test_what_no_network_does_is_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(MediaValueError, match=field):
        Impairment(**{field: value})  # type: ignore[arg-type]
