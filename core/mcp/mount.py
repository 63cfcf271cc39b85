"""Give an agent the tools of MCP servers, and take them away again (spec core 15).

async with McpConnections().running() as connections:
    mcp = await mount_mcp(
        agent, adapter=adapter, entries=entries, connect=connections.connect
    )
    …
    await mcp.aclose()
"""

import asyncio
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from ..directives.sub_agents import SubAgentFactory
from ..errors import DuplicateToolError, UsageError
from ..model import Model
from ..tool import Tool
from ..toolset import find_tool
from .catalogue import Catalogue
from .discovery import (
    DESCRIPTION,
    DISCOVER,
    FIND_CAPABILITY,
    POLICIES,
    AmbiguityPolicy,
    Discovery,
)
from .port import McpAdapter, McpCatalogueEntry, McpConnect
from .servers import FilterTools, ServerOptions, Servers, ToolOwner, WrapTool

logger = logging.getLogger(__name__)


class McpAgent(ToolOwner, Protocol):
    """What of an agent, or of its builder, a mount uses."""

    def define_sub_agent(
        self, name: str, factory: SubAgentFactory, *, description: str = ""
    ) -> object: ...

    def remove_sub_agent(self, name: str) -> object: ...


class McpMount:
    """The servers and the discovery of one agent; made by mount_mcp. Usable in `async with`."""

    def __init__(self, agent: McpAgent, servers: Servers, alias: Tool) -> None:
        self._agent = agent
        self._servers = servers
        self._alias = alias
        self._closed = False

    @property
    def active(self) -> tuple[str, ...]:
        """Ids of the servers whose tools the agent has now."""
        return self._servers.active

    async def activate(self, entry_id: str) -> tuple[str, ...]:
        """Open a server, or list its tools again; returns their names. The adapter is not told.

        Raises McpError (McpUnauthorized for status 401) and DuplicateToolError; then nothing has
        changed.
        """
        return await self._servers.activate(entry_id)

    async def aclose(self) -> None:
        """Take tools and discovery away and close the connections; bounded in time, harmless when
        it was done. Calls that run at that moment fail."""
        if not self._closed:
            self._closed = True
            self._agent.remove_sub_agent(DISCOVER)
            if any(tool is self._alias for tool in self._agent.tools):
                self._agent.replace_tools([FIND_CAPABILITY], ())
        await self._servers.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


async def mount_mcp(
    agent: McpAgent,
    *,
    adapter: McpAdapter,
    entries: Sequence[McpCatalogueEntry],
    connect: McpConnect,
    ambiguity_policy: AmbiguityPolicy | None = None,
    subagent_model: Model | None = None,
    subagent_system_prompt: str | None = None,
    filter_tools: FilterTools | None = None,
    wrap_tool: WrapTool | None = None,
    timeout_s: float = 20.0,
) -> McpMount:
    """Open the servers that are active in this conversation, then offer discovery of the others.

    agent                   an Agent, or a Glove before build()
    connect                 opens a connection; of adapters.mcp.client
    ambiguity_policy        default: auto-pick-best for a headless agent, else interactive (row 91)
    subagent_model          of discovery, instead of the agent's own
    subagent_system_prompt  of discovery, instead of ours
    filter_tools            which tools are offered, beside each entry's exclude_tools
    wrap_tool               what stands in for a bridged tool
    timeout_s               of connecting to a server and listing its tools; all are opened at once

    A server that cannot be reached is logged and left out, and so is an active id that is not in
    the catalogue (row 88). Raises UsageError, and DuplicateToolError when the agent has a mount.
    """
    policy = ambiguity_policy or ("auto-pick-best" if agent.server_mode else "interactive")
    if policy not in POLICIES:
        raise UsageError(f"ambiguity_policy: {policy!r} is none of {', '.join(POLICIES)}")
    if find_tool(agent.tools, FIND_CAPABILITY) is not None:
        raise DuplicateToolError(
            f"the agent has {FIND_CAPABILITY!r} already: close its mount first, or give one mount"
            " all entries"
        )
    options = ServerOptions(filter_tools=filter_tools, wrap_tool=wrap_tool, timeout_s=timeout_s)
    catalogue = Catalogue(entries)
    servers = Servers(agent, catalogue, adapter, connect, options)
    discovery = Discovery(
        catalogue,
        adapter,
        servers,
        policy,
        model=subagent_model,
        system_prompt=subagent_system_prompt,
    )
    alias = discovery.alias()
    mount = McpMount(agent, servers, alias)
    try:
        await servers.reload(await _active(adapter, timeout_s))
        agent.replace_tools((), [alias])
        agent.define_sub_agent(DISCOVER, discovery.sub_agent, description=DESCRIPTION)
    except BaseException:
        await mount.aclose()
        raise
    return mount


async def _active(adapter: McpAdapter, timeout_s: float) -> Sequence[str]:
    """The ids in use; none where the host cannot tell, for a mount fails open (row 88)."""
    try:
        async with asyncio.timeout(timeout_s):
            return await adapter.get_active()
    except Exception as error:
        logger.warning(
            "mcp: active servers unknown", exc_info=error, extra={"adapter": adapter.identifier}
        )
        return ()
