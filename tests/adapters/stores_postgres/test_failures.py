"""What goes wrong between us and the server: named, bounded in time, and without a password."""

from __future__ import annotations

import asyncio
import logging
import socket
import traceback
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import asyncpg
import pytest

from tests.adapters.stores_postgres.lossy import lossy_proxy
from tests.adapters.stores_postgres.rig import opened
from tests.core.store_rig import said, texts
from tests.support.postgres import ADMIN, LOCKED, PASSWORD, PostgresServer
from voxglove.adapters.credentials import Secret
from voxglove.adapters.stores.postgres import PostgresConfig, PostgresPool, open_postgres
from voxglove.core.errors import StoreError, UsageError
from voxglove.core.usage import Usage

pytestmark = pytest.mark.real_loop

SOON_S = 10.0
"""Far above what any of this takes, far below asyncpg's own time-out of a minute."""


@asynccontextmanager
async def locked(server: PostgresServer, schema: str, session: str) -> AsyncIterator[None]:
    """Holds the session's row, so that writes to it wait."""
    connection = await asyncpg.connect(server.dsn())
    try:
        async with connection.transaction():
            await connection.execute(
                f"SELECT FROM {schema}.sessions WHERE session_id = $1 FOR UPDATE", session
            )
            yield
    finally:
        await connection.close()


async def until_waiting(server: PostgresServer, schema: str, count: int) -> None:
    """Until so many statements on `schema` wait for a lock, in the server's own account."""
    connection = await asyncpg.connect(server.dsn())
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1"
    try:
        for _ in range(int(SOON_S * 100)):
            if await connection.fetchval(query, f'%"{schema}"%') == count:
                return
            await asyncio.sleep(0.01)
        raise TimeoutError(f"never {count} statements that wait")
    finally:
        await connection.close()


def everything(error: BaseException) -> str:
    """All a log of this error could show."""
    return "".join([*traceback.format_exception(error), repr(error), str(error)])


@pytest.fixture
async def pool(postgres: PostgresServer, schema: str) -> AsyncIterator[PostgresPool]:
    """One connection only: if a call spoils it, the next one shows."""
    async with opened(postgres, schema, max_size=1, acquire_timeout_s=SOON_S) as pool:
        await pool.store("talk").append_messages([said("before", "m")])
        yield pool


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_refused_connection_is_a_store_error_at_once() -> None:
    async with asyncio.timeout(SOON_S):
        with pytest.raises(StoreError, match="could not open a connection: Connection") as caught:
            await open_postgres(f"postgresql://u:{PASSWORD}@127.0.0.1:{free_port()}/d")
    assert isinstance(caught.value.__cause__, OSError)
    assert PASSWORD not in everything(caught.value)


async def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        dsn = f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/d"
        async with asyncio.timeout(SOON_S):
            with pytest.raises(StoreError, match="no answer in time"):
                await open_postgres(dsn, PostgresConfig(connect_timeout_s=0.2))


async def test_a_missing_database_is_a_store_error(postgres: PostgresServer) -> None:
    with pytest.raises(StoreError, match='InvalidCatalogNameError 3D000: database "no" does not'):
        await open_postgres(postgres.dsn(database="no"))


