"""Put an agent on a mesh, and take it off again (spec core 14).

mesh = await mount_mesh(agent, adapter=MemoryMeshAdapter(network, "a"), identity=identity)
…
await mesh.unmount()
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Literal, Protocol

from ..cancel import Unsubscribe
from ..context import ContextProvider
from ..errors import UsageError
from ..external import WhenIdle
from ..messages import IdSource, random_id
from ..tool import Tool
from .delivery import Delivery, EventDelivery, InboxDelivery, Receiver
from .port import AgentIdentity, IncomingMessage, MeshAdapter
from .tools import TOOL_NAMES, MeshTools

logger = logging.getLogger(__name__)

CLEAN_UP_S = 2.0
DeliveryMode = Literal["inbox", "events"]


class MeshAgent(Receiver, Protocol):
    """What of an agent a mount uses."""

    def fold(self, tool: Tool) -> object: ...

    @property
    def tools(self) -> tuple[Tool, ...]: ...

    def replace_tools(self, previous: Sequence[str], following: Sequence[Tool]) -> object: ...

    def add_context_provider(self, provider: ContextProvider, /) -> Unsubscribe: ...


class Mesh:
    """One agent's place on the mesh; made by mount_mesh."""

    def __init__(
        self, agent: MeshAgent, adapter: MeshAdapter, identity: AgentIdentity, delivery: Delivery
    ) -> None:
        self.identity = identity
        self._agent = agent
        self._adapter = adapter
        self._delivery = delivery
        self._undo: list[Unsubscribe] = []
        self._mounted = False
        self._known = False

    async def join(self, new_id: IdSource) -> None:
        """Tools first (a second mount of one agent fails here and changes nothing), then listen,
        then be known: nothing that is sent to a known agent is lost."""
        tools = MeshTools(self._adapter, self.identity, self._delivery, new_id).make()
        self._agent.replace_tools((), tools)
        self._mounted = True
        try:
            if isinstance(self._delivery, EventDelivery):
                self._undo.append(self._agent.add_context_provider(self._delivery.waiting))
            self._undo.append(self._adapter.subscribe(self._receive))
            self._known = True
            await self._adapter.register(self.identity)
        except BaseException as error:
            self._leave()
            if not isinstance(error, Exception):  # cancelled: it may be known by now
                await self._forget()
            raise

    async def unmount(self) -> None:
        """Be unknown, then stop listening and take the tools away: what is sent to a known agent is
        heard. Harmless when it was done; when the adapter fails, only that is left to be done."""
        try:
            if self._known:
                await self._adapter.unregister()
                self._known = False
        finally:
            self._leave()

    async def _forget(self) -> None:
        try:
            async with asyncio.timeout(CLEAN_UP_S):
                await self._adapter.unregister()
        except Exception:
            logger.exception("may still be known on the mesh", extra={"agent": self.identity.id})

    def _leave(self) -> None:
        if not self._mounted:
            return
        self._mounted = False
        for undo in self._undo:
            undo()
        self._undo = []
        mine = [tool.name for tool in self._agent.tools if tool.name in TOOL_NAMES]
        self._agent.replace_tools(mine, ())

    async def _receive(self, incoming: IncomingMessage) -> None:
        sender = await self._adapter.get_agent(incoming.message.from_id)
        if self._mounted:  # else it left meanwhile
            await self._delivery.receive(incoming, sender)


async def mount_mesh(
    agent: MeshAgent,
    *,
    adapter: MeshAdapter,
    identity: AgentIdentity,
    delivery: DeliveryMode = "inbox",
    when_idle: WhenIdle | None = None,
    new_id: IdSource = random_id,
) -> Mesh:
    """Give an agent the four tools and deliver to it what others send.

    delivery   inbox   read at its next request or tool step; needs a store with an inbox
               events  joins a running request, wakes an idle agent; needs no store. Two agents can
                       then answer each other without end: EventConfig.wake_budget bounds it
    when_idle  of events, instead of EventConfig.when_idle

    Raises MeshError store_unsupported, DuplicateToolError when the agent is on a mesh already, and
    what the adapter raises; then nothing is left behind.
    """
    if delivery not in ("inbox", "events"):
        raise UsageError(f"delivery: {delivery!r} is none of inbox, events")
    way: Delivery
    way = InboxDelivery(agent) if delivery == "inbox" else EventDelivery(agent, when_idle)
    mesh = Mesh(agent, adapter, identity, way)
    await mesh.join(new_id)
    return mesh
