"""A recording on the line: when the call is over, and what is left of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.timeline_schema import faults
from voxglove.media import wav
from voxglove.media.pcm import Samples
from voxglove.web.build import Shared, open_shared
from voxglove.web.config import Config, PartConfig
from voxglove.web.config_reader import ConfigError
from voxglove.web.stack import Part
from voxglove.web.wav_call import CAP_S, QUIET_S, WavCall, hold

SHORT = Path(__file__).parents[1] / "audio_fixtures" / "human" / "goforward.wav"
RATE = 16_000


@asynccontextmanager
async def opened(folder: Path, model: str = "scripted:echo", **parts: str) -> AsyncIterator[Shared]:
    script = folder / "spoken.json"
    script.write_text(json.dumps([[0, 2_600, "Go forward ten meters."]]))
    name, _, arg = model.partition(":")
    config = Config(
        stt=PartConfig(name="scripted", arg=str(script)),
        tts=PartConfig(name="scripted"),
        model=PartConfig(name=name, arg=arg),
        **parts,  # type: ignore[arg-type]
    )
    shared = await open_shared(config, {"OPENAI_API_KEY": "sk-0123456789", "OLLAMA_HOST": ":9"})
    try:
        yield shared
    finally:
        shared.close()


def order(audio: Samples | None = None) -> WavCall:
    return WavCall(
        audio=wav.read(SHORT) if audio is None else audio, name="short", agent="demo", fast=True
    )


async def test_a_call_is_whole_when_the_last_reply_was_heard(tmp_path: Path) -> None:
    asked = replace(order(), timeline=tmp_path / "t.jsonl", out=tmp_path / "o.wav")
    async with opened(tmp_path) as shared:
        result = await hold(shared, asked)
    assert (result.completed, result.reason, result.late) == (True, "hangup", 0)
    lines = result.lines()
    assert faults(lines) == []
    written = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert written == json.loads(json.dumps(lines)), "the file holds what subscribers heard"
    (ended,) = [line for line in lines if line.get("event") == "ended"]
    assert ended["text"] == "You said: Go forward ten meters."
    quiet = int(str(lines[-1]["at"])) - int(str(ended["at"]))
    assert QUIET_S * RATE <= quiet <= (QUIET_S + 0.1) * RATE


async def test_silence_ends_two_seconds_after_the_recording(tmp_path: Path) -> None:
    async with opened(tmp_path) as shared:
        result = await hold(shared, order(np.zeros(RATE, np.int16)))
    assert result.completed
    assert result.lines()[-1]["t"] == pytest.approx(1 + QUIET_S, abs=0.03)


async def test_who_never_gets_quiet_is_hung_up_at_the_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voxglove.web.wav_call.QUIET_S", CAP_S + 1)
    async with opened(tmp_path) as shared:
        result = await hold(shared, order(np.zeros(RATE, np.int16)))
    assert not result.completed
    assert result.lines()[-1]["t"] == pytest.approx(1 + CAP_S, abs=0.03)


async def test_hangup_after_is_a_completed_call_in_the_middle_of_a_reply(tmp_path: Path) -> None:
    async with opened(tmp_path) as shared:
        result = await hold(shared, replace(order(), hangup_after_s=1.0))
    assert result.completed
    length = len(wav.read(SHORT)) / RATE
    assert result.lines()[-1]["t"] == pytest.approx(length + 1, abs=0.03)
    assert faults(result.lines()) == []


async def test_progress_is_told_once_a_second(tmp_path: Path) -> None:
    told: list[float] = []
    async with opened(tmp_path) as shared:
        await hold(shared, replace(order(np.zeros(RATE, np.int16)), on_progress=told.append))
    assert [round(seconds) for seconds in told] == [1, 2, 3]


async def test_a_cancelled_call_leaves_whole_files(tmp_path: Path) -> None:
    asked = replace(order(), timeline=tmp_path / "t.jsonl", record=tmp_path / "r.jsonl")
    async with opened(tmp_path) as shared:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await hold(shared, asked)
    lines = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert faults(lines) == [] and lines[-1]["reason"] == "drain"
    assert (tmp_path / "r.jsonl").read_text().endswith("}\n")


async def test_fast_refuses_whatever_needs_the_network(tmp_path: Path) -> None:
    async with opened(tmp_path, model="openai") as shared:
        with pytest.raises(ConfigError, match="--model demo"):
            await hold(shared, order())
    async with opened(tmp_path) as shared:
        far = {**shared.speech.parts, "stt": Part("cloud", local=False)}
        cloud = replace(shared, speech=replace(shared.speech, parts=far))
        with pytest.raises(ConfigError, match="stt: 'cloud'"):
            await hold(cloud, order())


async def test_costs_stand_on_the_timeline_times_the_factor(tmp_path: Path) -> None:
    silence = order(np.zeros(RATE, np.int16))
    async with opened(tmp_path) as shared:
        once = await hold(shared, silence)
        twice = await hold(shared, replace(silence, cost_factor=2.0))
    first, second = once.lines()[0]["costs"], twice.lines()[0]["costs"]
    assert isinstance(first, dict) and isinstance(second, dict) and first
    assert second == {kind: pytest.approx(2 * cost) for kind, cost in first.items()}
