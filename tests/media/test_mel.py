"""The spectrograms: shapes, known values, and smart-turn's own verdict on real speech."""

from pathlib import Path

import numpy as np
import pytest

from voxglove.media import wav
from voxglove.media.errors import MediaValueError
from voxglove.media.inference import onnx_session
from voxglove.media.mel import smart_turn_mel, whisper_mel
from voxglove.media.models import locate
from voxglove.media.pcm import Samples, to_float

JFK = Path(__file__).parents[1] / "audio_fixtures" / "jfk.wav"


@pytest.fixture(scope="module")
def jfk() -> Samples:
    return wav.read(JFK)


def tone(hz: float) -> Samples:
    return (10_000 * np.sin(2 * np.pi * hz * np.arange(16_000) / 16_000)).astype(np.int16)


def test_shapes_types_and_range(jfk: Samples) -> None:
    features = whisper_mel(jfk, 1_200)
    assert features.shape == (80, 1_200) and features.dtype == np.float32
    assert features.max() - features.min() <= 2.0 + 1e-6
    assert np.array_equal(features, whisper_mel(to_float(jfk), 1_200))
    assert smart_turn_mel(jfk).shape == smart_turn_mel(jfk[:100]).shape == (80, 800)


def test_silence_is_the_floor_everywhere() -> None:
    assert np.all(whisper_mel(np.zeros(160, np.int16), 10) == np.float32(-1.5))


@pytest.mark.parametrize(("hz", "band"), [(200, 4), (440, 11), (1_000, 26), (4_000, 62)])
def test_a_tone_lights_the_band_of_its_frequency(hz: float, band: int) -> None:
    """Slaney's scale: 3 mels per 200 Hz to 1 kHz, then 27 per factor 6.4; 80 bands to 45 mels."""
    frame = whisper_mel(tone(hz), 100)[:, 50]
    assert abs(int(np.argmax(frame)) - band) <= 1


def test_values_of_the_published_filter_bank() -> None:
    from voxglove.media.mel import _FILTERS

    assert _FILTERS.shape == (80, 201)
    # First rows of the bank that Whisper ships (mel_filters.npz), printed with 6 digits.
    assert _FILTERS[0, 1] == pytest.approx(0.0248626, abs=1e-6)
    assert _FILTERS[1, 1] == pytest.approx(0.0019916, abs=1e-6)
    assert np.all((_FILTERS > 0).sum(axis=1) >= 1)


def test_whisper_pads_behind_and_smart_turn_in_front() -> None:
    loud = tone(440)
    behind = whisper_mel(loud, 200)
    assert behind[:, 20].max() > behind[:, 150].max()
    in_front = smart_turn_mel(loud)
    assert in_front[:, 780].max() > in_front[:, 100].max()


def test_smart_turn_does_not_hear_loudness(jfk: Samples) -> None:
    quiet = (to_float(jfk) / 10).astype(np.float32)
    assert np.max(np.abs(smart_turn_mel(quiet) - smart_turn_mel(to_float(jfk)))) < 0.02


def test_smart_turn_tells_a_finished_sentence_from_a_broken_one(jfk: Samples) -> None:
    session = onnx_session(locate("smart-turn"))

    def complete(samples: Samples) -> float:
        (out,) = session.run(None, {"input_features": smart_turn_mel(samples)[None]})
        return float(out[0, 0])

    assert complete(jfk) > 0.8
    assert complete(jfk[: int(4.5 * 16_000)]) < 0.2


def test_misuse_is_named() -> None:
    with pytest.raises(MediaValueError, match="more frames"):
        whisper_mel(np.zeros(1_601, np.int16), 10)
    with pytest.raises(MediaValueError, match="frames"):
        whisper_mel(np.zeros(1, np.int16), 0)
    with pytest.raises(MediaValueError, match="mono"):
        smart_turn_mel(np.zeros((10, 2), np.int16))
