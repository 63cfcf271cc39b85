"""`voxglove call --brain …`: a recording against each simulated realtime provider."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.simulators import tone_words
from tests.simulators.realtime_script import Script
from tests.support.timeline_schema import Line, faults, read_timeline
from tests.web.cli.program import Inside
from tests.web.realtime_site import KEY, PROVIDERS, Provider, Simulator, base_url, simulator, spoken

RATE = 16_000
KINDS = {
    *("call_started", "call_ended", "line", "mode", "metric", "vad.start", "vad.confirmed"),
    *("vad.end", "turn.committed", "transcript.user", "transcript.assistant"),
    *("response.started", "response.audio", "response.ended"),
}
"""What a call of one answered turn is told by, whatever brain is on it."""


@contextmanager
def beside(provider: Provider, script: Script) -> Iterator[Simulator]:
    """The provider in a thread with a loop of its own, for the program has the main one."""
    ready: Future[tuple[Simulator, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        async with simulator(provider, script) as running:
            stop = asyncio.Event()
            ready.set_result((running, asyncio.get_running_loop(), stop))
            await stop.wait()

    failed: list[BaseException] = []

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            failed.append(error)
            if not ready.done():
                ready.set_exception(error)

    thread = threading.Thread(target=work, name="provider")
    thread.start()
    try:
        running, loop, stop = ready.result(10)
        yield running
        loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join(10)
    assert failed == []


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch, inside: Inside) -> None:
    """A key for every provider; after `inside`, which empties the environment."""
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)


def caller(folder: Path, *says: str) -> Path:
    """A recording of tone words, as short as can be."""
    path = folder / "caller.wav"
    soundfile.write(path, spoken(*says, after_s=0.7), RATE)
    return path


def of(lines: list[Line], kind: str, **values: object) -> list[Line]:
    return [
        line
        for line in lines
        if line["type"] == kind and all(line.get(key) == value for key, value in values.items())
    ]


def shapes(lines: list[Line]) -> set[str]:
    """What kinds of events there are, with what tells one from another."""
    return {
        ".".join(str(line[key]) for key in ("type", "role", "event") if key in line)
        for line in lines
    }


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_recording_is_answered_recorded_and_written_down(
    inside: Inside, keys: None, tmp_path: Path, provider: Provider, cascade: set[str]
) -> None:
    wav_file = caller(tmp_path, "alpha bravo charlie")
    with beside(provider, Script()) as running:
        url = base_url(provider, running)
        ran = inside(
            *("call", "--wav", wav_file, "--brain", provider, "--base-url", url),
            *("--voice", "Puck" if provider == "gemini" else "cedar"),
            *("--timeline", "t.jsonl", "--out", "call.wav"),
        )
    assert ran.code == 0, ran.out + ran.err
    assert "caller  alpha bravo charlie" in ran.out and "completed: hangup" in ran.out
    assert "agent   echo alpha bravo charlie" in ran.out
    assert f" at 127.0.0.1:{url.split(':')[2].split('/')[0]}" in ran.out
    assert running.turns == ["alpha bravo charlie"] and running.violations == []
    assert KEY not in ran.out + ran.err

    lines = read_timeline(Path("t.jsonl"))
    assert faults(lines) == []
    assert shapes(lines) == cascade == KINDS
    name = "openai-live" if provider == "gpt-live" else provider
    assert (lines[0]["brain"], lines[0]["clock"]) == (name, "real")
    (said,) = of(lines, "transcript", role="user", partial=False)
    assert said["text"] == "alpha bravo charlie"
    assert KEY not in Path("t.jsonl").read_text()

    sound, rate = soundfile.read("call.wav", dtype="int16")
    assert rate == RATE and sound.shape[1] == 2
    assert tone_words.read(np.ascontiguousarray(sound[:, 0]), RATE) == ["alpha", "bravo", "charlie"]
    answer = tone_words.read(np.ascontiguousarray(sound[:, 1]), RATE)
    assert answer == ["echo", "alpha", "bravo", "charlie"]


@pytest.fixture
def cascade(inside: Inside, tmp_path: Path) -> set[str]:
    """What kinds of events a cascade's call with the same recording has."""
    (tmp_path / "spoken.json").write_text(json.dumps([[300, 860, "alpha bravo"]]))
    scripted = ("--stt", "scripted:spoken.json", "--tts", "scripted", "--model", "scripted:echo")
    Path("voxglove.yaml").write_text(f"models: {{vad: {tmp_path / 'none'}}}\n")
    wav_file = caller(tmp_path, "alpha bravo charlie")
    ran = inside("call", "--fast", "--wav", wav_file, *scripted, "--timeline", "cascade.jsonl")
    assert ran.code == 0, ran.err
    return shapes(read_timeline(Path("cascade.jsonl")))


