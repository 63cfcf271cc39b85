"""The file of an SqliteStore: opening, sharing, closing, waiting, refusing."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.core.store_rig import said, texts
from voxglove.core import StoreError, UsageError
from voxglove.core.stores import SqliteConfig, SqliteStore, sqlite_database
from voxglove.core.stores.sqlite_database import WAL_PAUSE_S, connect
from voxglove.core.stores.sqlite_schema import MIGRATIONS, migrate


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("sqlite")]


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """Another user of the file, who does not know our code."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def write(path: Path, text: bytes) -> None:
    path.write_bytes(text)


def content(path: Path) -> bytes:
    return path.read_bytes()


def version(path: Path) -> int:
    with raw(path) as connection:
        (found,) = connection.execute("PRAGMA user_version").fetchone()
    return int(found)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


# Opening and closing


async def test_making_a_store_opens_nothing(path: Path) -> None:
    store = SqliteStore(path, "talk")
    await store.aclose()
    assert (os.listdir(path.parent), threads()) == ([], [])


async def test_a_file_has_one_thread_however_many_stores_use_it(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    stores = [SqliteStore(path if n % 2 else link, f"talk {n}") for n in range(10)]
    for store in stores:
        await store.append_messages([said(store.identifier)])
    assert len(threads()) == 1
    other = SqliteStore(path.with_name("other.db"), "talk")
    await other.get_messages()
    assert len(threads()) == 2
    for store in stores[1:]:
        await store.aclose()
    assert await texts(stores[0]) == ["talk 0"], "closing one store closes no other"
    await stores[0].aclose()
    await other.aclose()
    assert threads() == []


async def test_a_closed_store_says_so(path: Path) -> None:
    store = SqliteStore(path, "talk")
    await store.append_messages([said("hi")])
    await store.aclose()
    await store.aclose()
    with pytest.raises(StoreError, match="is closed"):
        await store.get_messages()
    with pytest.raises(StoreError, match="is closed"):
        await store.event_queue().size()
    with pytest.raises(StoreError, match="is closed"):
        await store.create_sub_agent_store("cook", durable=True)
    async with SqliteStore(path, "talk") as again:
        assert await texts(again) == ["hi"]


async def test_calls_made_before_the_close_complete(path: Path) -> None:
    store = SqliteStore(path, "talk")
    async with asyncio.TaskGroup() as group:
        for n in range(20):
            group.create_task(store.append_messages([said(str(n))]))
        await asyncio.sleep(0)
        group.create_task(store.aclose())
    async with SqliteStore(path, "talk") as again:
        assert sorted(map(int, await texts(again))) == list(range(20))


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
async def test_a_cancelled_close_still_ends_the_thread(path: Path, steps: int) -> None:
    store = SqliteStore(path, "talk")
    await store.append_messages([said("hi")])
    await (await store.create_sub_agent_store("cook", durable=True)).append_messages([said("a")])
    async with asyncio.TaskGroup() as group:
        closing_ = group.create_task(store.aclose())
        await asyncio.sleep(0)
        for _ in range(steps):
            await asyncio.sleep(0)
        closing_.cancel()
    # The leak check of every test waits for the thread and the file.


async def test_sub_stores_close_with_their_parent(path: Path) -> None:
    store = SqliteStore(path, "talk")
    child = await store.create_sub_agent_store("cook", durable=True)
    assert isinstance(child, SqliteStore)
    await child.append_messages([said("soup")])
    await child.aclose()
    again = await store.create_sub_agent_store("cook", durable=True)
    assert await texts(again) == ["soup"], "one that was closed is opened anew"
    await store.aclose()
    assert threads() == []


async def test_a_store_is_of_the_process_that_opened_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with SqliteStore(path, "talk") as store:
        await store.append_messages([said("hi")])
        with monkeypatch.context() as forked:
            forked.setattr(os, "getpid", lambda: -1)
            with pytest.raises(StoreError, match="fork"):
                await store.get_messages()
            async with SqliteStore(path, "talk") as own:
                assert await texts(own) == ["hi"]
        assert await texts(store) == ["hi"]


# Misuse and refusals


def test_wrong_arguments_are_named(path: Path) -> None:
    with pytest.raises(UsageError, match="session_id"):
        SqliteStore(path, "")
    for nothing in ("", ":memory:"):
        with pytest.raises(UsageError, match="path"):
            SqliteStore(nothing, "talk")
    with pytest.raises(UsageError, match="busy_timeout_ms"):
        SqliteConfig(busy_timeout_ms=-1)
    with pytest.raises(UsageError, match="synchronous"):
        SqliteConfig(synchronous="off")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="max_waiting"):
        SqliteConfig(max_waiting=0)


