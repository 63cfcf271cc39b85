"""A carrier moved by hand, for tests of `Line` and `Call` that need every sample position.

Plays exactly as many samples as it is told, with an exact clock or one that guesses wrong by
`error` and corrects itself when told to. Owned by the test that made it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import numpy as np
from numpy.typing import NDArray

from voxglove.media.errors import TransportError
from voxglove.media.format import PIPELINE, AudioFormat
from voxglove.media.frame import AudioFrame
from voxglove.media.transport import HORIZON_MS, Played, Signal, TransportInfo

Item = AudioFrame | Signal | Exception


class HandCarrier:
    """`error` = samples by which the clock is ahead of the truth; None: the clock is exact."""

    def __init__(
        self,
        rate: int = 16_000,
        *,
        error: int | None = None,
        input: AudioFormat = PIPELINE,
        channels: int = 1,
    ) -> None:
        self.info = TransportInfo(
            kind="hand",
            input=input,
            output=AudioFormat(rate, channels),
            clock="exact" if error is None else "estimate",
        )
        self.clears = 0
        self.epoch = 0
        self.closed: list[str] = []
        self.fails: Exception | None = None
        """What `send` raises from now on."""
        self.close_takes_s = 0.0
        self.messages: list[Mapping[str, object]] = []
        self._error = error or 0
        self._queue = b""
        self._heard = b""
        self._base = self._true = 0
        self._last: tuple[int, int] | None = None
        self._moved = asyncio.Event()
        self._items: asyncio.Queue[Item | None] = asyncio.Queue(10_000)

    @property
    def heard(self) -> NDArray[np.int16]:
        """Every sample that sounded, without the silence between."""
        return np.frombuffer(self._heard, np.int16)

    @property
    def unplayed(self) -> int:
        return len(self._queue) // 2

    def advance(self, samples: int) -> int:
        """The person hears up to `samples` more; how many there were."""
        now, self._queue = self._queue[: 2 * samples], self._queue[2 * samples :]
        self._heard += now
        self._true += len(now) // 2
        self._moved.set()
        return len(now) // 2

    def correction(self) -> Played:
        """The truth about the stop closed last; from here on the carrier counts from it."""
        assert self._last is not None
        stop, true = self._last
        self._base += true - stop
        return Played(true, self.epoch - 1)

    def give(self, *items: Item) -> None:
        """What `receive` yields, or raises, next."""
        for item in items:
            self._items.put_nowait(item)

    def end(self) -> None:
        """`receive` ends."""
        self._items.put_nowait(None)

    async def receive(self) -> AsyncIterator[AudioFrame | Signal]:
        while (item := await self._items.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item

    async def send(self, frame: AudioFrame) -> bool:
        assert frame.format == self.info.output
        epoch = self.epoch
        while self.unplayed and self.unplayed + frame.samples > self._horizon:
            self._moved.clear()
            await self._moved.wait()
            if epoch != self.epoch:
                return False
        if self.fails is not None:
            raise self.fails
        self._queue += frame.pcm
        return True

    def clear(self) -> int:
        stop, true = self.played(), self._base + self._true
        self._last = (stop, true)
        self._queue = b""
        self._base, self._true = stop, 0
        self.clears += 1
        self.epoch += 1
        self._moved.set()
        return stop

    def played(self) -> int:
        sent = self._true + self.unplayed
        guess = self._true + self._error if self._queue else self._true
        return self._base + min(max(guess, 0), sent)

    async def send_data(self, message: Mapping[str, object]) -> None:
        self.messages.append(message)

    async def aclose(self, reason: str) -> None:
        self.closed.append(reason)
        self.end()
        if self.close_takes_s:
            await asyncio.sleep(self.close_takes_s)

    @property
    def _horizon(self) -> int:
        return self.info.output.samples(HORIZON_MS)


class BrokenClose(HandCarrier):
    """`aclose` fails with something no port names."""

    async def aclose(self, reason: str) -> None:
        self.closed.append(reason)
        raise KeyError("socket")


def gone(why: str = "the network is gone") -> TransportError:
    """What a carrier raises when it fails."""
    return TransportError(why)
