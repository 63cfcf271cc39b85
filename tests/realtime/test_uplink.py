"""The caller's sound on its way to one connection, at once or in step with time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.realtime.ring import Ring
from voxglove.realtime.uplink import Pacing, Uplink

RATE = 16_000
FRAME = RATE // 50


def numbered(start: int, count: int) -> bytes:
    """Samples that are all different from silence."""
    return (np.arange(start, start + count) % 65_535 + 1).astype("<u2").tobytes()


class Sent:
    """An uplink on a ring of 12 s, and what it sent when."""

    def __init__(self, *, said: int = 0, start: int = 0, pacing: Pacing | None = None) -> None:
        self.now = 100.0
        self.ring = Ring(12 * RATE)
        self.ring.push(numbered(0, said))
        self.chunks: list[tuple[float, bytes]] = []
        self.uplink = Uplink(self.ring, RATE, self._take, start=start, pacing=pacing, now=self.now)

    def _take(self, pcm: bytes) -> None:
        self.chunks.append((self.now, pcm))

    @property
    def pcm(self) -> bytes:
        return b"".join(pcm for _, pcm in self.chunks)

    def say(self, samples: int) -> None:
        self.ring.push(numbered(self.ring.end, samples))
        self.uplink.pump(self.now)

    def run(self, ticks: int, *, says: int = FRAME) -> None:
        """20 ms each, in which the host gives `says` samples."""
        for _ in range(ticks):
            self.now += 0.02
            self.ring.push(numbered(self.ring.end, says))
            self.uplink.pump(self.now)

    def samples(self, since: float) -> int:
        return sum(len(pcm) // 2 for at, pcm in self.chunks if at >= since)


def words(pcm: bytes) -> bytes:
    """`pcm` without the silence that was put in."""
    samples = np.frombuffer(pcm, "<u2")
    return bytes(samples[samples != 0])


def test_a_replay_goes_out_at_once_in_pieces_and_live_sound_follows() -> None:
    sent = Sent(said=RATE, start=4_000)
    sent.uplink.pump(sent.now)
    sent.say(FRAME)
    assert sent.pcm == numbered(4_000, RATE - 4_000 + FRAME)
    assert max(len(pcm) for _, pcm in sent.chunks) == RATE // 10 * 2
    assert sent.chunks[-1][1] == numbered(RATE, FRAME)


def test_paced_frames_go_out_whole_when_they_come() -> None:
    sent = Sent(pacing=Pacing())
    sent.run(500)
    assert [len(pcm) for _, pcm in sent.chunks] == [2 * FRAME] * 500
    assert sent.pcm == numbered(0, 500 * FRAME)


def test_a_paced_replay_catches_up_at_twice_the_speed_and_loses_nothing() -> None:
    sent = Sent(said=4 * RATE, pacing=Pacing())
    start = sent.now
    sent.run(210)
    assert sent.pcm == numbered(0, 4 * RATE + 210 * FRAME)  # 4 s behind, twice as fast: 4 s
    for second in range(4):
        until = sum(
            len(p) // 2 for at, p in sent.chunks if start + second <= at < start + second + 1
        )
        assert until <= 2.1 * RATE
    before = sent.now
    sent.run(100)
    assert sent.samples(before) <= 101 * FRAME


def test_a_full_ring_is_replayed_whole_while_the_caller_goes_on() -> None:
    sent = Sent(said=13 * RATE, start=RATE, pacing=Pacing())
    sent.uplink.pump(sent.now)
    sent.run(620)
    assert sent.pcm == numbered(RATE, 12 * RATE + 620 * FRAME)


def test_silence_fills_in_for_a_host_that_gives_nothing() -> None:
    sent = Sent(pacing=Pacing())
    sent.run(50)
    sent.run(9, says=0)
    assert sent.pcm == numbered(0, 50 * FRAME)
    muted = sent.now
    sent.run(100, says=0)
    quiet = sent.pcm[50 * FRAME * 2 :]
    assert not any(quiet)
    assert abs(len(quiet) // 2 - 109 * FRAME) <= 2 * FRAME
    gaps = [b - a for (a, _), (b, _) in zip(sent.chunks[55:], sent.chunks[56:], strict=False)]
    assert sent.now > muted and max(gaps) < 0.03
    sent.run(50)
    assert words(sent.pcm) == numbered(0, 100 * FRAME)


def test_silence_waits_anew_each_time_the_host_has_spoken() -> None:
    sent = Sent(pacing=Pacing())
    sent.run(50)
    sent.run(50, says=0)
    sent.run(50)
    count = len(sent.chunks)
    sent.run(8, says=0)
    assert len(sent.chunks) == count
    sent.run(4, says=0)
    assert len(sent.chunks) > count


def test_late_sound_is_sent_late_and_whole() -> None:
    sent = Sent(pacing=Pacing())
    sent.run(50)
    sent.run(7, says=0)
    sent.now += 0.02
    sent.say(8 * FRAME)
    sent.run(50)
    assert sent.pcm == numbered(0, 108 * FRAME)


def test_positions_skip_the_silence_that_was_put_in() -> None:
    sent = Sent(said=RATE, start=RATE, pacing=Pacing())
    sent.run(50)
    sent.run(50, says=0)
    sent.run(50)
    assert sent.uplink.position_of(0) == RATE
    assert sent.uplink.position_of(500) == RATE + 8_000
    assert abs(sent.uplink.position_of(1_500) - 2 * RATE) <= FRAME
    assert sent.uplink.position_of(10_000) == 3 * RATE


@given(
    steps=st.lists(st.tuples(st.floats(0.001, 0.5), st.integers(0, 1_600)), max_size=20),
    said=st.integers(0, RATE) | st.just(12 * RATE - 10_000),
)
def test_no_sample_is_lost_or_sent_twice_whatever_the_host_does(
    steps: Sequence[tuple[float, int]], said: int
) -> None:
    sent = Sent(said=said, pacing=Pacing())
    for seconds, count in steps:
        sent.now += seconds
        sent.say(count)
    sent.now += 0.02
    for _ in range(60):  # silence is filled in by the second
        sent.now += 0.2
        sent.say(0)
    assert words(sent.pcm) == numbered(0, sent.ring.end)


@pytest.mark.parametrize("values", [{"catch_up": 1.0}, {"fill_ms": 10}, {"slack_ms": -1}])
def test_pacing_that_cannot_be_kept_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(MediaValueError):
        Pacing(**values)  # type: ignore[arg-type]
