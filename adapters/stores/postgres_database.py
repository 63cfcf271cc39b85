"""Database: lends connections, gives each try its bound, and turns failures into StoreError.

Owned by a PostgresPool, shared by its stores. It knows the schema's name and no table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ...core.errors import StoreError
from .postgres_config import PostgresConfig
from .postgres_wire import Connection, Pool, connection_lost, failed, failures

T = TypeVar("T")
SCHEMA = "{s}"
"""Stands for the quoted schema in SQL: a search_path would not survive a pooler."""


class Database:
    """One pool and one schema."""

    def __init__(self, pool: Pool, config: PostgresConfig) -> None:
        self.config = config
        self._pool = pool
        self._closed = False

    def sql(self, text: str) -> str:
        """The statement with our schema in it."""
        return text.replace(SCHEMA, f'"{self.config.schema}"')

    async def run(
        self,
        doing: str,
        work: Callable[[Connection], Awaitable[T]],
        *,
        again: bool = False,
        atomic: bool = False,
    ) -> T:
        """Do `work` on a connection of the pool.

        `atomic` wraps it in one transaction; a single statement is one by itself. With `again` work
        that finds its connection dead is done once more on another: for reads, and for writes that
        come to the same when done twice. Raises StoreError (`doing` says what failed). A cancelled
        call has either committed or left nothing, and its connection goes back usable: asyncpg asks
        the server to stop and waits for that before it lends the connection again.
        """
        for may_retry in (again, False):
            try:
                return await self._once(work, atomic)
            except failures() as error:
                if not (may_retry and connection_lost(error)) or self._closed:
                    raise self._failed(doing, error) from error
        raise AssertionError("the second try returns or raises")

    async def _once(self, work: Callable[[Connection], Awaitable[T]], atomic: bool) -> T:
        async with self._pool.acquire(timeout=self.config.acquire_timeout_s) as connection:
            if atomic or self.config.transaction_pooling:
                async with connection.transaction():
                    return await work(connection)
            return await work(connection)

    def _failed(self, doing: str, error: Exception) -> StoreError:
        if self._closed:
            return StoreError(f"PostgreSQL: {doing}: the pool is closed")
        return failed(doing, error)

    async def close(self) -> None:
        """Wait for running calls up to `close_timeout_s`, then drop them. Safe to call again."""
        self._closed = True
        try:
            async with asyncio.timeout(self.config.close_timeout_s):
                await self._pool.close()
        except failures():
            # The server is gone or a call hangs: asyncpg has dropped the connections itself by now,
            # unless it failed before it began.
            self._pool.terminate()
