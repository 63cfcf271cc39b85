"""What the regression calls share: models loaded once, and the golden switch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.regression.agents import talker
from voxglove.web.build import Shared, open_shared
from voxglove.web.config import Config, PartConfig


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` rewrites tests/regression/golden from this run."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden timelines")


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether the golden timelines are to be rewritten."""
    return bool(request.config.getoption("--update-golden", default=False))


@pytest.fixture(scope="session")
def shared() -> Iterator[Shared]:
    """The keyless stack as `voxglove call --model scripted:echo` opens it, warmed; `talker` is an
    agent of these tests."""
    model = PartConfig(name="scripted", arg="echo")
    opened = asyncio.run(open_shared(Config(model=model), {}))
    opened.speech.warm()
    both = replace(opened, factories={**opened.factories, "talker": talker})
    yield both
    both.close()
