"""What every test gets: the virtual loop, the leak check, and the time table at the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support import leaks, timing, vloop

# Runs are repeatable and never judged by how busy the machine is.
settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("soak", parent=settings.get_profile("house"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Async tests run on the virtual loop unless marked `real_loop`, `browser` or `soak`."""
    return vloop.loop_factories(item)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`soak` tests run only when they are asked for by `-m`."""
    if "soak" not in config.getoption("-m", default=""):
        kept = [item for item in items if not item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Fail a test that leaves a task, a thread, a socket or another descriptor behind."""
    with leaks.watching() as watch:
        yield
    found = leaks.leaked(watch)
    if found:
        pytest.fail("the test left behind:\n  " + "\n  ".join(found), pytrace=False)


_NUMBERS = pytest.StashKey[list[str]]()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Keep measured numbers for the end of the run, where they show whether tests pass or not."""
    return request.config.stash.setdefault(_NUMBERS, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured, and seconds per test folder."""
    numbers = terminalreporter.config.stash.get(_NUMBERS, [])
    if numbers:
        terminalreporter.section("measured")
        for text in numbers:
            terminalreporter.write_line(text)
    durations = [
        (report.nodeid, report.when, report.duration)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
    ]
    if durations:
        terminalreporter.section("time per test folder")
        for line in timing.lines(timing.by_folder(durations)):
            terminalreporter.write_line(line)