async def test_a_file_has_one_config(path: Path) -> None:
    async with (
        SqliteStore(path, "one") as one,
        SqliteStore(path, "two", config=SqliteConfig(synchronous="full")) as two,
    ):
        await one.get_messages()
        with pytest.raises(UsageError, match="synchronous='normal'"):
            await two.get_messages()


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "no" / "agent.db", "talk") as store:
        with pytest.raises(StoreError, match=r"no/agent\.db") as caught:
            await store.append_messages([said("hi")])
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        (tmp_path / "no").mkdir()
        await store.append_messages([said("hi")])
        assert await texts(store) == ["hi"], "the store is usable once the folder is there"


async def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    before = b"my diary\n" * 1_000
    write(path, before)
    async with SqliteStore(path, "talk") as store:
        with pytest.raises(StoreError, match="not a database"):
            await store.get_messages()
    assert content(path) == before


async def test_somebody_elses_database_is_left_alone(path: Path) -> None:
    with raw(path) as connection:
        connection.execute("CREATE TABLE accounts (id)")
    before = content(path)
    async with SqliteStore(path, "talk") as store:
        with pytest.raises(StoreError, match="file of its own"):
            await store.append_messages([said("hi")])
    assert content(path) == before


async def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    async with SqliteStore(path, "talk") as store:
        await store.append_messages([said("hi")])
    with raw(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = content(path)
    async with SqliteStore(path, "talk") as store:
        with pytest.raises(StoreError, match=r"version 99.*newer voxglove"):
            await store.get_messages()
    assert content(path) == before


async def test_a_damaged_record_is_a_store_error_that_quotes_nothing(path: Path) -> None:
    async with SqliteStore(path, "talk") as store:
        await store.append_messages([said("fine"), said("broken", "m2")])
        with raw(path) as connection:
            connection.execute("UPDATE messages SET body = '{\"secret\":' WHERE message_id = 'm2'")
        for call in (store.get_messages(), store.amend_message("m2", {"heard": "x"})):
            with pytest.raises(StoreError) as caught:
                await call
            assert "secret" not in str(caught.value)
            assert caught.value.__cause__ is not None
        await store.append_messages([said("still writable")])


# Migrations


def test_a_file_is_brought_to_the_newest_version(path: Path) -> None:
    first, second = MIGRATIONS[0], ("ALTER TABLE sessions ADD COLUMN tone TEXT DEFAULT 'warm'",)
    with raw(path) as connection:
        migrate(connection, (first,))
        connection.execute("INSERT INTO sessions (session_id, created_at) VALUES ('a', '')")
        migrate(connection, (first, second))
        assert connection.execute("SELECT session_id, tone FROM sessions").fetchall() == [
            ("a", "warm")
        ]
    assert version(path) == 2


def test_a_migration_that_fails_leaves_the_old_file(path: Path) -> None:
    broken = ("ALTER TABLE sessions ADD COLUMN tone TEXT", "ALTER TABLE nothing ADD COLUMN a")
    with raw(path) as connection:
        migrate(connection)
        columns = connection.execute("PRAGMA table_info(sessions)").fetchall()
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, (*MIGRATIONS, broken))
        assert connection.execute("PRAGMA table_info(sessions)").fetchall() == columns
        assert not connection.in_transaction
    assert version(path) == len(MIGRATIONS)


def test_many_who_open_a_new_file_at_once_find_it_ready(path: Path) -> None:
    together = threading.Barrier(4)
    found: list[str] = []

    def open_it(name: str) -> None:
        together.wait()
        with closing(connect(str(path), SqliteConfig())) as connection:
            connection.execute(
                "INSERT INTO sessions (session_id, created_at) VALUES (?, '')", (name,)
            )
            found.append(name)

    others = [threading.Thread(target=open_it, args=(str(n),)) for n in range(4)]
    for one in others:
        one.start()
    for one in others:
        one.join()
    assert len(found) == 4
    assert version(path) == len(MIGRATIONS)


