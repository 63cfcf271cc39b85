"""What a test left behind: tasks, threads, sockets and other file descriptors, each by name.

Owned by the autouse fixture `no_leaks` of conftest.py. It only looks: nothing is closed here
except what the loop's own shutdown cancels anyway.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from voxglove.media.virtual_loop import describe

THREADS_THAT_STAY = ("voxglove-inference", "pytest_timeout", "hypothesis", "playwright")
"""Name prefixes of threads that outlive a test on purpose: shared pools and test tools."""

FILES_THAT_STAY = ("/dev/null", "/dev/urandom", "/dev/random", "/proc/", "/sys/")
"""Path prefixes that libraries keep open for the process."""

SETTLE_TURNS = 50
SETTLE_S = 1.0

_FD_FOLDER = Path("/proc/self/fd")
_cancel_all_tasks = asyncio.runners._cancel_all_tasks  # type: ignore[attr-defined]
"""What asyncio.Runner does first when it closes: the last moment to see what was left."""


@dataclass
class Watch:
    """The state before a test and the tasks found when its loops were closed."""

    threads: set[threading.Thread]
    fds: dict[int, str]
    tasks: list[str] = field(default_factory=list)


def open_fds() -> dict[int, str]:
    """Descriptor -> what it is (`socket:[…]`, `pipe:[…]`, a path). Empty where /proc is absent."""
    found: dict[int, str] = {}
    if not _FD_FOLDER.is_dir():
        return found
    for name in os.listdir(_FD_FOLDER):
        try:
            found[int(name)] = os.readlink(_FD_FOLDER / name)
        except OSError:
            continue  # the listing's own descriptor is closed again by now
    return found


@contextmanager
def watching() -> Iterator[Watch]:
    """Record the state now; while open, every loop that closes reports its unfinished tasks.

    Watches nest: the innermost one alone gets the report.
    """
    watch = Watch(set(threading.enumerate()), open_fds())
    runners = asyncio.runners
    outer = runners._cancel_all_tasks  # type: ignore[attr-defined]

    def look_then_cancel(loop: asyncio.AbstractEventLoop) -> None:
        watch.tasks += unfinished(loop)
        _cancel_all_tasks(loop)

    runners._cancel_all_tasks = look_then_cancel  # type: ignore[attr-defined]
    try:
        yield watch
    finally:
        runners._cancel_all_tasks = outer  # type: ignore[attr-defined]


def unfinished(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Tasks still alive after a few idle turns of `loop` (a closing server needs some).

    A deadlocked virtual loop has named its tasks in its Stuck already.
    """
    if getattr(loop, "deadlocked", False):
        return []
    for _ in range(SETTLE_TURNS):
        if not asyncio.all_tasks(loop):
            return []
        loop.run_until_complete(asyncio.sleep(0))
    return [f"task {describe(task)}" for task in asyncio.all_tasks(loop)]


def leaked(watch: Watch) -> list[str]:
    """One line per thing that was not there before, after a bounded wait for it to go."""
    found = _leaked_now(watch)
    if found:
        gc.collect()  # an object in a reference cycle is late, not leaked
        _wait_until(lambda: not _leaked_now(watch))
        found = _leaked_now(watch)
    return watch.tasks + found


def _leaked_now(watch: Watch) -> list[str]:
    threads = [
        f"thread {thread.name}"
        for thread in threading.enumerate()
        if thread not in watch.threads and not thread.name.startswith(THREADS_THAT_STAY)
    ]
    descriptors = [
        f"fd {number}: {target}"
        for number, target in sorted(open_fds().items())
        if watch.fds.get(number) != target and not target.startswith(FILES_THAT_STAY)
    ]
    return threads + descriptors


def _wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + SETTLE_S  # real threads end in real time
    while not done() and time.monotonic() < end:
        time.sleep(0.01)
