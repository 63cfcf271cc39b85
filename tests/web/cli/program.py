"""The command line under test: as a process of its own, or inside this one."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from voxglove.web.cli import run

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "audio_fixtures"
SHORT = FIXTURES / "human" / "goforward.wav"
JFK = FIXTURES / "jfk.wav"
PROGRAM = Path(sys.executable).parent / "voxglove"

NOBODY = "127.0.0.1:9"
"""An address where no Ollama answers."""

_OWN = ("VOXGLOVE_", "OPENAI_", "OLLAMA_", "GEMINI_", "GOOGLE_API_KEY", "REALTIME_")


def plain_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This environment without anything the program reads, then `extra`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
    return {**kept, "OLLAMA_HOST": NOBODY, **(extra or {})}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left: exit code and what it printed."""

    code: int
    out: str
    err: str


def voxglove(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, within_s: float = 100
) -> Ran:
    """Run the installed program to its end, no terminal attached."""
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)],
        cwd=cwd,
        env=plain_environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=within_s,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@contextmanager
def started(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A program that runs meanwhile, in its own process group; killed on the way out."""
    with subprocess.Popen(
        list(command),
        cwd=cwd,
        env=plain_environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def wait_for_line(process: subprocess.Popen[str], words: str) -> str:
    """The first printed line with `words`. Fails when the program ends without; the test's timeout
    bounds the wait."""
    assert process.stdout is not None and process.stderr is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if words in line:
            return line
    errors = process.stderr.read()
    pytest.fail(f"{words!r} never came; it printed: {''.join(seen)}{errors}", pytrace=False)


class Inside:
    """`voxglove …` in this process: fast, with parts that load nothing."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self._capsys = capsys
        self._folder = folder

    def __call__(self, *arguments: str | Path) -> Ran:
        code = run([str(part) for part in arguments])
        printed = self._capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    def call(self, *arguments: str | Path, spoken: str = "Go forward ten meters.") -> Ran:
        """`voxglove call --fast` of the short recording, recogniser and voice scripted."""
        script = self._folder / "spoken.json"
        script.write_text(json.dumps([[0, 2_600, spoken]]))
        return self(
            *("call", "--fast", "--wav", SHORT, "--stt", f"scripted:{script}"),
            *("--tts", "scripted", *arguments),
        )


@contextmanager
def own_logging() -> Iterator[None]:
    """Commands set logging up for their process; afterwards this one's is as before."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
