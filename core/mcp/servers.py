"""The servers in use by one agent: their connections and the tools they gave it.

Owned by one mount. A server is opened or listed again in one step: either all its tools are folded,
in place of those it had before, or nothing changes (core fault 6). Every wait is bounded.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..errors import UsageError
from ..tool import Tool
from .bridge import bridge_mcp_tools, listed_once
from .catalogue import Catalogue
from .port import (
    McpAdapter,
    McpCatalogueEntry,
    McpConnect,
    McpConnection,
    McpError,
    McpToolInfo,
    auth_headers,
)

logger = logging.getLogger(__name__)

CLOSE_S = 5.0

FilterTools = Callable[[McpToolInfo], bool]
WrapTool = Callable[[Tool, McpToolInfo], Tool]


class ToolOwner(Protocol):
    """What of an agent, or of its builder, the servers' tools are folded on."""

    @property
    def server_mode(self) -> bool: ...

    @property
    def tools(self) -> tuple[Tool, ...]: ...

    def replace_tools(self, previous: Sequence[str], following: Sequence[Tool]) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How servers are opened.

    filter_tools  which tools are offered at all, beside the entry's exclude_tools
    wrap_tool     what stands in for a bridged tool: another permission rule, a summary, …
    timeout_s     of connecting and listing together
    """

    filter_tools: FilterTools | None = None
    wrap_tool: WrapTool | None = None
    timeout_s: float = 20.0

    def __post_init__(self) -> None:
        if self.timeout_s <= 0:
            raise UsageError("timeout_s: must be positive")


@dataclass(frozen=True, slots=True)
class _Server:
    connection: McpConnection
    tools: tuple[Tool, ...]


class Servers:
    """See the module."""

    def __init__(
        self,
        owner: ToolOwner,
        catalogue: Catalogue,
        adapter: McpAdapter,
        connect: McpConnect,
        options: ServerOptions,
    ) -> None:
        self._owner = owner
        self._catalogue = catalogue
        self._adapter = adapter
        self._connect = connect
        self._options = options
        self._open: dict[str, _Server] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._closed = False

    @property
    def active(self) -> tuple[str, ...]:
        """Ids of the servers whose tools the agent has."""
        return tuple(self._open)

    async def activate(self, entry_id: str) -> tuple[str, ...]:
        """Open a server, or list one again that is open; returns its tools' names.

        The next model call offers them, also that of a request which runs now. Raises McpError,
        DuplicateToolError where a name belongs to another tool, and what wrap_tool raises; then
        nothing has changed.
        """
        entry = self._catalogue.entry(entry_id)
        async with self._locks.setdefault(entry.id, asyncio.Lock()):
            server = await self._prepared(entry)
            await self._fold(entry.id, server)
            return tuple(tool.name for tool in server.tools)

    async def reload(self, entry_ids: Sequence[str]) -> None:
        """Open several at once and fold them in the order of `entry_ids`. What fails is logged and
        left out (row 88)."""
        prepared: dict[str, _Server] = {}

        async def prepare(entry: McpCatalogueEntry) -> None:
            try:
                prepared[entry.id] = await self._prepared(entry)
            except Exception as error:
                self._report(entry.id, error)

        known = [one for one in dict.fromkeys(entry_ids) if self._is_known(one)]
        try:
            async with asyncio.TaskGroup() as group:
                for one in known:
                    group.create_task(prepare(self._catalogue.entry(one)))
            for one in known:
                if one in prepared:
                    await self._reloaded(one, prepared.pop(one))
        finally:
            # A cancellation came in between: nobody else knows these connections.
            for server in prepared.values():
                await _let_go(server.connection)

    async def aclose(self) -> None:
        """Take the tools away and close the connections, all at once and within CLOSE_S. Harmless
        when it was done."""
        self._closed = True
        servers, self._open = list(self._open.values()), {}
        for server in servers:
            self._owner.replace_tools(self._still_there(server), ())
        async with asyncio.TaskGroup() as group:
            for server in servers:
                group.create_task(_let_go(server.connection))

    async def _prepared(self, entry: McpCatalogueEntry) -> _Server:
        """A connection and its tools, nothing folded yet. An open connection is used again."""
        seconds = self._options.timeout_s
        try:
            async with asyncio.timeout(seconds) as deadline:
                return await self._listed(entry)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise McpError(f"{entry.id} did not answer within {seconds:g} s") from error

    async def _listed(self, entry: McpCatalogueEntry) -> _Server:
        if self._closed:
            raise McpError("the mount was closed; mount again")
        known = self._open.get(entry.id)
        if known is not None:
            return _Server(known.connection, await self._bridged(entry, known.connection))
        connection = await self._connect(entry, auth_headers(self._adapter, entry.id))
        try:
            return _Server(connection, await self._bridged(entry, connection))
        except BaseException:
            await _let_go(connection)
            raise

    async def _bridged(
        self, entry: McpCatalogueEntry, connection: McpConnection
    ) -> tuple[Tool, ...]:
        keep, wrap = self._options.filter_tools, self._options.wrap_tool
        # Names are given to the whole list, so that a filter changes no name.
        infos = listed_once(await connection.list_tools())
        tools = bridge_mcp_tools(connection, infos, self._owner.server_mode)
        return tuple(
            tool if wrap is None else wrap(tool, info)
            for tool, info in zip(tools, infos, strict=True)
            if info.name not in entry.exclude_tools and (keep is None or keep(info))
        )

    async def _fold(self, entry_id: str, server: _Server) -> None:
        known = self._open.get(entry_id)
        try:
            if self._closed:
                raise McpError("the mount was closed meanwhile")
            previous = [] if known is None else self._still_there(known)
            self._owner.replace_tools(previous, server.tools)
        except BaseException:
            if known is None:
                await _let_go(server.connection)
            raise
        self._open[entry_id] = server

    async def _reloaded(self, entry_id: str, server: _Server) -> None:
        try:
            await self._fold(entry_id, server)
        except Exception as error:
            self._report(entry_id, error)

    def _still_there(self, server: _Server) -> list[str]:
        """A server's tools that nobody took away or replaced since they were folded."""
        return [tool.name for tool in self._owner.tools if any(tool is t for t in server.tools)]

    def _is_known(self, entry_id: str) -> bool:
        if entry_id in self._catalogue:
            return True
        logger.warning(
            "mcp server is not in the catalogue",
            extra={"server": entry_id, "adapter": self._adapter.identifier},
        )
        return False

    def _report(self, entry_id: str, error: Exception) -> None:
        logger.warning(
            "mcp server was not mounted",
            exc_info=error,
            extra={"server": entry_id, "adapter": self._adapter.identifier},
        )


async def _let_go(connection: McpConnection) -> None:
    try:
        async with asyncio.timeout(CLOSE_S):
            await connection.aclose()
    except Exception as error:
        logger.warning(
            "mcp connection did not close", exc_info=error, extra={"server": connection.namespace}
        )
