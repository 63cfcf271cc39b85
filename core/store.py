"""The store port: where history, counters and permissions live.

`Store` is what every store must do; the other protocols are optional groups, and a store that
lacks one switches that feature off (spec core 5). One agent writes a store; amendments go through
its History. Stores raise StoreError and keep messages in order of append.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from .messages import Message, MessagePatch
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
class SubAgentStores(Protocol):
    """Stores for sub-agents: durable ones are kept by namespace, others are fresh each time."""

    async def create_sub_agent_store(self, namespace: str, durable: bool = False) -> Store: ...
