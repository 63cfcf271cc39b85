"""Kills in mid-write, on either side: what was confirmed is there, and nothing is there by half."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.adapters.stores_postgres.lossy import lossy_proxy
from tests.adapters.stores_postgres.rig import opened, peers
from tests.core.store_rig import said, texts
from tests.support.postgres import PostgresServer
from voxglove.adapters.stores.postgres import PostgresConfig, PostgresPool, open_postgres
from voxglove.core.errors import StoreError, UsageError
from voxglove.core.records import InboxItem
from voxglove.core.usage import Usage

pytestmark = pytest.mark.real_loop

EARNEST = {"fsync": "on", "full_page_writes": "on"}


@pytest.fixture(scope="module")
def mortal(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """The server, writing to the disk as it does in earnest; alive again afterwards."""
    postgres.stop()
    postgres.start(**EARNEST)
    yield postgres
    postgres.stop()
    postgres.start()


@dataclass
class Writing:
    """What writers saw confirmed, by session, and how often they were told of a failure."""

    stored: dict[str, list[str]] = field(default_factory=lambda: {f"s{n}": [] for n in range(3)})
    failures: int = 0
    over: bool = False

    async def go_on(self, pool: PostgresPool, session: str) -> None:
        """Append numbered messages, each until it is stored."""
        stored = self.stored[session]
        while not self.over:
            text = f"{session}.{len(stored)}"
            try:
                await pool.store(session).append_messages([said(text, text)])
            except StoreError:
                self.failures += 1
                await asyncio.sleep(0.02)
                continue
            except UsageError:
                assert self.failures, "only a try whose answer was lost can have stored it"
            stored.append(text)

    async def grown(self, by: int) -> None:
        """Until every writer has stored so many more."""
        goals = {session: len(texts) + by for session, texts in self.stored.items()}
        await until(lambda: all(len(self.stored[name]) >= goal for name, goal in goals.items()))


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not reached():  # noqa: ASYNC110 - what writers do in passing, without an event
            await asyncio.sleep(0.01)


async def through(
    server: PostgresServer, schema: str, harm: Callable[[Writing], Awaitable[None]]
) -> None:
    """Write before, during and after `harm`: what was confirmed is there, once and in order."""
    writing = Writing()
    async with opened(server, schema) as pool:
        async with asyncio.TaskGroup() as group:
            for session in writing.stored:
                group.create_task(writing.go_on(pool, session))
            await writing.grown(20)
            await harm(writing)
            await writing.grown(20)
            writing.over = True
        for session, confirmed in writing.stored.items():
            assert await texts(pool.store(session)) == confirmed
    assert_without_gaps(server, schema)


def assert_without_gaps(server: PostgresServer, schema: str) -> None:
    """seq counts 0, 1, 2, … in every session, and agrees with the session's count."""
    wrong = server.sql(f"""
        SELECT session.session_id FROM {schema}.sessions AS session
        JOIN {schema}.messages AS message USING (session_id)
        GROUP BY session.session_id, session.message_count
        HAVING count(*) <> session.message_count OR min(seq) <> 0 OR max(seq) <> count(*) - 1""")
    assert wrong == ""


async def test_a_killed_backend_loses_nothing_that_was_confirmed(
    mortal: PostgresServer, schema: str
) -> None:
    """SIGKILL of one backend: the server drops all of them and recovers from its log."""
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'voxglove'"
    victims: list[str] = []

    async def harm(writing: Writing) -> None:
        victims.extend((await asyncio.to_thread(mortal.sql, query)).split())
        os.kill(int(victims[0]), signal.SIGKILL)

    await through(mortal, schema, harm)
    assert victims and not set(victims) & set(mortal.sql(query).split())


async def test_a_restarted_server_loses_nothing_that_was_confirmed(
    mortal: PostgresServer, schema: str
) -> None:
    async def harm(writing: Writing) -> None:
        await asyncio.to_thread(mortal.stop, signal.SIGQUIT)
        await until(lambda: writing.failures > 0)
        mortal.start(**EARNEST)

    await through(mortal, schema, harm)


async def test_an_idle_pool_does_not_notice_a_restart(mortal: PostgresServer, schema: str) -> None:
    async with opened(mortal, schema, min_size=2) as pool:
        await pool.store("talk").append_messages([said("before")])
        await asyncio.to_thread(mortal.stop, signal.SIGINT)
        with pytest.raises(StoreError):
            await pool.store("talk").append_messages([said("down")])
        mortal.start(**EARNEST)
        await pool.store("talk").append_messages([said("after")])
        assert await texts(pool.store("talk")) == ["before", "after"]


def test_a_killed_client_leaves_whole_batches(mortal: PostgresServer, schema: str) -> None:
    with peers(mortal, schema, 1) as (peer,):
        peer.tell("open")
        assert peer.answer() == "opened"
        peer.tell("write talk")
        confirmed = [peer.answer() for _ in range(30)] + peer.kill()
    rows = mortal.sql(
        f"SELECT message_id FROM {schema}.messages WHERE session_id = 'talk' ORDER BY seq"
    ).split()
    batches = len(rows) // 3
    assert rows == [f"{number}.{at}" for number in range(batches) for at in range(3)]
    assert len(confirmed) <= batches <= len(confirmed) + 1, "the last one may be unconfirmed"
    assert_without_gaps(mortal, schema)


async def test_a_write_whose_answer_was_lost_happens_once(
    mortal: PostgresServer, schema: str
) -> None:
    """The server commits, the connection breaks before it can say so."""
    async with opened(mortal, schema) as direct, lossy_proxy(mortal.folder) as proxy:
        dsn = f"postgresql://tester@/postgres?host={proxy.folder}"
        async with await open_postgres(dsn, PostgresConfig(schema=schema, max_size=1)) as pool:
            store, seen = pool.store("talk"), direct.store("talk")
            await store.append_messages([said("before")])
            await store.add_inbox_item(InboxItem(id="a", tag="t", request="r", created_at=""))

            proxy.lose_next_answer()
            await store.append_messages([said("once"), said("with it")])
            assert await texts(seen) == ["before", "once", "with it"]

            proxy.lose_next_answer(skip=3)  # of BEGIN, the append and the update; COMMIT's is lost
            await store.consume_inbox_items(["a"], said("shown"))
            assert await texts(seen) == ["before", "once", "with it", "shown"]
            assert [item.status for item in await seen.get_inbox_items()] == ["consumed"]

            proxy.lose_next_answer()
            with pytest.raises(StoreError, match="adding tokens"):
                await store.add_tokens(Usage(1, 2))
            assert await seen.get_token_count() == 3, "counted once, and the caller knows not"

            proxy.lose_next_answer()
            assert len(await store.get_messages()) == 4, "a read is asked again"
            assert proxy.lost == 4


async def test_an_id_that_was_taken_is_told_even_after_a_broken_try(
    mortal: PostgresServer, schema: str
) -> None:
    async with opened(mortal, schema) as direct, lossy_proxy(mortal.folder) as proxy:
        dsn = f"postgresql://tester@/postgres?host={proxy.folder}"
        async with await open_postgres(dsn, PostgresConfig(schema=schema, max_size=1)) as pool:
            await direct.store("talk").append_messages([said("theirs", "m")])
            await pool.list_sessions()
            proxy.lose_next_answer()
            with pytest.raises(UsageError, match="holds a message 'm' already"):
                await pool.store("talk").append_messages([said("mine", "m")])
            assert await texts(direct.store("talk")) == ["theirs"]
