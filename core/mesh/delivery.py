"""What becomes of a message that comes in, and of one whose sender waits: two ways (spec core 14).

    inbox   a resolved inbox item, read at the next request; waits are pending blocking items, found
            again by their tag after a restart (19.21)
    events  an outside event, which joins a running request or wakes an idle agent; waits are kept
            in memory and shown to the model as context

Owned by one mount. Texts of other agents are untrusted; inbox and events escape and mark them.
"""

from dataclasses import dataclass
from typing import Protocol

from ..cancel import CancelToken
from ..errors import UsageError
from ..external import AgentEvent, EventReceipt, WhenIdle
from ..outside import xml_escaped
from ..records import InboxItem, utc_now
from ..store import InboxStore, Store
from .port import AgentIdentity, IncomingMessage, MeshError, MeshMessage

WAITING = "mesh:waiting:"


class Receiver(Protocol):
    """What of an agent messages are delivered to."""

    @property
    def store(self) -> Store: ...

    async def emit_event(
        self, event: AgentEvent, *, when_idle: WhenIdle | None = None
    ) -> EventReceipt: ...

    async def add_inbox_item(self, item: InboxItem) -> bool: ...

    async def resolve_inbox_item(
        self, item_id: str, response: str, *, wake: bool = True
    ) -> bool: ...


class Delivery(Protocol):
    """One of the two ways."""

    async def receive(self, incoming: IncomingMessage, sender: AgentIdentity | None) -> None: ...

    async def wait(self, message: MeshMessage, to: str) -> None:
        """Note that the sender waits for an acknowledgement or a reply of `message.to`, of anybody
        after a broadcast; `to` says so to the model."""

    async def give_up(self, message_id: str, why: str) -> None:
        """The message never left: nobody waits for it."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """Whose answer ends it, anybody's if empty, and how the model is told."""

    agent_id: str
    shown: str


class InboxDelivery:
    """See the module. Raises MeshError store_unsupported when the store has no inbox."""

    def __init__(self, agent: Receiver) -> None:
        if not isinstance(agent.store, InboxStore):
            raise MeshError(
                "store_unsupported",
                "delivery 'inbox' needs a store with an inbox; use one, or delivery 'events'",
            )
        self._agent = agent
        self._store = agent.store

    async def receive(self, incoming: IncomingMessage, sender: AgentIdentity | None) -> None:
        """An acknowledgement ends a wait; a message is an item of its own, which a repeated
        delivery finds there already. A reply ends a wait too, which then only points at it."""
        message = incoming.message
        if incoming.kind == "ack":
            note = incoming.ack_note or "acknowledged"
            await self._end_wait(incoming.ack_of, message.from_id, note)
            return
        item = _item_of(incoming, sender)
        if item.id not in {one.id for one in await self._store.get_inbox_items()}:
            await self._agent.add_inbox_item(item)
        if message.in_reply_to:
            note = f"answered by message {message.id}, which stands in the inbox by itself"
            await self._end_wait(message.in_reply_to, message.from_id, note)

    async def wait(self, message: MeshMessage, to: str) -> None:
        item = InboxItem(
            id=_wait_id(message.id, message.to),
            tag=f"{WAITING}{message.id}",
            request=f"{to} acknowledges or answers message {message.id}: {message.content}",
            created_at=utc_now(),
            blocking=True,
        )
        await self._agent.add_inbox_item(item)

    async def give_up(self, message_id: str, why: str) -> None:
        item = await self._waiting(message_id)
        if item is not None:
            await self._store.update_inbox_item(
                item.id, {"status": "consumed", "response": why, "resolved_at": utc_now()}
            )

    async def _end_wait(self, message_id: str, by: str, response: str) -> None:
        item = await self._waiting(message_id)
        # The first answer counts, and only of the one who was asked.
        if item is not None and item.id in (_wait_id(message_id, by), _wait_id(message_id, "")):
            await self._agent.resolve_inbox_item(item.id, response, wake=False)

    async def _waiting(self, message_id: str) -> InboxItem | None:
        tag = f"{WAITING}{message_id}"
        items = await self._store.get_inbox_items()
        return next((one for one in items if one.tag == tag and one.status == "pending"), None)


