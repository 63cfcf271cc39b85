"""`voxglove call`: what it prints, writes and returns (CONTRACTS A and C)."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.support.timeline_schema import Line, faults, read_timeline
from tests.web.cli.program import JFK, PROGRAM, ROOT, SHORT, Inside, started, voxglove
from voxglove.pipelines.log import read_log
from voxglove.pipelines.machine import replay
from voxglove.pipelines.vocabulary import Cut, TellTurn

OWN_AGENT = ROOT / "examples"


def of(lines: list[Line], kind: str, **values: object) -> list[Line]:
    """The lines of one type with these values."""
    return [
        line
        for line in lines
        if line["type"] == kind and all(line.get(key) == value for key, value in values.items())
    ]


# ---- the real parts, as processes


@pytest.mark.slow
@pytest.mark.local_speech
def test_a_recording_is_answered_recorded_and_written_down(tmp_path: Path) -> None:
    files = ("--out", "kept/call.wav", "--timeline", "kept/t.jsonl", "--record", "kept/r.jsonl")
    ran = voxglove(
        "call", "--wav", SHORT, "--model", "scripted:echo", "--fast", *files, cwd=tmp_path
    )
    assert ran.code == 0, ran.err
    assert ran.err == "", "without a terminal nothing shows progress"
    assert "caller  Go forward" in ran.out and "agent   You said: Go forward" in ran.out
    assert "completed: hangup, 0 late results" in ran.out

    lines = read_timeline(tmp_path / "kept" / "t.jsonl")
    assert faults(lines) == []
    assert lines[0]["model"] == "scripted:echo" and lines[0]["clock"] == "fast"
    assert of(lines, "call_ended") == [lines[-1]] and lines[-1]["turns"] == 1

    sound, rate = soundfile.read(tmp_path / "kept" / "call.wav")
    assert rate == 16_000 and sound.shape[1] == 2
    left, right = np.abs(sound).max(axis=0)
    assert left > 0.05 and right > 0.05, "left the caller, right the agent"


@pytest.mark.slow
@pytest.mark.local_speech
def test_the_demo_answers_a_recording(tmp_path: Path) -> None:
    ran = voxglove(
        *("call", "--wav", SHORT, "--model", "demo", "--fast", "--timeline", "t.jsonl"),
        cwd=tmp_path,
    )
    assert ran.code == 0, ran.err
    lines = read_timeline(tmp_path / "t.jsonl")
    assert faults(lines) == []
    assert of(lines, "response", event="ended")
    assert "model demo (configured)" in ran.out


@pytest.mark.slow
@pytest.mark.local_speech
def test_an_own_agent_in_the_working_folder_holds_the_call(tmp_path: Path) -> None:
    ran = voxglove(
        *("call", "--wav", SHORT, "--agent", "keyless_agent:factory", "--fast"),
        *("--timeline", tmp_path / "t.jsonl"),
        cwd=OWN_AGENT,
    )
    assert ran.code == 0, ran.err
    lines = read_timeline(tmp_path / "t.jsonl")
    assert faults(lines) == []
    assert lines[0]["agent"] == "keyless_agent:factory"
    assert of(lines, "transcript", role="assistant", partial=False)


@pytest.mark.slow
@pytest.mark.local_speech
def test_an_interrupt_leaves_a_whole_timeline_and_130(tmp_path: Path) -> None:
    command = [str(PROGRAM), "call", "--wav", str(JFK), "--model", "demo", "--timeline", "t.jsonl"]
    with started(command, cwd=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the parts in use: the call begins
        while not (tmp_path / "t.jsonl").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    lines = read_timeline(tmp_path / "t.jsonl")
    assert lines[-1]["type"] == "call_ended" and lines[-1]["reason"] == "drain"


@pytest.mark.slow
@pytest.mark.local_speech
def test_a_wrong_path_of_a_model_is_3_with_the_remedy(tmp_path: Path) -> None:
    ran = voxglove(
        *("call", "--wav", SHORT, "--fast"),
        cwd=tmp_path,
        env={"VOXGLOVE_MODELS__STT": str(tmp_path)},
    )
    assert ran.code == 3
    assert str(tmp_path) in ran.err and "CTranslate2 folder" in ran.err
    assert "Traceback" not in ran.err


# ---- the same program inside this process, with scripted speech


def test_an_unknown_option_is_2_and_says_which(inside: Inside) -> None:
    ran = inside("call", "--wav", SHORT, "--nope")
    assert ran.code == 2 and "--nope" in ran.err


def test_no_recording_is_2(inside: Inside) -> None:
    ran = inside("call")
    assert ran.code == 2 and "--wav" in ran.err


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.wav", None, "no such file"),
        ("text.wav", b"not audio", "not an audio file"),
        ("empty.wav", b"", "not an audio file"),
    ],
)
def test_a_recording_that_cannot_be_used_is_2_before_anything_loads(
    inside: Inside, tmp_path: Path, name: str, content: bytes | None, says: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    ran = inside("call", "--wav", name, "--stt", "scripted:/nowhere")
    assert ran.code == 2
    assert "--wav" in ran.err and name in ran.err and says in ran.err


@pytest.mark.parametrize("option", ["--out", "--timeline", "--record"])
def test_a_place_that_cannot_be_written_is_told_first(
    inside: Inside, tmp_path: Path, option: str
) -> None:
    (tmp_path / "file").write_text("")
    for place in (str(tmp_path), "file/below"):
        ran = inside.call(option, place)
        assert ran.code == 2 and option in ran.err, ran


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--model", "gpt"), "model: 'gpt'"),
        (("--model", "scripted:parrot"), "scripted:echo"),
        (("--agent", "nobody"), "module:factory"),
        (("--agent", "no_such_module:factory"), "importing no_such_module failed"),
        (("--hangup-after", "-1"), "--hangup-after"),
        (("--config", "nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_what_cannot_be_used_is_2_and_named(
    inside: Inside, arguments: tuple[str, ...], says: str
) -> None:
    ran = inside.call(*arguments)
    assert ran.code == 2 and says in ran.err, ran


def test_a_fast_call_refuses_a_model_of_the_network(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-shown-0123456789")
    ran = inside.call("--timeline", "t.jsonl")
    assert ran.code == 2
    assert "openai:" in ran.err and "--model demo" in ran.err
    assert "never-to-be-shown" not in ran.out + ran.err


def test_a_fast_call_refuses_an_own_agent_with_a_model_of_the_network(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(OWN_AGENT)
    ran = inside.call("--agent", "own_agent:factory")
    assert ran.code == 2 and "openai:llama3.2" in ran.err


def test_an_own_agent_without_network_is_fast_whatever_key_is_set(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-shown-0123456789")
    monkeypatch.syspath_prepend(OWN_AGENT)
    ran = inside.call("--agent", "keyless_agent:factory")
    assert ran.code == 0, ran.err
    assert "agent keyless_agent:factory with its own model" in ran.out


def test_hangup_after_counts_from_the_end_of_the_recording(inside: Inside) -> None:
    ran = inside.call("--model", "scripted:echo", "--hangup-after", "5", "--timeline", "t.jsonl")
    assert ran.code == 0, ran.err
    lines = read_timeline(Path("t.jsonl"))
    length = soundfile.info(SHORT).duration
    assert lines[-1]["t"] == pytest.approx(length + 5, abs=0.04)
    assert lines[-1]["reason"] == "hangup"


def test_hangup_after_nothing_ends_at_the_end_of_the_recording(inside: Inside) -> None:
    ran = inside.call("--model", "scripted:echo", "--hangup-after", "0", "--timeline", "t.jsonl")
    assert ran.code == 0, ran.err
    assert read_timeline(Path("t.jsonl"))[-1]["t"] == pytest.approx(
        soundfile.info(SHORT).duration, abs=0.04
    )


def test_without_it_the_call_ends_two_quiet_seconds_after_the_last_reply(inside: Inside) -> None:
    ran = inside.call("--model", "scripted:echo", "--timeline", "t.jsonl")
    assert ran.code == 0, ran.err
    lines = read_timeline(Path("t.jsonl"))
    (ended,) = of(lines, "response", event="ended")
    length = soundfile.info(SHORT).duration
    assert isinstance(ended["t"], float)
    assert lines[-1]["t"] == pytest.approx(max(ended["t"], length) + 2, abs=0.1)


def test_a_silent_recording_completes_without_turns(inside: Inside, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "quiet.wav", np.zeros(8_000, np.int16), 8_000)
    ran = inside.call("--wav", "quiet.wav", "--timeline", "t.jsonl")
    assert ran.code == 0, ran.err
    lines = read_timeline(Path("t.jsonl"))
    assert faults(lines) == [] and lines[-1]["turns"] == 0


def test_an_agent_that_fails_is_1_and_said(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "failing_agent.py").write_text(FAILING)
    ran = inside.call("--agent", "failing_agent:factory", "--timeline", "t.jsonl")
    assert ran.code == 1, ran.out
    assert "problem ERR_" in ran.out and "not completed" in ran.out
    assert faults(read_timeline(Path("t.jsonl"))) == []


FAILING = """
from voxglove.adapters.models.scripted import Fail, ScriptedModel, Step
from voxglove.core.errors import ModelError
from voxglove.core.builder import Glove


