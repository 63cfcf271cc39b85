"""A queue of outside events in PostgreSQL: it survives the agent and the process (core row 77).

At least once: an event stays until it is acknowledged, which happens after the message that shows
it is stored. Owned by the agent whose conversation it belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ...core.errors import UsageError
from ...core.external import AgentEvent
from .postgres_database import Database
from .postgres_inbox import SESSION
from .postgres_text import index_key
from .postgres_wire import Connection, Row

REMEMBER = 1024
"""Ids of acknowledged events that are known again; as many as MemoryEventQueue keeps."""

PUT = f"""
WITH session AS ({SESSION})
INSERT INTO {{s}}.events AS known (session_id, event_key, event) VALUES ($1, $3, $4)
ON CONFLICT (session_id, event_key) DO UPDATE SET seen = nextval('{{s}}.events_seen')
RETURNING known.xmax = 0 AS fresh"""
PEEK = "SELECT event FROM {s}.events WHERE session_id = $1 AND event IS NOT NULL ORDER BY seq"
SIZE = "SELECT count(*) FROM {s}.events WHERE session_id = $1 AND event IS NOT NULL"
ACK = "UPDATE {s}.events SET event = NULL WHERE session_id = $1 AND event_key = ANY ($2::text[])"
FORGET = """
DELETE FROM {s}.events WHERE session_id = $1 AND event IS NULL AND seen <= (
    SELECT seen FROM {s}.events WHERE session_id = $1 AND event IS NULL
    ORDER BY seen DESC OFFSET $2 LIMIT 1)"""


class PostgresEventQueue:
    """Pending events of one conversation and a bounded memory of those that were shown."""

    def __init__(
        self, database: Database, session: str, name: str, remember: int = REMEMBER
    ) -> None:
        self._database = database
        self._session = session
        self._name = name
        self._remember = remember

    async def put(self, event: AgentEvent) -> bool:
        """False if this id is pending or was seen lately. A failed put may be tried again: if it
        had been stored, the answer is False and the event is there."""
        body = _encode(event)

        async def insert(connection: Connection) -> bool:
            fresh = await connection.fetchval(
                self._database.sql(PUT),
                self._session,
                self._name,
                index_key(event.id),
                body,
            )
            return bool(fresh)

        return await self._database.run("queueing an event", insert)

    async def peek(self) -> Sequence[AgentEvent]:
        async def read(connection: Connection) -> list[Row]:
            return await connection.fetch(self._database.sql(PEEK), self._session)

        rows = await self._database.run("reading events", read, again=True)
        return tuple(_decode(row["event"]) for row in rows)

    async def ack(self, ids: Iterable[str]) -> None:
        keys = [index_key(one) for one in ids]
        if not keys:
            return

        async def mark(connection: Connection) -> None:
            await connection.execute(self._database.sql(ACK), self._session, keys)
            await connection.execute(self._database.sql(FORGET), self._session, self._remember)

        await self._database.run("acknowledging events", mark, again=True, atomic=True)

    async def size(self) -> int:
        async def count(connection: Connection) -> int:
            return int(await connection.fetchval(self._database.sql(SIZE), self._session))

        return await self._database.run("counting events", count, again=True)


def _encode(event: AgentEvent) -> str:
    """JSON of every field, in ASCII; values JSON does not know are written as text."""
    fields = {name: getattr(event, name) for name in AgentEvent.__dataclass_fields__}
    if event.metadata is not None:
        fields["metadata"] = dict(event.metadata)
    try:
        return json.dumps(fields, default=str)
    except (TypeError, ValueError) as error:
        raise UsageError(f"AgentEvent.metadata: not writable as JSON: {error}") from error


def _decode(raw: str) -> AgentEvent:
    return AgentEvent(**json.loads(raw))
