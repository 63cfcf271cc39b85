"""What PostgreSQL adds to the store's promises, or could take from them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.stores_postgres.rig import opened
from tests.core.store_cases_events import event, pending
from tests.core.store_cases_records import item, task
from tests.core.store_rig import said, texts
from tests.support.postgres import PostgresServer
from voxglove.adapters.stores.postgres import PostgresPool
from voxglove.adapters.stores.postgres_events import PostgresEventQueue
from voxglove.adapters.stores.postgres_text import MAX_KEY_BYTES, index_key, restored, storable
from voxglove.core.errors import UsageError
from voxglove.core.external import AgentEvent
from voxglove.core.messages import Message
from voxglove.core.usage import Usage

NOISE = "".join(random.Random(1).choices("0123456789abcdefghijklmnopqrstuvwxyz", k=20_000))
"""Too long for an index row, and nothing that compression could shorten enough."""

ODD = "nul \x00, half \ud83d, mark \x1a, \x1a0000"

any_text = st.text(st.characters(), max_size=30) | st.text("\x00\x1a\ud800\udfff#0a", max_size=9)


@pytest.fixture
async def pool(postgres: PostgresServer, schema: str) -> AsyncIterator[PostgresPool]:
    async with opened(postgres, schema) as pool:
        yield pool


@given(text=any_text)
def test_any_text_is_storable_and_restored(text: str) -> None:
    stored = storable(text)
    assert "\x00" not in stored
    assert stored.encode().decode() == stored
    assert restored(stored) == text


@given(one=any_text, other=any_text)
def test_two_texts_share_no_key(one: str, other: str) -> None:
    assert (index_key(one) == index_key(other)) == (one == other)


def test_a_long_key_fits_an_index_and_says_where_it_comes_from() -> None:
    assert index_key("x" * MAX_KEY_BYTES) == "x" * MAX_KEY_BYTES
    long = index_key(NOISE)
    assert long.startswith(NOISE[:64]) and len(long.encode()) < MAX_KEY_BYTES
    assert long != index_key(NOISE[:-1]) != index_key("\U0001f98a" * MAX_KEY_BYTES)


@pytest.mark.real_loop
async def test_names_of_any_length_and_kind_are_kept(pool: PostgresPool) -> None:
    for name in (NOISE, ODD):
        store = pool.store(f"talk {name}")
        await store.append_messages([said("hi", name)])
        await store.amend_message(name, {"text": "hi!"})
        with pytest.raises(UsageError):
            await store.append_messages([said("again", name)])
        await store.set_permission(name, "granted", name)
        await store.add_tasks([task(name)])
        await store.add_inbox_item(item(name, name))
        await store.event_queue().put(event(name, name))
        child = await store.create_sub_agent_store(name, durable=True)
        await child.append_messages([said(name, name)])

        again = pool.store(f"talk {name}")
        assert await texts(again) == ["hi!"]
        assert await again.get_permission(name, name) == "granted"
        assert await again.get_tasks() == [task(name)]
        assert await again.get_inbox_items() == [item(name, name)]
        assert list(await again.event_queue().peek()) == [event(name, name)]
        assert await again.event_queue().put(event(name)) is False
        names = [info.session_id for info in await pool.list_sessions(children=True)]
        assert {store.identifier, child.identifier} <= set(names)


@pytest.mark.real_loop
async def test_a_store_that_has_read_sees_what_others_change(pool: PostgresPool) -> None:
    reader, writer = pool.store("talk"), pool.store("talk")
    assert await reader.get_messages() == []
    await writer.append_messages([said("a", "1"), said("b", "2")])
    assert await texts(reader) == ["a", "b"]
    await writer.amend_message("1", {"text": "A"})
    assert await texts(reader) == ["A", "b"]
    await reader.amend_message("2", {"text": "B"})
    await writer.append_messages([said("c", "3")])
    await writer.amend_message("1", {"text": "AA"})
    assert await texts(reader) == await texts(writer) == ["AA", "B", "c"]


@pytest.mark.real_loop
async def test_a_store_that_has_read_fetches_only_what_changed(
    postgres: PostgresServer, schema: str, pool: PostgresPool
) -> None:
    """Rows that changed behind the revision's back stay unseen: so nothing old is fetched."""
    store = pool.store("talk")
    await store.append_messages([said(str(n), str(n)) for n in range(200)])
    assert len(await store.get_messages()) == 200
    postgres.sql(f"UPDATE {schema}.messages SET body = '{{}}' WHERE seq < 199")
    await store.append_messages([said("new", "new")])
    assert await texts(store) == [*map(str, range(200)), "new"]


@pytest.mark.real_loop
@pytest.mark.parametrize("more", [0, 1, 5])
async def test_a_conversation_made_again_is_read_anew(pool: PostgresPool, more: int) -> None:
    store, other = pool.store("talk"), pool.store("talk")
    await store.append_messages([said("old 1"), said("old 2")])
    assert await texts(store) == ["old 1", "old 2"]
    assert await pool.delete_session("talk")
    assert await texts(store) == []
    await store.append_messages([said("kept")])
    assert await texts(store) == ["kept"]
    assert await pool.delete_session("talk")
    for number in range(more):
        await other.append_messages([said(f"new {number}")])
    assert await texts(store) == [f"new {number}" for number in range(more)]


