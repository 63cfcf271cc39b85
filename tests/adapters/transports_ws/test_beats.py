"""One timer for all lines, looks in between, and nobody who suffers by another."""

from __future__ import annotations

import asyncio
import logging

import pytest

from voxglove.adapters.transports.beats import Beats


async def test_calls_come_in_the_order_of_their_moments_and_on_time() -> None:
    beats, loop = Beats(), asyncio.get_running_loop()
    began = loop.time()
    came: list[tuple[int, float]] = []
    for ms in (30, 10, 50, 20):
        beats.call_at(began + ms / 1000, lambda now, ms=ms: came.append((ms, now - began)))  # type: ignore[misc]
    await asyncio.sleep(0.1)
    assert [ms for ms, _ in came] == [10, 20, 30, 50]
    assert all(at == pytest.approx(ms / 1000, abs=0.001) for ms, at in came)
    assert beats.next == float("inf")


async def test_who_is_about_to_work_lets_those_go_that_are_due() -> None:
    beats, now = Beats(), asyncio.get_running_loop().time()
    came: list[float] = []
    for number in range(5):
        beats.call_at(now + number, came.append)
    assert beats.next == now
    beats.catch_up(now + 2)
    assert came == [now + 2] * 3
    assert beats.next == now + 3, "the others keep their moments"
    await asyncio.sleep(10)
    assert len(came) == 5


async def test_a_look_that_asks_again_is_called_again() -> None:
    beats, loop = Beats(), asyncio.get_running_loop()
    came: list[float] = []

    def look(now: float) -> None:
        came.append(now)
        if len(came) < 5:
            beats.call_at(now + 0.02, look)

    beats.call_at(loop.time() + 0.02, look)
    await asyncio.sleep(1)
    assert len(came) == 5


async def test_one_that_raises_is_logged_and_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    beats, loop = Beats(), asyncio.get_running_loop()
    came: list[float] = []

    def fail(now: float) -> None:
        raise RuntimeError("broken socket")

    for look in (fail, came.append):
        beats.call_at(loop.time() + 0.01, look)
        beats.call_at(loop.time() + 0.02, look)
    with caplog.at_level(logging.ERROR):
        await asyncio.sleep(0.1)
    assert len(came) == 2
    assert "broken socket" in caplog.text
