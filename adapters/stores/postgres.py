"""PostgreSQL as the home of conversations: `open_postgres` gives a pool, the pool gives stores.

    async with await open_postgres("postgresql://user:password@host/database") as pool:
        store = pool.store("call-17")

Any number of processes may share a database; each opens a pool of its own. The caller owns the pool
and closes it; stores own nothing. The DSN is read by asyncpg with the rules of libpq and is never
shown, logged or kept by anything here.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from ...core.errors import UsageError
from ..credentials import Secret
from .postgres_config import PostgresConfig
from .postgres_database import Database
from .postgres_migrations import migrate
from .postgres_store import PostgresStore
from .postgres_text import index_key, restored
from .postgres_wire import Connection, Row, affected, connect_pool

__all__ = ["PostgresConfig", "PostgresPool", "PostgresStore", "SessionInfo", "open_postgres"]

LIST_SESSIONS = """
SELECT session.name, parent.name AS parent, session.created_at, session.updated_at,
       session.message_count, session.window_in + session.window_out AS token_count,
       session.turn_count,
       (SELECT count(*) FROM {s}.inbox_items AS item
        WHERE item.session_id = session.session_id AND item.status = 'pending') AS pending_items
FROM {s}.sessions AS session LEFT JOIN {s}.sessions AS parent ON parent.session_id = session.parent
WHERE $1 OR session.parent IS NULL
ORDER BY session.updated_at DESC, session.incarnation DESC LIMIT $2"""
DELETE_SESSION = "DELETE FROM {s}.sessions WHERE session_id = $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """One conversation of the database; times are ISO 8601 in UTC, by the server's clock."""

    session_id: str
    created_at: str
    updated_at: str
    message_count: int
    token_count: int
    turn_count: int
    pending_items: int
    parent: str | None = None


async def open_postgres(dsn: str | Secret, config: PostgresConfig | None = None) -> PostgresPool:
    """Connect and bring the schema up to date.

    Several processes may do so at the same moment. Raises UsageError for a DSN that cannot be read,
    StoreError when the server cannot be reached within `connect_timeout_s`, refuses the login, or
    holds a schema newer than this code. After an error or a cancellation nothing is left open.
    """
    config = config or PostgresConfig()
    plain = dsn.reveal() if isinstance(dsn, Secret) else dsn
    database = Database(await connect_pool(plain, config), config)
    try:
        await migrate(database)
    except BaseException:
        await database.close()
        raise
    return PostgresPool(database)


class PostgresPool:
    """The connections of one process to one schema. Made by open_postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __repr__(self) -> str:
        return f"PostgresPool(schema={self._database.config.schema!r})"

    async def __aenter__(self) -> PostgresPool:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def store(self, session_id: str) -> PostgresStore:
        """The store of a conversation, old or new. Asks the database nothing yet."""
        if not session_id:
            raise UsageError("PostgresPool.store: name the conversation (session_id)")
        return PostgresStore(self._database, session_id)

    async def list_sessions(
        self, *, limit: int = 1000, children: bool = False
    ) -> list[SessionInfo]:
        """Conversations, last changed first; those of sub-agents only with `children`."""

        async def read(connection: Connection) -> list[Row]:
            return await connection.fetch(self._database.sql(LIST_SESSIONS), children, limit)

        return [_info(row) for row in await self._database.run("listing", read, again=True)]

    async def delete_session(self, session_id: str) -> bool:
        """Delete a conversation, all that belongs to it and its sub-agents. False if unknown."""

        async def delete(connection: Connection) -> str:
            sql = self._database.sql(DELETE_SESSION)
            return await connection.execute(sql, index_key(session_id))

        return affected(await self._database.run("deleting a session", delete, again=True)) == 1

    async def resolve_inbox_item(
        self, session_id: str, item_id: str, response: str, resolved_at: str
    ) -> bool:
        """Answer a pending item of a conversation that another process may be holding (core row
        59). Of several who try at once, one gets True."""
        return await self.store(session_id).resolve_inbox_item(item_id, response, resolved_at)

    async def aclose(self) -> None:
        """Close every connection, waiting at most `close_timeout_s` for running calls. Those left
        then end in StoreError, stored or not, and so do later ones. Safe to call again."""
        await self._database.close()


def _info(row: Row) -> SessionInfo:
    return SessionInfo(
        session_id=restored(row["name"]),
        created_at=row["created_at"].isoformat(timespec="milliseconds"),
        updated_at=row["updated_at"].isoformat(timespec="milliseconds"),
        message_count=row["message_count"],
        token_count=row["token_count"],
        turn_count=row["turn_count"],
        pending_items=row["pending_items"],
        parent=None if row["parent"] is None else restored(row["parent"]),
    )
