"""A proxy in front of a PostgreSQL socket that lets a request through and loses its answer.

It reads the server's side as messages (one byte of kind, four of length) and cuts the connection in
place of a chosen CommandComplete, once the server is ready again: what it was asked is done then,
and committed unless a transaction is open.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

SOCKET = ".s.PGSQL.5432"
READY = b"Z"
DONE = (b"C", b"E")
"""CommandComplete and ErrorResponse."""


class LossyProxy:
    """Forwards everything until told to lose an answer, or all. `lost` counts the first kind."""

    def __init__(self, upstream: Path, folder: Path, group: asyncio.TaskGroup) -> None:
        self._upstream = upstream
        self._group = group
        self._left: int | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.folder = folder
        self.lost = 0

    def lose_next_answer(self, skip: int = 0) -> None:
        """Lose the answer to the next statement, or after `skip` more of them."""
        self._left = skip

    def freeze(self) -> None:
        """From now on no answer comes, and no connection ends: as when a route is lost."""
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_unix_connection(str(self._upstream / SOCKET))
        forth = self._group.create_task(_copy(reader, up_writer))
        try:
            await self._answers(up_reader, writer)
        finally:
            forth.cancel()
            for one in (writer, up_writer):
                one.close()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward the server's messages one by one; returns where it cuts."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                kind, message = await _message(reader)
                if kind in DONE and self._lose():
                    while kind != READY:  # by then it is committed
                        kind, _ = await _message(reader)
                    return
                await self._flowing.wait()
                writer.write(message)
                await writer.drain()

    def _lose(self) -> bool:
        """Whether this answer is the one; a mere Parse or Describe has no such answer."""
        if self._left is None:
            return False
        self._left -= 1
        if self._left >= 0:
            return False
        self._left = None
        self.lost += 1
        return True


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The next message of the server: its kind, and all of it."""
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(int.from_bytes(head[1:]) - 4)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


@asynccontextmanager
async def lossy_proxy(upstream: Path) -> AsyncIterator[LossyProxy]:
    """A proxy to the server in `upstream`; its own folder takes the place of the server's."""
    folder = Path(tempfile.mkdtemp(prefix="voxglove-pg-", dir="/tmp"))
    try:
        async with asyncio.TaskGroup() as group:
            proxy = LossyProxy(upstream, folder, group)
            server = await asyncio.start_unix_server(proxy.accept, str(folder / SOCKET))
            async with server:
                try:
                    yield proxy
                finally:
                    proxy.thaw()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
