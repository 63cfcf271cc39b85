"""Clocks that differ, and bursts that come late: the input timeline stays where the clock is.

Ten virtual minutes a case, on a told clock, with a decoder that only counts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.adapters.transports_webrtc.network import (
    FRAME,
    HEAD_START,
    STEP_S,
    Arrivals,
    Reader,
    late_at,
    numbered,
    over,
)
from voxglove.media import intake as intake_module
from voxglove.media.impair import Impairment
from voxglove.media.intake import AHEAD_MS
from voxglove.media.jitter import MAX_DEPTH, MIN_DEPTH, RTP_RATE, JitterBuffer

Tell = Callable[[str], None]

MINUTE = 3_000
"""Packets."""


class Counting:
    """Decodes every packet to 20 ms of the same sound."""

    rate = 16_000

    def decode(self, payload: bytes) -> bytes:
        return b"\1\0" * FRAME

    def conceal(self, samples: int) -> bytes:
        return b"\1\0" * samples

    def fec(self, payload: bytes, samples: int) -> bytes:
        return b"\1\0" * samples


def call_over(arrivals: Arrivals) -> tuple[Reader, list[float], list[float]]:
    """The reader, how late its timeline was at each packet, and the delay it reported then."""
    reader, late, told = Reader(Counting()), list[float](), list[float]()
    for now, packet in arrivals:
        reader.take(packet, now)
        late.append(late_at(now, reader.intake.at))
        told.append(reader.stream.report().delay_ms)
    return reader, late, told


@pytest.mark.parametrize("ppm", [-200, 200])
@pytest.mark.parametrize("bad", [False, True], ids=["calm", "bad"])
def test_ten_minutes_of_skew_keep_delay_buffer_and_timeline_bounded(
    ppm: int, bad: bool, tell: Tell
) -> None:
    what = Impairment(
        skew_ppm=ppm, loss=0.03 * bad, burst=3, jitter_ms=40 * bad, duplicate=0.01 * bad
    )
    reader, late, told = call_over(over(numbered([b"x"] * 10 * MINUTE), what))
    counts, jitter = reader.intake.statistics, reader.stream.jitter
    tell(
        f"10 min at {ppm:+} ppm{', loss and jitter' if bad else ''}: timeline"
        f" {min(late):.0f}..{max(late):.0f} ms late, reported delay up to {max(told):.0f} ms,"
        f" {counts.filled // 16} ms filled, {counts.shed // 16} ms shed,"
        f" clock followed by {counts.skew_ms:.0f} ms"
    )
    assert jitter.held <= MAX_DEPTH and jitter.statistics.max_depth <= MAX_DEPTH
    # Against our clock: the lead allowed, and what a faster sender gained beyond it.
    assert -AHEAD_MS - 20 - max(0, counts.skew_ms) <= min(late)
    assert max(late) <= 120 + 100 * bad and abs(counts.skew_ms) <= 120
    assert max(told) <= 15 + 140 * bad, "what is reported follows the clock and stays bounded"
    assert counts.shed <= counts.filled <= 16 * (0 if not bad else 1_500)
    assert bad or reader.intake.at == 10 * MINUTE * FRAME


def test_calm_skew_neither_drops_nor_stretches_a_sample() -> None:
    """So nothing of it can be heard: it is the clock of the timeline that moves."""
    for ppm in (-200, 200):
        reader, _, _ = call_over(over(numbered([b"x"] * 2 * MINUTE), Impairment(skew_ppm=ppm)))
        assert np.all(reader.heard == 1) and len(reader.heard) == 2 * MINUTE * FRAME


def test_numbers_that_wrap_under_skew_are_one_stream() -> None:
    """25 minutes: the sequence numbers wrap twice, the timestamps once."""
    buffer, released = JitterBuffer(), 0
    for sent, packet in numbered([b"x"] * 25 * MINUTE):
        released += len(buffer.add(packet, round(sent * 1.0002 * RTP_RATE) + HEAD_START))
        assert buffer.held == 0
    assert released == 25 * MINUTE and buffer.statistics.restarts == 0
    assert buffer.depth == MIN_DEPTH and buffer.delay <= 0.015 * RTP_RATE


def late_bursts(stall_ms: int) -> Arrivals:
    """A minute in which the network stands still every ten seconds, then brings all at once."""
    stall = stall_ms / 1000
    return [
        (sent - sent % 10 + 5 + stall if 5 <= sent % 10 < 5 + stall else sent, packet)
        for sent, packet in numbered([b"x"] * MINUTE)
    ]


BAD: dict[str, Callable[[], Arrivals]] = {
    "a stall of 120 ms every 10 s": lambda: late_bursts(120),
    "a stall of 200 ms every 10 s": lambda: late_bursts(200),
    "a stall of 600 ms every 10 s": lambda: late_bursts(600),
    "jitter to 150 ms": lambda: [
        *over(numbered([b"x"] * MINUTE), Impairment(jitter_ms=150)),
    ],
    "10 % lost in bursts to 5": lambda: [
        *over(numbered([b"x"] * MINUTE), Impairment(loss=0.1, burst=5)),
    ],
}


def test_the_lead_allowed_sheds_far_less_speech_than_a_shorter_one(
    monkeypatch: pytest.MonkeyPatch, tell: Tell
) -> None:
    """The data behind AHEAD_MS: real speech shed in a minute, by how far it may run ahead."""
    leads = (100, AHEAD_MS, 220)
    lines, shed = [f"{'ms of speech shed in a minute':32}" + "".join(f"{n:>7}" for n in leads)], {}
    for name, arrivals in BAD.items():
        for lead in leads:
            monkeypatch.setattr(intake_module, "AHEAD_MS", lead)
            reader, late, _ = call_over(arrivals())
            shed[name, lead] = reader.intake.statistics.shed // 16
            assert min(late) >= -lead - 20
        lines.append(f"{name:32}" + "".join(f"{shed[name, lead]:7}" for lead in leads))
    tell("\n".join(lines))
    for name in ("a stall of 120 ms every 10 s", "jitter to 150 ms"):
        assert shed[name, AHEAD_MS] == 0 < shed[name, 100]
    assert shed["10 % lost in bursts to 5", AHEAD_MS] * 5 <= shed["10 % lost in bursts to 5", 100]


def test_a_hole_under_a_slow_clock_is_no_longer_than_it_lasted() -> None:
    arrivals = over(numbered([b"x"] * 8 * MINUTE), Impairment(skew_ppm=200))
    reader, _, _ = call_over(arrivals)
    before, now = len(reader.frames), arrivals[-1][0]
    reader.quiet_until(now + 0.5)
    assert 480 - 40 <= (len(reader.frames) - before) * 20 <= 500 + 20
    assert reader.intake.at / 16 <= (now + 0.5 + STEP_S) * 1000
