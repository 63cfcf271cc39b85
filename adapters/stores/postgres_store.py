"""PostgresStore: one conversation in PostgreSQL, every group of the store port (spec core 5).

Made by PostgresPool.store(), cheap, and dropped without ceremony: it owns nothing but a copy of the
messages it has read. Every append and amendment of a conversation passes the row lock of its
session, whoever makes it: `seq` has no gaps, and `revision` grows in the order of commits, so a
read fetches what is new alone and a long history is decoded once. It never repeats a write that
could count twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ...core.errors import StoreError
from ...core.external import EventQueue
from ...core.messages import (
    Message,
    MessagePatch,
    apply_patch,
    encode_message,
    random_id,
)
from ...core.store import Permission, Store
from ...core.stores.checks import check_messages, message_taken, no_item, no_message
from ...core.stores.memory import MemoryStore
from ...core.usage import Usage
from .postgres_database import Database
from .postgres_events import PostgresEventQueue
from .postgres_history import Columns, HistoryCopy, message_of
from .postgres_history import columns as columns_of
from .postgres_inbox import SESSION, PostgresPlan
from .postgres_text import index_key, restored, storable
from .postgres_wire import Connection, Row, key_taken

APPEND = """
WITH head AS (
    INSERT INTO {s}.sessions AS session (session_id, name, message_count, revision)
    VALUES ($1, $2, cardinality($3::text[]), 1)
    ON CONFLICT (session_id) DO UPDATE SET
        message_count = session.message_count + cardinality($3::text[]),
        revision = session.revision + 1,
        updated_at = now()
    RETURNING message_count, revision
)
INSERT INTO {s}.messages (session_id, seq, message_id, revision, sender, is_compaction, body)
SELECT $1, head.message_count - cardinality($3::text[]) + given.position - 1, given.id,
       head.revision, given.sender, given.is_compaction, given.body
FROM head, unnest($3::text[], $4::text[], $5::boolean[], $6::json[])
     WITH ORDINALITY AS given (id, sender, is_compaction, body, position)"""
STORED = """
SELECT message_id, body FROM {s}.messages
WHERE session_id = $1 AND message_id = ANY ($2::text[])"""
CHANGED = """
SELECT session.incarnation, session.revision, message.seq, message.body
FROM {s}.sessions AS session
LEFT JOIN {s}.messages AS message
    ON message.session_id = session.session_id AND message.revision > $2
WHERE session.session_id = $1 ORDER BY message.seq"""
NEXT_REVISION = """
UPDATE {s}.sessions SET revision = revision + 1, updated_at = now()
WHERE session_id = $1 RETURNING revision"""
BODY = "SELECT body FROM {s}.messages WHERE session_id = $1 AND message_id = $2"
AMEND = """
UPDATE {s}.messages SET body = $3, revision = $4 WHERE session_id = $1 AND message_id = $2"""

COUNTERS = "SELECT * FROM {s}.sessions WHERE session_id = $1"
ADD_TOKENS = """
INSERT INTO {s}.sessions AS session (session_id, name, window_in, window_out, total_in, total_out,
                                   total_cache_creation, total_cache_read)
