"""A live conversation as a session has it: the agent runs, and its turn queue is held."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.core.support import assert_valid
from voxglove.core import Agent, LiveConversation, Message, ModelRequest, PermissionPolicy


@asynccontextmanager
async def on_line(
    agent: Agent,
    *,
    permissions: PermissionPolicy | None = None,
    tool_retries: int | None = 0,
) -> AsyncIterator[LiveConversation]:
    """The seam, for as long as a session would have it."""
    async with agent.running(), agent.turn_queue.hold("a session"):
        yield agent.live(permissions=permissions, tool_retries=tool_retries)
        await agent.flush()


async def assert_view_valid(live: LiveConversation) -> list[Message]:
    """What a provider would be seeded with is a valid request (invariant 7)."""
    view = await live.view()
    asking = Message(sender="user", text="and now?", id="probe")
    assert_valid(ModelRequest(messages=(*view, asking)))
    return view
