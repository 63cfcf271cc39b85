"""The seam to asyncpg: the part of it that is used, typed, and its exceptions mapped.

The only module that imports asyncpg. It holds no SQL of ours and no state.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, cast

from ...core.errors import StoreError, UsageError

if TYPE_CHECKING:
    from .postgres_config import PostgresConfig


class Row(Protocol):
    """One row: values by column name, of the types that PostgreSQL declares for them."""

    def __getitem__(self, key: str) -> Any: ...


class Connection(Protocol):
    """A connection lent by the pool."""

    async def execute(
        self,
        query: str,
        *args: object,
        timeout: float | None = None,  # noqa: ASYNC109 - asyncpg's, for what takes longer
    ) -> str: ...

    async def fetch(self, query: str, *args: object) -> list[Row]: ...

    async def fetchrow(self, query: str, *args: object) -> Row | None: ...

    async def fetchval(self, query: str, *args: object) -> Any: ...

    def transaction(self) -> AbstractAsyncContextManager[object]: ...


class Pool(Protocol):
    """asyncpg's pool."""

    def acquire(
        self, *, timeout: float | None = None
    ) -> AbstractAsyncContextManager[Connection]: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...


async def connect_pool(dsn: str, config: PostgresConfig) -> Pool:
    """Open a pool with `min_size` live connections.

    Raises StoreError when the server cannot be reached or refuses, UsageError when the DSN cannot
    be read, ImportError without the extra `postgres`. None ever holds the DSN: asyncpg quotes
    pieces of one it cannot read, and a password with a bare `/` or `@` is such a piece.
    """
    import asyncpg

    unreadable = False
    expected: tuple[type[Exception], ...] = (*failures(), ValueError)
    try:
        pool = await asyncpg.create_pool(
            dsn,
            min_size=config.min_size,
            max_size=config.max_size,
            timeout=config.connect_timeout_s,
            command_timeout=config.command_timeout_s,
            statement_cache_size=0 if config.transaction_pooling else config.statement_cache_size,
            server_settings={"application_name": config.application_name},
            reset=_keep_session,
        )
    except expected as error:
        unreadable = isinstance(error, ValueError)
        if not unreadable:
            raise failed("could not open a connection", error) from error
    if unreadable:  # outside the handler, so that not even the context holds what asyncpg quoted
        raise UsageError(
            "dsn: not readable as postgresql://user:password@host:port/database; "
            "percent-encode special characters of user and password"
        )
    return cast(Pool, pool)


async def _keep_session(connection: object) -> None:
    """Instead of a `RESET ALL` after every use: nothing here changes a session's settings."""


def failures() -> tuple[type[Exception], ...]:
    """What asyncpg raises when something fails; TimeoutError is an OSError."""
    import asyncpg

    return (
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
        OSError,
    )


def failed(doing: str, error: Exception) -> StoreError:
    """The StoreError for a failure of asyncpg; the caller raises it from `error`."""
    if isinstance(error, TimeoutError):
        return StoreError(f"PostgreSQL: {doing}: no answer in time")
    code = getattr(error, "sqlstate", None)
    kind = f"{type(error).__name__} {code}" if code else type(error).__name__
    # Without the server's DETAIL: it may quote a row.
    return StoreError(f"PostgreSQL: {doing}: {kind}: {getattr(error, 'message', None) or error}")


def connection_lost(error: Exception) -> bool:
    """Whether the connection is gone, so that another one may do better.

    A TimeoutError is not: the server may be working still, and another try would wait as long.
    """
    import asyncpg

    if isinstance(error, asyncpg.PostgresError):
        state = str(error.sqlstate or "")
        return state.startswith("08") or state in {"57P01", "57P02", "57P03"}
    if isinstance(error, asyncpg.InterfaceError):
        return "connection is closed" in str(error)
    return isinstance(error, OSError) and not isinstance(error, TimeoutError)


def key_taken(error: BaseException | None) -> bool:
    """Whether a unique key refused a row."""
    return getattr(error, "sqlstate", None) == "23505"


def affected(status: str) -> int:
    """Rows a command changed, from its tag such as `UPDATE 3`."""
    return int(status.rpartition(" ")[2])
