"""Every command of the README does what it says: it is taken from the text and run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#]+)")

RUNS_ELSEWHERE = ("make serve", "make test", "voxglove serve")
"""`make test` runs this test; servers are started by the end-to-end tests."""


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


@pytest.mark.slow
@pytest.mark.local_speech
@pytest.mark.parametrize(
    "command", [line for line in commands(README) if not line.startswith(RUNS_ELSEWHERE)]
)
def test_a_command_of_the_readme_works(command: str) -> None:
    (ROOT / "out").mkdir(exist_ok=True)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        shlex.split(command),
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr


def test_commands_are_read_from_shell_blocks_only() -> None:
    text = "```sh\na b # c\nlong \\\n  line\n```\n```python\nx\n```\n"
    assert commands(text) == ["a b", "long line"]
