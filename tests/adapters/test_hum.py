"""A hum is known from words, coughs, keys and tones by its sound alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.audio_fixtures.load import VariantClass, fixture, human_set, names, variants
from voxglove.adapters.stt.hum import is_hum
from voxglove.adapters.stt.whisper_model import HUM, sounding_part, whisper_model


@pytest.mark.parametrize("kind", ["cough", "keyboard", "stop", "wait", "no"])
def test_no_other_sound_is_a_hum(kind: VariantClass) -> None:
    taken = [v.name for v in variants(kind)[::3] if is_hum(sounding_part(v.render()))]
    assert taken == []


def test_no_recorded_speech_is_a_hum() -> None:
    clips = [*human_set(safe=False), *(fixture(name) for name in names("voice"))]
    assert [clip.name for clip in clips if is_hum(sounding_part(clip.pcm))] == []


def test_silence_and_noise_are_no_hum() -> None:
    noise = np.random.default_rng(3).normal(size=32_000) * 500
    assert not is_hum(noise.astype(np.int16))
    assert not is_hum(np.zeros(32_000, np.int16))
    assert not is_hum(np.zeros(100, np.int16))


@pytest.mark.local_speech
def test_hums_are_written_as_one_word() -> None:
    """The class holds hums, all known by their sound, and a spoken "uh huh", often misheard."""
    sounds = [v.render() for v in variants("mm_hm")[::3]]
    hums = [sound for sound in sounds if is_hum(sounding_part(sound))]
    assert len(hums) >= 0.7 * len(sounds)
    assert {whisper_model().transcribe(sound) for sound in hums[::3]} <= {HUM, "Mm-hmm.", "Mhm."}
