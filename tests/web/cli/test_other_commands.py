"""`voxglove models | doctor | config`, and the exit codes all commands share (CONTRACTS C)."""

from __future__ import annotations

import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.web.cli.program import Inside, voxglove
from voxglove.web.cli import run
from voxglove.web.cli.program import program
from voxglove.web.config_docs import undescribed

DOCTOR = import_module("voxglove.web.cli.doctor")


def test_help_names_the_five_commands(inside: Inside) -> None:
    ran = inside("--help")
    assert ran.code == 0
    for name in ("serve", "call", "doctor", "models", "config"):
        assert name in ran.out


@pytest.mark.slow
def test_the_installed_program_is_this_one(tmp_path: Path) -> None:
    ran = voxglove("config", "check", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert "server.port" in ran.out


@pytest.mark.parametrize("arguments", [("--nope",), ("sing",), ("config",), ()])
def test_usage_errors_are_2(inside: Inside, arguments: tuple[str, ...]) -> None:
    assert inside(*arguments).code == 2


def test_an_interrupt_is_130(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(settings: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DOCTOR, "LOOKS", (interrupted,))
    assert inside("doctor").code == 130


def test_a_bug_keeps_its_traceback(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(settings: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(DOCTOR, "LOOKS", (broken,))
    with pytest.raises(ZeroDivisionError):
        run(["doctor"])


# ---- models


@pytest.mark.local_speech
def test_models_names_file_state_and_licence_of_each(inside: Inside) -> None:
    ran = inside("models")
    assert ran.code == 0, ran.out
    for name in ("silero-vad", "smart-turn", "whisper-tiny.en", "piper-joe"):
        assert f"{name} " in ran.out
    assert ran.out.count(" ok ") >= 4 and "MIT" in ran.out


@pytest.mark.local_speech
@pytest.mark.parametrize("key", ["stt", "tts", "vad", "turn"])
def test_a_missing_model_is_3_with_its_remedy(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str
) -> None:
    monkeypatch.setenv(f"VOXGLOVE_MODELS__{key.upper()}", str(tmp_path / "nothing"))
    ran = inside("models")
    assert ran.code == 3
    assert ran.out.count("to mend it:") == 1 and str(tmp_path) in ran.out


# ---- doctor


@pytest.mark.local_speech
def test_doctor_finds_a_machine_that_can_hold_a_call(inside: Inside) -> None:
    Path("voxglove.yaml").write_text("server: {port: 0}\n")
    ran = inside("doctor")
    assert ran.code == 0, ran.out
    assert "model demo (no vendor's key is set, and no local Ollama answers)" in ran.out
    assert "model whisper-tiny.en: ok" in ran.out


def test_doctor_names_a_port_that_is_taken(inside: Inside) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        Path("voxglove.yaml").write_text(f"server: {{port: {port}}}\n")
        ran = inside("doctor")
    assert ran.code == 0, "the machine can hold a call, on another port"
    assert f"note  port 127.0.0.1:{port}: address already in use" in ran.out
    assert "--port 0" in ran.out


def test_doctor_looks_where_the_configuration_points(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VOXGLOVE_MODELS__STT", str(tmp_path / "nothing"))
    ran = inside("doctor")
    assert ran.code == 1 and str(tmp_path) in ran.out


def test_doctor_names_a_key_that_is_missing(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOXGLOVE_MODEL", "openai")
    ran = inside("doctor")
    assert ran.code == 1 and "set OPENAI_API_KEY" in ran.out


def test_doctor_never_shows_the_key(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-shown-0123456789")
    ran = inside("doctor")
    assert "OPENAI_API_KEY is set" in ran.out
    assert "never-to-be-shown" not in ran.out + ran.err


# ---- config


def test_config_check_says_where_each_value_came_from(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("voxglove.yaml").write_text("server: {port: 9000}\n")
    monkeypatch.setenv("VOXGLOVE_SERVER__MAX_CALLS", "7")
    ran = inside("config", "check")
    assert ran.code == 0
    rows = {line.split()[0]: line.split()[1:] for line in ran.out.splitlines()}
    assert rows["server.port"] == ["9000", "(file)"]
    assert rows["server.max_calls"] == ["7", "(environment)"]
    assert rows["server.host"] == ["127.0.0.1", "(default)"]
    assert max(map(len, ran.out.splitlines())) < 160, "no key floods the screen"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("server: {prt: 1}", ("server.prt", "did you mean port")),
        ("server: {port: high}", ("server.port", "a whole number")),
        ("turn: {stable_ms: -1}", ("turn.stable_ms",)),
        ("agents: {a: nocolon}", ("agents.a", "module:factory")),
        ("agent: nobody", ("agent", "demo")),
        ("a: [", ("bad.yaml", "YAML")),
    ],
)
def test_a_bad_configuration_is_2_and_names_the_key(
    inside: Inside, text: str, says: tuple[str, ...]
) -> None:
    Path("bad.yaml").write_text(text)
    ran = inside("config", "check", "--config", "bad.yaml")
    assert ran.code == 2
    for words in says:
        assert words in ran.err
    assert len(ran.err.splitlines()) == 1


def test_config_reference_prints_the_committed_page(inside: Inside) -> None:
    ran = inside("config", "reference")
    page = Path(__file__).parents[3] / "docs" / "configuration.md"
    assert ran.code == 0
    assert ran.out.rstrip("\n") == page.read_text().rstrip("\n"), (
        "run: voxglove config reference > docs/configuration.md"
    )


def test_every_key_of_the_configuration_is_described() -> None:
    assert undescribed() == []


def test_the_program_has_no_other_commands() -> None:
    names = {
        command.callback.__name__ for command in program().registered_commands if command.callback
    }
    assert names == {"serve", "call", "doctor", "models"}
    assert [group.name for group in program().registered_groups] == ["config"]


def test_the_entry_point_loads_nothing_before_it_can_be_interrupted() -> None:
    code = "import sys, voxglove.web.cli; print({'typer', 'aiohttp', 'numpy'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "set()\n"
