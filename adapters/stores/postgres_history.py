"""Messages as rows, and the copy of a history that a store has read.

Pure but for one thing: decoding a long history gives the loop a turn now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from ...core.errors import StoreError
from ...core.messages import Message, decode_message, encode_message
from .postgres_text import index_key
from .postgres_wire import Row

DECODE_AT_ONCE = 50
"""Messages decoded before the loop gets a turn: about a millisecond."""


class Columns(NamedTuple):
    """A batch of messages, column by column, as the APPEND statement takes it."""

    keys: list[str]
    senders: list[str]
    compactions: list[bool]
    bodies: list[str]


def columns(messages: Sequence[Message]) -> Columns:
    return Columns(
        [index_key(message.id) for message in messages],
        [message.sender for message in messages],
        [message.is_compaction for message in messages],
        [encode_message(message).decode() for message in messages],
    )


def message_of(body: str) -> Message:
    """The message of a row. Raises StoreError for a body this code did not write."""
    try:
        return decode_message(body)
    except ValueError as error:
        raise StoreError(f"PostgreSQL: a stored message cannot be read: {error}") from error


class HistoryCopy:
    """The messages up to a revision. `seq` counts from 0 without gaps: it is the list's index."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.revision = 0
        self._incarnation: int | None = None

    def continued_by(self, rows: list[Row]) -> bool:
        """Whether rows newer than `revision` belong to the same history; False after the session
        was deleted and made again, or the database restored from an older state."""
        if self._incarnation is None:
            return True
        return (
            bool(rows)
            and rows[0]["incarnation"] == self._incarnation
            and rows[0]["revision"] >= self.revision
        )

    async def take(self, rows: list[Row]) -> None:
        """Add what changed. Cancelled, the copy is as it was."""
        changed: dict[int, Message] = {}
        for row in rows:
            if row["seq"] is not None:
                changed[row["seq"]] = message_of(row["body"])
                if len(changed) % DECODE_AT_ONCE == 0:
                    await asyncio.sleep(0)
        for seq, message in changed.items():  # in order of seq, as they were asked for
            self.messages[seq : seq + 1] = [message]
        if rows:
            self._incarnation = rows[0]["incarnation"]
            self.revision = rows[0]["revision"]
