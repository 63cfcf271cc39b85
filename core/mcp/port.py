"""The MCP port: which servers there are, which are in use, and what a connection gives back.

Values and protocols only (spec core 15). The client that speaks to servers is an adapter; nothing
here knows its SDK. Tokens pass through as text and are never kept, logged or shown.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ..errors import CoreError, UsageError

MCP_NAMESPACE_SEP = "__"
"""Between an entry's id and the server's own name of a tool."""
MOST_ID_CHARS = 32

_ID = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")


class McpError(CoreError):
    """A server could not be reached, did not answer in time, or refused."""


class McpUnauthorized(McpError):
    """The server answered with HTTP status 401: the token is missing, wrong or has expired.

    Nothing here refreshes it. The host writes a new one where its McpAdapter reads it, and the next
    request uses that (row 87).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCatalogueEntry:
    """One server that the application supports; the same for all its users.

    id             prefix of its tools' names and key of activation: letters, digits, `-`, single
                   `_` between them, so that no two entries can make the same tool name
    description    what discovery chooses by
    url            of its streamable HTTP endpoint
    exclude_tools  names, as the server has them, that are never offered
    """

    id: str
    name: str
    description: str
    url: str
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    exclude_tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.id) > MOST_ID_CHARS or _ID.fullmatch(self.id) is None:
            raise UsageError(
                f"McpCatalogueEntry.id: {self.id!r} must be 1 to {MOST_ID_CHARS} letters, digits or"
                " '-', with single '_' between them"
            )
        if not self.name.strip():
            raise UsageError(f"McpCatalogueEntry.name of {self.id!r}: must not be empty")
        if not self.url.startswith(("http://", "https://")):
            raise UsageError(
                f"McpCatalogueEntry.url of {self.id!r}: write http[s]://…, the streamable HTTP"
                " endpoint of the server"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class McpToolInfo:
    """A tool as its server lists it. `output_schema` is None where the server gives none."""

    name: str
    description: str = ""
    input_schema: Mapping[str, object] = field(default_factory=lambda: {"type": "object"})
    output_schema: Mapping[str, object] | None = None
    read_only_hint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class McpToolResult:
    """What a tool gave back: JSON content blocks, and a structured value where there is one."""

    content: Sequence[Mapping[str, object]] = ()
    structured: object = None
    is_error: bool = False


class McpConnection(Protocol):
    """An open connection to one server. Raises McpError, McpUnauthorized for status 401."""

    @property
    def namespace(self) -> str: ...

    async def list_tools(self) -> Sequence[McpToolInfo]:
        """Every page of the server's list."""
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, object]) -> McpToolResult:
        """Run a tool, by the server's own name. Cancelling the caller cancels it there too."""
        ...

    async def aclose(self) -> None:
        """End the session and free what it holds; bounded in time, harmless when repeated."""


AuthHeaders = Callable[[], Awaitable[Mapping[str, str]]]
"""The headers that authorise a request; asked before every one (core fault 22)."""


class McpConnect(Protocol):
    """Opens connections; adapters.mcp.client.McpConnections.connect is one. Raises McpError."""

    def __call__(
        self, entry: McpCatalogueEntry, auth: AuthHeaders, /
    ) -> Awaitable[McpConnection]: ...


class McpAdapter(Protocol):
    """What the host keeps about one conversation: the servers in use, and tokens for them."""

    @property
    def identifier(self) -> str:
        """For log lines."""
        ...

    async def get_active(self) -> Sequence[str]:
        """Ids of entries in use in this conversation."""
        ...

    async def activate(self, entry_id: str) -> None: ...

    async def deactivate(self, entry_id: str) -> None: ...

    async def get_access_token(self, entry_id: str) -> str | None:
        """Sent as bearer token; None or empty for a server that wants none."""
        ...


@runtime_checkable
class McpHeaders(Protocol):
    """A part of an McpAdapter that authorises otherwise; it wins over get_access_token."""

    async def get_auth_headers(self, entry_id: str) -> Mapping[str, str]:
        """Headers of every request to this server."""
        ...


class MemoryMcpAdapter:
    """An McpAdapter in memory. `tokens` may be changed at any time; the next request uses it."""

    def __init__(
        self,
        active: Iterable[str] = (),
        tokens: Mapping[str, str] | None = None,
        *,
        identifier: str = "memory",
    ) -> None:
        self._active = list(dict.fromkeys(active))
        self.tokens = dict(tokens or {})
        self.identifier = identifier

    async def get_active(self) -> Sequence[str]:
        return tuple(self._active)

    async def activate(self, entry_id: str) -> None:
        if entry_id not in self._active:
            self._active.append(entry_id)

    async def deactivate(self, entry_id: str) -> None:
        if entry_id in self._active:
            self._active.remove(entry_id)

    async def get_access_token(self, entry_id: str) -> str | None:
        return self.tokens.get(entry_id)


def auth_headers(adapter: McpAdapter, entry_id: str) -> AuthHeaders:
    """What authorises requests to one server, read from the adapter each time."""

    async def headers() -> Mapping[str, str]:
        if isinstance(adapter, McpHeaders):
            return await adapter.get_auth_headers(entry_id)
        token = (await adapter.get_access_token(entry_id) or "").strip()
        return {"Authorization": f"Bearer {token}"} if token else {}

    return headers
