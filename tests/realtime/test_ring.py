"""The caller's last seconds, and where the samples of a connection belong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.realtime.ring import Positions, Ring


def numbered(start: int, count: int) -> bytes:
    return (np.arange(start, start + count) % 65_536).astype("<u2").tobytes()


@given(
    capacity=st.integers(1, 50),
    pushes=st.lists(st.integers(0, 120), max_size=30),
    position=st.integers(-5, 3_000),
    limit=st.none() | st.integers(0, 60),
)
def test_it_gives_what_was_said_since_a_position_and_tells_what_is_lost(
    capacity: int, pushes: list[int], position: int, limit: int | None
) -> None:
    ring, total = Ring(capacity), 0
    for count in pushes:
        ring.push(numbered(total, count))
        total += count
    assert (ring.start, ring.end) == (max(0, total - capacity), total)
    start = min(max(position, total - capacity, 0), total)
    count = total - start if limit is None else min(limit, total - start)
    kept = ring.since(position, limit)
    assert kept.pcm == numbered(start, count)
    assert (kept.start, kept.end) == (start, start + count)
    assert kept.lost == max(0, start - max(position, 0))


def test_it_keeps_no_more_than_a_quarter_beyond_its_capacity() -> None:
    ring = Ring(1_000)
    for at in range(0, 100_000, 20):
        ring.push(numbered(at, 20))
    assert len(ring._pcm) <= 2 * 1_250


def test_half_a_sample_is_refused_whole() -> None:
    ring = Ring(10)
    with pytest.raises(MediaValueError, match="whole 16-bit samples"):
        ring.push(b"\0\0\0")
    assert ring.end == 0


def test_a_ring_of_nothing_is_refused() -> None:
    with pytest.raises(MediaValueError, match="capacity"):
        Ring(0)


def test_samples_of_a_connection_have_their_session_positions() -> None:
    places = Positions(1_000)
    places.add(100, 1_000)
    places.add(50, 1_100)
    places.add(30, None)  # silence of a pacer
    places.add(30, None)
    places.add(40, 1_150)
    places.add(10, 2_000)  # 810 were lost
    assert places.sent == 260
    expected = {0: 1_000, 99: 1_099, 149: 1_149, 150: 1_150, 180: 1_150, 210: 1_150, 220: 1_160}
    assert {sample: places.of(sample) for sample in expected} == expected
    assert (places.of(250), places.of(260)) == (2_000, 2_010)
    assert (places.of(-5), places.of(9_999)) == (1_000, 2_010)


def test_old_places_are_forgotten_one_by_one() -> None:
    places = Positions(0)
    for at in range(2_000):
        places.add(10, at * 20)
    assert places.of(19_995) == 1_999 * 20 + 5
    assert len(places._places) == Positions.PIECES
    first = 2_000 - Positions.PIECES
    assert places.of(0) == first * 20
