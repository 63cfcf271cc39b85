"""One conversation's store on another server: every group of the port, as requests.

Made by RemoteStores.store, which carries the requests. A group that the server does not keep lives
in memory instead and is gone with this object; that is said in the log once (seed: inbox items of a
remote store without inbox actions vanish on reload). Holds no copy of anything else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol
from urllib.parse import quote

from ...core.encoding import json_bytes
from ...core.errors import StoreError, UnknownRecordError, UsageError
from ...core.external import AgentEvent, EventQueue, MemoryEventQueue
from ...core.message_wire import decode_messages, encode_messages, encode_patch
from ...core.messages import Message, MessagePatch, decode_message, encode_message, random_id
from ...core.records import InboxItem, InboxPatch, Task, TaskPatch, item_json
from ...core.store import Permission, Store
from ...core.stores.memory import MemoryStore
from ...core.usage import Usage
from .remote_wire import (
    BadField,
    Feature,
    Fields,
    event_from,
    event_json,
    item_from,
    item_patch_json,
    parsed,
    permission_from,
    read_tasks,
    task_from,
    task_patch_json,
    tasks_json,
    usage_from,
    usage_json,
)

logger = logging.getLogger(__name__)

MANY = 10_000_000
"""Bound of lists in answers: their bytes are bounded already."""


class RemoteStoreError(StoreError):
    """The server could not be reached, or did not do what it was asked."""

    def __init__(self, message: str, *, status: int | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable


class Way(Protocol):
    """How requests get to the server; RemoteStores is one."""

    async def ask(
        self, method: str, path: str, body: bytes | None = None, lost: list[str] | None = None
    ) -> bytes: ...

    async def features(self, session_id: str) -> frozenset[Feature]: ...

    def store(self, session_id: str) -> Store: ...


class Session:
    """The requests of one conversation, and what of it is kept in memory for want of a server."""

    def __init__(self, way: Way, session_id: str) -> None:
        self.way = way
        self.id = session_id
        self.memory = MemoryStore(session_id)
        self._path = f"/sessions/{quote(session_id, safe='')}"
        self._told: set[Feature] = set()
        self._lost: list[str] = []

    async def raw(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The answer to a request below `/sessions/{id}`, as it came."""
        return await self.way.ask(method, self._path + path, body, self._lost)

    async def get(self, path: str) -> object:
        """What is read there, as parsed JSON."""
        answer = await self.raw("GET", path)
        with reading(path):
            return parsed(answer)

    async def send(self, method: str, path: str, value: object) -> Fields:
        """The same with `value` as JSON, of an answer that is an object, or nothing."""
        raw = await self.raw(method, path, json_bytes(value))
        with reading(path):
            answer = parsed(raw)
            return Fields({} if answer is None else answer, "answer")

    async def kept(self, feature: Feature) -> bool:
        """Whether the server keeps this group. Says once when it does not."""
        if feature in await self.way.features(self.id):
            return True
        if feature not in self._told:
            self._told.add(feature)
            logger.warning(
                "the remote store does not keep this: it lives in memory and goes with the process",
                extra={"store": self.id, "group": feature},
            )
        return False


