"""Frames for a player leave evenly, whatever its reports say, and never beyond the horizon."""

from __future__ import annotations

import random

import pytest

from voxglove.adapters.transports.client_clock import ClientClock
from voxglove.adapters.transports.pace import FULL_MS, Pace
from voxglove.media.transport import HORIZON_MS

RATE = 16_000
FRAME = 320


def played_out(*, seconds: float, report_off_ms: float, ppm: float = 0.0) -> list[float]:
    """When frames left (s) for a player that starts at once, with a clock `ppm` fast, and reports
    each 100 ms a position that is off by up to `report_off_ms` either way. 1 ms a step."""
    chance = random.Random(3)
    clock, pace = ClientClock(RATE, 0.0), Pace(RATE)
    left: list[float] = []
    for ms in range(round(seconds * 1000)):
        now = ms / 1000
        if ms % 100 == 50:
            true = ms * 16 * (1 + ppm / 1e6)
            off = chance.uniform(-report_off_ms, report_off_ms) * 16
            clock.ack(0, max(0, min(round(true + off), clock.sent)), now)
        while pace.wait_s(clock.unplayed(now), now) <= 0:
            assert clock.unplayed(now) <= HORIZON_MS * 16
            clock.add(FRAME, now)
            pace.sent(FRAME, now)
            left.append(now)
    return left


@pytest.mark.parametrize("report_off_ms", [0.0, 5.0, 15.0])
def test_frames_leave_every_20_ms_though_reports_are_off(report_off_ms: float) -> None:
    left = played_out(seconds=20, report_off_ms=report_off_ms)
    gaps = [after - before for before, after in zip(left[11:], left[12:], strict=False)]
    assert left[9] == 0.0, "the horizon is filled at once"
    assert max(abs(gap - 0.020) for gap in gaps) <= 0.002


@pytest.mark.parametrize("ppm", [-200.0, 200.0])
def test_a_player_with_another_clock_neither_starves_nor_floods(ppm: float) -> None:
    left = played_out(seconds=300, report_off_ms=5.0, ppm=ppm)
    sent = len(left) * FRAME
    heard = 300 * RATE * (1 + ppm / 1e6)
    assert 80 * 16 <= sent - heard <= (HORIZON_MS + 40) * 16
    gaps = [after - before for before, after in zip(left[11:], left[12:], strict=False)]
    uneven = sum(abs(gap - 0.020) > 0.005 for gap in gaps)
    assert uneven <= len(gaps) // 100


def test_a_late_frame_does_not_move_the_beat_and_a_long_pause_begins_a_new_one() -> None:
    pace = Pace(RATE)
    full = FULL_MS * 16
    assert pace.wait_s(full + 1, 1.0) == 0.0
    pace.sent(FRAME, 1.0)
    assert pace.wait_s(full, 1.0) == pytest.approx(0.020)
    pace.sent(FRAME, 1.028)
    assert pace.wait_s(full, 1.028) == pytest.approx(0.012)
    pace.sent(FRAME, 5.0)
    assert pace.wait_s(full, 5.0) == pytest.approx(0.020)


def test_what_a_held_up_loop_owes_is_paid_back_frame_by_frame() -> None:
    clock, pace = ClientClock(RATE, 0.0), Pace(RATE)
    now, left = 0.0, []
    while now < 2.0:
        held_up = 1.0 < now < 1.055
        if not held_up and pace.wait_s(clock.unplayed(now), now) <= 0:
            clock.add(FRAME, now)
            pace.sent(FRAME, now)
            left.append(now)
        now = round(now + 0.001, 3)
    gaps = [after - before for before, after in zip(left, left[1:], strict=False)]
    late = next(index for index, gap in enumerate(gaps) if gap > 0.05)
    assert gaps[late + 1] == pytest.approx(0.010, abs=0.0011)
    assert max(gaps[late + 1 :]) <= 0.0211
    assert min(gaps[late + 1 :]) >= 0.009, "one at a time"
    assert clock.unplayed(left[late + 8]) >= 160 * 16, "supplied again soon"


def test_nothing_leaves_beyond_the_horizon() -> None:
    assert Pace(RATE).wait_s((HORIZON_MS + 30) * 16, 0.0) == pytest.approx(0.030)
