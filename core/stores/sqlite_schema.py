"""The tables of an SQLite store and how an older file becomes a newer one.

`PRAGMA user_version` says how many migrations a file has seen. A migration that was released is
never changed: append another. Runs on the database's thread, in one transaction, so that a process
killed half way leaves the old file.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import StoreError

FIRST = (
    """CREATE TABLE sessions (
        session_id TEXT PRIMARY KEY,
        parent_id TEXT REFERENCES sessions ON DELETE CASCADE,
        name TEXT,
        working_dir TEXT,
        created_at TEXT NOT NULL,
        token_count INTEGER NOT NULL DEFAULT 0,
        turn_count INTEGER NOT NULL DEFAULT 0,
        tokens_in INTEGER NOT NULL DEFAULT 0,
        tokens_out INTEGER NOT NULL DEFAULT 0,
        cache_creation_input_tokens INTEGER NOT NULL DEFAULT 0,
        cache_read_input_tokens INTEGER NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX sessions_children ON sessions (parent_id)",
    # `body` is the whole message as JSON, so that a new field of Message needs no migration and
    # none can be forgotten (spec core 19.4); the columns beside it are what queries ask for.
    """CREATE TABLE messages (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
        message_id TEXT NOT NULL,
        sender TEXT NOT NULL,
        is_compaction INTEGER NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (session_id, message_id)
    )""",
    "CREATE INDEX messages_order ON messages (session_id, seq)",
    # The hash of the canonical input: what was permitted is looked up, never read back.
    """CREATE TABLE permissions (
        session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
        tool_name TEXT NOT NULL,
        input_hash BLOB NOT NULL,
        status TEXT NOT NULL,
        PRIMARY KEY (session_id, tool_name, input_hash)
    ) WITHOUT ROWID""",
    """CREATE TABLE tasks (
        session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
        position INTEGER NOT NULL,
        task_id TEXT NOT NULL,
        content TEXT NOT NULL,
        active_form TEXT NOT NULL,
        status TEXT NOT NULL,
        PRIMARY KEY (session_id, task_id)
    ) WITHOUT ROWID""",
    """CREATE TABLE inbox (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
        item_id TEXT NOT NULL,
        tag TEXT NOT NULL,
        request TEXT NOT NULL,
        response TEXT,
        status TEXT NOT NULL,
        blocking INTEGER NOT NULL,
        created_at TEXT NOT NULL,
        resolved_at TEXT,
        UNIQUE (session_id, item_id)
    )""",
    "CREATE INDEX inbox_status ON inbox (session_id, status)",
    # An acknowledged event loses its body and stays as the memory of its id.
    """CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
        event_id TEXT NOT NULL,
        body TEXT,
        UNIQUE (session_id, event_id)
    )""",
    "CREATE INDEX events_pending ON events (session_id, seq) WHERE body IS NOT NULL",
    "CREATE INDEX events_seen ON events (session_id, seq) WHERE body IS NULL",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (FIRST,)
"""Each brings a file one version further; the first makes the tables."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing. Takes the write lock at once, so that what it reads is still true when it
    writes, whatever other processes do."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors of SQLite have rolled back already
            connection.execute("ROLLBACK")
        raise


def migrate(
    connection: sqlite3.Connection, migrations: tuple[tuple[str, ...], ...] = MIGRATIONS
) -> None:
    """Bring the file to the newest version. Raises StoreError as `known_version` does."""
    if known_version(connection, len(migrations)) == len(migrations):
        return  # the usual case takes no lock
    with transaction(connection):
        version = known_version(connection, len(migrations))  # another process may have been faster
        for statements in migrations[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations):d}")


def known_version(connection: sqlite3.Connection, newest: int = len(MIGRATIONS)) -> int:
    """The file's version, 0 for an empty one; changes nothing.

    Raises StoreError for a file of a newer version, and for a database of somebody else.
    """
    version, tables = connection.execute(
        "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
    ).fetchone()
    if version > newest:
        raise StoreError(
            f"the database has schema version {version}, this voxglove knows {newest}: "
            "open it with a newer voxglove"
        )
    if version == 0 and tables:
        raise StoreError("the database holds tables of something else: use a file of its own")
    return int(version)
