"""A real MCP server, the official SDK's own, over streamable HTTP, with faults on demand.

In front of it stands a door that sees every request: it asks for a token, answers with a status,
hangs, or hides the newer protocol. What a tool does is a function of the test.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

import mcp_types
import uvicorn
from mcp.server.lowlevel.server import Server
from starlette.types import ASGIApp, Receive, Scope, Send

Do = Callable[[Mapping[str, Any]], Awaitable[mcp_types.CallToolResult]]
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


def text(*lines: str, error: bool = False) -> mcp_types.CallToolResult:
    """A result of text blocks."""
    blocks: list[Any] = [mcp_types.TextContent(type="text", text=line) for line in lines]
    return mcp_types.CallToolResult(content=blocks, is_error=error)


class McpServer:
    """One server; `kill` and `start` it as often as you like, it keeps its port.

    page_size  tools on a page of its list
    legacy     it speaks only the protocol with sessions
    token      the bearer token it asks for, None for nobody's
    """

    def __init__(
        self, *, page_size: int = 50, legacy: bool = False, token: str | None = None
    ) -> None:
        self.legacy = legacy
        self.token = token
        self.statuses: list[tuple[str, int]] = []
        """(method, status): the next request of this method is answered so, with no JSON-RPC."""
        self.location = ""
        """Where a planned status of 300 or more points."""
        self.hanging: set[str] = set()
        """Methods whose requests are taken and never answered."""
        self.requests: list[tuple[str, Mapping[str, str]]] = []
        """(JSON-RPC method or HTTP verb, headers) of all that came."""
        self.tools: list[mcp_types.Tool] = []
        self.options: Callable[[str], dict[str, Any]] = lambda origin: {}
        """More arguments of the SDK's app, by the address that it is served at."""
        self.cancelled: list[str] = []
        """Tools whose run was cancelled."""
        self._page_size = page_size
        self._do: dict[str, Do] = {}
        self._server: _Uvicorn | None = None
        self._task: asyncio.Task[None] | None = None
        self._port = 0
        self._group: asyncio.TaskGroup | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp"

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.requests]

    @property
    def connections(self) -> int:
        """Sockets that clients hold open now."""
        return 0 if self._server is None else len(self._server.server_state.connections)

    def tool(
        self,
        name: str,
        do: Do | None = None,
        *,
        output: dict[str, Any] | None = None,
        read_only: bool | None = None,
        description: str | None = None,
    ) -> None:
        """Offer a tool; without `do` it answers with its name."""

        async def answer(arguments: Mapping[str, Any]) -> mcp_types.CallToolResult:
            return text(f"{name} did it")

        self.tools.append(
            mcp_types.Tool(
                name=name,
                description=description,
                input_schema=OBJECT,
                output_schema=output,
                annotations=mcp_types.ToolAnnotations(read_only_hint=read_only),
            )
        )
        self._do[name] = do or answer

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        async with asyncio.TaskGroup() as group:
            self._group = group
            await self.start()
            try:
                yield self
            finally:
                self.kill()
                await _end_watcher()

    async def start(self) -> None:
        """Listen, on the same port as before."""
        assert self._group is not None and self._server is None
        # By its name: asyncio turns Nagle's delay off only for sockets of this protocol.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        self._port = listener.getsockname()[1]
        served = self._mcp()
        options = self.options(f"http://127.0.0.1:{self._port}")
        door = _Door(served.streamable_http_app(**options), self)
        self._server = server = _Uvicorn(
            uvicorn.Config(door, log_config=None, lifespan="off", ws="none")
        )

        async def serve() -> None:
            async with served.session_manager.run():
                await server.serve(sockets=[listener])

        self._task = self._group.create_task(serve())
        while not server.started:  # noqa: ASYNC110 - uvicorn offers nothing to wait for
            await asyncio.sleep(0.001)

    def kill(self) -> None:
        """Cut every connection and forget every session, as a process that dies."""
        if self._server is not None and self._task is not None:
            server, self._server = self._server, None
            for connection in list(server.server_state.connections):
                transport = getattr(connection, "transport", None)
                if transport is not None:
                    transport.abort()
            for one in server.servers:
                one.close()
            self._task.cancel()

    def _mcp(self) -> Server[Any]:
        async def list_tools(
            ctx: Any, params: mcp_types.PaginatedRequestParams | None
        ) -> mcp_types.ListToolsResult:
            at = int(params.cursor) if params is not None and params.cursor else 0
            end = at + self._page_size
            more = str(end) if end < len(self.tools) else None
            return mcp_types.ListToolsResult(tools=self.tools[at:end], next_cursor=more)

        async def call_tool(
            ctx: Any, params: mcp_types.CallToolRequestParams
        ) -> mcp_types.CallToolResult:
            try:
                return await self._do[params.name](params.arguments or {})
            except asyncio.CancelledError:
                self.cancelled.append(params.name)
                raise

        return Server("simulated", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


class _Uvicorn(uvicorn.Server):
    """Without signal handlers: the test's own stay."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Door:
    """Reads each request whole, decides, and hands it on as it was."""

    def __init__(self, app: ASGIApp, server: McpServer) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = await _body(receive)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        method = _method(body) or scope["method"]
        self._server.requests.append((method, headers))
        status = self._status(method, headers)
        if status:
            await _answer(send, status, self._server.location)
        elif method in self._server.hanging:
            await _until_gone(receive)
        else:
            await self._app(scope, _again(body, receive), send)

    def _status(self, method: str, headers: Mapping[str, str]) -> int:
        for planned in self._server.statuses:
            if planned[0] == method:
                self._server.statuses.remove(planned)
                return planned[1]
        wanted = self._server.token
        if wanted is not None and headers.get("authorization") != f"Bearer {wanted}":
            return 401
        return 404 if self._server.legacy and method == "server/discover" else 0


async def _end_watcher() -> None:
    """The server's event streams leave one task per loop behind, which waits for a signal."""
    for task in asyncio.all_tasks():
        if getattr(task.get_coro(), "__name__", "") == "_shutdown_watcher":
            task.cancel()
            await asyncio.wait([task])


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return body


async def _until_gone(receive: Receive) -> None:
    while True:
        if (await receive())["type"] == "http.disconnect":
            return


def _again(body: bytes, receive: Receive) -> Receive:
    read = False

    async def replay() -> Any:
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _method(body: bytes) -> str:
    try:
        parsed = json.loads(body)
    except ValueError:
        return ""
    return str(parsed.get("method", "")) if isinstance(parsed, dict) else ""


async def _answer(send: Send, status: int, location: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"location", location.encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    body = b"<h1>no</h1>" if status >= 500 else b'{"error": "no"}'
    await send({"type": "http.response.body", "body": body})
