"""Connections to MCP servers over streamable HTTP, on the official SDK (spec core 15).

    async with connect_mcp("notion", url, auth=bearer(token)) as connection:
        tools = bridge_mcp_tools(connection, await connection.list_tools(), server_mode=False)

    async with McpConnections().running() as connections:
        mcp = await mount_mcp(agent, …, connect=connections.connect)

Every task belongs to the TaskGroup of `McpConnections.running`, so a connection may be opened,
used and closed in different tasks, and nothing outlives the block. What a server says unasked (a
changed list of tools, a log line) is not listened to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self, TypeVar

from ...core.errors import UsageError
from ...core.mcp.port import (
    AuthHeaders,
    McpCatalogueEntry,
    McpError,
    McpToolInfo,
    McpToolResult,
)
from .auth import no_headers
from .config import McpClientConfig

if TYPE_CHECKING:
    from types import ModuleType

    from .sdk_session import Endpoint, SdkSession

T = TypeVar("T")
KeepTool = Callable[[McpToolInfo], bool]


class McpConnections:
    """Opens connections; owns their tasks. One may serve a whole process."""

    def __init__(self, config: McpClientConfig | None = None) -> None:
        self._config = config or McpClientConfig()
        self._group: asyncio.TaskGroup | None = None
        self._open: set[HttpMcpConnection] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Hold the TaskGroup open; at exit every connection that is still open is closed."""
        if self._group is not None:
            raise UsageError("running(): these connections are running already")
        failure: Exception | None = None
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield self
            except Exception as error:
                failure = error  # a TaskGroup would wrap it
            finally:
                self._group = None
                for connection in list(self._open):
                    connection.leave()
        if failure is not None:
            raise failure

    async def connect(
        self, entry: McpCatalogueEntry, auth: AuthHeaders = no_headers, /
    ) -> HttpMcpConnection:
        """An open connection to a catalogue's server; a core.mcp McpConnect.

        Raises McpError, McpUnauthorized for status 401; after that, and after a cancellation,
        nothing is left open. The handshake asks twice for the headers, so a token that expired
        at this very moment and is refreshed by its source needs no second attempt.
        """
        return await self.open(entry.id, entry.url, auth)

    async def open(
        self,
        namespace: str,
        url: str,
        auth: AuthHeaders,
        *,
        exclude_tools: Collection[str] = (),
        filter_tools: KeepTool | None = None,
    ) -> HttpMcpConnection:
        """As connect, without a catalogue. The two last bound what list_tools gives."""
        if self._group is None:
            raise UsageError("connect: use McpConnections inside `async with ….running()`")
        sdk = await asyncio.to_thread(_sdk)  # a second of imports must not stop other calls
        endpoint = sdk.Endpoint(namespace=namespace, url=url, auth=auth, config=self._config)

        def keep(tool: McpToolInfo) -> bool:
            wanted = filter_tools is None or filter_tools(tool)
            return wanted and tool.name not in exclude_tools

        connection = HttpMcpConnection(endpoint, self._begin, self._open.discard, keep)
        self._open.add(connection)
        try:
            await connection.open()
        except BaseException:
            connection.leave()
            raise
        return connection

    def _begin(self, endpoint: Endpoint) -> SdkSession:
        """A new session, its task begun."""
        if self._group is None:
            raise McpError(f"{endpoint.namespace}: connections are closed")
        from .sdk_session import SdkSession

        session = SdkSession(endpoint)
        self._group.create_task(session.run(), name=f"mcp {endpoint.namespace}")
        return session


class HttpMcpConnection:
    """A core.mcp McpConnection; made by McpConnections. All methods belong on one event loop.

    When the server has lost the session (it was started anew), the request is made once more in
    another one: a server that does not know a session has not run anything in it. When the
    connection breaks while a tool runs, nobody knows whether it ran: that is an error, and the next
    request opens another session.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        begin: Callable[[Endpoint], SdkSession],
        forget: Callable[[HttpMcpConnection], None],
        keep: KeepTool,
    ) -> None:
        self._endpoint = endpoint
        self._begin = begin
        self._forget = forget
        self._keep = keep
        self._session: SdkSession | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    @property
    def namespace(self) -> str:
        return self._endpoint.namespace

    async def open(self) -> None:
        """Open a session unless there is one. Raises McpError."""
        await self._current()

    async def list_tools(self) -> Sequence[McpToolInfo]:
        """Every page; within list_timeout_s. Raises McpError."""
        seconds = self._endpoint.config.list_timeout_s
        listed = await self._within(seconds, lambda session: session.list_tools())
        return [tool for tool in listed if self._keep(tool)]

    async def call_tool(self, name: str, arguments: Mapping[str, object]) -> McpToolResult:
        """Within call_timeout_s. Raises McpError; a cancelled caller cancels the call."""
        seconds = self._endpoint.config.call_timeout_s
        return await self._within(seconds, lambda session: session.call_tool(name, arguments))

    async def aclose(self) -> None:
        """End the session; takes about close_timeout_s where the server does not answer. Requests
        under way raise McpError. Harmless when it was done."""
        self.leave()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def leave(self) -> None:
        """As aclose, without waiting: the TaskGroup does."""
        self._closed = True
        self._forget(self)
        if self._session is not None:
            self._session.leave()

    async def _within(self, seconds: float, ask: Callable[[SdkSession], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(seconds) as deadline:
                return await self._asked(ask)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise McpError(f"{self.namespace}: no answer within {seconds:g} s") from error

    async def _asked(self, ask: Callable[[SdkSession], Awaitable[T]]) -> T:
        from .sdk_session import SessionGone

        session = await self._current()
        try:
            return await ask(session)
        except SessionGone:
            session.retire()
            return await ask(await self._current())

    async def _current(self) -> SdkSession:
        """The session, opened anew where there is none that works."""
        async with self._opening:
            if self._closed:
                raise McpError(f"{self.namespace}: the connection was closed")
            session = self._session
            if session is not None and session.usable:
                return session
            session = self._begin(self._endpoint)
            seconds = self._endpoint.config.connect_timeout_s
            try:
                async with asyncio.timeout(seconds) as deadline:
                    await session.opened()
            except BaseException as error:
                session.leave()
                if isinstance(error, TimeoutError) and deadline.expired():
                    message = f"{self.namespace}: no answer within {seconds:g} s"
                    raise McpError(message) from error
                raise
            if self._closed:
                session.leave()
                raise McpError(f"{self.namespace}: the connection was closed")
            self._session = session
            return session


@asynccontextmanager
async def connect_mcp(
    namespace: str,
    url: str,
    *,
    auth: AuthHeaders = no_headers,
    config: McpClientConfig | None = None,
    exclude_tools: Collection[str] = (),
    filter_tools: KeepTool | None = None,
) -> AsyncIterator[HttpMcpConnection]:
    """One connection, closed at the end of the block.

    auth           bearer(…) or headers(…); asked before every request
    exclude_tools  names that list_tools leaves out, beside what filter_tools refuses

    Raises McpError, McpUnauthorized for status 401.
    """
    async with McpConnections(config).running() as connections:
        yield await connections.open(
            namespace, url, auth, exclude_tools=exclude_tools, filter_tools=filter_tools
        )


def _sdk() -> ModuleType:
    try:
        from . import sdk_session
    except ImportError as error:
        raise McpError("MCP servers need the mcp package; pip install 'voxglove[mcp]'") from error
    return sdk_session
