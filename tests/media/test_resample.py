"""Resampling, measured: exact counts, the same bits for any chunks, clean tones, no aliases."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.media.pcm import Samples
from voxglove.media.resample import RATES, Resampler, resample_all

PAIRS = list(permutations(RATES, 2))
NAMES = [f"{src}-{dst}" for src, dst in PAIRS]


def tone(hz: float, rate: int, seconds: float, level: float = 0.5) -> Samples:
    n = np.arange(int(seconds * rate))
    return np.rint(level * 32_767 * np.sin(2 * np.pi * hz * n / rate + 0.3)).astype(np.int16)


def snr_db(samples: Samples, hz: float, rate: int) -> float:
    """Level of the best-fitting sine against everything else."""
    n = np.arange(len(samples))
    basis = np.stack([np.sin(2 * np.pi * hz * n / rate), np.cos(2 * np.pi * hz * n / rate)], 1)
    fit, *_ = np.linalg.lstsq(basis, samples.astype(np.float64), rcond=None)
    noise = samples - basis @ fit
    return float(20 * np.log10(np.hypot(*fit) / np.sqrt(2) / np.sqrt(np.mean(noise**2))))


def gain_db(hz: float, src: int, dst: int) -> float:
    """Level of the output for a tone of `hz`, against the input's, transient cut off."""
    source = tone(hz, src, 0.25, 0.9)
    out = Resampler(src, dst).feed(source)[dst // 50 :].astype(np.float64)
    level = np.sqrt(np.mean(source.astype(np.float64) ** 2))
    return float(20 * np.log10(max(np.sqrt(np.mean(out**2)), 1e-9) / level))


def noise(count: int, seed: int = 1) -> Samples:
    return np.random.default_rng(seed).integers(-32_768, 32_768, count).astype(np.int16)


@pytest.mark.parametrize(("src", "dst"), PAIRS, ids=NAMES)
def test_voice_row_098_a_tone_keeps_88_db_above_the_noise(src: int, dst: int) -> None:
    for hz in (440, 1_000, 3_000):
        out = Resampler(src, dst).feed(tone(hz, src, 0.5))[dst // 50 :]
        assert snr_db(out, hz, dst) >= 88, hz


@pytest.mark.parametrize(
    ("src", "dst"), [pair for pair in PAIRS if pair[0] > pair[1]], ids=lambda rate: str(rate)
)
def test_voice_row_098_nothing_above_the_new_nyquist_comes_back(src: int, dst: int) -> None:
    limit = -58 if dst == 8_000 else -90
    for hz in np.linspace(dst / 2, src / 2 * 0.98, 9):
        assert gain_db(float(hz), src, dst) <= limit, hz


def test_the_telephone_band_and_the_speech_band_stay_flat() -> None:
    for src in (16_000, 24_000, 48_000):
        assert gain_db(3_400, src, 8_000) == pytest.approx(0, abs=0.3)
        assert gain_db(3_400, 8_000, src) == pytest.approx(0, abs=0.1)
    assert gain_db(6_800, 48_000, 16_000) == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize(("src", "dst"), PAIRS, ids=NAMES)
def test_the_delay_is_what_it_says_and_at_most_3_ms(src: int, dst: int) -> None:
    resampler = Resampler(src, dst)
    assert 0 < resampler.delay <= 0.003 * src
    click = np.zeros(src // 10, np.int16)
    click[src // 20] = 20_000
    out = Resampler(src, dst).feed(click)
    peak = int(np.argmax(np.abs(out))) / dst * src
    assert peak == pytest.approx(src // 20 + resampler.delay, abs=max(1.0, src / dst))


@given(st.sampled_from(PAIRS), st.lists(st.integers(0, 900), min_size=1, max_size=12))
def test_any_chunking_gives_the_same_bits(pair: tuple[int, int], sizes: list[int]) -> None:
    source = noise(sum(sizes))
    whole = Resampler(*pair)
    expected = np.concatenate([whole.feed(source), whole.flush()])
    parts = Resampler(*pair)
    out, fed = [], 0
    for size in sizes:
        out.append(parts.feed(source[fed : fed + size]))
        fed += size
        assert sum(map(len, out)) == fed * pair[1] // pair[0]
    assert np.array_equal(np.concatenate([*out, parts.flush()]), expected)


@given(st.sampled_from(PAIRS), st.lists(st.integers(1, 400), min_size=1, max_size=6))
def test_counts_stay_exact_over_gaps(pair: tuple[int, int], sizes: list[int]) -> None:
    resampler = Resampler(*pair)
    made = fed = 0
    for turn, size in enumerate(sizes):
        made += len(resampler.gap(size) if turn % 2 else resampler.feed(noise(size, turn)))
        fed += size
        assert made == fed * pair[1] // pair[0]


@pytest.mark.parametrize(("src", "dst"), [(48_000, 16_000), (22_050, 16_000), (16_000, 24_000)])
def test_voice_row_098_no_drift_over_an_hour(src: int, dst: int) -> None:
    """An hour passes as a gap; a click after it lies where the count says, to the sample."""
    resampler = Resampler(src, dst)
    made = len(resampler.feed(noise(999))) + len(resampler.gap(60 * src - 999))
    made += sum(len(resampler.gap(60 * src)) for _ in range(59))
    assert made == 3_600 * dst
    click = np.zeros(src // 50, np.int16)
    click[0] = 20_000
    out = resampler.feed(click)
    assert int(np.argmax(np.abs(out))) == pytest.approx(resampler.delay * dst / src, abs=1)


def test_voice_row_098_sixteen_there_and_back_is_the_same_sound() -> None:
    source = tone(1_000, 16_000, 1)
    for middle in (24_000, 48_000):
        back = resample_all(resample_all(source, 16_000, middle), middle, 16_000)
        assert len(back) == len(source)
        error = (back - source.astype(np.int32))[200:-200]
        assert np.max(np.abs(error)) <= 2


@pytest.mark.parametrize(("src", "dst"), PAIRS, ids=NAMES)
def test_whole_recordings_come_out_aligned(src: int, dst: int) -> None:
    out = resample_all(tone(500, src, 0.3), src, dst)
    assert len(out) == -(-int(0.3 * src) * dst // src)
    n = np.arange(len(out))
    wanted = 0.5 * 32_767 * np.sin(2 * np.pi * 500 * n / dst + 0.3)
    inner = slice(dst // 50, -dst // 50)
    assert np.max(np.abs(out[inner] - wanted[inner])) < 4


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize(("src", "dst"), PAIRS, ids=NAMES)
def test_a_gap_is_exactly_that_many_zeros(src: int, dst: int, aligned: bool) -> None:
    gap, fed = Resampler(src, dst, aligned=aligned), Resampler(src, dst, aligned=aligned)
    for turn in range(3):
        sound = noise(333, turn)
        assert np.array_equal(gap.feed(sound), fed.feed(sound))
        assert np.array_equal(gap.gap(4_567), fed.feed(np.zeros(4_567, np.int16)))
    assert np.array_equal(gap.flush(), fed.flush())


def test_equal_rates_are_free() -> None:
    same = Resampler(16_000, 16_000)
    source = noise(50)
    assert same.feed(source) is source
    assert same.delay == 0 and len(same.flush()) == 0
    assert same.gap(7).tolist() == [0] * 7


def test_direct_current_is_exact_and_full_scale_clips_instead_of_wrapping() -> None:
    steady = np.full(4_000, 12_345, np.int16)
    for src, dst in PAIRS:
        assert set(Resampler(src, dst).feed(steady)[dst // 50 :].tolist()) == {12_345}
    square = np.where(np.arange(4_000) // 80 % 2, 32_767, -32_768).astype(np.int16)
    out = Resampler(48_000, 16_000).feed(square).astype(np.int32)
    assert np.max(np.abs(np.diff(out))) <= 65_535 and out.max() == 32_767 and out.min() == -32_768


def test_reset_starts_over() -> None:
    resampler = Resampler(48_000, 16_000)
    source = noise(1_001)
    first = resampler.feed(source)
    resampler.reset()
    assert np.array_equal(resampler.feed(source), first)


def test_misuse_is_named() -> None:
    with pytest.raises(MediaValueError, match="int16"):
        Resampler(48_000, 16_000).feed(np.zeros(4, np.float32))
    with pytest.raises(MediaValueError, match="mono"):
        Resampler(48_000, 16_000).feed(np.zeros((4, 2), np.int16))
    with pytest.raises(MediaValueError, match="47999"):
        Resampler(47_999, 16_000)
    with pytest.raises(MediaValueError, match="gap"):
        Resampler(48_000, 16_000).gap(-1)
