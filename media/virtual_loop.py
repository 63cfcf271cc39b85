"""An asyncio event loop whose clock jumps instead of waiting.

Owned by whoever runs a call faster than real time: the fast mode of the command line and the tests.
It never jumps while something real is outstanding (a thread job, an open `hold()`), never sleeps
while nothing is, and never hangs: a deadlock is reported with the tasks that are part of it.

The rules (DESIGN 6):

1. Ready sockets come first: data written to a loopback socket is seen before time moves.
2. A thread job or a `hold()` freezes the clock until it ends, at most `patience` real seconds.
3. Otherwise the clock jumps to the next timer; without one the loop is stuck and says so.

Work that leaves the process (a request to another program, a library with threads of its own) is
invisible to rule 1 until its answer arrives: wrap it in `hold()`.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from typing import Any, ParamSpec, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")

DEFAULT_PATIENCE_S = 30.0
"""Real seconds that outstanding work may take before it counts as a deadlock."""

_RESOLUTION_S = 1e-7
"""Timers closer than this run together; far below one sample, far above float noise of a day."""


class Stuck(RuntimeError):
    """Nothing can ever wake this loop. The message names the waiting tasks and where they wait."""

    def __init__(self, now: float, why: str, waiting: list[str]) -> None:
        tasks = "\n  ".join(waiting) or "(no task is left)"
        super().__init__(f"deadlock at {now:.3f} s of virtual time: {why}\n  {tasks}")
        self.waiting = waiting


class _JumpingSelector(selectors.DefaultSelector):
    """Asks the real selector first, then moves the loop's clock in place of waiting."""

    loop: VirtualLoop | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if events or timeout == 0 or self.loop is None:
            return events
        if self.loop.held:
            return super().select(self.loop.patience) or self.loop.stuck(
                f"outstanding work did not end within {self.loop.patience:g} real seconds"
            )
        if timeout is None:
            return self.loop.stuck("no timer, no thread job, no held request")
        self.loop.advance(timeout)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop of the module docstring. `time()` starts at 0 and counts virtual seconds.

    Use it as a loop factory: `asyncio.Runner(loop_factory=VirtualLoop)`, or `run_virtual`.
    Thread executors freeze the clock; process executors are refused by pickling, use `hold()`.
    """

    is_virtual = True

    def __init__(self, patience: float = DEFAULT_PATIENCE_S) -> None:
        self.patience = patience
        self.deadlocked = False
        """Set for good once Stuck was raised: what is left on this loop was named there."""
        self._now = 0.0
        self._held = 0
        selector = _JumpingSelector()
        super().__init__(selector)
        selector.loop = self
        self._clock_resolution = _RESOLUTION_S

    def time(self) -> float:
        """Virtual seconds since this loop was made."""
        return self._now

    @property
    def held(self) -> int:
        """How many thread jobs and holds freeze the clock now."""
        return self._held

    def advance(self, seconds: float) -> None:
        """Move the clock. For the selector only."""
        self._now += seconds

    def stuck(self, why: str) -> list[tuple[selectors.SelectorKey, int]]:
        """Raise Stuck with every unfinished task of this loop. For the selector only."""
        self.deadlocked = True
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        raise Stuck(self._now, why, [describe(task) for task in tasks])

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Freeze the clock while a request to something outside this process is open.

        Released on every way out, cancellation included. Holds nest.
        """
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """As asyncio's, but the clock stands until the job has ended *and* been delivered.

        A cancelled awaiter does not free the clock before the thread is done: what the thread
        does until then is part of the same virtual instant.
        """
        job = _ThreadJob(self, lambda: func(*args))
        self._held += 1
        try:
            future = super().run_in_executor(executor, job)
        except BaseException:
            self._held -= 1
            raise
        future.add_done_callback(job.on_settled)
        return future

    def release(self) -> None:
        """Undo one thread job's freeze. For its job only."""
        self._held -= 1

    async def shutdown_default_executor(self, *args: float | None) -> None:
        """As asyncio's. The joining thread is real work, so the clock stands meanwhile."""
        with self.hold():
            await super().shutdown_default_executor(*args)


class _ThreadJob:
    """One job in a thread: releases the clock once, when both it and its future are done."""

    def __init__(self, loop: VirtualLoop, call: Callable[[], Any]) -> None:
        self._loop = loop
        self._call = call
        self._started = False
        self._ended = False
        self._settled = False
        self._released = False

    def __call__(self) -> Any:
        self._started = True
        try:
            return self._call()
        finally:
            # The loop may be gone when its owner stopped waiting: then nothing is left to free.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._on_ended)

    def on_settled(self, future: asyncio.Future[Any]) -> None:
        """The awaiter has its result, or was cancelled while the thread may still run."""
        self._settled = True
        self._release_if(self._ended or not self._started or not future.cancelled())

    def _on_ended(self) -> None:
        self._ended = True
        # Not before the result was delivered: in between, the loop would find nothing pending.
        self._release_if(self._settled)

    def _release_if(self, done: bool) -> None:
        if done and not self._released:
            self._released = True
            self._loop.release()


def describe(task: asyncio.Task[Any]) -> str:
    """`name: file:line in function` of the innermost await this task stands at."""
    awaited: Any = task.get_coro()
    place = "not started"
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None:
            place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return f"{task.get_name()}: {place}"


def run_virtual(main: Coroutine[Any, Any, T], patience: float = DEFAULT_PATIENCE_S) -> T:
    """Run `main` to its end on a fresh virtual loop, as `asyncio.run` does on a real one.

    Raises Stuck on a deadlock. Every task of the loop is cancelled before this returns.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(patience)) as runner:
        return runner.run(main)