def test_a_file_that_others_write_becomes_wal_when_they_are_done(path: Path) -> None:
    with raw(path) as other, ThreadPoolExecutor(1, thread_name_prefix="test") as thread:
        other.execute("BEGIN IMMEDIATE")
        opening = thread.submit(lambda: connect(str(path), SqliteConfig(busy_timeout_ms=0)).close())
        time.sleep(3 * WAL_PAUSE_S)  # real: it waits in another thread
        assert not opening.done()
        other.execute("COMMIT")
        opening.result()
    assert version(path) == len(MIGRATIONS)


def test_a_file_that_stays_written_is_not_waited_for_for_ever(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "WAL_PAUSE_S", 0.0)
    with raw(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            connect(str(path), SqliteConfig(busy_timeout_ms=0))
        other.execute("COMMIT")


def test_where_wal_is_impossible_a_local_disk_is_asked_for() -> None:
    with (
        closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(StoreError, match="local disk"),
    ):
        sqlite_database._use_wal(connection)


@pytest.mark.parametrize(("wanted", "number"), [("normal", 1), ("full", 2)])
def test_how_a_connection_is_set_up(path: Path, wanted: str, number: int) -> None:
    config = SqliteConfig(synchronous=wanted)  # type: ignore[arg-type]
    with closing(connect(str(path), config)) as connection:
        for pragma, value in (
            ("journal_mode", "wal"),
            ("foreign_keys", 1),
            ("synchronous", number),
            ("busy_timeout", 5_000),
        ):
            assert connection.execute(f"PRAGMA {pragma}").fetchone() == (value,)


# Waiting for others


@pytest.mark.real_loop
async def test_a_write_that_waits_does_not_hold_the_loop(path: Path) -> None:
    async with SqliteStore(path, "talk") as store:
        await store.append_messages([said("before")])
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            async with asyncio.TaskGroup() as group:
                write = group.create_task(store.append_messages([said("after")]))
                for _ in range(20):
                    await asyncio.sleep(0.001)
                assert not write.done()
                other.execute("COMMIT")
        assert await texts(store) == ["before", "after"]


async def test_a_file_that_stays_locked_is_a_store_error(path: Path) -> None:
    config = SqliteConfig(busy_timeout_ms=20)
    async with SqliteStore(path, "talk", config=config) as store:
        await store.append_messages([said("before")])
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="locked") as caught:
                await store.append_messages([said("lost")])
            assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
            assert await texts(store) == ["before"], "reading needs no lock"
            other.execute("COMMIT")
        await store.append_messages([said("after")])
        assert await texts(store) == ["before", "after"]


async def test_a_queue_of_calls_has_a_bound(path: Path) -> None:
    config = SqliteConfig(busy_timeout_ms=200, max_waiting=3)
    async with SqliteStore(path, "talk", config=config) as store:
        await store.append_messages([said("first")])

        async def append(n: int) -> str:
            try:
                await store.append_messages([said(str(n), f"m{n}")])
            except StoreError as error:
                return str(error)
            return ""

        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            async with asyncio.TaskGroup() as group:
                calls = [group.create_task(append(n)) for n in range(5)]
                await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
                other.execute("COMMIT")
        assert [one.result()[:19] for one in calls] == ["", "", "", *["too many calls wait"] * 2]
        assert await append(9) == "", "there is room again"
        assert await texts(store) == ["first", "0", "1", "2", "9"]


async def test_a_store_closes_however_many_calls_wait(path: Path) -> None:
    store = SqliteStore(path, "talk", config=SqliteConfig(max_waiting=1))
    await store.append_messages([said("first")])
    with raw(path) as other:
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.TaskGroup() as group:
            group.create_task(store.append_messages([said("second")]))
            await asyncio.sleep(0)
            group.create_task(store.aclose())
            await asyncio.sleep(0)
            other.execute("COMMIT")
    assert threads() == []
    async with SqliteStore(path, "talk") as again:
        assert await texts(again) == ["first", "second"]


async def test_a_cancelled_call_that_waits_is_never_done(path: Path) -> None:
    async with SqliteStore(path, "talk") as store:
        await store.append_messages([said("before")])
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            async with asyncio.TaskGroup() as group:
                first = group.create_task(store.append_messages([said("handed over")]))
                second = group.create_task(store.append_messages([said("waiting")]))
                for _ in range(3):
                    await asyncio.sleep(0)
                second.cancel()
                first.cancel()
                await asyncio.sleep(0)
                other.execute("COMMIT")
        found = await texts(store)
        assert "waiting" not in found
        assert found in (["before", "handed over"], ["before"])
