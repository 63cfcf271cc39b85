"""Inbox items and the agent's plan in PostgreSQL: one row each (spec core 13.2, 13.3).

`PostgresInbox` and `PostgresPlan` are the groups of PostgresStore that do not touch messages;
consuming items does, and is the store's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.errors import StoreError
from ...core.records import (
    InboxItem,
    InboxPatch,
    Task,
    TaskPatch,
    patched_item,
    patched_task,
)
from ...core.stores.checks import check_tasks, item_taken, no_item, no_task
from .postgres_database import Database
from .postgres_text import index_key, optional, restored, storable
from .postgres_wire import Connection, Row, affected, key_taken

# A session's row is made by whatever is written first.
SESSION = "INSERT INTO {s}.sessions (session_id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING"
LOCK_SESSION = """
INSERT INTO {s}.sessions (session_id, name) VALUES ($1, $2)
ON CONFLICT (session_id) DO UPDATE SET updated_at = now()"""

ITEMS = "SELECT * FROM {s}.inbox_items WHERE session_id = $1 ORDER BY seq"
RESOLVED = """
SELECT * FROM {s}.inbox_items WHERE session_id = $1 AND status = 'resolved' ORDER BY seq"""
ITEM = "SELECT * FROM {s}.inbox_items WHERE session_id = $1 AND item_key = $2 FOR UPDATE"
ADD_ITEM = f"""
WITH session AS ({SESSION})
INSERT INTO {{s}}.inbox_items (session_id, item_key, id, tag, request, response, status, blocking,
                             created_at, resolved_at)
VALUES ($1, $3, $4, $5, $6, $7, $8, $9, $10, $11)"""
UPDATE_ITEM = """
UPDATE {s}.inbox_items SET status = $3, response = $4, resolved_at = $5
WHERE session_id = $1 AND item_key = $2"""
RESOLVE = """
UPDATE {s}.inbox_items SET status = 'resolved', response = $3, resolved_at = $4
WHERE session_id = $1 AND item_key = $2 AND status = 'pending'"""

TASKS = "SELECT * FROM {s}.tasks WHERE session_id = $1 ORDER BY position"
TASK = "SELECT * FROM {s}.tasks WHERE session_id = $1 AND task_key = $2 FOR UPDATE"
CLEAR_TASKS = "DELETE FROM {s}.tasks WHERE session_id = $1"
ADD_TASKS = """
INSERT INTO {s}.tasks (session_id, position, task_key, id, content, active_form, status)
SELECT $1, given.position, given.task_key, given.id, given.content, given.active_form, given.status
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
     WITH ORDINALITY AS given (task_key, id, content, active_form, status, position)"""
UPDATE_TASK = """
UPDATE {s}.tasks SET content = $3, active_form = $4, status = $5
WHERE session_id = $1 AND task_key = $2"""


class PostgresInbox:
    """The InboxStore group but for consuming; several processes may use it at once."""

    _database: Database
    _session: str
    identifier: str

    async def get_inbox_items(self) -> list[InboxItem]:
        return await self._items(ITEMS)

    async def get_resolved_inbox_items(self) -> list[InboxItem]:
        return await self._items(RESOLVED)

    async def add_inbox_item(self, item: InboxItem) -> None:
        async def add(connection: Connection) -> None:
            await connection.execute(
                self._database.sql(ADD_ITEM),
                self._session,
                storable(self.identifier),
                index_key(item.id),
                storable(item.id),
                storable(item.tag),
                storable(item.request),
                optional(item.response),
                item.status,
                item.blocking,
                storable(item.created_at),
                optional(item.resolved_at),
            )

        try:
            await self._database.run("adding an inbox item", add)
        except StoreError as error:
            if not key_taken(error.__cause__):
                raise
            raise item_taken(item.id, self.identifier) from error

    async def update_inbox_item(self, item_id: str, patch: InboxPatch) -> InboxItem:
        keys = self._session, index_key(item_id)

        async def update(connection: Connection) -> InboxItem:
            row = await connection.fetchrow(self._database.sql(ITEM), *keys)
            if row is None:
                raise no_item(item_id, self.identifier)
            item = patched_item(_item(row), patch)
            fields = item.status, optional(item.response), optional(item.resolved_at)
            await connection.execute(self._database.sql(UPDATE_ITEM), *keys, *fields)
            return item

        return await self._database.run("updating an inbox item", update, again=True, atomic=True)

    async def resolve_inbox_item(self, item_id: str, response: str, resolved_at: str) -> bool:
        """One conditional UPDATE: of several who try at once, in any process, one gets True.

        Not tried again when the connection breaks: the second try could not know that the first
        one won.
        """
        keys = self._session, index_key(item_id)

        async def resolve(connection: Connection) -> str:
            fields = storable(response), storable(resolved_at)
            return await connection.execute(self._database.sql(RESOLVE), *keys, *fields)

        return affected(await self._database.run("resolving an inbox item", resolve)) == 1

    async def _items(self, query: str) -> list[InboxItem]:
        async def read(connection: Connection) -> list[Row]:
            return await connection.fetch(self._database.sql(query), self._session)

        rows = await self._database.run("reading the inbox", read, again=True)
        return [_item(row) for row in rows]


class PostgresPlan(PostgresInbox):
    """The TaskStore group."""

    async def get_tasks(self) -> list[Task]:
        async def read(connection: Connection) -> list[Row]:
            return await connection.fetch(self._database.sql(TASKS), self._session)

        rows = await self._database.run("reading the tasks", read, again=True)
        return [_task(row) for row in rows]

    async def add_tasks(self, tasks: Sequence[Task]) -> None:
        check_tasks(tasks)
        columns = (
            [index_key(task.id) for task in tasks],
            [storable(task.id) for task in tasks],
            [storable(task.content) for task in tasks],
            [storable(task.active_form) for task in tasks],
            [task.status for task in tasks],
        )

        async def replace_all(connection: Connection) -> None:
            sql = self._database.sql
            # The session's row is the lock: two lists are stored one after the other, not mixed.
            await connection.execute(sql(LOCK_SESSION), self._session, storable(self.identifier))
            await connection.execute(sql(CLEAR_TASKS), self._session)
            await connection.execute(sql(ADD_TASKS), self._session, *columns)

        await self._database.run("replacing the tasks", replace_all, again=True, atomic=True)

    async def update_task(self, task_id: str, patch: TaskPatch) -> Task:
        keys = self._session, index_key(task_id)

        async def update(connection: Connection) -> Task:
            row = await connection.fetchrow(self._database.sql(TASK), *keys)
            if row is None:
                raise no_task(task_id, self.identifier)
            task = patched_task(_task(row), patch)
            fields = storable(task.content), storable(task.active_form), task.status
            await connection.execute(self._database.sql(UPDATE_TASK), *keys, *fields)
            return task

        return await self._database.run("updating a task", update, again=True, atomic=True)


def _item(row: Row) -> InboxItem:
    return InboxItem(
        id=restored(row["id"]),
        tag=restored(row["tag"]),
        request=restored(row["request"]),
        response=None if row["response"] is None else restored(row["response"]),
        status=row["status"],
        blocking=row["blocking"],
        created_at=restored(row["created_at"]),
        resolved_at=None if row["resolved_at"] is None else restored(row["resolved_at"]),
    )


def _task(row: Row) -> Task:
    return Task(
        id=restored(row["id"]),
        content=restored(row["content"]),
        active_form=restored(row["active_form"]),
        status=row["status"],
    )