class RemoteStore:
    """Implements every group of core's store port. Raises StoreError and what the port says.

    Cancelled in the middle of a write it leaves that write done or not done, never half done.
    """

    def __init__(self, way: Way, session_id: str) -> None:
        self.identifier = session_id
        self._session = Session(way, session_id)
        self._events = RemoteEventQueue(self._session)

    # -- history and counters

    async def get_messages(self) -> list[Message]:
        answer = await self._session.raw("GET", "/messages")
        with reading("messages"):
            return decode_messages(answer)

    async def append_messages(self, messages: Sequence[Message]) -> None:
        body = b'{"messages":' + encode_messages(messages) + b"}"
        await self._session.raw("POST", "/messages", body)

    async def amend_message(self, message_id: str, patch: MessagePatch) -> Message:
        body = b'{"id":' + json_bytes(message_id) + b',"patch":' + encode_patch(patch) + b"}"
        answer = await self._session.raw("PATCH", "/messages", body)
        with reading("messages"):
            return decode_message(answer)

    async def get_token_count(self) -> int:
        return await self._count("/tokens")

    async def add_tokens(self, usage: Usage) -> None:
        await self._session.send("POST", "/tokens", usage_json(usage))
        if not await self._session.kept("consumption"):
            await self._session.memory.add_tokens(usage)

    async def get_token_consumption(self) -> Usage:
        """Where the server does not count it: what this object was told."""
        if not await self._session.kept("consumption"):
            return await self._session.memory.get_token_consumption()
        answer = await self._session.get("/consumption")
        with reading("consumption"):
            return usage_from(Fields(answer))

    async def get_turn_count(self) -> int:
        return await self._count("/turns")

    async def increment_turn(self) -> None:
        await self._session.raw("POST", "/turns")

    async def reset_counters(self) -> None:
        await self._session.raw("POST", "/counters/reset")

    async def _count(self, path: str) -> int:
        answer = await self._session.get(path)
        with reading(path):
            return Fields(answer).count("count")

    # -- permissions

    async def get_permission(self, tool_name: str, input_key: str) -> Permission:
        if not await self._session.kept("permissions"):
            return await self._session.memory.get_permission(tool_name, input_key)
        asked = {"tool_name": tool_name, "input_key": input_key}
        answer = await self._session.send("POST", "/permissions/check", asked)
        with reading("permissions"):
            return permission_from(answer)

    async def set_permission(self, tool_name: str, status: Permission, input_key: str) -> None:
        if not await self._session.kept("permissions"):
            return await self._session.memory.set_permission(tool_name, status, input_key)
        told = {"tool_name": tool_name, "input_key": input_key, "status": status}
        await self._session.send("PUT", "/permissions", told)

    # -- tasks

    async def get_tasks(self) -> list[Task]:
        if not await self._session.kept("tasks"):
            return await self._session.memory.get_tasks()
        answer = await self._session.get("/tasks")
        with reading("tasks"):
            return read_tasks(Fields({"tasks": answer}).entries("tasks", MANY))

    async def add_tasks(self, tasks: Sequence[Task]) -> None:
        if not await self._session.kept("tasks"):
            return await self._session.memory.add_tasks(tasks)
        await self._session.send("PUT", "/tasks", {"tasks": tasks_json(tasks)})

    async def update_task(self, task_id: str, patch: TaskPatch) -> Task:
        if not await self._session.kept("tasks"):
            return await self._session.memory.update_task(task_id, patch)
        change = {"taskId": task_id, "updates": task_patch_json(patch)}
        answer = await self._session.send("POST", "/tasks/update", change)
        with reading("tasks"):
            return task_from(answer)

    # -- inbox

    async def get_inbox_items(self) -> list[InboxItem]:
        if not await self._session.kept("inbox"):
            return await self._session.memory.get_inbox_items()
        return _items(await self._session.get("/inbox"))

    async def add_inbox_item(self, item: InboxItem) -> None:
        if not await self._session.kept("inbox"):
            return await self._session.memory.add_inbox_item(item)
        await self._session.send("POST", "/inbox", {"item": item_json(item)})

    async def update_inbox_item(self, item_id: str, patch: InboxPatch) -> InboxItem:
        if not await self._session.kept("inbox"):
            return await self._session.memory.update_inbox_item(item_id, patch)
        change = {"itemId": item_id, "updates": item_patch_json(patch)}
        answer = await self._session.send("POST", "/inbox/update", change)
        with reading("inbox"):
            return item_from(answer)

    async def get_resolved_inbox_items(self) -> list[InboxItem]:
        if not await self._session.kept("inbox"):
            return await self._session.memory.get_resolved_inbox_items()
        return _items(await self._session.get("/inbox/resolved"))

    async def resolve_inbox_item(self, item_id: str, response: str, resolved_at: str) -> bool:
        if not await self._session.kept("inbox"):
            return await self._session.memory.resolve_inbox_item(item_id, response, resolved_at)
        told = {"itemId": item_id, "response": response, "resolved_at": resolved_at}
        answer = await self._session.send("POST", "/inbox/resolve", told)
        with reading("inbox"):
            return answer.flag("resolved")

    async def consume_inbox_items(self, item_ids: Sequence[str], message: Message) -> None:
        if not await self._session.kept("inbox"):
            return await self._consume_here(item_ids, message)
        ids = json_bytes(list(item_ids))
        body = b'{"itemIds":' + ids + b',"message":' + encode_message(message) + b"}"
        await self._session.raw("POST", "/inbox/consume", body)

    async def _consume_here(self, item_ids: Sequence[str], message: Message) -> None:
        """Items are in memory, the message is not: it is stored first, and if that fails nothing
        is consumed."""
        memory = self._session.memory
        known = {item.id for item in await memory.get_inbox_items()}
        for item_id in item_ids:
            if item_id not in known:
                raise UnknownRecordError(f"no inbox item {item_id!r} in store {self.identifier!r}")
        await self.append_messages([message])
        for item_id in item_ids:
            await memory.update_inbox_item(item_id, {"status": "consumed"})

    # -- events and sub-agents

    def event_queue(self) -> EventQueue:
        """The queue of this conversation, the same for every caller."""
        return self._events

    async def create_sub_agent_store(self, namespace: str, durable: bool = False) -> Store:
        """A durable one is kept by the server under an id it chooses; others live in memory."""
        if not durable:
            return MemoryStore(random_id(f"{self.identifier}__{namespace}"))
        if not await self._session.kept("sub_agents"):
            return await self._session.memory.create_sub_agent_store(namespace, durable)
        answer = await self._session.send("POST", "/stores", {"namespace": namespace})
        with reading("stores"):
            return self._session.way.store(answer.name("id"))


