"""PostgreSQL behind the store suite, and pools for the tests beside it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.core.store_suite import FullStore
from tests.support.postgres import PostgresServer
from voxglove.adapters.stores.postgres import PostgresConfig, PostgresPool, open_postgres


async def open_pool(server: PostgresServer, schema: str, **settings: object) -> PostgresPool:
    config = PostgresConfig(schema=schema, **settings)  # type: ignore[arg-type]
    return await open_postgres(server.dsn(), config)


@asynccontextmanager
async def opened(
    server: PostgresServer, schema: str, **settings: object
) -> AsyncIterator[PostgresPool]:
    """A pool on `schema`, closed at the end."""
    async with await open_pool(server, schema, **settings) as pool:
        yield pool


class PostgresRig:
    """One pool. A store keeps nothing but what it has read, so a new one is as after a restart;
    what other processes see is for test_processes and test_kill."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    async def open(self, conversation: str) -> FullStore:
        return self._pool.store(conversation)

    async def reopen(self, store: FullStore) -> FullStore:
        return self._pool.store(store.identifier)


class Peer:
    """peer.py in a process of its own."""

    def __init__(self, server: PostgresServer, schema: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("peer.py")), server.dsn(), schema],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Its next line; blocks."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> list[str]:
        """SIGKILL it and return the lines that nobody has read."""
        self._process.kill()
        rest, _ = self._process.communicate()
        return str(rest).splitlines()


@contextmanager
def peers(server: PostgresServer, schema: str, count: int) -> Iterator[list[Peer]]:
    """Processes that are ready; killed at the end whatever happens."""
    started = [Peer(server, schema) for _ in range(count)]
    try:
        assert [peer.answer() for peer in started] == ["ready"] * count
        yield started
    finally:
        for peer in started:
            peer.kill()
