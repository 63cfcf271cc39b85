"""The schema: made once however many begin, brought up to date with its data, never guessed at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.adapters.stores_postgres.rig import open_pool, opened
from tests.core.store_rig import said, texts
from tests.support.postgres import LOCKED, PASSWORD, PostgresServer
from voxglove.adapters.stores.postgres import PostgresConfig, open_postgres
from voxglove.adapters.stores.postgres_database import Database
from voxglove.adapters.stores.postgres_migrations import Migration, migrate, migrations
from voxglove.adapters.stores.postgres_store import PostgresStore
from voxglove.adapters.stores.postgres_wire import connect_pool
from voxglove.core.errors import StoreError
from voxglove.core.records import InboxItem

pytestmark = pytest.mark.real_loop

VERSIONS = [str(step.version) for step in migrations()]


def versions(server: PostgresServer, schema: str) -> list[str]:
    return server.sql(f"SELECT version FROM {schema}.migrations ORDER BY version").split()


@asynccontextmanager
async def migrated(
    server: PostgresServer, schema: str, steps: tuple[Migration, ...]
) -> AsyncIterator[PostgresStore]:
    """A store on a schema made by these steps alone."""
    config = PostgresConfig(schema=schema)
    database = Database(await connect_pool(server.dsn(), config), config)
    try:
        await migrate(database, steps)
        yield PostgresStore(database, "talk")
    finally:
        await database.close()


def test_migrations_are_numbered_without_gaps() -> None:
    assert [step.version for step in migrations()] == list(range(1, len(migrations()) + 1))
    assert len(migrations()) > 1


async def test_many_connections_migrate_once(postgres: PostgresServer, schema: str) -> None:
    pools = await asyncio.gather(*[open_pool(postgres, schema) for _ in range(8)])
    try:
        assert versions(postgres, schema) == VERSIONS
        await pools[0].store("talk").append_messages([said("hello")])
        assert await texts(pools[7].store("talk")) == ["hello"]
    finally:
        await asyncio.gather(*[pool.aclose() for pool in pools])


async def test_those_who_wait_for_a_migration_find_it_done(
    postgres: PostgresServer, schema: str
) -> None:
    """The first holds the lock for a while; a second that did not wait would fail on its table."""
    slow = Migration(1, "0001_slow", "CREATE TABLE once (); SELECT pg_sleep(0.2)")

    async def begin() -> None:
        async with migrated(postgres, schema, (slow,)):
            pass

    await asyncio.gather(*[begin() for _ in range(4)])
    assert versions(postgres, schema) == ["1"]


async def test_an_old_schema_is_brought_up_to_date_with_its_data(
    postgres: PostgresServer, schema: str
) -> None:
    async with migrated(postgres, schema, migrations()[:1]) as old:
        await old.append_messages([said("old")])
        await old.set_permission("pay", "granted", "{}")
    assert versions(postgres, schema) == ["1"]
    async with opened(postgres, schema) as pool:
        assert versions(postgres, schema) == VERSIONS
        store = pool.store("talk")
        assert await texts(store) == ["old"]
        assert await store.get_permission("pay", "{}") == "granted"
        await store.add_inbox_item(InboxItem(id="a", tag="t", request="r", created_at=""))
        assert [item.id for item in await store.get_inbox_items()] == ["a"]


async def test_a_failed_migration_leaves_the_last_good_version(
    postgres: PostgresServer, schema: str
) -> None:
    good = migrations()[0]
    bad = Migration(2, "0002_bad", "CREATE TABLE half (); SELECT 1/0")
    with pytest.raises(StoreError, match="migrating: DivisionByZeroError"):
        async with migrated(postgres, schema, (good, bad)):
            pass
    assert versions(postgres, schema) == ["1"]
    half = postgres.sql(f"SELECT to_regclass('{schema}.half') IS NULL")
    assert half == "t"
    async with opened(postgres, schema):
        assert versions(postgres, schema) == VERSIONS


async def test_a_newer_schema_is_refused(postgres: PostgresServer, schema: str) -> None:
    async with opened(postgres, schema):
        pass
    newer = len(VERSIONS) + 1
    postgres.sql(f"INSERT INTO {schema}.migrations VALUES ({newer}, 'from_tomorrow', 'x')")
    with pytest.raises(StoreError, match=f"is at version {newer}, .* knows {newer - 1}: upgrade"):
        await open_pool(postgres, schema)


async def test_a_schema_made_by_other_files_is_refused(
    postgres: PostgresServer, schema: str
) -> None:
    async with opened(postgres, schema):
        pass
    postgres.sql(f"UPDATE {schema}.migrations SET checksum = 'x' WHERE version = 2")
    with pytest.raises(StoreError, match="migration 2 is not this voxglove's '0002"):
        await open_pool(postgres, schema)


async def test_a_role_that_may_only_read_and_write_can_use_a_ready_schema(
    postgres: PostgresServer, schema: str
) -> None:
    config = PostgresConfig(schema=schema)
    dsn = postgres.dsn(LOCKED, PASSWORD)
    with pytest.raises(StoreError, match="InsufficientPrivilegeError"):
        await open_postgres(dsn, config)
    async with opened(postgres, schema):
        pass
    postgres.sql(
        f"GRANT USAGE ON SCHEMA {schema} TO {LOCKED};"
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {LOCKED};"
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {LOCKED}"
    )
    async with await open_postgres(dsn, config) as pool:
        await pool.store("talk").append_messages([said("hello")])
        assert await texts(pool.store("talk")) == ["hello"]


async def test_without_migrating_an_old_schema_is_refused(
    postgres: PostgresServer, schema: str
) -> None:
    with pytest.raises(StoreError, match="is at version 0, .* open it once with migrate=True"):
        await open_pool(postgres, schema, migrate=False)
    async with opened(postgres, schema), opened(postgres, schema, migrate=False) as pool:
        assert await pool.list_sessions() == []


async def test_a_database_that_cannot_hold_all_text_is_refused(
    postgres: PostgresServer, schema: str
) -> None:
    postgres.sql(f"CREATE DATABASE {schema} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StoreError, match="encoding is LATIN1"):
        await open_postgres(postgres.dsn(database=schema), PostgresConfig(schema=schema))
