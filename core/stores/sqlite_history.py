"""Messages, counters and permissions in SQLite: what runs on the database's thread (spec core 5).

Functions of a connection; those that write are called inside a transaction. Text is bound as UTF-8
can carry it (encoding.whole_text), in keys and in look-ups alike.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from ..encoding import whole_text
from ..messages import Message, MessagePatch, apply_patch, decode_message, encode_message
from ..store import Permission
from ..usage import Usage
from .checks import message_taken, no_message


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The row of a conversation; `parent` is the one whose sub-agent it is."""

    id: str
    parent: "Session | None" = None
    name: str | None = None
    working_dir: str | None = None


def open_session(connection: sqlite3.Connection, session: Session, created_at: str) -> None:
    """Make the conversation's row, and before it those it belongs to.

    One that is there keeps what it knows and is not told.
    """
    if session.parent is not None:
        open_session(connection, session.parent, created_at)
    connection.execute(
        "INSERT INTO sessions (session_id, parent_id, name, working_dir, created_at)"
        " VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (session_id) DO UPDATE SET name = coalesce(excluded.name, name),"
        " working_dir = coalesce(excluded.working_dir, working_dir),"
        " parent_id = coalesce(excluded.parent_id, parent_id)",
        (
            session.id,
            session.parent.id if session.parent else None,
            optional_text(session.name),
            optional_text(session.working_dir),
            created_at,
        ),
    )


def optional_text(text: str | None) -> str | None:
    return None if text is None else whole_text(text)


def is_taken(error: sqlite3.IntegrityError) -> bool:
    """Whether a row was refused because there is one of its id."""
    return error.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_UNIQUE


class MessageReader:
    """Reads one conversation and decodes what changed since it read last.

    An agent reads its whole history before each request, and decoding is nearly all of that.
    Of the database's thread alone.
    """

    def __init__(self) -> None:
        self._decoded: dict[int, tuple[str, Message]] = {}

    def read(self, connection: sqlite3.Connection, session: str) -> list[Message]:
        rows = connection.execute(
            "SELECT seq, body FROM messages WHERE session_id = ? ORDER BY seq", (session,)
        )
        decoded: dict[int, tuple[str, Message]] = {}
        for seq, body in rows:
            known = self._decoded.get(seq)
            if known is None or known[0] != body:
                known = (body, decode_message(body))
            decoded[seq] = known
        self._decoded = decoded
        return [message for _, message in decoded.values()]


def insert_messages(
    connection: sqlite3.Connection, session: str, messages: Sequence[Message]
) -> None:
    """Raises UsageError when the conversation has a message of one of the ids."""
    for message in messages:
        try:
            connection.execute(
                "INSERT INTO messages (session_id, message_id, sender, is_compaction, body)"
                " VALUES (?, ?, ?, ?, ?)",
                (
                    session,
                    whole_text(message.id),
                    message.sender,
                    message.is_compaction,
                    encode_message(message).decode(),
                ),
            )
        except sqlite3.IntegrityError as error:
            if not is_taken(error):
                raise
            raise message_taken(message.id, session) from error


def patch_message(
    connection: sqlite3.Connection, session: str, message_id: str, patch: MessagePatch
) -> Message:
    """Raises UnknownMessageError."""
    found = connection.execute(
        "SELECT seq, body FROM messages WHERE session_id = ? AND message_id = ?",
        (session, whole_text(message_id)),
    ).fetchone()
    if found is None:
        raise no_message(message_id, session)
    seq, body = found
    amended = apply_patch(decode_message(body), patch)
    connection.execute(
        "UPDATE messages SET body = ? WHERE seq = ?", (encode_message(amended).decode(), seq)
    )
    return amended


def read_token_count(connection: sqlite3.Connection, session: str) -> int:
    return _counter(connection, session, "token_count")


def read_turn_count(connection: sqlite3.Connection, session: str) -> int:
    return _counter(connection, session, "turn_count")


def _counter(connection: sqlite3.Connection, session: str, column: str) -> int:
    found = connection.execute(
        f"SELECT {column} FROM sessions WHERE session_id = ?", (session,)
    ).fetchone()
    return int(found[0]) if found else 0


def read_consumption(connection: sqlite3.Connection, session: str) -> Usage:
    found = connection.execute(
        "SELECT tokens_in, tokens_out, cache_creation_input_tokens, cache_read_input_tokens"
        " FROM sessions WHERE session_id = ?",
        (session,),
    ).fetchone()
    return Usage(*found) if found else Usage()


def count_tokens(connection: sqlite3.Connection, session: str, usage: Usage) -> None:
    connection.execute(
        "UPDATE sessions SET token_count = token_count + ?, tokens_in = tokens_in + ?,"
        " tokens_out = tokens_out + ?,"
        " cache_creation_input_tokens = cache_creation_input_tokens + ?,"
        " cache_read_input_tokens = cache_read_input_tokens + ? WHERE session_id = ?",
        (
            usage.total,
            usage.tokens_in,
            usage.tokens_out,
            usage.cache_creation_input_tokens,
            usage.cache_read_input_tokens,
            session,
        ),
    )


def count_turn(connection: sqlite3.Connection, session: str) -> None:
    connection.execute(
        "UPDATE sessions SET turn_count = turn_count + 1 WHERE session_id = ?", (session,)
    )


def clear_counters(connection: sqlite3.Connection, session: str) -> None:
    """The consumption columns are not touched (spec core 19.13)."""
    connection.execute(
        "UPDATE sessions SET token_count = 0, turn_count = 0 WHERE session_id = ?", (session,)
    )


def read_permission(
    connection: sqlite3.Connection, session: str, tool_name: str, input_key: str
) -> Permission:
    found = connection.execute(
        "SELECT status FROM permissions WHERE session_id = ? AND tool_name = ? AND input_hash = ?",
        (session, whole_text(tool_name), _hash(input_key)),
    ).fetchone()
    match found:
        case ("granted",):
            return "granted"
        case ("denied",):
            return "denied"
        case _:
            return "unset"


def write_permission(
    connection: sqlite3.Connection,
    session: str,
    tool_name: str,
    status: Permission,
    input_key: str,
) -> None:
    connection.execute(
        "INSERT INTO permissions (session_id, tool_name, input_hash, status) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (session_id, tool_name, input_hash) DO UPDATE SET status = excluded.status",
        (session, whole_text(tool_name), _hash(input_key), status),
    )


def _hash(input_key: str) -> bytes:
    return sha256(whole_text(input_key).encode()).digest()
