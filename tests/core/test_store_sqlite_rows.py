"""What an SqliteStore keeps, row by row, and what other processes may do to it (spec core 5)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from tests.core.store_cases_records import POSTED, item
from tests.core.store_rig import said, texts
from tests.core.store_values import LONE_SURROGATE, MENDED_SURROGATE, every_flag
from tests.core.support import ScriptedModel
from voxglove.core import (
    AgentConfig,
    AgentEvent,
    EventConfig,
    Glove,
    Message,
    StoreError,
    Usage,
    UsageError,
    model_view,
)
from voxglove.core.stores import SqliteStore, delete_session, list_sessions, resolve_inbox_item
from voxglove.core.stores.sqlite_database import SqliteConfig, connect
from voxglove.core.stores.sqlite_events import (
    REMEMBERED,
    ack_events,
    count_events,
    pending_events,
    put_event,
)
from voxglove.core.stores.sqlite_history import (
    MessageReader,
    Session,
    insert_messages,
    open_session,
    patch_message,
)
from voxglove.core.stores.sqlite_schema import transaction


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


def content(path: Path) -> bytes:
    return path.read_bytes()


async def test_core_row_060_every_mark_of_a_message_survives(path: Path) -> None:
    marks = {
        "is_tool_results",
        "is_compaction",
        "is_compaction_request",
        "is_skill_injection",
        "interrupted",
        "estimated",
    }
    alone = [Message(sender="user", id=mark, **{mark: True}) for mark in sorted(marks)]  # type: ignore[arg-type]
    async with SqliteStore(path, "talk") as store:
        await store.append_messages([every_flag(), *alone])
    async with SqliteStore(path, "talk") as store:
        assert await store.get_messages() == [every_flag(), *alone]


async def test_fault_04_after_a_restart_the_model_sees_the_summary_on(path: Path) -> None:
    summary = Message(sender="user", id="s", text="so far", is_compaction=True)
    async with SqliteStore(path, "talk") as store:
        await store.append_messages([said("old"), summary, said("new")])
    async with SqliteStore(path, "talk") as store:
        view = model_view(await store.get_messages(), ())
    assert "old" not in str([one.text for one in view])
    assert [one.is_compaction for one in view][0]


async def test_fault_04_a_message_is_json_beside_the_columns_that_are_searched(path: Path) -> None:
    async with SqliteStore(path, "talk") as store:
        await store.append_messages([every_flag()])
    with closing(sqlite3.connect(path)) as connection:
        columns = "session_id, message_id, sender, is_compaction, body"
        (row,) = connection.execute(f"SELECT {columns} FROM messages").fetchall()
    assert row[:4] == ("talk", "msg_full", "agent", 1)
    assert json.loads(row[4])["tool_calls"][0]["input_args"] == {"at": [1, 2.5, None]}


async def test_core_row_061_only_durable_sub_stores_are_in_the_file(path: Path) -> None:
    async with SqliteStore(path, "talk") as store:
        for durable in (True, False):
            child = await store.create_sub_agent_store("cook", durable=durable)
            await child.append_messages([said(f"durable {durable}")])
    assert [one.session_id for one in list_sessions(path)] == ["talk", "talk__cook"]
    async with SqliteStore(path, "talk") as store:
        kept = await store.create_sub_agent_store("cook", durable=True)
        fresh = await store.create_sub_agent_store("cook")
        assert (await texts(kept), await texts(fresh)) == (["durable True"], [])


async def test_fault_13_what_was_consumed_outlives_a_reset_and_a_restart(path: Path) -> None:
    for n in (1, 2):
        async with SqliteStore(path, "talk") as store:
            await store.add_tokens(Usage(10, 5, 2, 1))
            await store.reset_counters()
            assert await store.get_token_count() == 0
            assert await store.get_token_consumption() == Usage(10 * n, 5 * n, 2 * n, n)


async def test_a_permission_keeps_no_input(path: Path) -> None:
    async with SqliteStore(path, "talk") as store:
        await store.set_permission("pay", "granted", '{"card":"4111 1111"}')
    assert b"4111" not in content(path)


async def test_half_a_surrogate_pair_in_any_text_costs_no_call(path: Path) -> None:
    async with SqliteStore(path, LONE_SURROGATE, name=LONE_SURROGATE) as store:
        await store.append_messages([said("hi", LONE_SURROGATE)])
        await store.amend_message(LONE_SURROGATE, {"heard": LONE_SURROGATE})
        await store.set_permission(LONE_SURROGATE, "granted", LONE_SURROGATE)
        assert await store.get_permission(LONE_SURROGATE, LONE_SURROGATE) == "granted"
        await store.add_inbox_item(replace(item(LONE_SURROGATE), request=LONE_SURROGATE))
        assert await store.resolve_inbox_item(LONE_SURROGATE, LONE_SURROGATE, POSTED)
        queue = store.event_queue()
        await queue.put(AgentEvent(id=LONE_SURROGATE, source="s", content=LONE_SURROGATE))
        assert await queue.put(AgentEvent(id=LONE_SURROGATE, source="s", content="x")) is False
        (found,) = await store.get_inbox_items()
        assert (found.request, found.response) == (MENDED_SURROGATE, MENDED_SURROGATE)
        assert [one.content for one in await queue.peek()] == [MENDED_SURROGATE]
        await queue.ack([LONE_SURROGATE])
        assert await queue.size() == 0


def test_a_history_is_decoded_once(path: Path) -> None:
    with closing(connect(str(path), SqliteConfig())) as connection:
        open_session(connection, Session(id="talk"), POSTED)
        insert_messages(connection, "talk", [said("a", "a"), said("b", "b")])
        reader = MessageReader()
        first = reader.read(connection, "talk")
        connection.execute(
            "UPDATE messages SET body = replace(body, '\"b\"', '\"c\"') WHERE message_id = 'b'"
        )
        second = reader.read(connection, "talk")
    assert second[0] is first[0]
    assert [one.text for one in second] == ["a", "c"], "what another process changed is seen"


def test_the_ids_of_old_events_are_forgotten(path: Path) -> None:
    def event(name: str) -> AgentEvent:
        return AgentEvent(id=name, source="s", content="c")

    with closing(connect(str(path), SqliteConfig())) as connection:
        open_session(connection, Session(id="talk"), POSTED)
        connection.execute("BEGIN")
        assert put_event(connection, "talk", event("waiting"))
        for n in range(REMEMBERED):
            assert put_event(connection, "talk", event(str(n)))
            ack_events(connection, "talk", [str(n)])
        assert not put_event(connection, "talk", event("0")), "seen again, remembered longer"
        for n in range(10):
            assert put_event(connection, "talk", event(f"new {n}"))
        ack_events(connection, "talk", [f"new {n}" for n in range(10)])
        (rows,) = connection.execute("SELECT count(*) FROM events").fetchone()
        assert rows == REMEMBERED + 1
        assert not put_event(connection, "talk", event("0"))
        assert put_event(connection, "talk", event("1")), "the one unseen for longest is new"
        assert [one.id for one in pending_events(connection, "talk")] == ["waiting", "1"]
        assert count_events(connection, "talk") == 2
        connection.execute("ROLLBACK")


async def test_deleting_a_session_deletes_all_of_it(path: Path) -> None:
    async with SqliteStore(path, "talk") as store, SqliteStore(path, "other") as other:
        for one in (store, other):
            await one.append_messages([said("hi")])
            await one.add_inbox_item(item("a"))
            await one.event_queue().put(AgentEvent(id="e", source="s", content="c"))
            await one.set_permission("t", "granted", "{}")
        cook = await store.create_sub_agent_store("cook", durable=True)
        baker = await cook.create_sub_agent_store("baker", durable=True)  # type: ignore[attr-defined]
        await baker.append_messages([said("bread")])
        parents = {one.session_id: one.parent for one in list_sessions(path)}
        talk = {"talk": None, "talk__cook": "talk", "talk__cook__baker": "talk__cook"}
        assert parents == {**talk, "other": None}
        assert delete_session(path, "talk") is True
        assert delete_session(path, "talk") is False
        assert [one.session_id for one in list_sessions(path)] == ["other"]
        with closing(connect(str(path), SqliteConfig())) as connection:
            for table in ("messages", "inbox", "events", "permissions"):
                rows = connection.execute(f"SELECT session_id FROM {table}").fetchall()
                assert rows == [("other",)]
        with pytest.raises(StoreError, match="FOREIGN KEY"):
            await store.append_messages([said("gone")])
        with pytest.raises(StoreError, match="FOREIGN KEY"):
            await store.add_inbox_item(item("gone"))


async def test_a_status_nobody_knows_is_a_store_error(path: Path) -> None:
    async with SqliteStore(path, "talk") as store:
        await store.add_inbox_item(item("a"))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE inbox SET status = 'lost'")
        with pytest.raises(StoreError, match="'lost'"):
            await store.get_inbox_items()


# From outside


def test_two_who_amend_one_message_undo_nothing_of_each_other(path: Path) -> None:
    """As two processes would: each with a connection of its own."""
    with closing(connect(str(path), SqliteConfig())) as connection:
        open_session(connection, Session(id="talk"), POSTED)
        insert_messages(connection, "talk", [Message(sender="agent", id="m", heard="0")])
    together = threading.Barrier(2)
    rounds = 40

    def amend() -> None:
        with closing(connect(str(path), SqliteConfig())) as connection:
            together.wait()
            for _ in range(rounds):
                with transaction(connection):
                    (message,) = MessageReader().read(connection, "talk")
                    heard = str(int(message.heard or 0) + 1)
                    patch_message(connection, "talk", "m", {"heard": heard})

    with ThreadPoolExecutor(2, thread_name_prefix="test") as pool:
        for done in [pool.submit(amend), pool.submit(amend)]:
            done.result()
    with closing(connect(str(path), SqliteConfig())) as connection:
        (message,) = MessageReader().read(connection, "talk")
    assert message.heard == str(2 * rounds)


async def test_sessions_are_listed_oldest_first(path: Path) -> None:
    async with SqliteStore(path, "b", name="Bea", working_dir="/srv/b") as first:
        await first.append_messages([said("1"), said("2")])
        await first.add_tokens(Usage(3, 4))
        await first.increment_turn()
        await first.add_inbox_item(item("open"))
        await first.add_inbox_item(replace(item("done"), status="consumed"))
        await first.create_sub_agent_store("cook")
        cook = await first.create_sub_agent_store("cook", durable=True)
        await cook.append_messages([said("soup")])
        async with SqliteStore(path, "a") as second:
            await second.get_messages()
            assert [one.session_id for one in list_sessions(path)] == ["b", "b__cook"]
            await second.increment_turn()
        async with SqliteStore(path, "b") as again:
            await again.increment_turn()  # not told a name: the known one stays
    sessions = list_sessions(path)
    assert [one.session_id for one in sessions] == ["b", "b__cook", "a"]
    bea = sessions[0]
    assert (bea.name, bea.working_dir) == ("Bea", "/srv/b")
    assert (bea.message_count, bea.token_count, bea.turn_count, bea.pending_items) == (2, 7, 2, 1)
    assert datetime.fromisoformat(bea.created_at).tzinfo is not None
    async with SqliteStore(path, "b", name="Beate") as again:
        await again.increment_turn()
    assert list_sessions(path)[0].name == "Beate"


def test_a_file_that_is_not_there_is_not_made(path: Path) -> None:
    with pytest.raises(StoreError, match=r"agent\.db"):
        list_sessions(path)
    with pytest.raises(StoreError, match=r"agent\.db"):
        resolve_inbox_item(path, "talk", "a", "yes")
    assert not path.exists()


async def test_fault_20_an_answer_from_outside_is_for_one_session_and_in_iso_time(
    path: Path,
) -> None:
    async with SqliteStore(path, "talk") as store, SqliteStore(path, "other") as other:
        for one in (store, other):
            await one.add_inbox_item(item("a"))
        assert resolve_inbox_item(path, "talk", "a", "yes") is True
        assert resolve_inbox_item(path, "talk", "a", "no") is False
        assert resolve_inbox_item(path, "nobody", "a", "no") is False
        (mine,), (theirs,) = await store.get_inbox_items(), await other.get_inbox_items()
        assert (mine.status, mine.response) == ("resolved", "yes")
        assert theirs == item("a")
        assert mine.resolved_at is not None
        assert datetime.fromisoformat(mine.resolved_at).tzinfo is not None
        for wrong in ("yesterday", "2025-03-01T10:00:00", ""):
            with pytest.raises(UsageError, match="resolved_at"):
                resolve_inbox_item(path, "other", "a", "no", wrong)
        assert resolve_inbox_item(path, "other", "a", "ok", POSTED)
        (theirs,) = await other.get_inbox_items()
        assert theirs.resolved_at == POSTED


RESOLVE = """
import sys
from voxglove.core.stores import resolve_inbox_item
sys.stdin.readline()
print(resolve_inbox_item(sys.argv[1], "talk", "a", sys.argv[2]))
"""


@pytest.mark.real_loop
async def test_core_row_059_another_process_answers_and_one_of_several_counts(path: Path) -> None:
    async with SqliteStore(path, "talk") as store:
        await store.add_inbox_item(item("a"))
        await store.add_inbox_item(item("b"))
        others = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", RESOLVE, str(path), f"answer {n}"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            for n in range(2)
        ]
        async with asyncio.TaskGroup() as group:
            said_ = [group.create_task(one.communicate(b"go\n")) for one in others]
        answers = [one.result()[0].decode().strip() for one in said_]
        assert sorted(answers) == ["False", "True"]
        (found,) = await store.get_resolved_inbox_items()
        assert (found.id, found.response) == ("a", f"answer {answers.index('True')}")
        await store.consume_inbox_items(["a"], said("the answer"))
        assert await texts(store) == ["the answer"], "the store goes on writing"


async def test_core_row_077_an_event_outlives_its_agent(path: Path) -> None:
    def agent_of(store: SqliteStore, model: ScriptedModel) -> Glove:
        events = EventConfig(queue=store.event_queue(), when_idle="defer")
        return Glove(model=model, system_prompt="x", store=store, config=AgentConfig(events=events))

    event = AgentEvent(id="offer:1", source="desk", content="the table is free")
    async with SqliteStore(path, "talk") as store:
        agent = agent_of(store, ScriptedModel()).build()
        assert (await agent.emit_event(event)).status == "deferred"
        await agent.aclose()
    async with SqliteStore(path, "talk") as store:
        model = ScriptedModel("good", "yes")
        agent = agent_of(store, model).build()
        assert (await agent.emit_event(event)).status == "duplicate"
        await agent.process_request("hello")
        await agent.process_request("again")
        shown = [one for one in await texts(store) if "the table is free" in one]
        assert len(shown) == 1, "told once, and kept in history"
        assert await store.event_queue().size() == 0
        await agent.aclose()