class RemoteEventQueue:
    """The events that wait for this conversation."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._memory = MemoryEventQueue()

    async def put(self, event: AgentEvent) -> bool:
        if not await self._session.kept("events"):
            return await self._memory.put(event)
        answer = await self._session.send("POST", "/events", {"event": event_json(event)})
        with reading("events"):
            return answer.flag("accepted")

    async def peek(self) -> Sequence[AgentEvent]:
        if not await self._session.kept("events"):
            return await self._memory.peek()
        answer = await self._session.get("/events")
        with reading("events"):
            found = Fields({"events": answer}).entries("events", MANY)
            return tuple(event_from(Fields(one, f"events[{at}]")) for at, one in enumerate(found))

    async def ack(self, ids: Iterable[str]) -> None:
        if not await self._session.kept("events"):
            return await self._memory.ack(ids)
        await self._session.send("POST", "/events/ack", {"ids": list(ids)})

    async def size(self) -> int:
        if not await self._session.kept("events"):
            return await self._memory.size()
        answer = await self._session.get("/events/size")
        with reading("events"):
            return Fields(answer).count("count")


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever is wrong with an answer is the server's fault: StoreError."""
    try:
        yield
    except (BadField, UsageError) as error:
        raise RemoteStoreError(f"{what}: the server's answer cannot be read: {error}") from error
    except ValueError:  # pydantic's, left out as a cause: its text quotes what was said
        raise RemoteStoreError(f"{what}: the server's answer holds no messages") from None


def _items(answer: object) -> list[InboxItem]:
    with reading("inbox"):
        found = Fields({"inbox": answer}).entries("inbox", MANY)
        return [item_from(Fields(one, f"inbox[{at}]")) for at, one in enumerate(found)]
