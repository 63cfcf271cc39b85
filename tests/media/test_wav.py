"""Audio files: any format in, mono at one's rate, exact where nothing has to change."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from voxglove.media import wav
from voxglove.media.pcm import Samples
from voxglove.media.wav import AudioFileError


def tone(rate: int, seconds: float = 0.5) -> Samples:
    n = np.arange(int(rate * seconds))
    wave = 12_000 * np.sin(2 * np.pi * 440 * n / rate)
    return np.asarray(np.rint(wave), np.int16)


def test_sixteen_bit_mono_comes_back_bit_for_bit(tmp_path: Path) -> None:
    every = np.arange(-32_768, 32_768, dtype=np.int32).astype(np.int16)
    wav.write(tmp_path / "a.wav", every)
    assert np.array_equal(wav.read(tmp_path / "a.wav"), every)
    assert soundfile.info(tmp_path / "a.wav").samplerate == 16_000


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 24_000, 44_100, 48_000, 96_000])
def test_any_rate_is_brought_to_ours_without_delay(tmp_path: Path, rate: int) -> None:
    wav.write(tmp_path / "a.wav", tone(rate), rate)
    out = wav.read(tmp_path / "a.wav", 16_000)
    assert len(out) == pytest.approx(8_000, abs=1)
    inner = slice(400, 7_600)
    assert np.max(np.abs(out[inner].astype(int) - tone(16_000)[inner])) < 4


@pytest.mark.parametrize(
    ("name", "subtype", "close"),
    [
        ("a.wav", "PCM_24", 1),
        ("a.wav", "FLOAT", 1),
        ("a.wav", "ULAW", 600),
        ("a.flac", "PCM_16", 0),
        ("a.ogg", "VORBIS", 900),
    ],
)
def test_other_codings(tmp_path: Path, name: str, subtype: str, close: int) -> None:
    soundfile.write(tmp_path / name, tone(16_000) / 32_768, 16_000, subtype=subtype)
    out = wav.read(tmp_path / name)
    assert len(out) == 8_000
    assert np.max(np.abs(out[200:-200].astype(int) - tone(16_000)[200:-200])) <= close


def test_channels_are_averaged(tmp_path: Path) -> None:
    stereo = np.stack([tone(16_000), np.zeros(8_000, np.int16)], axis=1)
    wav.write(tmp_path / "a.wav", stereo)
    assert np.max(np.abs(wav.read(tmp_path / "a.wav") - tone(16_000) / 2)) <= 0.5


def test_errors_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(AudioFileError, match=r"none\.wav: no such file"):
        wav.read(tmp_path / "none.wav")
    (tmp_path / "text.wav").write_text("not audio")
    with pytest.raises(AudioFileError, match=r"text\.wav: not an audio file"):
        wav.read(tmp_path / "text.wav")
    wav.write(tmp_path / "empty.wav", np.zeros(0, np.int16))
    with pytest.raises(AudioFileError, match=r"empty\.wav: holds no audio"):
        wav.read(tmp_path / "empty.wav")
    with pytest.raises(AudioFileError, match="nowhere"):
        wav.write(tmp_path / "nowhere" / "a.wav", tone(16_000))
