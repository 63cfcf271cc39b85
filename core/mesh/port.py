"""The mesh port: who agents are, what they send each other, and what carries it (spec core 14).

`from_id` is what a sender claims; nobody verifies it here. Whoever needs that signs what he sends
and checks it in an adapter of his own.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ..cancel import Unsubscribe
from ..errors import CoreError, UsageError

MessageKind = Literal["direct", "broadcast", "ack"]
MeshErrorCode = Literal["not_registered", "unknown_agent", "unknown_message", "store_unsupported"]


class MeshError(CoreError):
    """The mesh could not do it; `code` says why."""

    def __init__(self, code: MeshErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentIdentity:
    """How an agent is known to the others."""

    id: str
    name: str
    description: str
    capabilities: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("id", "name"):
            if not getattr(self, name).strip():
                raise UsageError(f"AgentIdentity.{name}: must not be empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshMessage:
    """One message. `to` is empty in a broadcast; `in_reply_to` names the message it answers."""

    id: str
    from_id: str
    content: str
    created_at: str
    to: str = ""
    in_reply_to: str = ""
    blocking: bool = False
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMessage:
    """A message as its receiver gets it. An `ack` has no content: `ack_of`, perhaps `ack_note`."""

    message: MeshMessage
    kind: MessageKind
    ack_of: str = ""
    ack_note: str = ""


Receive = Callable[[IncomingMessage], Awaitable[None]]


class MeshAdapter(Protocol):
    """One agent's end of the transport. Raises MeshError."""

    @property
    def identifier(self) -> str: ...

    async def register(self, identity: AgentIdentity) -> None:
        """Be known. A second registration of an id replaces the first."""

    async def unregister(self) -> None:
        """Be unknown again; harmless when it was."""

    async def list_agents(self) -> list[AgentIdentity]:
        """Everybody, oneself too."""
        ...

    async def get_agent(self, agent_id: str) -> AgentIdentity | None: ...

    async def send(self, message: MeshMessage) -> None:
        """Hand over to `message.to`; returns when the transport has it, not when it was read.
        Raises MeshError unknown_agent."""

    async def broadcast(self, message: MeshMessage) -> None:
        """Hand over to everybody else; those without a subscription are passed over."""

    async def acknowledge(self, message_id: str, note: str = "") -> None:
        """Tell the sender of a message that was received here. Raises MeshError unknown_message for
        any other message, also one that was forgotten."""

    def subscribe(self, handler: Receive) -> Unsubscribe:
        """Take what comes in. A handler's exception is logged and stops nobody else."""
        ...