# ---- what is refused before anybody is called


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--brain", "gpt"), ("brain: 'gpt'", "gpt-live[:model]")),
        (("--base-url", "ws://127.0.0.1:9/v1"), ("--base-url", "--brain as well")),
        (("--voice", "cedar"), ("--voice", "--brain as well")),
        (("--brain", "cascade", "--voice", "cedar"), ("--voice", "--brain")),
        (("--brain", "openai", "--base-url", "ws://h?token=s3cret"), ("brain.base_url", "from ?")),
        (("--brain", "openai", "--record", "r.jsonl"), ("--record", "only the cascade")),
        (("--brain", "openai", "--fast"), ("--fast", "--brain cascade")),
    ],
)
def test_what_cannot_be_used_is_2_and_named(
    inside: Inside, keys: None, tmp_path: Path, arguments: tuple[str, ...], says: tuple[str, ...]
) -> None:
    ran = inside("call", "--wav", caller(tmp_path, "alpha"), *arguments)
    assert ran.code == 2, ran
    for words in says:
        assert words in ran.err
    assert "s3cret" not in ran.out + ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("brain", "variable"),
    [("openai", "OPENAI_API_KEY"), ("gpt-live", "OPENAI_API_KEY"), ("gemini", "GEMINI_API_KEY")],
)
def test_a_missing_key_is_2_and_its_variable_named(
    inside: Inside, tmp_path: Path, brain: str, variable: str
) -> None:
    ran = inside("call", "--wav", caller(tmp_path, "alpha"), "--brain", brain)
    assert ran.code == 2 and variable in ran.err


def test_the_command_line_lies_over_the_configured_brain(inside: Inside, keys: None) -> None:
    Path("voxglove.yaml").write_text("brain: {name: openai, voice: cedar, arg: gpt-realtime}\n")
    from voxglove.web.cli.options import configured

    same = configured(None, base_url="ws://h/v1").brain
    assert (same.text, same.options) == (
        "openai:gpt-realtime",
        {"voice": "cedar", "base_url": "ws://h/v1"},
    )
    other = configured(None, brain="gemini", voice="Kore").brain
    assert (other.text, other.options) == ("gemini", {"voice": "Kore"})
    assert configured(None, brain="cascade").brain.options == {}


@pytest.mark.slow
def test_a_key_that_is_refused_ends_the_call_in_words(inside: Inside, tmp_path: Path) -> None:
    with beside("openai", Script()) as running:
        ran = inside(
            *("call", "--wav", caller(tmp_path, "alpha"), "--brain", "openai"),
            *("--base-url", base_url("openai", running), "--timeline", "t.jsonl"),
        )
    assert ran.code == 1, ran.out + ran.err
    assert "not completed" in ran.out and "ERR_REALTIME_AUTH" in ran.out
    assert faults(read_timeline(Path("t.jsonl"))) == []


# ---- doctor and config check


def test_doctor_says_who_answers_and_where_the_key_is(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("voxglove.yaml").write_text("server: {port: 0}\n")
    assert "ok    brain cascade" in inside("doctor").out
    monkeypatch.setenv("VOXGLOVE_BRAIN", "openai")
    ran = inside("doctor")
    assert ran.code == 1 and "fail  brain openai" in ran.out and "OPENAI_API_KEY" in ran.out
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-shown-0123456789")
    monkeypatch.setenv("VOXGLOVE_BRAIN__BASE_URL", "ws://127.0.0.1:9/v1")
    ran = inside("doctor")
    assert ran.code == 0, ran.out
    found = "ok    brain openai gpt-realtime-2 at 127.0.0.1:9 (OPENAI_API_KEY is set)"
    assert found in ran.out and "never-to-be-shown" not in ran.out + ran.err


def test_doctor_wants_no_recogniser_where_the_provider_hears(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, keys: None
) -> None:
    monkeypatch.setenv("VOXGLOVE_MODELS__STT", "/nowhere")
    Path("voxglove.yaml").write_text("{brain: gemini, server: {port: 0}}\n")
    ran = inside("doctor")
    assert ran.code == 0, ran.out
    assert "model silero-vad: ok" in ran.out and "whisper" not in ran.out


def test_config_check_shows_the_brain(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXGLOVE_BRAIN", "gpt-live")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-shown-0123456789")
    ran = inside("config", "check")
    assert ran.code == 0 and "gpt-live  (environment)" in ran.out
    assert "never-to-be-shown" not in ran.out + ran.err