@pytest.mark.real_loop
async def test_seq_has_no_gaps_whoever_appends_or_fails(
    postgres: PostgresServer, schema: str, pool: PostgresPool
) -> None:
    async with opened(postgres, schema) as other:
        stores = [pool.store("talk"), pool.store("talk"), other.store("talk")]
        await stores[0].append_messages([said("first", "taken")])

        async def append(at: int, store: int) -> None:
            last = "taken" if at % 5 == 0 else f"{at}.2"
            batch = [said(f"{at}.1"), said(f"{at}.2", last)]
            try:
                await stores[store].append_messages(batch)
            except UsageError:
                assert last == "taken"

        async with asyncio.TaskGroup() as group:
            for at in range(60):
                group.create_task(append(at, at % 3))
    numbers = postgres.sql(f"SELECT seq FROM {schema}.messages ORDER BY seq").split()
    assert numbers == [str(n) for n in range(1 + 2 * 48)]
    found = await texts(pool.store("talk"))
    assert [text[:-2] for text in found[1::2]] == [text[:-2] for text in found[2::2]]


@pytest.mark.real_loop
async def test_columns_beside_a_message_say_what_it_is(
    postgres: PostgresServer, schema: str, pool: PostgresPool
) -> None:
    summary = Message(sender="user", id="s", text="so far \x00", is_compaction=True)
    answer = Message(sender="agent", id="a", text="yes")
    await pool.store("talk").append_messages([answer, summary])
    query = f"SELECT message_id, sender, is_compaction FROM {schema}.messages ORDER BY seq"
    assert postgres.sql(query).split() == ["a|agent|f", "s|user|t"]
    assert postgres.sql(f"SELECT body->>'text' FROM {schema}.messages WHERE seq = 0") == "yes"


@pytest.mark.real_loop
async def test_the_memory_of_events_is_bounded_and_forgets_the_longest_unseen(
    postgres: PostgresServer, schema: str, pool: PostgresPool
) -> None:
    store = pool.store("talk")
    queue = PostgresEventQueue(store._database, "talk", "talk", remember=4)
    for name in "abcd":
        assert await queue.put(event(name))
    await queue.ack("abcd")
    assert await queue.put(event("a")) is False  # so that b is now the longest unseen
    assert await queue.put(event("e"))
    assert await queue.put(event("waits"))
    await queue.ack("e")
    assert [await queue.put(event(name)) for name in "acde"] == [False] * 4
    assert await queue.put(event("b")) is True
    assert await pending(queue) == ["waits", "b"]
    assert postgres.sql(f"SELECT count(*) FROM {schema}.events") == "6"


@pytest.mark.real_loop
async def test_metadata_of_an_event_need_not_be_json(pool: PostgresPool) -> None:
    queue = pool.store("talk").event_queue()
    odd = {"when": {1, 2}.__class__, "nan": float("inf")}
    assert await queue.put(AgentEvent(id="a", source="s", content="c", metadata=odd))
    (found,) = await queue.peek()
    assert found.metadata == {"when": "<class 'set'>", "nan": float("inf")}
    loop: dict[str, object] = {}
    loop["self"] = loop
    with pytest.raises(UsageError, match=r"AgentEvent\.metadata"):
        await queue.put(AgentEvent(id="b", source="s", content="c", metadata=loop))


@pytest.mark.real_loop
async def test_sessions_are_listed_with_the_last_changed_first(pool: PostgresPool) -> None:
    assert await pool.list_sessions() == []
    for name in ("one", "two", "three"):
        await pool.store(name).append_messages([said("hi")])
    one = pool.store("one")
    await one.append_messages([said("more")])
    await one.add_tokens(Usage(3, 4))
    await one.increment_turn()
    await one.add_inbox_item(item("a"))
    await one.create_sub_agent_store("guest")
    await one.create_sub_agent_store("cook", durable=True)
    listed = await pool.list_sessions()
    assert [info.session_id for info in listed] == ["one", "three", "two"]
    first = listed[0]
    counts = (first.message_count, first.token_count, first.turn_count, first.pending_items)
    assert counts == (2, 7, 1, 1)
    assert first.parent is None and first.created_at < first.updated_at
    assert first.created_at.endswith("+00:00")
    assert len(await pool.list_sessions(limit=2)) == 2
    children = [info for info in await pool.list_sessions(children=True) if info.parent]
    assert [(one.parent, one.session_id) for one in children] == [("one", "one__cook")]


@pytest.mark.real_loop
async def test_a_deleted_session_takes_everything_along(
    postgres: PostgresServer, schema: str, pool: PostgresPool
) -> None:
    for name in ("gone", "kept"):
        store = pool.store(name)
        await store.append_messages([said("hi")])
        await store.set_permission("t", "granted", "{}")
        await store.add_tasks([task("a")])
        await store.add_inbox_item(item("a"))
        await store.event_queue().put(event("a"))
        child = await store.create_sub_agent_store("cook", durable=True)
        await child.append_messages([said("soup")])
    assert await pool.delete_session("gone")
    assert not await pool.delete_session("gone")
    left = [info.session_id for info in await pool.list_sessions(children=True)]
    assert sorted(left) == ["kept", "kept__cook"]
    for table in ("messages", "permissions", "tasks", "inbox_items", "events"):
        query = f"SELECT count(*) FROM {schema}.{table} WHERE session_id LIKE 'gone%'"
        assert postgres.sql(query) == "0", table


@pytest.mark.real_loop
async def test_schemas_of_one_database_do_not_meet(postgres: PostgresServer, schema: str) -> None:
    async with opened(postgres, schema) as pool, opened(postgres, f"{schema}_b") as other:
        await pool.store("talk").append_messages([said("here")])
        assert await texts(other.store("talk")) == []
        assert await other.list_sessions() == []
