"""A network that misbehaves on purpose, on loopback: drops, stalls, half-open peers, slow readers.

A test owns a proxy for the length of its `async with`; on the way out every connection and task of
it is gone. It changes when bytes arrive, never what they are.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

CHUNK = 64 * 1024


class ChaosProxy:
    """Forwards TCP from `address` to the upstream it was made for.

    `stall()` holds bytes back until `flow()`; `half_open()` swallows them for good while both
    ends keep believing in the connection; `drop()` resets every open connection at once. New
    connections start in the current mode. Make it by `chaos_proxy`.
    """

    def __init__(self, upstream: tuple[str, int], group: asyncio.TaskGroup) -> None:
        self._upstream = upstream
        self._group = group
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._swallowing = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.address = ("127.0.0.1", 0)
        self.accepted = 0

    def stall(self) -> None:
        """Hold every byte of both directions back; the sockets stay open and fill up."""
        self._flowing.clear()

    def flow(self) -> None:
        """Forward again, first what was held back."""
        self._flowing.set()

    def half_open(self) -> None:
        """From now on bytes vanish: what a lost route looks like before any time-out."""
        self._swallowing = True

    def drop(self) -> int:
        """Reset every open connection; both ends see ECONNRESET. Returns how many sockets."""
        writers, self._writers = self._writers, set()
        for writer in writers:
            _reset(writer)
        return len(writers)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client came. Called by the server of `chaos_proxy`."""
        self.accepted += 1
        self._own(self._relay(reader, writer))

    def cancel(self) -> None:
        """End every relay. Called by `chaos_proxy` on the way out."""
        for task in self._tasks:
            task.cancel()

    def _own(self, relay: Coroutine[Any, Any, None]) -> None:
        task = self._group.create_task(relay)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close, writer)
            self._writers.add(writer)
            up_reader, up_writer = await asyncio.open_connection(*self._upstream)
            stack.push_async_callback(self._close, up_writer)
            self._writers.add(up_writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, up_writer))
                group.create_task(self._pump(up_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(CHUNK):
                await self._flowing.wait()
                if not self._swallowing:
                    writer.write(data)
                    await writer.drain()
            await self._flowing.wait()
            if not self._swallowing and writer.can_write_eof():
                writer.write_eof()
        except OSError:
            _reset(writer)  # a reset on one side is a reset on the other

    async def _close(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.close()
        try:
            await writer.wait_closed()
        except OSError:
            return  # it was reset, and so it is closed


@asynccontextmanager
async def chaos_proxy(host: str, port: int) -> AsyncIterator[ChaosProxy]:
    """A proxy in front of host:port; connect to its `address` instead."""
    async with asyncio.TaskGroup() as group:
        proxy = ChaosProxy((host, port), group)
        server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
        proxy.address = server.sockets[0].getsockname()[:2]
        try:
            yield proxy
        finally:
            server.close()
            proxy.cancel()


async def slow_read(
    reader: asyncio.StreamReader, chunk: int, pause_s: float
) -> AsyncIterator[bytes]:
    """At most `chunk` bytes each `pause_s` seconds of the loop's clock: a peer that cannot keep up.

    Give its connection a small receive buffer (`narrow`), or the kernel reads on in its place.
    """
    while data := await reader.read(chunk):
        yield data
        await asyncio.sleep(pause_s)


def narrow(writer: asyncio.StreamWriter, size: int = 4096) -> None:
    """Make a connection's kernel buffers small, so that back-pressure shows after little data."""
    held: socket.socket = writer.get_extra_info("socket")
    held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)


def _reset(writer: asyncio.StreamWriter) -> None:
    held: socket.socket | None = writer.get_extra_info("socket")
    if held is not None and held.fileno() >= 0:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
