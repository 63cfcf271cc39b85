"""MemoryStore: everything in lists and dicts, gone with the process.

The reference for every other store. Owned by one agent. Every method is atomic on the event loop
because none of them awaits, so a cancelled call was done or was never begun.
"""

from collections.abc import Sequence

from ..external import EventQueue, MemoryEventQueue
from ..messages import Message, MessagePatch, apply_patch, random_id
from ..records import InboxItem, InboxPatch, Task, TaskPatch, patched_item, patched_task
from ..store import Permission, Store
from ..usage import Usage
from .checks import (
    check_messages,
    check_tasks,
    item_taken,
    message_taken,
    no_item,
    no_message,
    no_task,
)


class MemoryStore:
    """A store with every group. An empty identifier gets one."""

    def __init__(self, identifier: str = "") -> None:
        self.identifier = identifier or random_id("glove")
        # Dicts keep the order in which keys were first set, also when a value is replaced.
        self._messages: dict[str, Message] = {}
        self._permissions: dict[tuple[str, str], Permission] = {}
        self._tasks: dict[str, Task] = {}
        self._inbox: dict[str, InboxItem] = {}
        self._children: dict[str, MemoryStore] = {}
        self._events = MemoryEventQueue()
        self._window = Usage()
        self._total = Usage()
        self._turns = 0

    async def get_messages(self) -> list[Message]:
        return list(self._messages.values())

    async def append_messages(self, messages: Sequence[Message]) -> None:
        self._append(messages)

    async def amend_message(self, message_id: str, patch: MessagePatch) -> Message:
        if message_id not in self._messages:
            raise no_message(message_id, self.identifier)
        amended = apply_patch(self._messages[message_id], patch)
        self._messages[message_id] = amended
        return amended

    async def get_token_count(self) -> int:
        return self._window.total

    async def add_tokens(self, usage: Usage) -> None:
        self._window += usage
        self._total += usage

    async def get_token_consumption(self) -> Usage:
        return self._total

    async def get_turn_count(self) -> int:
        return self._turns

    async def increment_turn(self) -> None:
        self._turns += 1

    async def reset_counters(self) -> None:
        self._window = Usage()
        self._turns = 0

    async def get_permission(self, tool_name: str, input_key: str) -> Permission:
        return self._permissions.get((tool_name, input_key), "unset")

    async def set_permission(self, tool_name: str, status: Permission, input_key: str) -> None:
        self._permissions[tool_name, input_key] = status

    async def get_tasks(self) -> list[Task]:
        return list(self._tasks.values())

    async def add_tasks(self, tasks: Sequence[Task]) -> None:
        check_tasks(tasks)
        self._tasks = {task.id: task for task in tasks}

    async def update_task(self, task_id: str, patch: TaskPatch) -> Task:
        if task_id not in self._tasks:
            raise no_task(task_id, self.identifier)
        self._tasks[task_id] = patched_task(self._tasks[task_id], patch)
        return self._tasks[task_id]

    async def get_inbox_items(self) -> list[InboxItem]:
        return list(self._inbox.values())

    async def add_inbox_item(self, item: InboxItem) -> None:
        if item.id in self._inbox:
            raise item_taken(item.id, self.identifier)
        self._inbox[item.id] = item

    async def update_inbox_item(self, item_id: str, patch: InboxPatch) -> InboxItem:
        self._known(item_id)
        self._inbox[item_id] = patched_item(self._inbox[item_id], patch)
        return self._inbox[item_id]

    async def get_resolved_inbox_items(self) -> list[InboxItem]:
        return [item for item in self._inbox.values() if item.status == "resolved"]

    async def resolve_inbox_item(self, item_id: str, response: str, resolved_at: str) -> bool:
        item = self._inbox.get(item_id)
        if item is None or item.status != "pending":
            return False
        patch: InboxPatch = {
            "status": "resolved",
            "response": response,
            "resolved_at": resolved_at,
        }
        self._inbox[item_id] = patched_item(item, patch)
        return True

    async def consume_inbox_items(self, item_ids: Sequence[str], message: Message) -> None:
        for item_id in item_ids:
            self._known(item_id)
        self._append([message])
        for item_id in item_ids:
            self._inbox[item_id] = patched_item(self._inbox[item_id], {"status": "consumed"})

    def event_queue(self) -> EventQueue:
        return self._events

    async def create_sub_agent_store(self, namespace: str, durable: bool = False) -> Store:
        name = f"{self.identifier}__{namespace}"
        if not durable:
            return MemoryStore(random_id(name))
        return self._children.setdefault(name, MemoryStore(name))

    def _append(self, messages: Sequence[Message]) -> None:
        check_messages(messages)
        for message in messages:
            if message.id in self._messages:
                raise message_taken(message.id, self.identifier)
        self._messages.update((message.id, message) for message in messages)

    def _known(self, item_id: str) -> None:
        if item_id not in self._inbox:
            raise no_item(item_id, self.identifier)
