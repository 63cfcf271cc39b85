"""Tasks and inbox items in SQLite: what runs on the database's thread (spec core 13.2, 13.3).

Functions of a connection; those that write are called inside a transaction.
"""

import sqlite3
from collections.abc import Sequence
from typing import TypeAlias

from ..encoding import whole_text
from ..errors import StoreError
from ..messages import Message
from ..records import (
    InboxItem,
    InboxPatch,
    InboxStatus,
    Task,
    TaskPatch,
    patched_item,
    patched_task,
    task_from_json,
)
from .checks import item_taken, no_item, no_task
from .sqlite_history import insert_messages, is_taken, optional_text

Row: TypeAlias = tuple[str, str, str, str | None, str, int, str, str | None]

STATUSES: tuple[InboxStatus, ...] = ("pending", "resolved", "consumed")

ITEM = (
    "SELECT item_id, tag, request, response, status, blocking, created_at, resolved_at FROM inbox"
)
TASK = "SELECT task_id AS id, content, active_form AS activeForm, status FROM tasks"


def read_tasks(connection: sqlite3.Connection, session: str) -> list[Task]:
    return _tasks(connection, f"{TASK} WHERE session_id = ? ORDER BY position", (session,))


def _tasks(connection: sqlite3.Connection, query: str, values: tuple[str, ...]) -> list[Task]:
    cursor = connection.execute(query, values)
    names = [column[0] for column in cursor.description]
    return [task_from_json(dict(zip(names, row, strict=True))) for row in cursor]


def replace_tasks(connection: sqlite3.Connection, session: str, tasks: Sequence[Task]) -> None:
    """The ids differ: checks.check_tasks has seen them."""
    connection.execute("DELETE FROM tasks WHERE session_id = ?", (session,))
    connection.executemany(
        "INSERT INTO tasks (session_id, position, task_id, content, active_form, status)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                session,
                position,
                whole_text(task.id),
                whole_text(task.content),
                whole_text(task.active_form),
                task.status,
            )
            for position, task in enumerate(tasks)
        ],
    )


def patch_task(
    connection: sqlite3.Connection, session: str, task_id: str, patch: TaskPatch
) -> Task:
    """Raises UnknownRecordError."""
    key = (session, whole_text(task_id))
    found = _tasks(connection, f"{TASK} WHERE session_id = ? AND task_id = ?", key)
    if not found:
        raise no_task(task_id, session)
    changed = patched_task(found[0], patch)
    connection.execute(
        "UPDATE tasks SET content = ?, active_form = ?, status = ?"
        " WHERE session_id = ? AND task_id = ?",
        (whole_text(changed.content), whole_text(changed.active_form), changed.status, *key),
    )
    return changed


def read_items(connection: sqlite3.Connection, session: str) -> list[InboxItem]:
    rows = connection.execute(f"{ITEM} WHERE session_id = ? ORDER BY seq", (session,))
    return [_item(row) for row in rows]


def read_resolved_items(connection: sqlite3.Connection, session: str) -> list[InboxItem]:
    rows = connection.execute(
        f"{ITEM} WHERE session_id = ? AND status = 'resolved' ORDER BY seq", (session,)
    )
    return [_item(row) for row in rows]


def insert_item(connection: sqlite3.Connection, session: str, item: InboxItem) -> None:
    """Raises UsageError when the id is taken."""
    try:
        connection.execute(
            "INSERT INTO inbox (session_id, item_id, tag, request, response, status, blocking,"
            " created_at, resolved_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                session,
                whole_text(item.id),
                whole_text(item.tag),
                whole_text(item.request),
                optional_text(item.response),
                item.status,
                item.blocking,
                whole_text(item.created_at),
                optional_text(item.resolved_at),
            ),
        )
    except sqlite3.IntegrityError as error:
        if not is_taken(error):
            raise
        raise item_taken(item.id, session) from error


def patch_item(
    connection: sqlite3.Connection, session: str, item_id: str, patch: InboxPatch
) -> InboxItem:
    """Raises UnknownRecordError."""
    key = (session, whole_text(item_id))
    row = connection.execute(f"{ITEM} WHERE session_id = ? AND item_id = ?", key).fetchone()
    if row is None:
        raise no_item(item_id, session)
    changed = patched_item(_item(row), patch)
    connection.execute(
        "UPDATE inbox SET status = ?, response = ?, resolved_at = ?"
        " WHERE session_id = ? AND item_id = ?",
        (changed.status, optional_text(changed.response), optional_text(changed.resolved_at), *key),
    )
    return changed


def resolve_item(
    connection: sqlite3.Connection, session: str, item_id: str, response: str, resolved_at: str
) -> bool:
    """One statement: of several processes that try, one finds the item pending."""
    done = connection.execute(
        "UPDATE inbox SET status = 'resolved', response = ?, resolved_at = ?"
        " WHERE session_id = ? AND item_id = ? AND status = 'pending'",
        (whole_text(response), whole_text(resolved_at), session, whole_text(item_id)),
    )
    return done.rowcount == 1


def consume_items(
    connection: sqlite3.Connection, session: str, item_ids: Sequence[str], message: Message
) -> None:
    """Raises UnknownRecordError and UsageError; the caller's transaction undoes the rest."""
    for item_id in item_ids:
        done = connection.execute(
            "UPDATE inbox SET status = 'consumed' WHERE session_id = ? AND item_id = ?",
            (session, whole_text(item_id)),
        )
        if done.rowcount == 0:
            raise no_item(item_id, session)
    insert_messages(connection, session, [message])


def _item(row: Row) -> InboxItem:
    item_id, tag, request, response, status, blocking, created_at, resolved_at = row
    for known in STATUSES:
        if status == known:
            return InboxItem(
                id=item_id,
                tag=tag,
                request=request,
                response=response,
                status=known,
                blocking=bool(blocking),
                created_at=created_at,
                resolved_at=resolved_at,
            )
    raise StoreError(f"inbox item {item_id!r} has the unknown status {status!r}")
