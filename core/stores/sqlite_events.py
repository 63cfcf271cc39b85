"""The event queue in SQLite: pending events and the ids that were seen (spec core 10.1, row 77).

Functions of a connection; those that write are called inside a transaction.
"""

import sqlite3
from collections.abc import Iterable
from functools import cache

from pydantic import TypeAdapter

from ..encoding import json_bytes, whole_text
from ..external import AgentEvent

REMEMBERED = 2_048
"""Acknowledged events whose ids are kept; the one unseen for longest is forgotten first."""


@cache
def _adapter() -> TypeAdapter[AgentEvent]:
    return TypeAdapter(AgentEvent)


def put_event(connection: sqlite3.Connection, session: str, event: AgentEvent) -> bool:
    """False if the id is known; a known one is remembered longer for it."""
    key = (session, whole_text(event.id))
    done = connection.execute(
        "INSERT INTO events (session_id, event_id, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (*key, json_bytes(event).decode()),
    )
    if done.rowcount == 1:
        return True
    # Only what is acknowledged moves: pending events keep their order.
    connection.execute(
        "UPDATE events SET seq = (SELECT max(seq) + 1 FROM events)"
        " WHERE session_id = ? AND event_id = ? AND body IS NULL",
        key,
    )
    return False


def pending_events(connection: sqlite3.Connection, session: str) -> tuple[AgentEvent, ...]:
    rows = connection.execute(
        "SELECT body FROM events WHERE session_id = ? AND body IS NOT NULL ORDER BY seq",
        (session,),
    )
    return tuple(_adapter().validate_json(body) for (body,) in rows)


def ack_events(connection: sqlite3.Connection, session: str, ids: Iterable[str]) -> None:
    """Keep the ids, drop the bodies, and forget the oldest ids beyond REMEMBERED."""
    connection.executemany(
        "UPDATE events SET body = NULL WHERE session_id = ? AND event_id = ?",
        [(session, whole_text(one)) for one in ids],
    )
    connection.execute(
        "DELETE FROM events WHERE session_id = ? AND body IS NULL AND seq <="
        " (SELECT seq FROM events WHERE session_id = ? AND body IS NULL"
        " ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        (session, session, REMEMBERED),
    )


def count_events(connection: sqlite3.Connection, session: str) -> int:
    (count,) = connection.execute(
        "SELECT count(*) FROM events WHERE session_id = ? AND body IS NOT NULL", (session,)
    ).fetchone()
    return int(count)
