"""Writes to one WebSocket: at once while its peer reads, in order and bounded while it does not.

Owned by a transport, whose `run` runs this one's. A frame costs no task and no timer: they come in
only when the socket is full. Never looks at what it writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from .outbox import Outbox

WRITE_DEADLINE_S = 5.0
"""A peer that takes nothing for so long is a slow consumer (close 4002)."""


class Socket(Protocol):
    """What the transport needs of a WebSocket, whoever implements it.

    Iteration gives whole messages and ends when the socket is closed for whatever reason; then
    `close_code` is the peer's code, or None when the connection broke. `write` takes a whole
    message at once, also when `writable` is False, and raises ConnectionError on a broken
    connection, as `drained` does. `close` is bounded in time and may be called in any state.
    """

    @property
    def close_code(self) -> int | None: ...

    @property
    def writable(self) -> bool:
        """Whether its buffers have room for more."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes | str]: ...

    def write(self, data: bytes | str) -> None: ...

    async def drained(self) -> None:
        """Wait until most of what was written has left."""
        ...

    async def close(self, code: int, reason: str) -> None: ...


class Writer:
    """Bytes are sound, strings are messages; both leave in the order in which they came."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._outbox = Outbox()
        self._broken: ConnectionError | None = None
        self._work = asyncio.Event()
        """Set when `run` has something to do: write, fail, or return."""

    @property
    def closed(self) -> bool:
        """Whether nothing more is taken in."""
        return self._outbox.closed

    @property
    def audio_full(self) -> bool:
        """Whether no more sound should be given now."""
        return self._outbox.audio_full

    def audio(self, pcm: bytes) -> None:
        """Write sound. The caller looks at `audio_full` first. Nothing after `close`."""
        if not self._written(pcm):
            self._outbox.put_audio(pcm)
            self._work.set()

    def text(self, text: str) -> bool:
        """Write a message. False, and nothing is written, when too many wait already; True and no
        effect after `close`."""
        if self._written(text):
            return True
        self._work.set()
        return self._outbox.put_text(text)

    async def run(self) -> None:
        """Write what could not be written at once, until `close` and all of it has left.

        Raises ConnectionError as the socket does, also where `audio` or `text` met it, and
        TimeoutError when the peer takes nothing for WRITE_DEADLINE_S.
        """
        while True:
            await self._write_queued()
            if self._broken is not None:
                raise self._broken
            if self.closed:
                return
            self._work.clear()
            await self._work.wait()

    def drop_audio(self) -> None:
        """Forget sound that waits; messages stay in order."""
        self._outbox.drop_audio()

    def drop_all(self) -> None:
        """Forget everything that waits."""
        self._outbox.drop_all()

    def close(self) -> None:
        """Take nothing more in; `run` returns when what waits has been written."""
        self._outbox.close()
        self._work.set()

    def _written(self, item: bytes | str) -> bool:
        if self._outbox or self._outbox.closed or not self._socket.writable:
            return False
        try:
            self._socket.write(item)
        except ConnectionError as error:
            self._broken = error
            self.close()
        return True

    async def _write_queued(self) -> None:
        while self._outbox:
            if not self._socket.writable:
                async with asyncio.timeout(WRITE_DEADLINE_S):
                    await self._socket.drained()
            if self._outbox:
                self._socket.write(self._outbox.pop())
