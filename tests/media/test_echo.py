"""The echo guard: our own voice never interrupts, a caller 6 dB above it always may."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from tests.audio_fixtures.echo import EchoPath
from voxglove.media import wav
from voxglove.media.echo import EchoConfig, EchoGuard, EchoVerdict
from voxglove.media.errors import MediaValueError
from voxglove.media.pcm import Samples, rms, to_int16

FIXTURES = Path(__file__).parents[1] / "audio_fixtures"
MS = 16
CALLERS = ["jfk.wav", "human/librivox_0880.wav", "human/goforward.wav", "human/something.wav"]


@lru_cache(maxsize=1)
def agent() -> Samples:
    names = ("agent_booked", "agent_hours", "agent_moment")
    return np.concatenate([wav.read(FIXTURES / "voice" / f"{name}.wav") for name in names])


@lru_cache(maxsize=8)
def caller(name: str) -> Samples:
    """The first second of a caller's words, from the onset."""
    samples = wav.read(FIXTURES / name)
    onset = int(np.flatnonzero(np.abs(samples) > 1_500)[0])
    return samples[max(0, onset - 500) :][: 1_000 * MS]


def babble(count: int, seed: int) -> Samples:
    """Speech-like noise: syllables of 4 Hz, each with its own spectrum."""
    rng = np.random.default_rng(seed)
    out = np.zeros(count)
    for at in range(0, count, 4_000):
        length = int(rng.integers(1_600, 4_000))
        low = int(rng.integers(5, 60))
        spectrum = np.zeros(length // 2 + 1, complex)
        band = slice(low * length // 640, (low + 40) * length // 640)
        spectrum[band] = rng.normal(size=len(spectrum[band]))
        burst = np.fft.irfft(spectrum, length) * np.hanning(length)
        part = out[at : at + length]
        part += burst[: len(part)] / max(1e-9, float(np.abs(burst).max()))
    return to_int16(out * 0.5)


def line(far: Samples) -> Callable[[int, int], Samples]:
    """`Line.reference` of a line that played `far` from sample 0."""

    def reference(at: int, samples: int) -> Samples:
        padded = np.pad(far, (max(0, -at), max(0, at + samples - len(far))))
        return padded[max(0, at) :][:samples]

    return reference


def ask(near: Samples, far: Samples, at: int, ms: int) -> EchoVerdict:
    """The verdict on the voice since `at`, after `ms` of it, fed in 20 ms frames."""
    guard = EchoGuard(line(far))
    for start in range(0, at + ms * MS, 320):
        guard.hear(start, near[start : min(start + 320, at + ms * MS)])
    return guard.verdict(at)


def hiss(count: int) -> Samples:
    return np.rint(np.random.default_rng(7).normal(0, 8, count)).astype(np.int16)


@pytest.mark.parametrize("gain_db", [-12, -20, -30])
@pytest.mark.parametrize("delay_ms", [60, 140, 300])
def test_our_own_voice_is_known_at_the_moment_it_would_interrupt(
    gain_db: int, delay_ms: int
) -> None:
    far = agent()
    echo = EchoPath(delay_ms=delay_ms, gain_db=gain_db, seed=delay_ms).feed(far)
    near = echo + hiss(len(far))
    asked = 0
    for at in range(8_000, len(far) - 8_000, 4_000):
        if rms(echo[at : at + 260 * MS]) < 0.001:
            continue
        verdict = ask(near, far, at, 260)
        assert verdict.is_echo, (at, verdict)
        assert verdict.lag_ms == pytest.approx(delay_ms, abs=30)
        asked += 1
    assert asked > 10


@pytest.mark.parametrize("name", CALLERS)
@pytest.mark.parametrize("ms", [100, 260, 480])
def test_a_caller_6_db_above_the_echo_passes(name: str, ms: int) -> None:
    far = agent()
    echo = EchoPath(delay_ms=120, gain_db=-20, seed=4).feed(far)
    for at in range(8_000, len(far) - 16_000, 16_000):
        near = (echo + hiss(len(far))).astype(np.float64)
        voice = caller(name).astype(np.float64)
        level = max(rms(echo[at : at + len(voice)]), 1e-4) / rms(caller(name)) * 2
        near[at : at + len(voice)] += voice * level
        near_pcm = np.clip(near, -32_768, 32_767).astype(np.int16)
        assert not ask(near_pcm, far, at, ms).is_echo, at


def test_speech_like_noise_is_told_apart_too() -> None:
    far, other = babble(48_000, 1), babble(48_000, 2)
    echo = EchoPath(delay_ms=200, gain_db=-25).feed(far)
    for at in (16_000, 24_000, 32_000):
        assert ask(echo, far, at, 400).is_echo
        assert not ask((echo + other // 4).astype(np.int16), far, at, 400).is_echo


def test_nothing_played_or_too_little_heard_is_no_echo() -> None:
    voice = caller("jfk.wav")
    assert ask(voice, np.zeros(16_000, np.int16), 0, 400) == EchoVerdict(False)
    assert ask(voice, voice, 0, 90) == EchoVerdict(False)


def test_a_voice_as_loud_as_ours_is_never_called_an_echo() -> None:
    far = agent()
    loud = EchoPath(delay_ms=100, gain_db=0).feed(far)
    verdict = ask(loud, far, 16_000, 400)
    assert verdict.correlation > 0.9
    assert not verdict.is_echo


def test_a_jump_of_the_clock_drops_what_was_heard_before() -> None:
    guard = EchoGuard(line(agent()))
    guard.hear(0, agent()[:8_000])
    guard.hear(20_000, agent()[:800])
    assert guard.verdict(0) == EchoVerdict(False)


def test_config_is_checked() -> None:
    with pytest.raises(MediaValueError, match="min_lag_ms"):
        EchoConfig(min_lag_ms=400)
    with pytest.raises(MediaValueError, match="window_ms"):
        EchoConfig(window_ms=50)
