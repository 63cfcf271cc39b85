"""Concealment: what a hole is filled with, and that time never shrinks."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.media.jitter import JitterBuffer, Packet, Ready
from voxglove.media.plc import CodecError, Concealer, Piece

TICKS = 960


class CountingDecoder:
    """Gives 20 ms per packet (or what `lengths` says) and notes what it was asked for."""

    rate = 16_000

    def __init__(self, samples: int = 320, fails: frozenset[str] = frozenset()) -> None:
        self.samples = samples
        self.fails = fails
        self.asked: list[str] = []

    def decode(self, payload: bytes) -> bytes:
        return self._give("decode", self.samples)

    def conceal(self, samples: int) -> bytes:
        return self._give("conceal", samples)

    def fec(self, payload: bytes, samples: int) -> bytes:
        return self._give("fec", samples)

    def _give(self, what: str, samples: int) -> bytes:
        self.asked.append(what)
        if what in self.fails:
            raise CodecError(what)
        return bytes(2 * samples)


def ready(number: int, lost: int = 0, *, restart: bool = False, payload: bytes = b"x") -> Ready:
    return Ready(Packet(number % 65_536, number * TICKS % (1 << 32), payload), lost, restart)


def kinds(pieces: list[Piece]) -> list[tuple[str, int]]:
    return [(piece.kind, piece.samples) for piece in pieces]


def test_a_lost_packet_comes_out_of_the_next_ones_redundancy() -> None:
    concealer = Concealer(CountingDecoder())
    concealer.feed(ready(0, restart=True))
    assert kinds(concealer.feed(ready(2, 1))) == [("fec", 320), ("decoded", 320)]


def test_all_but_the_last_of_a_burst_are_concealed() -> None:
    concealer = Concealer(CountingDecoder())
    concealer.feed(ready(0, restart=True))
    pieces = kinds(concealer.feed(ready(4, 3)))
    assert pieces == [("concealed", 320)] * 2 + [("fec", 320), ("decoded", 320)]


def test_concealment_ends_after_ten_frames_and_silence_keeps_the_time() -> None:
    concealer = Concealer(CountingDecoder())
    concealer.feed(ready(0, restart=True))
    pieces = kinds(concealer.feed(ready(31, 30)))
    assert pieces[:10] == [("concealed", 320)] * 10
    assert pieces[10:] == [("silence", 19 * 320), ("fec", 320), ("decoded", 320)]
    assert all(not piece.pcm for piece in concealer.feed(ready(40)) if piece.kind == "silence")


def test_a_pause_of_the_sender_is_silence_and_asks_no_decoder() -> None:
    decoder = CountingDecoder()
    concealer = Concealer(decoder)
    concealer.feed(ready(0, restart=True))
    assert kinds(concealer.feed(ready(21))) == [("silence", 20 * 320), ("decoded", 320)]
    assert decoder.asked == ["decode", "decode"]


@pytest.mark.parametrize("number", [5_000_000, 2, 0])
def test_a_stream_that_begins_anew_or_counts_back_fills_nothing(number: int) -> None:
    concealer = Concealer(CountingDecoder())
    concealer.feed(ready(2, restart=True))
    assert kinds(concealer.feed(ready(number, restart=number == 2))) == [("decoded", 320)]


def test_the_timestamp_may_wrap() -> None:
    concealer = Concealer(CountingDecoder())
    last = (1 << 32) - TICKS
    concealer.feed(Ready(Packet(1, last, b"x"), restart=True))
    assert kinds(concealer.feed(Ready(Packet(3, TICKS, b"x"), 1))) == [
        ("fec", 320),
        ("decoded", 320),
    ]


def test_long_packets_are_recovered_at_their_length() -> None:
    concealer = Concealer(CountingDecoder(960))
    concealer.feed(ready(0, restart=True))
    assert kinds(concealer.feed(ready(6, 1))) == [("fec", 960), ("decoded", 960)]


def test_an_odd_hole_is_silence_to_the_sample() -> None:
    concealer = Concealer(CountingDecoder())
    concealer.feed(Ready(Packet(1, 0, b"x"), restart=True))
    pieces = concealer.feed(Ready(Packet(3, 960 + 3 * 345, b"x"), 1))
    assert sum(piece.samples for piece in pieces[:-1]) == 345


@pytest.mark.parametrize("fails", ["decode", "conceal", "fec"])
def test_a_decoder_that_refuses_costs_no_time(fails: str) -> None:
    concealer = Concealer(CountingDecoder(fails=frozenset({fails})))
    pieces = [
        p for n, lost in ((0, 0), (1, 0), (5, 3), (6, 0)) for p in concealer.feed(ready(n, lost))
    ]
    assert sum(piece.samples for piece in pieces) == 7 * 320
    assert concealer.statistics.refused == (4 if fails == "decode" else 0)


def test_padding_has_no_time() -> None:
    concealer = Concealer(CountingDecoder())
    concealer.feed(ready(0, restart=True))
    assert concealer.feed(ready(0, payload=b"")) == []
    assert kinds(concealer.feed(ready(1))) == [("decoded", 320)]


@given(st.lists(st.integers(0, 99), max_size=60, unique=True), st.integers(0, 65_535))
def test_time_never_shrinks(lost: list[int], start: int) -> None:
    buffer, concealer, samples = JitterBuffer(), Concealer(CountingDecoder()), 0
    for n in range(103):
        if n and n < 100 and n in lost:
            continue
        stamp = (start * TICKS + n * TICKS) % (1 << 32)
        for item in buffer.add(Packet((start + n) % 65_536, stamp, b"x"), n * TICKS):
            samples += sum(piece.samples for piece in concealer.feed(item))
    assert samples == 103 * 320


def test_ten_minutes_of_skewed_lossy_jittery_packets_stay_bounded() -> None:
    for ppm in (-200, 200):
        rnd, worst = random.Random(ppm), 0.0
        buffer, concealer, samples = JitterBuffer(), Concealer(CountingDecoder()), 0
        sent = [(n * 20 * (1 + ppm / 1e6) + rnd.uniform(0, 60), n) for n in range(30_000)]
        for ms, n in sorted(sent):
            if n and n < 29_990 and rnd.random() < 0.05:
                continue
            packet = Packet(n % 65_536, n * TICKS % (1 << 32), b"x")
            for item in buffer.add(packet, round(ms * 48)):
                samples += sum(piece.samples for piece in concealer.feed(item))
            due = ms / (1 + ppm / 1e6) * 16
            worst = max(worst, due - samples)
        for item in buffer.flush():
            samples += sum(piece.samples for piece in concealer.feed(item))
        assert samples == 30_000 * 320, "every millisecond the sender lived through"
        # 60 ms of jitter, a hole of a few packets at the depth it has then; no drift on top.
        assert worst / 16 <= 60 + 10 * 20


def test_the_clock_must_be_a_multiple_of_the_rate() -> None:
    with pytest.raises(MediaValueError, match="clock_rate"):
        Concealer(CountingDecoder(), clock_rate=44_100)
