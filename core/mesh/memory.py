"""A mesh inside one process: the network, and each agent's end of it.

Owned by whoever makes the network. Handlers run in the sender's step and are bounded, so a
receiver that hangs delays a sender by HANDLER_S at most.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import replace

from ..cancel import Unsubscribe, contained
from ..errors import UsageError
from .port import AgentIdentity, IncomingMessage, MeshError, MeshMessage, Receive

logger = logging.getLogger(__name__)

HANDLER_S = 5.0
REMEMBERED = 1_024
"""Messages whose sender and receivers are known for acknowledgements; the oldest are forgotten."""


class MeshNetwork:
    """Who is there, and who sent what to whom."""

    def __init__(self, remember: int = REMEMBERED) -> None:
        if remember < 1:
            raise UsageError("MeshNetwork.remember: must be 1 or more")
        self._remember = remember
        self._agents: dict[str, AgentIdentity] = {}
        self._handlers: dict[str, dict[object, Receive]] = {}
        self._routes: OrderedDict[str, tuple[str, frozenset[str]]] = OrderedDict()

    @property
    def agents(self) -> list[AgentIdentity]:
        return list(self._agents.values())

    def register(self, identity: AgentIdentity) -> None:
        self._agents[identity.id] = identity

    def unregister(self, agent_id: str) -> None:
        self._agents.pop(agent_id, None)

    def subscribe(self, agent_id: str, handler: Receive) -> Unsubscribe:
        """Of one agent; several handlers each get everything."""
        key = object()
        self._handlers.setdefault(agent_id, {})[key] = handler
        return lambda: self._unsubscribe(agent_id, key)

    async def send(self, message: MeshMessage) -> None:
        """See MeshAdapter.send."""
        self._check_sender(message.from_id)
        if message.to not in self._agents:
            known = ", ".join(sorted(self._agents)) or "none"
            raise MeshError("unknown_agent", f"there is no agent {message.to!r}; agents: {known}")
        self._note(message, {message.to})
        await self._deliver(message.to, IncomingMessage(message=message, kind="direct"))

    async def broadcast(self, message: MeshMessage) -> None:
        """See MeshAdapter.broadcast."""
        self._check_sender(message.from_id)
        receivers = [one for one in self._agents if one != message.from_id]
        self._note(message, set(receivers))
        for one in receivers:
            await self._deliver(one, IncomingMessage(message=message, kind="broadcast"))

    async def acknowledge(self, by: str, message_id: str, note: str, created_at: str) -> None:
        """See MeshAdapter.acknowledge: only who received a message may acknowledge it (19.21)."""
        sender, receivers = self._routes.get(message_id, ("", frozenset()))
        if by not in receivers:
            raise MeshError(
                "unknown_message",
                f"message {message_id!r} was not received here, or is too old to acknowledge",
            )
        message = MeshMessage(
            id=f"ack:{message_id}:{by}", from_id=by, to=sender, content=note, created_at=created_at
        )
        incoming = IncomingMessage(message=message, kind="ack", ack_of=message_id, ack_note=note)
        await self._deliver(sender, incoming)

    def _check_sender(self, agent_id: str) -> None:
        if agent_id not in self._agents:
            raise MeshError("not_registered", f"{agent_id!r} is not registered: register() first")

    def _note(self, message: MeshMessage, receivers: set[str]) -> None:
        sender, known = self._routes.get(message.id, (message.from_id, frozenset[str]()))
        if sender != message.from_id:
            raise UsageError(f"message.id: {message.id!r} is the id of another agent's message")
        self._routes[message.id] = (sender, known | receivers)
        self._routes.move_to_end(message.id)
        while len(self._routes) > self._remember:
            self._routes.popitem(last=False)

    async def _deliver(self, agent_id: str, incoming: IncomingMessage) -> None:
        for handler in list(self._handlers.get(agent_id, {}).values()):
            try:
                async with asyncio.timeout(HANDLER_S):
                    await contained(handler(incoming))
            except Exception:
                logger.exception("mesh handler failed", extra={"agent": agent_id})

    def _unsubscribe(self, agent_id: str, key: object) -> None:
        self._handlers.get(agent_id, {}).pop(key, None)


class MemoryMeshAdapter:
    """One agent's end of a MeshNetwork. It cannot speak for others: `from_id` is its own."""

    def __init__(self, network: MeshNetwork, agent_id: str) -> None:
        self.identifier = f"memory-mesh:{agent_id}"
        self._network = network
        self._id = agent_id

    async def register(self, identity: AgentIdentity) -> None:
        if identity.id != self._id:
            raise UsageError(f"identity.id: this is the end of {self._id!r}, not {identity.id!r}")
        self._network.register(identity)

    async def unregister(self) -> None:
        self._network.unregister(self._id)

    async def list_agents(self) -> list[AgentIdentity]:
        return self._network.agents

    async def get_agent(self, agent_id: str) -> AgentIdentity | None:
        return next((one for one in self._network.agents if one.id == agent_id), None)

    async def send(self, message: MeshMessage) -> None:
        await self._network.send(replace(message, from_id=self._id))

    async def broadcast(self, message: MeshMessage) -> None:
        await self._network.broadcast(replace(message, from_id=self._id, to=""))

    async def acknowledge(self, message_id: str, note: str = "") -> None:
        await self._network.acknowledge(self._id, message_id, note, "")

    def subscribe(self, handler: Receive) -> Unsubscribe:
        return self._network.subscribe(self._id, handler)