async def test_a_wrong_password_is_never_shown(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = "not-the-pa55word"
    with pytest.raises(StoreError, match="InvalidPasswordError 28P01") as caught:
        await open_postgres(Secret(postgres.dsn(LOCKED, wrong)))
    logging.getLogger("test").error("it failed", exc_info=caught.value)
    assert wrong not in everything(caught.value) + caplog.text


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://user:pa55/xyzzy@host/database",
        "postgresql://user:pa55#xyzzy@host:5432/database",
        "postgresql://user:[pa55xyzzy@host/database",
        "postgresql://user:pa55xyzzy@host:port/database",
        "mysql://user:pa55xyzzy@host/database",
        "pa55xyzzy",
    ],
)
async def test_a_dsn_that_cannot_be_read_is_never_shown(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises((UsageError, StoreError)) as caught:
        await open_postgres(dsn, PostgresConfig(connect_timeout_s=SOON_S))
    shown = everything(caught.value) + caplog.text
    assert "pa55" not in shown and "xyzzy" not in shown


async def test_a_pool_shows_no_dsn(pool: PostgresPool) -> None:
    assert "postgresql:" not in repr(pool) + str(pool)


async def test_a_cancelled_write_leaves_nothing_and_a_usable_connection(
    postgres: PostgresServer, schema: str, pool: PostgresPool
) -> None:
    store = pool.store("talk")
    async with locked(postgres, schema, "talk"):
        async with asyncio.TaskGroup() as group:
            write = group.create_task(store.append_messages([said("never")]))
            await until_waiting(postgres, schema, 1)
            write.cancel()
        assert write.cancelled()
        await until_waiting(postgres, schema, 0)
    async with locked(postgres, schema, "talk"), asyncio.TaskGroup() as group:
        amend = group.create_task(store.amend_message("m", {"text": "never"}))
        await until_waiting(postgres, schema, 1)
        amend.cancel()
    await store.append_messages([said("after")])
    assert await texts(store) == ["before", "after"]


async def test_a_statement_that_takes_too_long_is_a_store_error(
    postgres: PostgresServer, schema: str, pool: PostgresPool
) -> None:
    async with opened(postgres, schema, max_size=1, command_timeout_s=0.5) as hasty:
        store = hasty.store("talk")
        async with locked(postgres, schema, "talk"):
            with pytest.raises(StoreError, match="counting a turn: no answer in time"):
                await store.increment_turn()
        assert await store.get_turn_count() == 0
        await store.increment_turn()
        assert await store.get_turn_count() == 1


async def test_a_server_that_falls_silent_is_given_up_and_found_again(
    postgres: PostgresServer, schema: str, pool: PostgresPool
) -> None:
    """Nothing says that the connection is dead: the route is lost, and comes back."""
    async with lossy_proxy(postgres.folder) as proxy:
        dsn = f"postgresql://{ADMIN}@/postgres?host={proxy.folder}"
        config = PostgresConfig(
            schema=schema,
            max_size=1,
            connect_timeout_s=0.5,
            acquire_timeout_s=0.5,
            command_timeout_s=0.5,
        )
        async with await open_postgres(dsn, config) as cut_off:
            store = cut_off.store("talk")
            assert await texts(store) == ["before"]
            proxy.freeze()
            for _ in range(2):  # on the connection that is dead, and on one that is never made
                async with asyncio.timeout(SOON_S):
                    with pytest.raises(StoreError, match="no answer in time"):
                        await store.append_messages([said("perhaps")])
            proxy.thaw()
            await store.append_messages([said("after")])
            assert (await texts(store))[-1] == "after"


async def test_waiting_for_a_connection_has_a_bound(
    postgres: PostgresServer, schema: str, pool: PostgresPool
) -> None:
    async with opened(postgres, schema, max_size=1, acquire_timeout_s=0.5) as small:
        async with locked(postgres, schema, "talk"), asyncio.TaskGroup() as group:
            write = group.create_task(small.store("talk").add_tokens(Usage(1, 1)))
            await until_waiting(postgres, schema, 1)
            with pytest.raises(StoreError, match="reading messages: no answer in time"):
                await small.store("other").get_messages()
            write.cancel()
        assert await small.store("other").get_messages() == []


async def test_closing_has_a_bound_and_ends_what_hangs(
    postgres: PostgresServer, schema: str, pool: PostgresPool
) -> None:
    async with opened(postgres, schema, close_timeout_s=0.2) as closing:
        store = closing.store("talk")
        async with locked(postgres, schema, "talk"), asyncio.TaskGroup() as group:
            hanging = group.create_task(failure_of(store.append_messages([said("perhaps")])))
            await until_waiting(postgres, schema, 1)
            async with asyncio.timeout(SOON_S):
                await closing.aclose()
        assert "the pool is closed" in await hanging
        with pytest.raises(StoreError, match="reading messages: the pool is closed"):
            await store.get_messages()
        await closing.aclose()
    # The server had the statement: whether it came to its end nobody was told.
    assert await texts(pool.store("talk")) in (["before"], ["before", "perhaps"])


async def failure_of(work: Awaitable[object]) -> str:
    try:
        await work
    except StoreError as error:
        return str(error)
    return "no failure"


async def test_closing_waits_for_running_calls(
    postgres: PostgresServer, schema: str, pool: PostgresPool
) -> None:
    async with (
        opened(postgres, schema, close_timeout_s=SOON_S) as closing,
        asyncio.TaskGroup() as group,
        locked(postgres, schema, "talk"),
    ):
        write = group.create_task(closing.store("talk").append_messages([said("in time")]))
        await until_waiting(postgres, schema, 1)
        close = group.create_task(closing.aclose())
        await asyncio.sleep(0.05)
        assert not close.done() and not write.done()
    assert await texts(pool.store("talk")) == ["before", "in time"]


async def test_a_row_of_other_software_is_a_store_error(
    postgres: PostgresServer, schema: str, pool: PostgresPool
) -> None:
    postgres.sql(f"""UPDATE {schema}.messages SET body = '{{"text": 5}}', revision = 9""")
    with pytest.raises(StoreError, match="a stored message cannot be read"):
        await pool.store("talk").get_messages()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"schema": 'x"; DROP SCHEMA y'}, "schema"),
        ({"schema": "pg_mine"}, "schema"),
        ({"schema": ""}, "schema"),
        ({"schema": "Upper"}, "schema"),
        ({"schema": "x" * 64}, "schema"),
        ({"min_size": 5, "max_size": 4}, "min_size"),
        ({"min_size": 0, "max_size": 0}, "max_size"),
        ({"statement_cache_size": -1}, "statement_cache_size"),
        ({"connect_timeout_s": 0}, "connect_timeout_s"),
        ({"close_timeout_s": -1.0}, "close_timeout_s"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        PostgresConfig(**settings)  # type: ignore[arg-type]


async def test_a_conversation_needs_a_name(pool: PostgresPool) -> None:
    with pytest.raises(UsageError, match="session_id"):
        pool.store("")