def factory(info):
    return Glove(model=ScriptedModel([Step((Fail(ModelError("the model is out")),))])).build()
"""


def assert_replays(record: Path, timeline: Path) -> None:
    """The machine decides the same of the recorded inputs: turns, cuts, words."""
    config, events = read_log(map(json.loads, record.read_text().splitlines()))
    effects = [effect for _, effect in replay(events, config)]
    lines = read_timeline(timeline)
    told = [(e.event, e.reason, e.text, e.turn) for e in effects if isinstance(e, TellTurn)]
    written = [
        (line["event"], line["reason"], line["text"], line.get("turn"))
        for line in of(lines, "turn")
    ]
    assert told == written and told
    cut = [effect.reason for effect in effects if isinstance(effect, Cut) and effect.audible]
    assert cut == [line["reason"] for line in of(lines, "interruption", event="cut")]


def test_the_record_replays_to_the_same_decisions(inside: Inside) -> None:
    ran = inside.call("--model", "scripted:echo", "--timeline", "t.jsonl", "--record", "r.jsonl")
    assert ran.code == 0, ran.err
    assert_replays(Path("r.jsonl"), Path("t.jsonl"))


@pytest.mark.slow
@pytest.mark.local_speech
def test_the_record_of_an_interrupted_answer_replays(tmp_path: Path) -> None:
    files = ("--timeline", "t.jsonl", "--record", "r.jsonl")
    ran = voxglove("call", "--wav", JFK, "--model", "scripted:echo", "--fast", *files, cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert of(read_timeline(tmp_path / "t.jsonl"), "interruption", event="cut")
    assert_replays(tmp_path / "r.jsonl", tmp_path / "t.jsonl")


def test_two_fast_calls_write_the_same_timeline(inside: Inside) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        assert inside.call("--model", "scripted:echo", "--timeline", name).code == 0
    assert Path("a.jsonl").read_text() == Path("b.jsonl").read_text()
