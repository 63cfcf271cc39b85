"""The inference pool and a call's jobs: bounded, due by sample count, cleanly detached."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from voxglove.media.errors import MediaValueError
from voxglove.media.inference import (
    DEFAULT_COSTS,
    InferenceOverloaded,
    InferencePool,
    Jobs,
    ModelUnusable,
    onnx_session,
)
from voxglove.media.models import locate

FRAME = 320


@pytest.fixture
def pool() -> Iterator[InferencePool]:
    pool = InferencePool(2, backlog=4)
    yield pool
    pool.close()


class Held:
    """A job that runs until it is let go; a worker says when it has begun."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()

    def __call__(self, value: int = 0) -> int:
        self.begun.set()
        if not self.go.wait(10):
            raise TimeoutError("nobody let this job go")
        return value


def occupy(pool: InferencePool) -> list[Held]:
    """Keep every worker busy."""
    held = [Held() for _ in range(pool.workers)]
    for job in held:
        pool.submit(job)
        assert job.begun.wait(10)
    return held


async def ticked(jobs: Jobs, last: int, futures: list[asyncio.Future[str]]) -> dict[str, int]:
    """Tick frame by frame up to `last`; at which sample each future's result was applied."""
    applied: dict[str, int] = {}
    now = 0
    for future in futures:
        future.add_done_callback(lambda done: applied.setdefault(done.result(), now))
    for now in range(0, last + 1, FRAME):
        jobs.tick(now)
        await asyncio.sleep(0)
    return applied


async def test_a_result_counts_at_the_first_frame_after_its_cost(pool: InferencePool) -> None:
    jobs = Jobs(pool, {"turn": 1_600, "stt": 1_601, "tts": 320})
    futures = [jobs.submit(kind, str, kind) for kind in ("turn", "stt", "tts")]
    assert await ticked(jobs, 4_000, futures) == {"tts": 320, "turn": 1_600, "stt": 1_920}
    assert list(jobs.costs) == ["turn", "stt", "tts"]
    assert jobs.statistics().late == 0


async def test_jobs_count_from_the_tick_they_were_submitted_at(pool: InferencePool) -> None:
    jobs = Jobs(pool)
    jobs.tick(10_000)
    future = jobs.submit("turn", int, "7")
    jobs.tick(10_000 + DEFAULT_COSTS["turn"] - 1)
    assert not future.done()
    jobs.tick(10_000 + DEFAULT_COSTS["turn"])
    assert await future == 7


async def test_a_tie_resolves_in_order_of_submission(pool: InferencePool) -> None:
    jobs = Jobs(pool, {"a": 640, "b": 320})
    order: list[str] = []

    async def waiter(name: str, kind: str) -> None:
        order.append(await jobs.submit(kind, str, name))

    async with asyncio.TaskGroup() as group:
        for name, kind in (("first", "a"), ("second", "b"), ("third", "a"), ("fourth", "b")):
            group.create_task(waiter(name, kind))
        await asyncio.sleep(0)
        jobs.tick(640)
    assert order == ["second", "fourth", "first", "third"]


async def test_a_virtual_loop_waits_for_a_slow_job_with_time_frozen(pool: InferencePool) -> None:
    loop = asyncio.get_running_loop()
    jobs = Jobs(pool, {"stt": 320})
    slow = Held()
    future = jobs.submit("stt", slow, 5)
    threading.Timer(0.02, slow.go.set).start()
    before = loop.time()
    jobs.tick(320)
    assert await future == 5
    assert loop.time() == before
    assert jobs.statistics().late == 0


@pytest.mark.real_loop
async def test_a_real_loop_counts_a_slow_job_late_and_goes_on(pool: InferencePool) -> None:
    jobs = Jobs(pool, {"stt": 320})
    slow = Held()
    future = jobs.submit("stt", slow, 5)
    quick = jobs.submit("stt", int, "6")
    jobs.tick(320)
    jobs.tick(640)
    assert not future.done()
    assert jobs.statistics().late in (1, 2)
    slow.go.set()
    at = 640
    while not (future.done() and quick.done()):
        at += 320
        jobs.tick(at)
        await asyncio.sleep(0.001)
    assert (await future, await quick) == (5, 6)
    assert jobs.statistics().resolved == 2


async def test_live_jobs_on_a_virtual_loop_resolve_in_order_without_time(
    pool: InferencePool,
) -> None:
    loop = asyncio.get_running_loop()
    jobs = Jobs(pool, frame_clocked=False)
    slow = Held()
    order: list[int] = []
    futures = [jobs.submit("stt", slow, 1), jobs.submit("tts", int, "2")]
    for future in futures:
        future.add_done_callback(lambda done: order.append(done.result()))
    threading.Timer(0.02, slow.go.set).start()
    assert await asyncio.gather(*futures) == [1, 2]
    assert order == [1, 2]
    assert loop.time() == 0.0


