"""The one place where models run: a bounded, shared thread pool, and each call's jobs on it.

`InferencePool` is owned by the process's composition root, `Jobs` by a call's brain. Nothing here
knows what a job computes. A job never calls back into the loop. No clock is read: a job's due
time is a sample count.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError as JobCancelled
from concurrent.futures import Future as Job
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import ParamSpec, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from .errors import MediaError, MediaValueError

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_COSTS: Mapping[str, int] = MappingProxyType({"turn": 1_600, "stt": 4_800, "tts": 2_400})
"""Samples at 16 kHz after which a frame-clocked job's result counts: 100, 300 and 150 ms."""

PATIENCE_S = 60.0
"""How long a frozen virtual clock waits for one job before it calls the job lost."""


class InferenceOverloaded(MediaError):
    """More jobs wait than the pool may hold: admit fewer calls or raise `workers`."""

    code = "ERR_INFERENCE_OVERLOADED"


class ModelUnusable(MediaError):
    """The runtime refused a model file."""

    code = "ERR_MODEL"


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """Where the pool's jobs are; `waiting` are those no worker has taken yet."""

    workers: int
    waiting: int
    running: int
    completed: int
    refused: int


class InferencePool:
    """`workers` threads, and at most `backlog` jobs that wait for one.

    Threads start at construction: the first caller does not pay for them. Raises MediaValueError
    for a count below 1.
    """

    def __init__(self, workers: int = 2, *, backlog: int = 64) -> None:
        for name, value in (("workers", workers), ("backlog", backlog)):
            if value < 1:
                raise MediaValueError(name, str(value), "use 1 or more")
        self.workers = workers
        self.backlog = backlog
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="inference")
        self._lock = threading.Lock()
        self._waiting = 0
        self._running = 0
        self._completed = 0
        self._refused = 0
        self._start_threads()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Job[T]:
        """Queue `fn`. Raises InferenceOverloaded when `backlog` jobs wait already."""
        with self._lock:
            if self._waiting >= self.backlog:
                self._refused += 1
                raise InferenceOverloaded(
                    f"{self._waiting} inference jobs wait for {self.workers} workers; "
                    "admit fewer calls or raise workers"
                )
            self._waiting += 1
        try:
            job = self._threads.submit(self._run, fn, *args, **kwargs)
        except RuntimeError:
            self._count_dropped()
            raise InferenceOverloaded("the inference pool is closed") from None
        job.add_done_callback(self._settled)
        return job

    def warm(self, steps: Iterable[Callable[[], object]]) -> None:
        """Run each step once, in parallel, and wait: loads models before the first call.

        A step's own exception is raised here, after all have run.
        """
        jobs = [self._threads.submit(step) for step in steps]
        errors = [error for job in jobs if (error := job.exception()) is not None]
        if errors:
            raise errors[0]

    def statistics(self) -> PoolStatistics:
        """A consistent snapshot."""
        with self._lock:
            return PoolStatistics(
                self.workers, self._waiting, self._running, self._completed, self._refused
            )

    def close(self) -> None:
        """Drop waiting jobs and wait for the running ones. Idempotent; blocks that long."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            self._waiting -= 1
            self._running += 1
        try:
            return fn(*args, **kwargs)
        finally:
            with self._lock:
                self._running -= 1
                self._completed += 1

    def _settled(self, job: Job[T]) -> None:
        if job.cancelled():
            self._count_dropped()

    def _count_dropped(self) -> None:
        with self._lock:
            self._waiting -= 1

    def _start_threads(self) -> None:
        together = threading.Barrier(self.workers + 1)
        for _ in range(self.workers):
            self._threads.submit(together.wait)
        together.wait()


@dataclass(frozen=True, slots=True)
class JobStatistics:
    """Counts of one call: `late` results missed their frame, `dropped` ones lost their waiter."""

    submitted: int
    resolved: int
    late: int
    dropped: int
    pending: int


@dataclass(slots=True, eq=False)
class _Due:
    """A frame-clocked job: `deliver` hands its result over and blocks until there is one."""

    at: int
    ready: Callable[[], bool]
    deliver: Callable[[], None]
    late: bool = False


class Jobs:
    """One call's jobs, applied to the call at defined moments. All methods run on the loop.

    Frame-clocked (recordings, tests): a job submitted at input sample s with cost c resolves at
    the first `tick(at)` with at >= s + c, so fast and real-time runs give the same call. A result
    not ready then: a virtual loop (attribute `is_virtual`) waits for it with time frozen, a real
    one counts it `late` and takes it at the next tick. A tie resolves in order of submission.

    Live (`frame_clocked=False`), or at cost 0: a result counts as soon as it is ready; on a virtual
    loop in order of submission, at once in virtual time. Raises MediaValueError for a negative
    cost.
    """

    def __init__(
        self,
        pool: InferencePool,
        costs: Mapping[str, int] = DEFAULT_COSTS,
        frame_clocked: bool = True,
    ) -> None:
        for kind, cost in costs.items():
            if cost < 0:
                raise MediaValueError(f"costs[{kind!r}]", str(cost), "use 0 or more samples")
        self.pool = pool
        self.costs = dict(costs)
        self.frame_clocked = frame_clocked
        self._at = 0
        self._due: list[_Due] = []
        """In order of submission."""
        self._detach: dict[int, Callable[[], object]] = {}
        """How to cancel each future that has no result yet, by submission number."""
        self._submitted = 0
        self._resolved = 0
        self._late = 0
        self._dropped = 0

    def submit(
        self, kind: str, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        """Start `fn` on the pool; the future gets its result or exception.

        Cancelling the future (or the task that awaits it) detaches the job: it is dropped if no
        worker has taken it, else its result is discarded. Raises InferenceOverloaded, and
        MediaValueError for a kind without a cost.
        """
        if kind not in self.costs:
            raise MediaValueError("kind", repr(kind), f"use one of {sorted(self.costs)}")
        job = self.pool.submit(fn, *args, **kwargs)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._submitted += 1
        self._track(future, job)

        def deliver() -> None:
            self._settle(future, job)

        cost = self.costs[kind] if self.frame_clocked else 0
        if cost:
            due = _Due(self._at + cost, job.done, deliver)
            self._due.append(due)
            future.add_done_callback(lambda _: self._forget(due))
        elif _is_virtual(loop):
            loop.call_soon(deliver)
        else:
            job.add_done_callback(lambda _: _call_threadsafe(loop, deliver))
        return future

    @property
    def has_idle_worker(self) -> bool:
        """Whether work nobody waits for may be submitted: a worker has nothing to do. Always on
        the frame clock, whose results must not depend on how busy the machine is."""
        if self.frame_clocked:
            return True
        pool = self.pool.statistics()
        return pool.waiting + pool.running < pool.workers

    def tick(self, at: int) -> None:
        """The input clock stands at sample `at`: resolve what is due. Blocks on a virtual loop."""
        self._at = at
        if not self._due:
            return
        waits = _is_virtual(asyncio.get_running_loop())
        due = [entry for entry in self._due if entry.at <= at]
        for entry in sorted(due, key=lambda entry: entry.at):
            if waits or entry.ready():
                entry.deliver()
                self._forget(entry)
            elif not entry.late:
                entry.late = True
                self._late += 1

    def cancel(self) -> None:
        """Detach every job: the call is over. Their futures are cancelled; the next call's input
        begins at 0."""
        for detach in list(self._detach.values()):
            detach()
        self._due.clear()
        self._at = 0

    def statistics(self) -> JobStatistics:
        """Counts since construction."""
        return JobStatistics(
            self._submitted, self._resolved, self._late, self._dropped, len(self._detach)
        )

    def _track(self, future: asyncio.Future[T], job: Job[T]) -> None:
        number = self._submitted
        self._detach[number] = future.cancel

        def done(_: asyncio.Future[T]) -> None:
            del self._detach[number]
            if future.cancelled():
                self._dropped += 1
                job.cancel()
            else:
                self._resolved += 1

        future.add_done_callback(done)

    def _settle(self, future: asyncio.Future[T], job: Job[T]) -> None:
        if future.done():
            return
        try:
            result = job.result(PATIENCE_S)
        except JobCancelled:
            future.cancel()
        except Exception as error:  # the job's own failure belongs to whoever awaits it
            future.set_exception(error)
        else:
            future.set_result(result)

    def _forget(self, entry: _Due) -> None:
        if entry in self._due:
            self._due.remove(entry)


def _is_virtual(loop: asyncio.AbstractEventLoop) -> bool:
    return bool(getattr(loop, "is_virtual", False))


def _call_threadsafe(loop: asyncio.AbstractEventLoop, deliver: Callable[[], None]) -> None:
    """From a worker thread. A loop that closed meanwhile has nobody left to tell."""
    if loop.is_closed():
        return
    try:
        loop.call_soon_threadsafe(deliver)
    except RuntimeError:
        if not loop.is_closed():
            raise


class OnnxSession(Protocol):
    """The part of `onnxruntime.InferenceSession` used here. `run` is thread-safe."""

    def run(
        self, output_names: list[str] | None, input_feed: Mapping[str, npt.NDArray[np.generic]]
    ) -> list[npt.NDArray[np.float32]]:
        """All outputs (None) or the named ones, as arrays."""
        ...


class Binding(Protocol):
    """The part of `onnxruntime.IOBinding` used here: memory that a run reads and writes in place.
    Whoever binds an array keeps it alive and never moves it."""

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: type,
        shape: object,
        buffer_ptr: int,
    ) -> None: ...

    def bind_output(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: type,
        shape: object,
        buffer_ptr: int,
    ) -> None: ...


class BindableSession(OnnxSession, Protocol):
    """A session for small models run often: bound once, a run makes no Python object."""

    def io_binding(self) -> Binding: ...

    def run_with_iobinding(self, iobinding: Binding) -> None: ...


@lru_cache(maxsize=16)
def onnx_session(
    path: Path,
    *,
    intra_threads: int = 1,
    arena: bool = True,
    dimensions: tuple[tuple[str, int], ...] = (),
) -> BindableSession:
    """The process's session for the model at `path`, loaded once, CPU only.

    One thread and no spinning: idle onnxruntime pools would otherwise burn the cores the calls
    need. Without `arena` the memory of a large input is given back after its run, for some 10 %
    more time: right for a model whose inputs differ widely in length. `dimensions` fixes free
    ones by their name: what depends on them alone is computed once, here. Raises ModelUnusable,
    and ImportError where onnxruntime is not installed.
    """
    # onnxruntime opens a usage-event store in the user's home as it is imported, unless told not
    # to before: a call's server reports to nobody.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = intra_threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = arena
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    for name, size in dimensions:
        options.add_free_dimension_override_by_name(name, size)
    try:
        session: BindableSession = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime raises one class per failure, without a common root
        raise ModelUnusable(f"{path}: onnxruntime cannot load this model: {error}") from error
    return session