class EventDelivery:
    """See the module. Waits end with the process; `waiting` is their context."""

    def __init__(self, agent: Receiver, when_idle: WhenIdle | None) -> None:
        self._agent = agent
        self._when_idle = when_idle
        self._waits: dict[str, _Wait] = {}

    async def receive(self, incoming: IncomingMessage, sender: AgentIdentity | None) -> None:
        """An acknowledgement that ends no wait is not told; repeated messages count once."""
        message, kind = incoming.message, str(incoming.kind)
        if incoming.kind == "ack":
            if not self._end_wait(incoming.ack_of, message.from_id):
                return
            text = f"Message {incoming.ack_of} was acknowledged. {incoming.ack_note}".strip()
        else:
            if message.in_reply_to:
                kind = "reply"
                self._end_wait(message.in_reply_to, message.from_id)
            text = _told(incoming, sender)
        event = AgentEvent(id=message.id, source=f"mesh:{message.from_id}", kind=kind, content=text)
        await self._agent.emit_event(event, when_idle=self._when_idle)

    async def wait(self, message: MeshMessage, to: str) -> None:
        self._waits[message.id] = _Wait(message.to, to)

    async def give_up(self, message_id: str, why: str) -> None:
        self._waits.pop(message_id, None)

    def waiting(self, token: CancelToken) -> str | None:
        """The context provider: what this agent waits for."""
        if not self._waits:
            return None
        lines = [
            f'<wait message_id="{xml_escaped(one)}" for="{xml_escaped(wait.shown)}"/>'
            for one, wait in self._waits.items()
        ]
        return "\n".join(["<mesh_waiting>", *lines, "</mesh_waiting>"])

    def _end_wait(self, message_id: str, by: str) -> bool:
        """Whether an answer of agent `by` ended a wait."""
        wait = self._waits.get(message_id)
        if wait is None or wait.agent_id not in ("", by):
            return False
        del self._waits[message_id]
        return True


def check_content(message: MeshMessage) -> None:
    """Raises UsageError for a message that says nothing."""
    if not message.content.strip():
        raise UsageError("content: must not be empty")


def _wait_id(message_id: str, to: str) -> str:
    """Says who may end the wait, for an inbox item carries nothing else that would."""
    return f"mesh_wait_{to or '*'}_{message_id}"


def _item_of(incoming: IncomingMessage, sender: AgentIdentity | None) -> InboxItem:
    message = incoming.message
    broadcast = "broadcast:" if incoming.kind == "broadcast" else ""
    now = utc_now()
    return InboxItem(
        id=f"mesh_{message.from_id}_{message.id}",
        tag=f"mesh:{broadcast}from:{message.from_id}",
        request=f"{_introduced(incoming, sender)}.{_how_to_answer(message)}",
        response=message.content,
        status="resolved",
        created_at=message.created_at or now,
        resolved_at=now,
    )


def _told(incoming: IncomingMessage, sender: AgentIdentity | None) -> str:
    how = _how_to_answer(incoming.message)
    return f"{_introduced(incoming, sender)}: {incoming.message.content}\n{how}".strip()


def _introduced(incoming: IncomingMessage, sender: AgentIdentity | None) -> str:
    message = incoming.message
    name = f"{sender.name} ({message.from_id})" if sender is not None else message.from_id
    kind = "Broadcast" if incoming.kind == "broadcast" else "Message"
    answers = f" in reply to {message.in_reply_to}" if message.in_reply_to else ""
    return f"{kind} {message.id} from agent {name}{answers}"


def _how_to_answer(message: MeshMessage) -> str:
    if not message.blocking:
        return ""
    return (
        f" The sender waits: acknowledge {message.id}, or answer it with in_reply_to {message.id}."
    )
