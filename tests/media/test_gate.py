"""The speech gate: each sample at most once, in order, from 800 ms before the onset."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.media.gate import Chunk, SpeechGate, joined

MS = 16
FRAME = 20 * MS


class Caller:
    """Feeds a ramp: each sample's value is its position, so mistakes show in the audio itself."""

    def __init__(self, gate: SpeechGate) -> None:
        self.gate = gate
        self.at = 0
        self.sent: list[Chunk] = []

    def speak(self, ms: int) -> None:
        for _ in range(ms // 20):
            frame = np.arange(self.at, self.at + FRAME).astype(np.int16)
            self.sent += self.gate.feed(self.at, frame)
            self.at += FRAME

    def open(self, start: int | None = None) -> None:
        self.sent += self.gate.open(start)

    def span(self) -> tuple[int, int]:
        """First and last position sent; fails unless every sample between came once, in order."""
        assert_contiguous(self.sent)
        return self.sent[0][0], self.sent[-1][0] + len(self.sent[-1][1])


def assert_contiguous(chunks: list[Chunk]) -> None:
    for (at, samples), (following, _) in zip(chunks, chunks[1:], strict=False):
        assert at + len(samples) == following
    first = chunks[0][0]
    audio = joined(chunks)
    assert np.array_equal(audio, np.arange(first, first + len(audio)).astype(np.int16))


def test_voice_row_013_gate_a_burst_that_is_never_confirmed_sends_nothing() -> None:
    caller = Caller(SpeechGate())
    caller.speak(2_000)
    caller.gate.hold(caller.at)
    caller.speak(240)
    caller.gate.cancel()
    caller.speak(2_000)
    assert caller.sent == []
    assert caller.gate.state == "closed"


def test_voice_row_014_gate_speech_comes_with_800_ms_before_its_onset() -> None:
    caller = Caller(SpeechGate())
    caller.speak(3_000)
    onset = caller.at - 96 * MS - 7
    caller.gate.hold(onset)
    caller.speak(160)
    caller.open()
    caller.speak(1_000)
    assert caller.span() == (onset - 800 * MS, caller.at)


def test_voice_row_014_gate_the_next_preroll_is_clipped_at_the_last_sample_sent() -> None:
    caller = Caller(SpeechGate())
    caller.speak(1_000)
    caller.open(caller.at)
    caller.speak(500)
    caller.gate.close()
    closed = caller.at
    caller.speak(300)
    caller.gate.hold(caller.at - 96 * MS)
    caller.open()
    caller.speak(100)
    assert caller.span() == (1_000 * MS - 800 * MS, caller.at)
    assert caller.at > closed


def test_voice_row_014_gate_a_cancelled_start_stays_in_reach_of_the_next_preroll() -> None:
    caller = Caller(SpeechGate())
    caller.speak(2_000)
    caller.gate.hold(caller.at)
    caller.speak(200)
    caller.gate.cancel()
    caller.speak(100)
    onset = caller.at
    caller.open(onset)
    assert caller.span() == (onset - 800 * MS, onset)


def test_voice_row_015_gate_pending_5_s_fails_open() -> None:
    caller = Caller(SpeechGate())
    caller.speak(1_000)
    caller.gate.hold(caller.at)
    caller.speak(4_980)
    assert caller.sent == []
    caller.speak(20)
    assert caller.gate.state == "open"
    caller.speak(100)
    assert caller.span() == (200 * MS, caller.at)


def test_voice_row_016_gate_close_empties_the_buffer() -> None:
    caller = Caller(SpeechGate())
    caller.speak(1_000)
    caller.open(caller.at)
    caller.speak(200)
    caller.gate.close()
    assert (caller.gate.state, caller.gate.buffered) == ("closed", 0)
    caller.gate.hold()
    caller.gate.close()
    assert caller.gate.buffered == 0


def test_an_open_gate_stays_open_under_cancel_and_hold() -> None:
    caller = Caller(SpeechGate())
    caller.open()
    caller.gate.cancel()
    caller.gate.hold(0)
    caller.speak(100)
    assert caller.gate.state == "open"
    assert caller.gate.open() == []
    assert caller.span() == (0, 100 * MS)


def test_memory_is_bounded_while_closed() -> None:
    caller = Caller(SpeechGate(preroll_ms=100))
    caller.speak(60_000)
    assert caller.gate.buffered <= 600 * MS


def test_samples_fed_twice_are_sent_once() -> None:
    gate = SpeechGate()
    gate.open()
    ramp = np.arange(1_000).astype(np.int16)
    sent = gate.feed(0, ramp[:600]) + gate.feed(300, ramp[300:]) + gate.feed(0, ramp)
    assert joined(sent).tolist() == ramp.tolist()


def test_reset_accepts_a_new_clock_and_bad_times_are_named() -> None:
    gate = SpeechGate()
    gate.feed(50_000, np.zeros(10, np.int16))
    gate.reset()
    gate.open()
    assert gate.feed(0, np.zeros(10, np.int16))[0][0] == 0
    with pytest.raises(MediaValueError, match="preroll_ms"):
        SpeechGate(preroll_ms=-1)


@given(st.lists(st.sampled_from("shocx"), max_size=60), st.integers(0, 300))
def test_in_any_order_no_sample_comes_twice_or_out_of_order(steps: list[str], lag: int) -> None:
    caller = Caller(SpeechGate(preroll_ms=100, max_pending_ms=200))
    for step in steps:
        if step == "s":
            caller.speak(60)
        elif step == "h":
            caller.gate.hold(caller.at - lag * MS)
        elif step == "o":
            caller.open(caller.at - lag * MS)
        elif step == "c":
            caller.gate.cancel()
        else:
            caller.gate.close()
    end = 0
    for at, samples in caller.sent:
        assert at >= end
        assert samples.tolist() == np.arange(at, at + len(samples)).astype(np.int16).tolist()
        end = at + len(samples)
