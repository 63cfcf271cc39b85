"""The speech parts by their configured names, and what is said when they cannot be had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from voxglove.media.inference import InferencePool, Jobs
from voxglove.media.models import ModelMissing
from voxglove.web.config import Config, ModelPaths, PartConfig
from voxglove.web.config_reader import ConfigError
from voxglove.web.stack import open_speech


def scripted(folder: Path, **changes: object) -> Config:
    script = folder / "spoken.json"
    script.write_text(json.dumps([[0, 1_000, "Hello there."]]))
    parts = {
        "stt": PartConfig(name="scripted", arg=str(script)),
        "tts": PartConfig(name="scripted"),
    }
    return Config(**{**parts, **changes})  # type: ignore[arg-type]


async def test_scripted_speech_makes_a_fresh_part_for_each_call(tmp_path: Path) -> None:
    speech = open_speech(scripted(tmp_path))
    speech.warm()
    assert (speech.name("stt"), speech.name("tts"), speech.name("vad")) == (
        "scripted",
        "scripted",
        "silero",
    )
    assert all(part.local for part in speech.parts.values())
    assert speech.notes == () and not speech.continuous
    pool = InferencePool()
    try:
        jobs = Jobs(pool)
        assert speech.stt(jobs) is not speech.stt(jobs)
        assert speech.vad() is not speech.vad()
        assert speech.detector(jobs) is not None
    finally:
        pool.close()


@pytest.mark.parametrize("part", ["stt", "tts"])
def test_an_unknown_name_names_the_known(tmp_path: Path, part: str) -> None:
    with pytest.raises(ConfigError, match=f"{part}: 'parrot' cannot be used; use "):
        open_speech(scripted(tmp_path, **{part: PartConfig(name="parrot")}))


@pytest.mark.parametrize("text", ["", "[", '[["a", 1, "x"]]', "[[1, 2]]", '{"a": 1}'])
def test_a_script_that_is_none_says_how_to_write_one(tmp_path: Path, text: str) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(text)
    with pytest.raises(ConfigError, match="start_ms, end_ms, text"):
        open_speech(scripted(tmp_path, stt=PartConfig(name="scripted", arg=str(bad))))


@pytest.mark.local_speech
@pytest.mark.parametrize("part", ["stt", "tts"])
def test_a_missing_model_file_is_named(tmp_path: Path, part: str) -> None:
    name = {"stt": "whisper", "tts": "piper_onnx"}[part]
    gone = str(tmp_path / "gone")
    with pytest.raises(ModelMissing, match=gone):
        open_speech(scripted(tmp_path, **{part: PartConfig(name=name, arg=gone)}))
    with pytest.raises(ModelMissing, match=gone):
        paths = ModelPaths(**{part: gone})
        open_speech(scripted(tmp_path, **{part: PartConfig(name=name)}, models=paths))


def test_a_missing_voice_detector_costs_a_note_and_not_the_call(tmp_path: Path) -> None:
    speech = open_speech(scripted(tmp_path, models=ModelPaths(vad=str(tmp_path / "gone.onnx"))))
    assert speech.name("vad") == "energy"
    assert len(speech.notes) == 1 and "gone.onnx" in speech.notes[0]


def test_a_missing_turn_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="gone.onnx"):
        open_speech(scripted(tmp_path, models=ModelPaths(turn=str(tmp_path / "gone.onnx"))))
