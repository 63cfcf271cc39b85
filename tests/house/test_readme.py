"""Every command of the README does what it says: it is taken from the text and run."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulators.gemini_live import gemini_live
from tests.simulators.openai_realtime import openai_realtime
from tests.simulators.realtime_script import Script

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#]+)")

RUNS_ELSEWHERE = ("make serve", "make test", "voxglove serve")
"""`make test` runs this test; servers are started below, and by the end-to-end tests."""
KEYS = {"OPENAI_API_KEY": "test-key", "GEMINI_API_KEY": "test-key"}


def commands(text: str) -> list[str]:
    """The command lines of the shell blocks, comments and continuations resolved."""
    lines = "".join(BLOCK.findall(text)).replace("\\\n", " ").splitlines()
    return [" ".join(shlex.split(line, comments=True)) for line in lines if line.strip()]


def test_the_two_commands_come_first() -> None:
    assert commands(README)[:2] == ["make serve", "make test"]


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "AGENTS.md", *(ROOT / "docs").rglob("*.md")]:
        for target in LINK.findall(page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_named_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for name in re.findall(r"`make ([a-z]+)", README):
        assert re.search(rf"^{name}:", makefile, re.MULTILINE), name


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "PATH": path, **more}


@pytest.mark.slow
@pytest.mark.local_speech
@pytest.mark.parametrize(
    "command",
    [
        line
        for line in commands(README)
        if not line.startswith(RUNS_ELSEWHERE) and "--brain" not in line
    ],
)
def test_a_command_of_the_readme_works(command: str) -> None:
    (ROOT / "out").mkdir(exist_ok=True)
    done = subprocess.run(
        shlex.split(command),
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.local_speech
@pytest.mark.real_loop
@pytest.mark.parametrize(
    "command",
    [line for line in commands(README) if line.startswith("voxglove call") and "--brain" in line],
)
async def test_a_call_of_the_readme_is_answered_by_a_realtime_model(command: str) -> None:
    """By the simulated provider, which is reached by the variable for servers of one's own."""
    script = Script(read=lambda pcm, rate: "alpha")
    async with openai_realtime(script) as openai, gemini_live(script) as gemini:
        where = {
            "OPENAI_REALTIME_BASE_URL": f"{openai.origin}/v1",
            "GEMINI_LIVE_URL": gemini.origin,
        }
        process = await asyncio.create_subprocess_exec(
            *shlex.split(command),
            cwd=ROOT,
            env=environment(**KEYS, **where),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out = (await asyncio.wait_for(process.communicate(), 100))[0].decode()
        process._transport.close()  # type: ignore[attr-defined]  # 3.11 leaves its pipes open
    assert process.returncode == 0, out
    assert "caller  alpha" in out and "agent   echo alpha" in out


@pytest.mark.slow
@pytest.mark.local_speech
@pytest.mark.parametrize(
    "command", [line for line in commands(README) if line.startswith("voxglove serve")]
)
def test_a_server_of_the_readme_starts(command: str) -> None:
    """At a free port; then Ctrl-C ends it."""
    with subprocess.Popen(
        [*shlex.split(command), "--port", "0"],
        cwd=ROOT,
        env=environment(**KEYS),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = []
        try:
            for line in process.stdout:
                said.append(line)
                if line.startswith("ready: open http"):
                    process.send_signal(signal.SIGINT)
            code = process.wait(30)
        finally:
            process.kill()
    assert any(line.startswith("ready: open http") for line in said), said
    assert code in (0, 130), said


def test_commands_are_read_from_shell_blocks_only() -> None:
    text = "```sh\na b # c\nlong \\\n  line\n```\n```python\nx\n```\n"
    assert commands(text) == ["a b", "long line"]
