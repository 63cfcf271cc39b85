"""Fixtures of the command line's tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.cli.program import Inside, own_logging, plain_environment


@pytest.fixture
def inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Inside]:
    """The program in this process, in an empty folder and a plain environment."""
    for name in set(os.environ) - set(plain_environment()):
        monkeypatch.delenv(name)
    for name, value in plain_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    with own_logging():
        yield Inside(capsys, tmp_path)
