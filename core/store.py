"""The store port: where history, counters and permissions live.

`Store` is what every store must do; the other protocols are optional groups, and a store that
lacks one switches that feature off (spec core 5). One agent writes a store; amendments go through
its History. Stores raise StoreError and keep messages in order of append.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from .external import EventQueue
from .messages import Message, MessagePatch
from .records import InboxItem, InboxPatch, Task, TaskPatch
from .usage import Usage

Permission = Literal["granted", "denied", "unset"]


class Store(Protocol):
    """History and counters."""

    @property
    def identifier(self) -> str: ...

    async def get_messages(self) -> list[Message]:
        """The full history in order, never shortened; the caller may change the list."""
        ...

    async def append_messages(self, messages: Sequence[Message]) -> None:
        """Append all or nothing. Every message has a unique id."""

    async def amend_message(self, message_id: str, patch: MessagePatch) -> Message:
        """Change fields of one message and return it; raises UnknownMessageError."""
        ...

    async def get_token_count(self) -> int:
        """Tokens in plus out since the last reset_counters()."""
        ...

    async def add_tokens(self, usage: Usage) -> None: ...

    async def get_turn_count(self) -> int: ...

    async def increment_turn(self) -> None: ...

    async def reset_counters(self) -> None:
        """Zero the token and turn counters; the consumption total is kept (spec core 19.13)."""


@runtime_checkable
class ConsumptionStore(Protocol):
    """Tokens ever used with this store, for billing: only grows."""

    async def get_token_consumption(self) -> Usage: ...


@runtime_checkable
class PermissionStore(Protocol):
    """Remembered decisions; `input_key` is the canonical JSON of the validated input."""

    async def get_permission(self, tool_name: str, input_key: str) -> Permission: ...

    async def set_permission(self, tool_name: str, status: Permission, input_key: str) -> None: ...


@runtime_checkable
class TaskStore(Protocol):
    """The agent's own plan (row 54). Tasks keep the order they were given in."""

    async def get_tasks(self) -> list[Task]: ...

    async def add_tasks(self, tasks: Sequence[Task]) -> None:
        """Replace the whole list, all or nothing."""

    async def update_task(self, task_id: str, patch: TaskPatch) -> Task:
        """Change one task and return it; raises UnknownRecordError."""
        ...


@runtime_checkable
class InboxStore(Protocol):
    """Requests that are answered from outside, possibly by another process (rows 55 to 59)."""

    async def get_inbox_items(self) -> list[InboxItem]:
        """All items in the order they were added, consumed ones too."""
        ...

    async def add_inbox_item(self, item: InboxItem) -> None:
        """Raises UsageError when the id is taken."""

    async def update_inbox_item(self, item_id: str, patch: InboxPatch) -> InboxItem:
        """Change one item and return it; raises UnknownRecordError."""
        ...

    async def get_resolved_inbox_items(self) -> list[InboxItem]:
        """Those with status `resolved`, in the order they were added."""
        ...

    async def resolve_inbox_item(self, item_id: str, response: str, resolved_at: str) -> bool:
        """Answer a pending item of this store. False if it is unknown or no longer pending; of
        several who try at once, one gets True."""
        ...

    async def consume_inbox_items(self, item_ids: Sequence[str], message: Message) -> None:
        """Append `message`, which shows these items, and mark them consumed: both or neither, so
        that a crash cannot show an answer twice or lose it (spec core 19.20). Raises
        UnknownRecordError."""


@runtime_checkable
class EventQueueStore(Protocol):
    """Keeps outside events where it keeps history, so that they survive the agent (row 77)."""

    def event_queue(self) -> EventQueue:
        """The queue of this conversation, for EventConfig.queue."""
        ...


@runtime_checkable
class SubAgentStores(Protocol):
    """Stores for sub-agents: durable ones are kept by namespace, others are fresh each time."""

    async def create_sub_agent_store(self, namespace: str, durable: bool = False) -> Store: ...
