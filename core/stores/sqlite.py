"""SqliteStore: a conversation in a file, which survives its process (spec core 5, rows 59 to 61).

Owned by the agent's factory, which closes it. Many conversations share a file, and many processes
may; the thread that writes it belongs to sqlite_database. Nothing here runs SQL or blocks the loop.
"""

import os
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TypeVar

from ..encoding import whole_text
from ..errors import StoreError, UsageError
from ..external import AgentEvent, EventQueue
from ..messages import Message, MessagePatch, random_id
from ..records import InboxItem, InboxPatch, Task, TaskPatch, utc_now
from ..store import Permission, Store
from ..usage import Usage
from . import sqlite_events as events
from . import sqlite_history as history
from . import sqlite_records as records
from .checks import check_messages, check_tasks
from .memory import MemoryStore
from .sqlite_database import Database, SqliteConfig, Work, acquire
from .sqlite_schema import transaction

T = TypeVar("T")
DEFAULT_CONFIG = SqliteConfig()


class SqliteStore:
    """Every store group of one conversation, `session_id`, in the database file at `path`.

    Making one opens nothing: the file is made or opened by the first call. Every write is one
    transaction and is on the file when its call returns. A call that is cancelled was handed over
    and completes, or was not and never happens; calls after it find one or the other. Raises
    StoreError when the file cannot be read or written, with the error of SQLite as its cause.

    `name` and `working_dir` are kept for list_sessions(). Close with aclose() or `async with`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        session_id: str,
        *,
        name: str | None = None,
        working_dir: str | None = None,
        config: SqliteConfig = DEFAULT_CONFIG,
    ) -> None:
        if not session_id:
            raise UsageError("SqliteStore.session_id: name the conversation")
        if os.fspath(path) in ("", ":memory:"):
            raise UsageError("SqliteStore.path: name a file, or use MemoryStore")
        self.identifier = session_id
        self.path = os.path.abspath(path)
        self._session = whole_text(session_id)
        self._row = history.Session(id=self._session, name=name, working_dir=working_dir)
        self._config = config
        self._database: Database | None = None
        self._children: dict[str, SqliteStore] = {}
        self._reader = history.MessageReader()
        self._closed = False
        self._registered = False

    async def aclose(self) -> None:
        """Give the file back, durable sub-stores included. Idempotent.

        Calls that were made before still complete; later ones raise StoreError.
        """
        for database in self._taken():
            await database.release()  # waits at the last user of the file alone

    def _taken(self) -> list[Database]:
        """Close, and hand over what this store and its sub-stores hold."""
        self._closed = True
        held = [one for child in self._children.values() for one in child._taken()]
        if self._database is not None:
            held.append(self._database)
        self._database = None
        return held

    async def __aenter__(self) -> "SqliteStore":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def get_messages(self) -> list[Message]:
        return await self._read(lambda c: self._reader.read(c, self._session))

    async def append_messages(self, messages: Sequence[Message]) -> None:
        check_messages(messages)
        batch = tuple(messages)
        if batch:
            await self._write(lambda c: history.insert_messages(c, self._session, batch))

    async def amend_message(self, message_id: str, patch: MessagePatch) -> Message:
        return await self._write(
            lambda c: history.patch_message(c, self._session, message_id, patch)
        )

    async def get_token_count(self) -> int:
        return await self._read(lambda c: history.read_token_count(c, self._session))

    async def add_tokens(self, usage: Usage) -> None:
        await self._write(lambda c: history.count_tokens(c, self._session, usage))

    async def get_token_consumption(self) -> Usage:
        return await self._read(lambda c: history.read_consumption(c, self._session))

    async def get_turn_count(self) -> int:
        return await self._read(lambda c: history.read_turn_count(c, self._session))

    async def increment_turn(self) -> None:
        await self._write(lambda c: history.count_turn(c, self._session))

    async def reset_counters(self) -> None:
        await self._write(lambda c: history.clear_counters(c, self._session))

    async def get_permission(self, tool_name: str, input_key: str) -> Permission:
        return await self._read(
            lambda c: history.read_permission(c, self._session, tool_name, input_key)
        )

    async def set_permission(self, tool_name: str, status: Permission, input_key: str) -> None:
        await self._write(
            lambda c: history.write_permission(c, self._session, tool_name, status, input_key)
        )

    async def get_tasks(self) -> list[Task]:
        return await self._read(lambda c: records.read_tasks(c, self._session))

    async def add_tasks(self, tasks: Sequence[Task]) -> None:
        check_tasks(tasks)
        batch = tuple(tasks)
        await self._write(lambda c: records.replace_tasks(c, self._session, batch))

    async def update_task(self, task_id: str, patch: TaskPatch) -> Task:
        return await self._write(lambda c: records.patch_task(c, self._session, task_id, patch))

    async def get_inbox_items(self) -> list[InboxItem]:
        return await self._read(lambda c: records.read_items(c, self._session))

    async def add_inbox_item(self, item: InboxItem) -> None:
        await self._write(lambda c: records.insert_item(c, self._session, item))

    async def update_inbox_item(self, item_id: str, patch: InboxPatch) -> InboxItem:
        return await self._write(lambda c: records.patch_item(c, self._session, item_id, patch))

    async def get_resolved_inbox_items(self) -> list[InboxItem]:
        return await self._read(lambda c: records.read_resolved_items(c, self._session))

    async def resolve_inbox_item(self, item_id: str, response: str, resolved_at: str) -> bool:
        return await self._write(
            lambda c: records.resolve_item(c, self._session, item_id, response, resolved_at)
        )

    async def consume_inbox_items(self, item_ids: Sequence[str], message: Message) -> None:
        check_messages([message])
        ids = tuple(item_ids)
        await self._write(lambda c: records.consume_items(c, self._session, ids, message))

    def event_queue(self) -> EventQueue:
        return _SqliteEventQueue(self)

    async def create_sub_agent_store(self, namespace: str, durable: bool = False) -> Store:
        """A durable one is the conversation `<id>__<namespace>` of the same file and is closed
        with this store. Others are in memory: nobody could ever name them again."""
        name = f"{self.identifier}__{namespace}"
        if not durable:
            return MemoryStore(random_id(name))
        self._require_open()
        child = self._children.get(name)
        if child is None or child._closed:
            child = SqliteStore(self.path, name, config=self._config)
            child._row = replace(child._row, parent=self._row)
            self._children[name] = child
        return child

    async def _read(self, work: Work[T]) -> T:
        self._require_open()
        if self._database is None:
            self._database = acquire(self.path, self._config)
        return await self._database.run(work)

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"store {self.identifier!r} is closed: make another for its id")

    async def _write(self, work: Work[T]) -> T:
        """As one transaction, which also makes the conversation's row if it is the first."""

        def do(connection: sqlite3.Connection) -> T:
            with transaction(connection):
                if not self._registered:
                    history.open_session(connection, self._row, utc_now())
                result = work(connection)
            self._registered = True  # only the database's thread looks at it
            return result

        return await self._read(do)


class _SqliteEventQueue:
    """The queue of one conversation; lives and closes with its store."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def put(self, event: AgentEvent) -> bool:
        return await self._store._write(lambda c: events.put_event(c, self._store._session, event))

    async def peek(self) -> Sequence[AgentEvent]:
        return await self._store._read(lambda c: events.pending_events(c, self._store._session))

    async def ack(self, ids: Iterable[str]) -> None:
        known = tuple(ids)
        if known:
            await self._store._write(lambda c: events.ack_events(c, self._store._session, known))

    async def size(self) -> int:
        return await self._store._read(lambda c: events.count_events(c, self._store._session))
