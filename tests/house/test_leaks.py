"""The leak check itself: each kind of leak is named, and a clean run is clean."""

from __future__ import annotations

import asyncio
import os
import socket
import threading

from tests.support import leaks
from tests.support.vloop import run_virtual


def test_a_clean_run_reports_nothing() -> None:
    with leaks.watching() as watch:
        run_virtual(asyncio.sleep(1))
    assert leaks.leaked(watch) == []


def test_a_forgotten_task_is_named_with_its_place() -> None:
    forgotten: set[asyncio.Task[bool]] = set()

    async def forgets() -> None:
        group = asyncio.get_running_loop()
        forgotten.add(group.create_task(asyncio.Event().wait(), name="forgotten"))
        await asyncio.sleep(0)

    with leaks.watching() as watch:
        run_virtual(forgets())
    (line,) = leaks.leaked(watch)
    assert line.startswith("task forgotten: ") and line.endswith("in wait")


def test_a_running_thread_is_named_and_a_pool_thread_is_not() -> None:
    stop = threading.Event()
    with leaks.watching() as watch:
        stray = threading.Thread(target=stop.wait, name="stray")
        pool = threading.Thread(target=stop.wait, name="voxglove-inference-0")
        stray.start()
        pool.start()
    leaks.SETTLE_S, was = 0.02, leaks.SETTLE_S
    try:
        assert leaks.leaked(watch) == ["thread stray"]
    finally:
        leaks.SETTLE_S = was
        stop.set()
        stray.join()
        pool.join()
    assert leaks.leaked(watch) == []


def test_an_open_socket_and_a_pipe_are_named() -> None:
    with leaks.watching() as watch:
        held = socket.socket()
        ends = os.pipe()
    leaks.SETTLE_S, was = 0.02, leaks.SETTLE_S
    try:
        found = leaks.leaked(watch)
    finally:
        leaks.SETTLE_S = was
        held.close()
        for end in ends:
            os.close(end)
    assert sum("socket:" in line for line in found) == 1
    assert sum("pipe:" in line for line in found) == 2


def test_a_settling_server_task_is_no_leak() -> None:
    async def leaves_a_task_that_is_about_to_end() -> None:
        closing = asyncio.get_running_loop().create_task(asyncio.sleep(0))
        assert not closing.done()

    with leaks.watching() as watch:
        run_virtual(leaves_a_task_that_is_about_to_end())
    assert leaks.leaked(watch) == []
