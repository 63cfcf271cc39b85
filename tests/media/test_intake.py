"""One unbroken input stream out of holes, bursts, drift and odd pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from voxglove.media.errors import MediaValueError
from voxglove.media.format import AudioFormat
from voxglove.media.frame import AudioFrame
from voxglove.media.intake import AHEAD_MS, Intake
from voxglove.media.resample import Resampler

RATE = 16_000


class Feed:
    """An Intake with the time it is told, and everything it gave."""

    def __init__(self, rate: int = RATE, *, gapless: bool = False) -> None:
        self.intake = Intake(AudioFormat(RATE))
        self.rate = rate
        self.now = 0.0
        self.frames: list[AudioFrame] = []
        self.intake.attach(rate, gapless=gapless, now=0.0)

    def take(self, pcm: NDArray[np.int16], source: str | None = None) -> None:
        frame = AudioFrame(pcm.tobytes(), AudioFormat(self.rate), 0, source)
        self._keep(self.intake.take(frame, self.now))

    def live(self, ms: int, value: int = 1, *, step: float = 0.02) -> None:
        """A carrier that delivers 20 ms, every `step` seconds."""
        for _ in range(ms // 20):
            self.now += step
            self.take(np.full(self.rate // 50, value, np.int16))
            self.look()

    def quiet(self, ms: int) -> None:
        """A carrier that delivers nothing, under a call that looks every 20 ms."""
        for _ in range(ms // 20):
            self.now += 0.02
            self.look()

    def look(self) -> None:
        self._keep(self.intake.fill(self.now))

    def _keep(self, frames) -> None:  # type: ignore[no-untyped-def]
        for frame in frames:
            assert frame.samples == 320 and frame.format == AudioFormat(RATE)
            assert frame.at == 320 * len(self.frames)
            self.frames.append(frame)

    @property
    def pcm(self) -> NDArray[np.int16]:
        return np.concatenate([frame.array() for frame in self.frames])

    @property
    def ahead_ms(self) -> float:
        return self.intake.at / RATE * 1000 - self.now * 1000


def test_hole_is_filled_after_60_ms_and_then_paced_by_the_clock() -> None:
    feed = Feed()
    feed.live(200)
    counts = []
    for _ in range(10):
        feed.quiet(20)
        counts.append(len(feed.frames))
    assert counts == [10, 10, 13, 14, 15, 16, 17, 18, 19, 20]
    assert feed.intake.statistics.filled == 10 * 320


def test_short_hole_is_left_to_the_late_packet() -> None:
    feed = Feed()
    feed.live(200)
    feed.quiet(40)
    feed.now += 0.02
    for _ in range(3):
        feed.take(np.ones(320, np.int16))
    feed.look()
    assert feed.intake.statistics.filled == 0 and len(feed.frames) == 13


def test_late_burst_is_shed_by_no_more_than_was_filled() -> None:
    feed = Feed()
    feed.live(1_000)
    feed.quiet(600)
    for _ in range(30):
        feed.take(np.full(320, 2, np.int16))
    feed.live(1_000, 3)
    assert feed.intake.statistics.filled == 600 * 16
    kept = feed.intake.statistics.filled - feed.intake.statistics.shed
    assert (AHEAD_MS - 20) * 16 <= kept <= AHEAD_MS * 16, "a lead for the next burst"
    assert 0 <= feed.ahead_ms <= AHEAD_MS
    assert np.count_nonzero(feed.pcm == 3) == 16_000, "what was on time is never shed"


def test_sound_after_a_long_silence_is_not_paid_for_it() -> None:
    feed = Feed()
    feed.live(200)
    feed.quiet(60_000)  # discontinuous transmission: nobody spoke for a minute
    feed.live(6_000, 2)
    for _ in range(8):  # jitter: 160 ms at once, much later
        feed.take(np.full(320, 3, np.int16))
    feed.live(200, 4)
    assert feed.intake.statistics.shed == 0
    assert abs(feed.ahead_ms) <= 200


def test_bursty_carrier_loses_nothing_and_runs_ahead_by_one_burst_only() -> None:
    feed = Feed()
    for n in range(100):
        feed.quiet(100)
        for _ in range(5):
            feed.take(np.full(320, n + 1, np.int16))
    assert np.count_nonzero(feed.pcm) == 100 * 1_600
    assert feed.ahead_ms <= AHEAD_MS + 20


@pytest.mark.parametrize(("ppm", "ms"), [(-200, 600_000), (200, 600_000), (-1_500, 300_000)])
def test_drifting_clock_stays_bounded_and_untouched(ppm: int, ms: int) -> None:
    feed = Feed()
    feed.live(ms, step=0.02 / (1 + ppm * 1e-6))
    assert feed.intake.statistics.filled == feed.intake.statistics.shed == 0
    assert len(feed.frames) == ms // 20
    before = len(feed.frames)
    feed.quiet(400)
    filled = (len(feed.frames) - before) * 20
    lead = AHEAD_MS if ppm > 0 else 0
    assert 400 - lead - 40 <= filled <= 400 + 20, "a hole is as long as it lasts, less the lead"
    feed.live(10_000, step=0.02 / (1 + ppm * 1e-6))
    assert abs(feed.ahead_ms - feed.intake.statistics.skew_ms) <= AHEAD_MS + 20
    assert feed.intake.statistics.shed == 0


@pytest.mark.parametrize("ppm", [-200, 200])
def test_the_skew_that_was_followed_is_reported(ppm: int) -> None:
    feed = Feed()
    feed.live(1_200_000, step=0.02 / (1 + ppm * 1e-6))
    drifted = 1_200_000 * ppm * 1e-6
    told = feed.intake.statistics.skew_ms
    assert abs(told - drifted) <= AHEAD_MS + 1 and told * ppm > 0


def test_jitter_is_not_taken_for_a_slow_clock() -> None:
    feed = Feed()
    feed.live(20_000)
    for _ in range(100):  # every other packet comes with the next one
        feed.now += 0.04
        feed.take(np.ones(320, np.int16))
        feed.take(np.ones(320, np.int16))
        feed.look()
    before = len(feed.frames)
    feed.quiet(1_000)
    assert (len(feed.frames) - before) * 20 >= 1_000 - 20


def test_frames_that_silently_go_missing_are_made_up_for_at_the_next_hole() -> None:
    feed = Feed()
    for _ in range(100):
        feed.live(100)
        feed.quiet(20)  # lost on the way, too short to be noticed
    feed.quiet(400)
    assert -AHEAD_MS - 20 <= feed.ahead_ms <= 0, "the timeline lags by no more than the bound"


def test_gap_signal_and_filled_silence_are_the_same_time() -> None:
    feed = Feed()
    feed.live(200)
    feed.quiet(200)
    feed._keep(feed.intake.gap(200 * 16, feed.now))
    assert feed.ahead_ms == pytest.approx(0, abs=20)
    feed._keep(feed.intake.gap(40 * 16, feed.now))
    assert feed.ahead_ms == pytest.approx(40, abs=20)
    with pytest.raises(MediaValueError, match="0 or more"):
        list(feed.intake.gap(-1, feed.now))


def test_loop_stall_then_backlog_doubles_nothing() -> None:
    feed = Feed()
    feed.live(1_000)
    feed.now += 0.5  # the loop was held; what came meanwhile is delivered before anyone looks
    for _ in range(25):
        feed.take(np.full(320, 2, np.int16))
    feed.look()
    feed.live(1_000, 3)
    assert len(feed.frames) == 125 and feed.intake.statistics.filled == 0
    assert np.count_nonzero(feed.pcm == 2) == 8_000


def test_gapless_carrier_is_never_filled_until_it_is_gone() -> None:
    feed = Feed(gapless=True)
    feed.live(200)
    feed.quiet(1_000)
    assert feed.intake.fill_due() is None and len(feed.frames) == 10
    feed.intake.detach()
    feed.quiet(20)
    assert feed.ahead_ms == pytest.approx(0, abs=20)


def test_positions_go_on_over_a_new_carrier_of_another_rate() -> None:
    feed = Feed(48_000)
    feed.live(400)
    feed.intake.detach()
    feed.quiet(1_000)
    feed.rate = 8_000
    feed.intake.attach(8_000, gapless=False, now=feed.now)
    feed.live(400)
    assert feed.ahead_ms == pytest.approx(0, abs=20)
    assert feed.intake.statistics.shed == 0


def test_frame_of_a_rate_the_carrier_did_not_promise_is_refused() -> None:
    feed = Feed(8_000)
    with pytest.raises(MediaValueError, match="8000 Hz"):
        list(feed.intake.take(AudioFrame(bytes(640), AudioFormat(48_000)), 0.0))


def test_channels_are_mixed_and_the_speaker_is_kept() -> None:
    intake = Intake(AudioFormat(RATE))
    intake.attach(RATE, gapless=True, now=0.0)
    pcm = np.tile(np.array([[100, 300]], np.int16), (320, 1))
    frames = list(intake.take(AudioFrame(pcm.tobytes(), AudioFormat(RATE, 2), 0, "ann"), 0.0))
    assert set(frames[0].array()) == {200} and frames[0].source == "ann"


@given(
    st.sampled_from([8_000, 16_000, 24_000, 48_000, 44_100]),
    st.lists(st.integers(1, 3_000), min_size=1, max_size=30),
)
def test_any_chunking_gives_the_same_bits_and_the_exact_length(rate: int, sizes: list[int]) -> None:
    pcm = np.random.default_rng(0).integers(-9_000, 9_000, sum(sizes)).astype(np.int16)
    feed = Feed(rate, gapless=True)
    start = 0
    for size in sizes:
        feed.take(pcm[start : start + size])
        start += size
    whole = Resampler(rate, RATE).feed(pcm)
    assert len(whole) == sum(sizes) * RATE // rate
    assert len(feed.frames) == len(whole) // 320
    if feed.frames:
        assert np.array_equal(feed.pcm, whole[: len(feed.pcm)])
