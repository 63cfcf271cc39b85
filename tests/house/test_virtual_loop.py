"""The virtual loop: time jumps when nothing real is pending, and never otherwise."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.vloop import Stuck, VirtualLoop, current, run_virtual


async def test_an_hour_of_sleep_takes_no_real_time() -> None:
    began = time.monotonic()
    await asyncio.sleep(3600)
    assert asyncio.get_running_loop().time() == pytest.approx(3600)
    assert time.monotonic() - began < 1.0


async def test_timers_run_in_order_at_their_own_time() -> None:
    loop = asyncio.get_running_loop()
    fired: list[tuple[float, float]] = []

    def fire(delay: float) -> None:
        fired.append((delay, round(loop.time(), 6)))

    for delay in (0.3, 0.1, 0.2):
        loop.call_later(delay, fire, delay)
    await asyncio.sleep(0.5)
    assert fired == [(0.1, 0.1), (0.2, 0.2), (0.3, 0.3)]


async def test_a_thread_job_freezes_the_clock() -> None:
    ticks = 0

    async def ticker() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    async with asyncio.TaskGroup() as group:
        running = group.create_task(ticker())
        await asyncio.sleep(0.01)
        before = current().time()
        await asyncio.to_thread(time.sleep, 0.05)
        assert current().time() == before and ticks == 0
        running.cancel()
    assert current().held == 0


async def test_a_cancelled_awaiter_keeps_the_clock_frozen_until_the_thread_is_done() -> None:
    go = threading.Event()
    seen: list[str] = []

    def in_thread() -> None:
        go.wait(5)
        seen.append("thread")

    async def job() -> None:
        await asyncio.to_thread(in_thread)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(job())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert current().held == 1
        go.set()
        await asyncio.sleep(1)
    assert seen == ["thread"] and current().held == 0


async def test_a_job_cancelled_in_the_queue_frees_the_clock() -> None:
    loop, go = current(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        first = loop.run_in_executor(pool, go.wait)
        second = loop.run_in_executor(pool, go.wait)
        second.cancel()
        await asyncio.sleep(0)
        assert loop.held == 1
        go.set()
        await first
    await asyncio.sleep(0)
    assert loop.held == 0


async def test_many_jobs_never_look_like_a_deadlock() -> None:
    for _ in range(200):
        await asyncio.to_thread(int)
    assert current().time() == 0


async def test_hold_freezes_the_clock_for_a_peer_the_loop_cannot_see() -> None:
    loop = current()
    answered = asyncio.Event()
    peer = threading.Timer(0.05, lambda: loop.call_soon_threadsafe(answered.set))
    peer.start()
    with loop.hold():
        await asyncio.wait_for(answered.wait(), 5)
    assert loop.time() == 0
    peer.join()


async def test_loopback_data_is_seen_before_time_moves() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(4))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"ping")
        assert await asyncio.wait_for(reader.readexactly(4), 5) == b"ping"
        assert current().time() == 0
        writer.close()
        await writer.wait_closed()


def test_a_deadlock_is_reported_at_once_and_names_the_task_and_its_place() -> None:
    async def waits_for_ever() -> None:
        asyncio.current_task().set_name("the-culprit")  # type: ignore[union-attr]
        await asyncio.Event().wait()

    with pytest.raises(Stuck, match=r"deadlock at 0\.000 s.*\n.*the-culprit: .*in wait"):
        run_virtual(waits_for_ever())


def test_a_hold_that_never_ends_is_a_deadlock_after_the_patience() -> None:
    async def held() -> None:
        with current().hold():
            await asyncio.Event().wait()

    with pytest.raises(Stuck, match="did not end within 0.05 real seconds"):
        run_virtual(held(), patience=0.05)


def test_the_loop_says_that_it_is_virtual() -> None:
    assert VirtualLoop.is_virtual
    assert not getattr(asyncio.SelectorEventLoop, "is_virtual", False)


@pytest.mark.real_loop
async def test_a_marked_test_runs_on_the_real_loop() -> None:
    assert not getattr(asyncio.get_running_loop(), "is_virtual", False)
