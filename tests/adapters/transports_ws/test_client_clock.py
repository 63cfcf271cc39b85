"""The playback clock of a browser: acknowledgements, the estimate between, corrected stops."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voxglove.adapters.transports.client_clock import CORRECTIONS_KEPT, ClientClock

RATE = 16_000


def test_the_estimate_runs_from_the_first_sample_and_stops_at_the_last() -> None:
    clock = ClientClock(RATE, 10.0)
    assert clock.played(12.0) == 0
    clock.add(3_200, 12.0)
    assert clock.played(12.1) == 1_600
    assert clock.played(15.0) == 3_200
    clock.add(1_600, 20.0)
    assert clock.played(20.0) == 3_200, "a player that ran dry starts again now, not in the past"
    assert clock.unplayed(20.05) == 800


def test_an_acknowledgement_overrides_the_estimate_but_played_never_goes_back() -> None:
    clock = ClientClock(RATE, 0.0)
    clock.add(16_000, 0.0)
    assert clock.played(0.5) == 8_000
    assert clock.ack(0, 4_800, 0.5)
    assert clock.played(0.5) == 8_000
    assert clock.unplayed(0.5) == 11_200, "pacing trusts the client"
    assert clock.ack(0, 12_000, 0.6)
    assert clock.played(0.6) == 12_000


def test_lies_are_bounded_by_what_was_sent_and_said_before() -> None:
    clock = ClientClock(RATE, 0.0)
    clock.add(1_600, 0.0)
    clock.ack(0, 10**15, 0.0)
    assert clock.played(0.0) == 1_600
    clock.ack(0, 0, 0.0)
    assert clock.played(0.0) == 1_600


def test_a_stale_epoch_changes_nothing() -> None:
    clock = ClientClock(RATE, 0.0)
    clock.add(3_200, 0.0)
    clock.clear(0.1)
    assert not clock.ack(0, 3_200, 0.1)
    assert clock.played(0.1) == 1_600


def test_clear_returns_the_stop_and_later_sound_counts_on_from_there() -> None:
    clock = ClientClock(RATE, 0.0)
    clock.add(3_200, 0.0)
    assert clock.clear(0.1) == (0, 1_600)
    assert (clock.epoch, clock.sent) == (1, 1_600)
    clock.add(320, 0.2)
    assert clock.played(1.0) == 1_920


def test_a_correction_comes_once_and_moves_all_later_positions() -> None:
    clock = ClientClock(RATE, 0.0)
    clock.add(3_200, 0.0)
    clock.clear(0.1)
    clock.add(320, 0.2)
    assert clock.cleared(0, 1_200) == 1_200
    assert clock.cleared(0, 1_000) is None
    assert clock.sent == 1_520, "320 new samples behind the true stop"
    assert clock.ack(1, 1_520, 0.3)
    assert clock.played(0.3) == 1_520


def test_a_correction_lies_between_the_last_acknowledgement_and_what_was_sent() -> None:
    clock = ClientClock(RATE, 0.0)
    clock.add(3_200, 0.0)
    clock.ack(0, 1_000, 0.05)
    clock.clear(0.1)
    assert clock.cleared(0, 0) == 1_000
    clock.clear(0.2)
    assert clock.cleared(1, 10**12) == clock.sent


def test_an_old_epochs_correction_is_ignored_but_bounds_the_next() -> None:
    clock = ClientClock(RATE, 0.0)
    clock.add(3_200, 0.0)
    clock.clear(0.1)  # we think 1,600; the client really played 1,100
    clock.add(3_200, 0.1)
    clock.clear(0.2)  # we think 3,200; the client counts from 1,100 to 2,600
    assert clock.cleared(0, 1_100) is None
    assert clock.cleared(1, 2_600) == 2_600
    assert clock.sent == 2_600


def test_only_the_last_few_corrections_are_awaited() -> None:
    clock = ClientClock(RATE, 0.0)
    for _ in range(CORRECTIONS_KEPT + 3):
        clock.clear(0.0)
    assert clock.cleared(0, 0) is None
    assert len(clock._closed) <= CORRECTIONS_KEPT


steps = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 3_200)),
    st.tuples(st.just("ack"), st.integers(0, 10**6)),
    st.tuples(st.just("wait"), st.integers(0, 500)),
    st.tuples(st.just("clear"), st.just(0)),
    st.tuples(st.just("cleared"), st.integers(0, 10**6)),
)


@given(st.lists(steps, max_size=60))
def test_whatever_a_client_says_positions_stay_possible(order: list[tuple[str, int]]) -> None:
    clock, now, last = ClientClock(RATE, 0.0), 0.0, 0
    for step, value in order:
        match step:
            case "add":
                clock.add(value, now)
            case "ack":
                clock.ack(clock.epoch, value, now)
            case "wait":
                now += value / 1000
            case "clear":
                clock.clear(now)
            case "cleared":
                if clock.cleared(clock.epoch - 1, value) is not None:
                    last = 0
        played = clock.played(now)
        assert 0 <= played <= clock.sent
        assert played >= last
        assert clock.unplayed(now) >= 0
        last = played