VALUES ($1, $2, $3, $4, $3, $4, $5, $6)
ON CONFLICT (session_id) DO UPDATE SET
    window_in = session.window_in + $3,
    window_out = session.window_out + $4,
    total_in = session.total_in + $3,
    total_out = session.total_out + $4,
    total_cache_creation = session.total_cache_creation + $5,
    total_cache_read = session.total_cache_read + $6"""
ADD_TURN = """
INSERT INTO {s}.sessions AS session (session_id, name, turn_count) VALUES ($1, $2, 1)
ON CONFLICT (session_id) DO UPDATE SET turn_count = session.turn_count + 1"""
RESET = """
UPDATE {s}.sessions SET window_in = 0, window_out = 0, turn_count = 0 WHERE session_id = $1"""

GET_PERMISSION = """
SELECT status FROM {s}.permissions WHERE session_id = $1 AND tool_name = $2 AND input_key = $3"""
SET_PERMISSION = f"""
WITH session AS ({SESSION})
INSERT INTO {{s}}.permissions (session_id, tool_name, input_key, status) VALUES ($1, $3, $4, $5)
ON CONFLICT (session_id, tool_name, input_key) DO UPDATE SET status = EXCLUDED.status"""

CONSUME = """
UPDATE {s}.inbox_items SET status = 'consumed'
WHERE session_id = $1 AND item_key = ANY ($2::text[]) RETURNING item_key"""
ADD_CHILD = f"""
WITH session AS ({SESSION})
INSERT INTO {{s}}.sessions (session_id, name, parent) VALUES ($3, $4, $1) ON CONFLICT DO NOTHING"""


class PostgresStore(PostgresPlan):
    """One conversation. Any number of them, in any process, may be open for the same one."""

    def __init__(self, database: Database, identifier: str) -> None:
        self.identifier = identifier
        self._database = database
        self._session = index_key(identifier)
        self._name = storable(identifier)
        self._copy = HistoryCopy()
        self._reading = asyncio.Lock()

    async def get_messages(self) -> list[Message]:
        async with self._reading:
            rows = await self._changed(self._copy.revision)
            if not self._copy.continued_by(rows):
                self._copy = HistoryCopy()
                rows = await self._changed(0)
            await self._copy.take(rows)
            return list(self._copy.messages)

    async def append_messages(self, messages: Sequence[Message]) -> None:
        """All or nothing, in one statement. If the connection breaks it is tried once more, and the
        ids tell whether the first try had been stored: it never happens twice."""
        check_messages(messages)
        if messages:
            columns = columns_of(messages)
            await self._write_once("appending messages", columns, self._append(columns))

    async def amend_message(self, message_id: str, patch: MessagePatch) -> Message:
        keys = self._session, index_key(message_id)
        sql = self._database.sql

        async def amend(connection: Connection) -> Message:
            # First the lock, then the reading: another statement sees what the last holder wrote.
            revision = await connection.fetchval(sql(NEXT_REVISION), self._session)
            body = await connection.fetchval(sql(BODY), *keys)
            if body is None:
                raise no_message(message_id, self.identifier)
            amended = apply_patch(message_of(body), patch)
            await connection.execute(sql(AMEND), *keys, encode_message(amended).decode(), revision)
            return amended

        return await self._database.run("amending a message", amend, again=True, atomic=True)

    async def get_token_count(self) -> int:
        row = await self._counters()
        return 0 if row is None else int(row["window_in"] + row["window_out"])

    async def add_tokens(self, usage: Usage) -> None:
        await self._execute(
            "adding tokens",
            ADD_TOKENS,
            self._name,
            usage.tokens_in,
            usage.tokens_out,
            usage.cache_creation_input_tokens,
            usage.cache_read_input_tokens,
        )

    async def get_token_consumption(self) -> Usage:
        row = await self._counters()
        if row is None:
            return Usage()
        return Usage(
            row["total_in"],
            row["total_out"],
            row["total_cache_creation"],
            row["total_cache_read"],
        )

    async def get_turn_count(self) -> int:
        row = await self._counters()
        return 0 if row is None else int(row["turn_count"])

    async def increment_turn(self) -> None:
        await self._execute("counting a turn", ADD_TURN, self._name)

    async def reset_counters(self) -> None:
        await self._execute("resetting counters", RESET)

    async def get_permission(self, tool_name: str, input_key: str) -> Permission:
        keys = index_key(tool_name), index_key(input_key)

        async def read(connection: Connection) -> Permission:
            sql = self._database.sql(GET_PERMISSION)
            return await connection.fetchval(sql, self._session, *keys) or "unset"

        return await self._database.run("reading a permission", read, again=True)

    async def set_permission(self, tool_name: str, status: Permission, input_key: str) -> None:
        keys = index_key(tool_name), index_key(input_key)
        await self._execute(
            "keeping a permission", SET_PERMISSION, self._name, *keys, status, again=True
        )

    async def consume_inbox_items(self, item_ids: Sequence[str], message: Message) -> None:
        """One transaction. If the connection breaks it is tried once more, as an append is."""
        check_messages([message])
        columns = columns_of([message])
        keys = {index_key(one): one for one in item_ids}
        append = self._append(columns)

        async def consume(connection: Connection) -> None:
            await append(connection)
            rows = await connection.fetch(self._database.sql(CONSUME), self._session, list(keys))
            unknown = keys.keys() - {row["item_key"] for row in rows}
            if unknown:
                raise no_item(keys[min(unknown)], self.identifier)

        await self._write_once("consuming inbox items", columns, consume, atomic=True)

    def event_queue(self) -> EventQueue:
        return PostgresEventQueue(self._database, self._session, self._name)

    async def create_sub_agent_store(self, namespace: str, durable: bool = False) -> Store:
        """A durable one is the session `<id>__<namespace>`, deleted together with this one. Others
        are in memory: nobody could ever name them again."""
        name = f"{self.identifier}__{namespace}"
        if not durable:
            return MemoryStore(random_id(name))
        child = PostgresStore(self._database, name)
        made = (self._name, child._session, child._name)
        await self._execute("making a sub-agent's store", ADD_CHILD, *made, again=True)
        return child

    async def _changed(self, revision: int) -> list[Row]:
        async def read(connection: Connection) -> list[Row]:
            return await connection.fetch(self._database.sql(CHANGED), self._session, revision)

        return await self._database.run("reading messages", read, again=True)

    def _append(self, columns: Columns) -> Callable[[Connection], Awaitable[None]]:
        async def append(connection: Connection) -> None:
            sql = self._database.sql(APPEND)
            await connection.execute(sql, self._session, self._name, *columns)

        return append

    async def _write_once(
        self,
        doing: str,
        columns: Columns,
        work: Callable[[Connection], Awaitable[None]],
        *,
        atomic: bool = False,
    ) -> None:
        """Do `work`, which stores the messages of `columns`. Raises UsageError for a taken id."""
        tries = 0

        async def attempt(connection: Connection) -> None:
            nonlocal tries
            tries += 1
            await work(connection)

        try:
            await self._database.run(doing, attempt, again=True, atomic=atomic)
        except StoreError as error:
            if not key_taken(error.__cause__):
                raise
            held = await self._held(columns.keys)
            if tries > 1 and [held.get(key) for key in columns.keys] == columns.bodies:
                return  # the first try was stored before its connection broke
            taken = next((key for key in columns.keys if key in held), columns.keys[0])
            raise message_taken(restored(taken), self.identifier) from error

    async def _held(self, keys: list[str]) -> dict[str, str]:
        """Which of these messages are stored: key -> body."""

        async def read(connection: Connection) -> list[Row]:
            return await connection.fetch(self._database.sql(STORED), self._session, keys)

        rows = await self._database.run("reading messages", read, again=True)
        return {row["message_id"]: row["body"] for row in rows}

    async def _counters(self) -> Row | None:
        async def read(connection: Connection) -> Row | None:
            return await connection.fetchrow(self._database.sql(COUNTERS), self._session)

        return await self._database.run("reading counters", read, again=True)

    async def _execute(self, doing: str, sql: str, *args: object, again: bool = False) -> None:
        async def execute(connection: Connection) -> None:
            await connection.execute(self._database.sql(sql), self._session, *args)

        await self._database.run(doing, execute, again=again)
