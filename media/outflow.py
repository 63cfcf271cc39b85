"""Whether sound may flow out of a line now, and who waits for it.

Owned by `Line`. Holds no sound and no positions.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from .errors import LineClosed

Stop = Literal["paused", "unsettled", "detached"]
"""`unsettled`: the carrier may still say where the last pause really stopped."""


class Outflow:
    """Open when no stop is in force; `shut` for good ends every wait with LineClosed."""

    def __init__(self) -> None:
        self.order = asyncio.Lock()
        """Held by whoever sends: frames keep the order of their `play` calls."""
        self._stops: set[Stop] = {"detached"}
        self._closed = False
        self._waiting: list[asyncio.Future[None]] = []
        self._ticking: list[asyncio.Future[None]] = []
        """Whoever waits for the next 20 ms."""

    @property
    def open(self) -> bool:
        """Whether sound may flow."""
        return not self._stops and not self._closed

    def stopped(self, stop: Stop) -> bool:
        """Whether `stop` is in force."""
        return stop in self._stops

    def stop(self, stop: Stop) -> None:
        """Sound stays here until `release(stop)`."""
        self._stops.add(stop)

    def release(self, stop: Stop) -> None:
        """`stop` is over; sound flows when no other one is in force. Everyone looks again."""
        self._stops.discard(stop)
        _wake(self._waiting)

    async def changed(self) -> None:
        """Wait for a release. Raises LineClosed."""
        self.check()
        await _park(self._waiting)
        self.check()

    async def next_tick(self) -> None:
        """Wait for the next 20 ms of the input clock. Raises LineClosed."""
        self.check()
        await _park(self._ticking)
        self.check()

    @property
    def ticking(self) -> bool:
        """Whether anybody waits for `tick`."""
        return bool(self._ticking)

    def tick(self) -> None:
        """20 ms passed on the input clock."""
        _wake(self._ticking)

    def check(self) -> None:
        """Raise LineClosed after `shut`."""
        if self._closed:
            raise LineClosed("the call has ended")

    def shut(self) -> None:
        """The call ended."""
        self._closed = True
        _wake(self._waiting)
        _wake(self._ticking)


async def _park(where: list[asyncio.Future[None]]) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    where.append(future)
    try:
        await future
    finally:
        if future in where:
            where.remove(future)


def _wake(where: list[asyncio.Future[None]]) -> None:
    if not where:
        return
    waiting, where[:] = where[:], []
    for future in waiting:
        if not future.done():
            future.set_result(None)
