"""What another process asks of a store's file: a web page, a command line, a cron job (row 59).

Plain functions that block, for programs without an event loop; each opens the file, does one thing
and closes it. They never make a file. In an agent's own process use its SqliteStore.
"""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from sqlite3 import Connection

from ..encoding import whole_text
from ..errors import UsageError
from ..records import utc_now
from .sqlite_database import SqliteConfig, connect, translated
from .sqlite_records import resolve_item
from .sqlite_schema import transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """One conversation of a file; `parent` is the one whose sub-agent it is.

    `token_count` and `turn_count` are since the last reset.
    """

    session_id: str
    parent: str | None
    name: str | None
    working_dir: str | None
    created_at: str
    message_count: int
    token_count: int
    turn_count: int
    pending_items: int


def list_sessions(path: str | os.PathLike[str]) -> list[SessionSummary]:
    """The conversations of a file, oldest first, sub-agents' ones included.

    Raises StoreError when there is no such file or it is none of ours.
    """
    with _opened(path) as connection:
        rows = connection.execute(
            "SELECT session_id, parent_id, name, working_dir, created_at,"
            " (SELECT count(*) FROM messages m WHERE m.session_id = s.session_id),"
            " token_count, turn_count,"
            " (SELECT count(*) FROM inbox i"
            "  WHERE i.session_id = s.session_id AND i.status = 'pending')"
            " FROM sessions s ORDER BY created_at, rowid"
        ).fetchall()
    names = [field.name for field in fields(SessionSummary)]
    return [SessionSummary(**dict(zip(names, row, strict=True))) for row in rows]


def delete_session(path: str | os.PathLike[str], session_id: str) -> bool:
    """Delete a conversation with all that belongs to it and its sub-agents. False if unknown.

    A store that is open on it raises StoreError at its next write. Raises StoreError as
    list_sessions() does.
    """
    with _opened(path) as connection, transaction(connection):
        done = connection.execute(
            "DELETE FROM sessions WHERE session_id = ?", (whole_text(session_id),)
        )
        return done.rowcount == 1


def resolve_inbox_item(
    path: str | os.PathLike[str],
    session_id: str,
    item_id: str,
    response: str,
    resolved_at: str | None = None,
) -> bool:
    """Answer a pending inbox item of one conversation; the agent sees it at its next step.

    False if the conversation has no such item or it is no longer pending. `resolved_at` is ISO
    8601 with a time zone, by default now (spec core 19.20). Raises StoreError when there is no
    such file or it cannot be written, UsageError for another kind of time.
    """
    moment = utc_now() if resolved_at is None else resolved_at
    _check_moment(moment)
    with _opened(path) as connection, transaction(connection):
        return resolve_item(connection, whole_text(session_id), item_id, response, moment)


def _check_moment(text: str) -> None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise UsageError(f"resolved_at: {text!r} is not an ISO 8601 time with a time zone")


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Connection]:
    name = os.fspath(path)
    with closing(connect(name, SqliteConfig(), create=False)) as connection, translated(name):
        yield connection
