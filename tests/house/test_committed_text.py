"""Committed text names no registry host, no path and no tool of the place it was written in."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Written in pieces, so that this file does not break its own rule.
HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("crates", "io"),
        ("golang", "org"),
        ("maven", "org"),
        ("debian", "org"),
    )
)
PATHS = (r"/work" + r"/\w", "/tmp" + "/(brief|bash)", "/root" + "/", r"\.libr" + "ary/")
OPTIONS = ("--index" + "-url", "--extra-index" + "-url", "--find" + "-links", "--trusted" + "-host")
TOOLS = ("issues" + " show", r"\bC" + r"EO\b", "brief" + r"\.md", "my task" + " text")
FORBIDDEN = re.compile("|".join([*map(re.escape, HOSTS + OPTIONS), *PATHS, *TOOLS]))
OPTION_USERS = {"Makefile"}
"""May name the option that keeps hosts *out* of the lock."""


def offences(name: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        checked = line.replace("--no-emit-index" + "-url", "") if name in OPTION_USERS else line
        for match in FORBIDDEN.finditer(checked):
            yield f"{name}:{number}: {match[0]}"


def committed_text() -> Iterator[tuple[str, str]]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    for name in filter(None, listing.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if b"\0" not in data:
                yield name, data.decode("utf-8", "replace")


def test_no_hosts_paths_or_tools() -> None:
    found = [line for name, text in committed_text() for line in offences(name, text)]
    assert found == []


def test_the_check_sees_what_it_is_for() -> None:
    bad = [f"see https://{HOSTS[0]}/p", "x = '/work" + "/main'", "-r --index" + "-url y"]
    assert all(list(offences("a.md", line)) for line in bad)
    assert list(offences("a.md", "make serve prints its address; tmp_path / 'x'")) == []
