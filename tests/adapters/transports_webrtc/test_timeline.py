"""From packets to the call's input timeline: jitter buffer, concealment and intake together.

On a told clock, with a decoder that only counts: minutes of a bad network in a moment.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from voxglove.media.format import PIPELINE
from voxglove.media.frame import AudioFrame
from voxglove.media.intake import Intake
from voxglove.media.jitter import MIN_DEPTH, RTP_RATE, JitterBuffer, Packet
from voxglove.media.plc import Concealer

Tell = Callable[[str], None]

STEP_S = 0.02
MINUTE = 3_000
"""Packets."""


class Counting:
    """Decodes every packet to 20 ms."""

    rate = PIPELINE.rate

    def decode(self, payload: bytes) -> bytes:
        return bytes(640)

    def conceal(self, samples: int) -> bytes:
        return bytes(2 * samples)

    def fec(self, payload: bytes, samples: int) -> bytes:
        return bytes(2 * samples)


@dataclass
class Outcome:
    """`late_ms`: how far the timeline lay behind what the sender had said, at each packet."""

    intake: Intake
    buffer: JitterBuffer
    late_ms: list[float]


class Receiver:
    """The call's reader and its pacing, without a loop."""

    def __init__(self) -> None:
        self.buffer = JitterBuffer()
        self.intake = Intake(PIPELINE)
        self.intake.attach(PIPELINE.rate, gapless=False, now=0.0)
        self._concealer = Concealer(Counting())
        self._wake = STEP_S

    def fill_until(self, now: float) -> None:
        while (wake := max(self.intake.fill_due() or now, self._wake)) < now:
            list(self.intake.fill(wake))
            self._wake = wake + STEP_S

    def take(self, number: int, now: float) -> None:
        packet = Packet(number % 65_536, number * 960 % (1 << 32), b"x")
        for ready in self.buffer.add(packet, round(now * RTP_RATE)):
            for piece in self._concealer.feed(ready):
                if piece.kind == "silence":
                    list(self.intake.gap(piece.samples, now))
                else:
                    list(self.intake.take(AudioFrame(piece.pcm), now))


def live_through(
    packets: int, *, loss: float = 0, burst: int = 1, jitter_ms: float = 2, ppm: float = 0
) -> Outcome:
    rnd, receiver, late = random.Random(1), Receiver(), []
    arrivals, skip = [], 0
    for number in range(packets):
        if skip:
            skip -= 1
        elif number and rnd.random() < loss:
            skip = rnd.randrange(burst)
        else:
            sent = number * STEP_S * (1 + ppm / 1e6)
            arrivals.append((sent + rnd.uniform(0, jitter_ms / 1000), number))
    for now, number in sorted(arrivals):
        receiver.fill_until(now)
        receiver.take(number, now)
        late.append(now * 1000 - PIPELINE.ms(receiver.intake.at))
    return Outcome(receiver.intake, receiver.buffer, late)


@pytest.mark.parametrize(
    ("loss", "burst", "jitter_ms", "shed_percent"),
    [
        (0, 1, 2, 0),
        (0.01, 1, 2, 0),
        (0.05, 1, 2, 0),
        (0.10, 1, 2, 0.2),
        (0.20, 1, 2, 0.8),
        (0.03, 5, 2, 1.5),
        (0, 1, 100, 0),
        (0.05, 1, 50, 1),
    ],
)
def test_a_bad_network_neither_delays_nor_shortens_the_input(
    loss: float, burst: int, jitter_ms: float, shed_percent: float, tell: Tell
) -> None:
    got = live_through(MINUTE, loss=loss, burst=burst, jitter_ms=jitter_ms)
    counts = got.intake.statistics
    shed_ms, filled_ms = PIPELINE.ms(counts.shed), PIPELINE.ms(counts.filled)
    tell(
        f"a minute at {loss:.0%} loss, bursts to {burst}, {jitter_ms:.0f} ms jitter:"
        f" {filled_ms:.0f} ms filled, {shed_ms:.0f} ms shed, at most {max(got.late_ms):.0f} ms late"
    )
    assert max(got.late_ms) <= jitter_ms + 60
    assert PIPELINE.ms(got.intake.at) >= MINUTE * 20 - 60, "time never shrinks"
    assert shed_ms <= MINUTE * 20 * shed_percent / 100
    assert got.buffer.held <= got.buffer.depth


@pytest.mark.parametrize("ppm", [-200, 200])
def test_ten_minutes_of_a_skewed_clock_keep_the_delay_bounded(ppm: float) -> None:
    got = live_through(10 * MINUTE, loss=0.02, jitter_ms=30, ppm=ppm)
    assert max(got.late_ms) <= 90
    assert min(got.late_ms) >= -220, "nor does the timeline run away in front of the clock"
    assert PIPELINE.ms(got.intake.statistics.shed) <= 100
    assert got.buffer.depth == MIN_DEPTH