@pytest.mark.real_loop
async def test_live_jobs_on_a_real_loop_resolve_as_soon_as_ready(pool: InferencePool) -> None:
    jobs = Jobs(pool, frame_clocked=False)
    slow = Held()
    first, second = jobs.submit("stt", slow, 1), jobs.submit("stt", int, "2")
    assert await second == 2
    assert not first.done()
    slow.go.set()
    assert await first == 1


async def test_a_job_of_cost_zero_does_not_wait_for_a_tick(pool: InferencePool) -> None:
    jobs = Jobs(pool, {"turn": 0})
    assert await jobs.submit("turn", sum, [1, 2]) == 3


@pytest.mark.parametrize("frame_clocked", [True, False])
async def test_a_failure_belongs_to_who_awaits_it(pool: InferencePool, frame_clocked: bool) -> None:
    jobs = Jobs(pool, {"turn": 320}, frame_clocked)
    future = jobs.submit("turn", int, "seven")
    jobs.tick(320)
    with pytest.raises(ValueError, match="seven"):
        await future


async def test_a_cancelled_waiter_drops_a_job_no_worker_has_taken(pool: InferencePool) -> None:
    jobs = Jobs(pool)
    held = occupy(pool)
    ran = threading.Event()

    async def waiter() -> None:
        await jobs.submit("stt", ran.set)

    task = asyncio.ensure_future(waiter())
    await asyncio.sleep(0)
    assert pool.statistics().waiting == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert pool.statistics().waiting == 0
    assert jobs.statistics().dropped == 1
    assert jobs.statistics().pending == 0
    for job in held:
        job.go.set()
    jobs.tick(100_000)
    pool.close()
    assert not ran.is_set()


async def test_the_result_of_a_detached_running_job_is_discarded(pool: InferencePool) -> None:
    jobs = Jobs(pool)
    slow = Held()
    future = jobs.submit("stt", slow, 3)
    assert slow.begun.wait(10)
    future.cancel()
    await asyncio.sleep(0)
    jobs.tick(100_000)
    slow.go.set()
    pool.close()
    assert pool.statistics().completed == 1
    assert jobs.statistics().dropped == 1


async def test_cancel_detaches_everything(pool: InferencePool) -> None:
    jobs = Jobs(pool)
    held = occupy(pool)
    futures = [jobs.submit("stt", int, "1") for _ in range(3)]
    jobs.cancel()
    await asyncio.sleep(0)
    assert all(future.cancelled() for future in futures)
    assert jobs.statistics().pending == 0
    for job in held:
        job.go.set()


async def test_a_full_backlog_is_refused_with_the_remedy(pool: InferencePool) -> None:
    jobs = Jobs(pool)
    held = occupy(pool)
    futures = [jobs.submit("stt", int, "1") for _ in range(4)]
    with pytest.raises(InferenceOverloaded, match="raise workers"):
        jobs.submit("stt", int, "1")
    assert pool.statistics().refused == 1
    for job in held:
        job.go.set()
    jobs.tick(100_000)
    assert await asyncio.gather(*futures) == [1] * 4
    assert pool.statistics().waiting == 0


async def test_misuse_is_named(pool: InferencePool) -> None:
    with pytest.raises(MediaValueError, match="kind"):
        Jobs(pool).submit("weather", int, "1")
    with pytest.raises(MediaValueError, match="turn"):
        Jobs(pool, {"turn": -1})
    with pytest.raises(MediaValueError, match="workers"):
        InferencePool(0)
    pool.close()
    with pytest.raises(InferenceOverloaded, match="closed"):
        pool.submit(int)
    assert pool.statistics().waiting == 0


def test_warming_runs_every_step_and_reports_a_failure(pool: InferencePool) -> None:
    done: list[str] = []
    pool.warm([lambda: done.append("a"), lambda: done.append("b")])
    assert sorted(done) == ["a", "b"]
    with pytest.raises(ValueError, match="bad"):
        pool.warm([lambda: int("bad"), lambda: done.append("c")])
    assert "c" in done


def test_a_session_is_loaded_once_and_a_bad_file_is_named(tmp_path: Path) -> None:
    model = locate("silero-vad")
    assert onnx_session(model) is onnx_session(model)
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"nothing")
    with pytest.raises(ModelUnusable, match="bad.onnx"):
        onnx_session(bad)


def test_loading_a_model_leaves_no_trace_in_the_users_home(tmp_path: Path) -> None:
    code = (
        "from voxglove.media.inference import onnx_session;"
        "from voxglove.media.models import locate; onnx_session(locate('silero-vad'))"
    )
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", code], check=True, env=home)
    left = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert left == ["cache/voxglove/models.json"]
