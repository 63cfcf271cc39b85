"""The model's four tools for the mesh. A failure is a result that begins with the tool's name."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from pydantic import BaseModel, Field

from ..errors import AbortError, CoreError
from ..messages import IdSource
from ..records import utc_now
from ..tool import Tool, ToolContext
from .delivery import Delivery, check_content
from .port import AgentIdentity, MeshAdapter, MeshMessage

SEND = "glove_mesh_send_message"
BROADCAST = "glove_mesh_broadcast"
LIST = "glove_mesh_list_agents"
ACKNOWLEDGE = "glove_mesh_acknowledge"
TOOL_NAMES = (SEND, BROADCAST, LIST, ACKNOWLEDGE)


class SendMessage(BaseModel):
    """What the model fills in."""

    to: str = Field(description="The agent's id, as glove_mesh_list_agents gives it")
    content: str = Field(min_length=1, description="What you tell or ask, in full sentences")
    in_reply_to: str | None = Field(default=None, description="The message you answer, if any")
    blocking: bool = Field(
        default=False, description="True if you cannot go on before it is acknowledged or answered"
    )


class Broadcast(BaseModel):
    """What the model fills in."""

    content: str = Field(min_length=1, description="What all other agents are told")
    blocking: bool = Field(
        default=False, description="True if you cannot go on before the first one acknowledges"
    )


class AgentFilter(BaseModel):
    """Both conditions must hold; left out, they hold for everybody."""

    capability: str | None = None
    name_contains: str | None = None


class ListAgents(BaseModel):
    """What the model fills in."""

    filter: AgentFilter | None = None


class Acknowledge(BaseModel):
    """What the model fills in."""

    message_id: str = Field(description="The message you received")
    note: str | None = Field(default=None, description="A word to its sender")


Outcome = dict[str, object]
CLEAN_UP_S = 2.0
logger = logging.getLogger(__name__)


class MeshTools:
    """Makes the tools of one mount."""

    def __init__(
        self, adapter: MeshAdapter, identity: AgentIdentity, delivery: Delivery, new_id: IdSource
    ) -> None:
        self._adapter = adapter
        self._identity = identity
        self._delivery = delivery
        self._new_id = new_id

    def make(self) -> list[Tool]:
        """In the order of TOOL_NAMES."""
        return [
            Tool(
                name=SEND,
                description="Send a private message to another agent.",
                do=self._guarded(SEND, self._send),
                input_model=SendMessage,
            ),
            Tool(
                name=BROADCAST,
                description="Send a message to every other agent.",
                do=self._guarded(BROADCAST, self._broadcast),
                input_model=Broadcast,
            ),
            Tool(
                name=LIST,
                description="See which other agents there are and what they can do.",
                do=self._guarded(LIST, self._list),
                input_model=ListAgents,
                read_only=True,
            ),
            Tool(
                name=ACKNOWLEDGE,
                description="Confirm that you received a message; a waiting sender goes on.",
                do=self._guarded(ACKNOWLEDGE, self._acknowledge),
                input_model=Acknowledge,
            ),
        ]

    @staticmethod
    def _guarded(
        name: str, do: Callable[..., Awaitable[Outcome]]
    ) -> Callable[[object, ToolContext], Awaitable[Outcome]]:
        async def run(value: object, ctx: ToolContext) -> Outcome:
            try:
                data = await do(value)
            except AbortError:
                raise
            except CoreError as error:
                return {"status": "error", "data": None, "message": f"{name}: {error}"}
            except Exception as error:  # an adapter's own
                logger.exception("mesh tool failed", extra={"tool": name})
                text = f"{name}: {type(error).__name__}: {error}"
                return {"status": "error", "data": None, "message": text}
            return {"status": "success", "data": data}

        return run

    async def _send(self, value: SendMessage) -> Outcome:
        if value.to == self._identity.id:
            raise CoreError("to: that is yourself")
        draft = self._message(value.content, value.blocking, to=value.to)
        message = replace(draft, in_reply_to=value.in_reply_to or "")
        await self._out(message, value.to, self._adapter.send)
        return {"message_id": message.id, "to": value.to, "blocking": value.blocking}

    async def _broadcast(self, value: Broadcast) -> Outcome:
        message = self._message(value.content, value.blocking)
        others = await self._others()
        if value.blocking and not others:
            raise CoreError("nobody else is on the mesh, so nobody could acknowledge")
        await self._out(message, "any other agent", self._adapter.broadcast)
        return {"message_id": message.id, "to": len(others), "blocking": value.blocking}

    async def _list(self, value: ListAgents) -> Outcome:
        wanted = value.filter or AgentFilter()
        part = (wanted.name_contains or "").lower()
        found = [
            {
                "id": one.id,
                "name": one.name,
                "description": one.description,
                "capabilities": list(one.capabilities),
            }
            for one in await self._others()
            if part in one.name.lower()
            and (wanted.capability is None or wanted.capability in one.capabilities)
        ]
        return {"agents": found, "count": len(found)}

    async def _acknowledge(self, value: Acknowledge) -> Outcome:
        await self._adapter.acknowledge(value.message_id, value.note or "")
        return {"acknowledged": value.message_id}

    async def _out(
        self, message: MeshMessage, to: str, send: Callable[[MeshMessage], Awaitable[None]]
    ) -> None:
        """The wait is noted before the message leaves, so that no answer comes too soon for it."""
        check_content(message)
        if not message.blocking:
            await send(message)
            return
        try:
            await self._delivery.wait(message, to)
            await send(message)
        except BaseException as error:
            await self._give_up(message.id, f"not sent: {error}")
            raise

    async def _give_up(self, message_id: str, why: str) -> None:
        """Bounded, and whatever fails here, what ended the sending is what counts."""
        try:
            async with asyncio.timeout(CLEAN_UP_S):
                await self._delivery.give_up(message_id, why)
        except Exception:
            logger.exception("a mesh wait stays", extra={"message_id": message_id})

    async def _others(self) -> list[AgentIdentity]:
        return [one for one in await self._adapter.list_agents() if one.id != self._identity.id]

    def _message(self, content: str, blocking: bool, to: str = "") -> MeshMessage:
        return MeshMessage(
            id=self._new_id("mesh"),
            from_id=self._identity.id,
            to=to,
            content=content,
            created_at=utc_now(),
            blocking=blocking,
        )
