"""The jitter buffer: order out of disorder, no standing delay, and a depth that comes back."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.media.jitter import MAX_DEPTH, MAX_JUMP, MIN_DEPTH, JitterBuffer, Packet, Ready

TICKS = 960
"""RTP samples of 20 ms."""


def packet(number: int, *, ssrc: int = 1, start: int = 0) -> Packet:
    """The packet `number` of a stream; its payload is its number."""
    return Packet((start + number) % 65_536, number * TICKS % (1 << 32), str(number).encode(), ssrc)


def numbers(ready: Iterable[Ready]) -> list[int]:
    return [int(item.packet.payload) for item in ready]


def feed(buffer: JitterBuffer, order: Iterable[int], start: int = 0) -> list[tuple[int, Ready]]:
    """One packet every 20 ms in this order: (which arrival, what it released)."""
    out = []
    for tick, number in enumerate(order):
        out += [(tick, item) for item in buffer.add(packet(number, start=start), tick * TICKS)]
    return out


def test_packets_in_order_leave_at_once_across_the_wrap() -> None:
    out = feed(JitterBuffer(), range(200), start=65_500)
    assert [(tick, int(item.packet.payload)) for tick, item in out] == [(n, n) for n in range(200)]
    assert [item.restart for _, item in out] == [True] + [False] * 199


@pytest.mark.parametrize("burst", [1, 2, 3, 5, 20])
def test_a_hole_is_given_up_when_two_newer_packets_wait_and_lag_does_not_stay(burst: int) -> None:
    buffer = JitterBuffer()
    order = [n for n in range(100) if not 50 <= n < 50 + burst]
    out = feed(buffer, order)
    lags = [order[tick] - int(item.packet.payload) for tick, item in out]
    assert max(lags) == 1, "the first packet after the hole waits for the second, none longer"
    assert [item.lost for _, item in out if item.lost] == [burst]
    assert lags[-20:] == [0] * 20
    assert buffer.statistics.lost == burst and buffer.held == 0


def test_a_swap_costs_nothing() -> None:
    buffer = JitterBuffer()
    out = feed(buffer, [0, 1, 3, 2, 4, 5, 7, 6, 8])
    assert numbers(item for _, item in out) == list(range(9))
    assert buffer.statistics.reordered == 2
    assert buffer.statistics.lost == 0


def test_duplicates_and_late_packets_are_dropped_and_told_apart() -> None:
    buffer = JitterBuffer()
    out = feed(buffer, [0, 1, 1, 3, 3, 4, 5, 2, 2, 0, 6])
    assert numbers(item for _, item in out) == [0, 1, 3, 4, 5, 6]
    assert (buffer.statistics.late, buffer.statistics.duplicates) == (1, 4)


def test_a_hole_is_not_held_for_long_when_packets_are_rare() -> None:
    buffer = JitterBuffer()
    buffer.add(packet(0), 0)
    assert buffer.add(packet(2), 2 * TICKS) == []
    assert numbers(buffer.add(packet(3), 22 * TICKS)) == [2, 3]


def test_depth_follows_disorder_and_is_back_within_five_seconds() -> None:
    buffer, now, rnd = JitterBuffer(), 0, random.Random(1)
    arrivals = sorted((n * 20 + rnd.uniform(0, 100), n) for n in range(500))
    for ms, number in arrivals:
        now = round(ms * 48)
        buffer.add(packet(number), now)
    assert MIN_DEPTH < buffer.depth <= MAX_DEPTH
    lost_early = buffer.statistics.lost
    assert lost_early <= 10, "after the first surprises nothing is given up"
    number = 500
    while buffer.depth > MIN_DEPTH:
        number += 1
        now += TICKS
        buffer.add(packet(number), now)
    assert (number - 500) * 20 <= 5_000


def test_one_stray_packet_is_no_jitter() -> None:
    buffer = JitterBuffer()
    feed(buffer, [0, 1, 3, 4, 5, 6, 2, 7, 8])
    assert buffer.depth == MIN_DEPTH


def test_jitter_is_rfc_3550s() -> None:
    calm, shaky, rnd = JitterBuffer(), JitterBuffer(), random.Random(2)
    for n in range(500):
        calm.add(packet(n), n * TICKS)
        shaky.add(packet(n), n * TICKS + rnd.choice((0, 480)))
    assert calm.statistics.jitter == 0
    # Half of all neighbours differ by 480 samples.
    assert shaky.statistics.jitter == pytest.approx(240, rel=0.5)


@pytest.mark.parametrize("jump", [MAX_JUMP + 1, 5_000, -MAX_JUMP - 1, -5_000, 32_000])
def test_a_far_number_begins_the_stream_anew(jump: int) -> None:
    buffer = JitterBuffer()
    for n in range(10_000, 10_010):
        buffer.add(packet(n), n * TICKS)
    buffer.add(packet(10_012), 10_012 * TICKS)
    first = buffer.add(packet(10_012 + jump), 10_013 * TICKS)
    assert numbers(first) == [10_012, 10_012 + jump], "what waited goes first"
    assert [item.restart for item in first] == [False, True]
    assert numbers(buffer.add(packet(10_013 + jump), 10_014 * TICKS)) == [10_013 + jump]


def test_a_jump_within_reach_is_loss_or_lateness() -> None:
    buffer = JitterBuffer()
    feed(buffer, [0, 100, 101])
    assert (buffer.statistics.restarts, buffer.statistics.lost) == (0, 99)


def test_a_new_source_takes_over_and_stragglers_of_the_old_one_do_not() -> None:
    buffer = JitterBuffer()
    for n in range(5):
        buffer.add(packet(n), n * TICKS)
    assert [item.restart for item in buffer.add(packet(900, ssrc=2), 5 * TICKS)] == [True]
    assert buffer.add(packet(5), 6 * TICKS) == []
    assert numbers(buffer.add(packet(901, ssrc=2), 7 * TICKS)) == [901]
    assert buffer.statistics.restarts == 1
    back = buffer.add(packet(60), 70 * TICKS)
    assert numbers(back) == [60] and back[0].restart, "after a while it may come back"


def test_flush_gives_what_waits() -> None:
    buffer = JitterBuffer()
    feed(buffer, [0, 2])
    assert [(int(r.packet.payload), r.lost) for r in buffer.flush()] == [(2, 1)]
    assert buffer.flush() == [] and JitterBuffer().flush() == []


@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 65_535)), max_size=300),
    st.integers(0, 65_535),
)
def test_whatever_comes_order_holds_and_little_waits(
    moves: list[tuple[int, int]], start: int
) -> None:
    buffer, last, now = JitterBuffer(), -1, 0
    for shift, _ in moves:
        now += 100
        number = 1_000 + len(moves) + shift % 40
        for item in buffer.add(packet(number, start=start), now):
            place = int(item.packet.payload)
            assert place > last
            last = place
        assert buffer.held <= buffer.depth + MAX_DEPTH


@given(st.lists(st.tuples(st.integers(0, 65_535), st.integers(0, 3)), max_size=200))
def test_it_never_raises_for_what_a_peer_sends(packets: list[tuple[int, int]]) -> None:
    buffer = JitterBuffer()
    for now, (sequence, ssrc) in enumerate(packets):
        buffer.add(Packet(sequence, sequence * 7_919_777 % (1 << 32), b"x", ssrc), now * 500)
        assert buffer.held <= MAX_DEPTH


def test_every_packet_is_released_or_counted() -> None:
    rnd, buffer, sent = random.Random(3), JitterBuffer(), 0
    for ms, n in sorted((n * 20 + rnd.uniform(0, 150), n) for n in range(3_000)):
        if rnd.random() < 0.1 and n:
            continue
        sent += 1
        buffer.add(packet(n), round(ms * 48))
    buffer.flush()
    counts = buffer.statistics
    assert counts.released + counts.late + counts.duplicates == sent == counts.received
    assert counts.released + counts.lost <= 3_000


@pytest.mark.parametrize("bad", [{"rate": 0}, {"max_depth": 1}])
def test_bad_values_are_named(bad: dict[str, int]) -> None:
    with pytest.raises(MediaValueError, match=next(iter(bad))):
        JitterBuffer(**bad)
