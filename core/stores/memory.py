"""MemoryStore: history in a list, gone with the process.

Owned by one agent. Every method is atomic on the event loop because none of them awaits.
"""

from collections.abc import Sequence

from ..errors import UnknownMessageError, UsageError
from ..messages import Message, MessagePatch, apply_patch, random_id
from ..store import Permission, Store
from ..usage import Usage


class MemoryStore:
    """The reference store; implements every group a call needs."""

    def __init__(self, identifier: str = "") -> None:
        self.identifier = identifier or random_id("glove")
        self._messages: list[Message] = []
        self._index: dict[str, int] = {}
        self._window = Usage()
        self._total = Usage()
        self._turns = 0
        self._permissions: dict[tuple[str, str], Permission] = {}
        self._children: dict[str, MemoryStore] = {}

    async def get_messages(self) -> list[Message]:
        return list(self._messages)

    async def append_messages(self, messages: Sequence[Message]) -> None:
        ids = [message.id for message in messages]
        if any(not one or one in self._index for one in ids) or len(set(ids)) < len(ids):
            raise UsageError("append_messages: every message needs an id of its own (Message.id)")
        for message in messages:
            self._index[message.id] = len(self._messages)
            self._messages.append(message)

    async def amend_message(self, message_id: str, patch: MessagePatch) -> Message:
        if message_id not in self._index:
            raise UnknownMessageError(f"no message {message_id!r} in store {self.identifier!r}")
        at = self._index[message_id]
        self._messages[at] = apply_patch(self._messages[at], patch)
        return self._messages[at]

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

    async def create_sub_agent_store(self, namespace: str, durable: bool = False) -> Store:
        name = f"{self.identifier}__{namespace}"
        if not durable:
            return MemoryStore(random_id(name))
        return self._children.setdefault(name, MemoryStore(name))
