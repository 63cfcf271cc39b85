"""The audio oracle finds the faults it is there to find, and is quiet about clean sound."""

import numpy as np
import pytest

from tests.audio_fixtures.dsp import Pcm, noise, pcm16
from tests.support.audio import (
    Span,
    assert_resumed_exactly,
    assert_silent_after,
    energy_spans,
    first_loud_sample,
    hole_count,
    level_db,
    loud_ms,
    match,
    overlap_ms,
    tone,
    uncovered_ms,
)


def sine(seconds: float = 2.0, hz: float = 440, amplitude: float = 8000) -> Pcm:
    t = np.arange(round(16_000 * seconds)) / 16_000
    return pcm16(amplitude * np.sin(2 * np.pi * hz * t))


def silence(count: int) -> Pcm:
    return np.zeros(count, dtype=np.int16)


def test_a_clean_tone_is_clean() -> None:
    found = tone(np.concatenate([silence(3200), sine(), silence(1600)]), 440)
    assert found.span == Span(3200, 35_200)
    assert found.holes == 0
    assert found.amplitude == pytest.approx(8000, rel=1e-3)
    assert found.snr_whole_db > 70 and found.snr_100ms_min_db > 70


def test_a_hole_of_twenty_ms_is_counted() -> None:
    broken = sine()
    broken[16_000:16_320] = 0
    assert hole_count(broken) == 1
    assert tone(broken, 440).snr_100ms_min_db < 10


def test_a_slip_of_one_sample_ruins_the_whole_fit_only() -> None:
    slipped = np.delete(sine(), 16_000)
    found = tone(slipped, 440)
    assert found.snr_whole_db < 25
    assert found.snr_100ms_median_db > 70


def test_distortion_shows_in_every_hundred_ms() -> None:
    clipped = np.clip(sine(), -6000, 6000).astype(np.int16)
    assert tone(clipped, 440).snr_100ms_median_db < 30


def test_a_tone_needs_sound() -> None:
    with pytest.raises(ValueError, match="600 ms"):
        tone(silence(16_000), 440)


@pytest.mark.parametrize("lag", [0, 1, 777, -500])
def test_lag_and_gain_are_found(lag: int) -> None:
    reference = pcm16(noise(8000, 1))
    half = pcm16(reference.astype(np.float64) / 2)
    heard = np.concatenate([silence(lag), half]) if lag >= 0 else half[-lag:]
    found = match(heard, reference)
    assert found.lag == lag
    assert found.gain == pytest.approx(0.5, abs=0.001)
    assert not found.inverted
    assert found.snr_db > 60


def test_a_phase_flip_is_seen() -> None:
    reference = pcm16(noise(8000, 2))
    found = match(-reference, reference)
    assert found.inverted
    assert found.correlation == pytest.approx(-1)


def test_silence_matches_nothing() -> None:
    with pytest.raises(ValueError, match="silent"):
        match(silence(100), sine(0.1))


def test_first_loud_sample_is_exact_and_may_be_absent() -> None:
    burst = np.concatenate([silence(1234), np.full(2000, 9000, dtype=np.int16)])
    assert first_loud_sample(burst) == 1234
    assert first_loud_sample(burst, after=1500) == 1500
    assert first_loud_sample(silence(4000)) is None


def test_silence_after_a_cut_is_asserted_and_a_late_sample_fails() -> None:
    played = np.concatenate([sine(0.5), silence(8000)])
    assert_silent_after(played, 500)
    with pytest.raises(AssertionError, match="expected silence"):
        assert_silent_after(played, 440)
    played[12_000:12_160] = 3000
    with pytest.raises(AssertionError, match=r"sound at 750\.0 ms"):
        assert_silent_after(played, 500)


def test_overlap_counts_only_what_both_say() -> None:
    caller = np.concatenate([sine(1.0), silence(16_000)])
    agent = np.concatenate([silence(12_000), sine(1.25)])
    assert overlap_ms(caller, agent) == pytest.approx(250, abs=10)
    assert overlap_ms(caller, silence(32_000)) == 0
    assert loud_ms(caller) == 1000


def test_energy_spans_merge_short_pauses_and_drop_clicks() -> None:
    x = silence(32_000)
    x[1600:6400] = sine(0.3)
    x[8000:12_800] = sine(0.3)
    x[24_000:24_160] = 9000
    assert energy_spans(x) == [Span(1600, 12_800)]
    assert energy_spans(x, merge_ms=50) == [Span(1600, 6400), Span(8000, 12_800)]
    assert uncovered_ms(x, [Span(1600, 6400)]) == pytest.approx(310, abs=10)
    assert energy_spans(silence(0)) == []


def test_a_dc_offset_is_not_speech() -> None:
    assert energy_spans(np.full(16_000, 900, dtype=np.int16)) == []


def test_an_exact_resume_passes_and_a_skipped_sample_fails() -> None:
    reference = sine(1.0)
    resumed = np.concatenate([reference[:5000], silence(800), reference[5000:]])
    assert_resumed_exactly(resumed, reference, Span(5000, 5800))
    skipped = np.concatenate([reference[:5000], silence(800), reference[5001:]])
    with pytest.raises(AssertionError, match="first differing sample 5000"):
        assert_resumed_exactly(skipped, reference, Span(5000, 5800))
    with pytest.raises(AssertionError, match="inside the pause"):
        assert_resumed_exactly(resumed, reference, Span(4990, 5790))


def test_level_is_in_db_of_full_scale() -> None:
    assert level_db(sine(1.0, amplitude=32767)) == pytest.approx(-3.01, abs=0.01)
    assert level_db(silence(10)) == level_db(silence(0)) == -120
