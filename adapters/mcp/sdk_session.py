"""One session of the official SDK, in a task that owns it.

The SDK's sessions live in task groups that the task which entered them must leave. So each session
has a task of its own, in its connection's TaskGroup: it opens, waits until it shall leave, and
closes. Requests come from any task; one that is under way when the session ends is told so.

Imports the SDK at its head, which takes about a second: import this module where one is opened.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeVar

import mcp.types as mcp_types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from ...core.cancel import AbortScope, CancelToken
from ...core.errors import AbortError
from ...core.mcp.port import (
    AuthHeaders,
    McpError,
    McpToolInfo,
    McpToolResult,
    McpUnauthorized,
)
from .config import McpClientConfig
from .http import McpHttpClient

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_PAGES = 200
"""Of a list of tools; more can only be a server that counts wrongly."""


class SessionGone(McpError):
    """The server does not know this session: nothing was run, and another session may be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a session goes to, and with what."""

    namespace: str
    url: str
    auth: AuthHeaders
    config: McpClientConfig


class SdkSession:
    """See the module. `run` is the task; everything else may be called from any task."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: Client | None = None
        self._http = _http(endpoint)
        self._opened = asyncio.Event()
        self._leaving = CancelToken()
        self._over = asyncio.Event()
        self._lost = CancelToken()
        self._asking = 0
        self._retired = False
        self._failure: McpError | None = None

    @property
    def usable(self) -> bool:
        """Whether a request can be tried."""
        return self._client is not None and not self._lost.aborted and not self._retired

    async def run(self) -> None:
        """The owner task; never raises but for its own cancellation."""
        try:
            await self._live()
        except Exception as error:
            logger.info("mcp session ended", extra={"server": self._endpoint.namespace})
            self._failure = self._translated(error)
        finally:
            self._lost.abort("the connection was lost")
            self._opened.set()
            self._over.set()

    async def opened(self) -> None:
        """Wait for the handshake. Raises McpError."""
        await self._opened.wait()
        if self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        """Leave, and wait for it. What the server is asked for at the end is bounded; whoever
        cancels the wait leaves the rest to the owner task."""
        self.leave()
        await self._over.wait()

    def leave(self) -> None:
        """As close, without waiting. A handshake that is under way is given up."""
        self._leaving.abort("the connection was closed")

    def retire(self) -> None:
        """Take no more requests, and leave when those under way are over."""
        self._retired = True
        if not self._asking:
            self.leave()

    async def list_tools(self) -> list[McpToolInfo]:
        """Every page. Raises McpError."""
        return await self._ask(_all_tools)

    async def call_tool(self, name: str, arguments: Mapping[str, object]) -> McpToolResult:
        """Raises McpError. Cancelling it tells the server."""

        async def ask(client: Client) -> McpToolResult:
            result = await client.call_tool(name, dict(arguments))
            return McpToolResult(
                content=[
                    block.model_dump(by_alias=True, mode="json", exclude_none=True)
                    for block in result.content
                ],
                structured=result.structured_content,
                is_error=result.is_error,
            )

        return await self._ask(ask)

    async def _live(self) -> None:
        endpoint = self._endpoint
        about = mcp_types.Implementation(
            name=endpoint.config.client_name, version=endpoint.config.client_version
        )
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(self._http)
            transport = streamable_http_client(endpoint.url, http_client=http)
            client = Client(transport, client_info=about, cache=None)
            async with AbortScope(self._leaving):
                self._client = await stack.enter_async_context(client)
            self._opened.set()
            reason = await self._leaving.wait()
            # From here on the transport closes: requests must not wait for it.
            self._lost.abort(reason)

    async def _ask(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        if self._client is None:
            raise McpError(f"{self._endpoint.namespace}: not connected")
        self._asking += 1
        try:
            async with AbortScope(self._lost):
                return await ask(self._client)
        except AbortError as error:
            message = f"{self._endpoint.namespace}: {error.reason}; it may have been done or not"
            raise McpError(message) from error
        except Exception as error:
            raise self._translated(error) from error
        finally:
            self._asking -= 1
            if self._retired:
                self.retire()

    def _translated(self, error: Exception) -> McpError:
        """The one place where the SDK's exceptions become ours; HTTP statuses alone say what is
        unauthorised."""
        namespace = self._endpoint.namespace
        if isinstance(error, McpError):
            return error
        if isinstance(error, ExceptionGroup):
            return self._translated(error.exceptions[0])
        if not isinstance(error, MCPError):
            return McpError(f"{namespace}: {error or type(error).__name__}")
        match self._http.failure(error.data):
            case ("unauthorized", _):
                return McpUnauthorized(f"{namespace}: the server refused the token (status 401)")
            case ("session_gone", _):
                return SessionGone(f"{namespace}: {error.message}")
        return McpError(f"{namespace}: {error.message}")


def _http(endpoint: Endpoint) -> McpHttpClient:
    config = endpoint.config
    return McpHttpClient(
        endpoint.auth,
        connect_timeout_s=config.connect_timeout_s,
        read_timeout_s=config.call_timeout_s,
        close_timeout_s=config.close_timeout_s,
        most_bytes=config.most_answer_bytes,
    )


async def _all_tools(client: Client) -> list[McpToolInfo]:
    found: list[McpToolInfo] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += [_info(tool) for tool in page.tools]
        if page.next_cursor is None or page.next_cursor == cursor:
            return found
        cursor = page.next_cursor
    raise McpError(f"a list of tools has more than {MOST_PAGES} pages")


def _info(tool: mcp_types.Tool) -> McpToolInfo:
    hints = tool.annotations
    title = tool.title or (hints.title if hints else None)
    return McpToolInfo(
        name=tool.name,
        description=tool.description or title or "",
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        read_only_hint=bool(hints and hints.read_only_hint),
    )
