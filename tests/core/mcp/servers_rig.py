"""A scripted world of MCP servers: connections that answer from a table, and a host's adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from voxglove.core.mcp import (
    AuthHeaders,
    McpCatalogueEntry,
    McpConnection,
    McpError,
    McpToolInfo,
    McpToolResult,
)

Answer = McpToolResult | Exception


def entry(entry_id: str, description: str = "", *tags: str, **more: object) -> McpCatalogueEntry:
    exclude = more.get("exclude_tools", ())
    assert isinstance(exclude, tuple)
    return McpCatalogueEntry(
        id=entry_id,
        name=entry_id.title(),
        description=description or f"does {entry_id}",
        url=f"https://{entry_id}.example/mcp",
        tags=tags,
        exclude_tools=exclude,
    )


def info(name: str, *, read_only: bool = False, **more: object) -> McpToolInfo:
    output = more.get("output_schema")
    assert output is None or isinstance(output, Mapping)
    return McpToolInfo(
        name=name,
        description=f"{name} it",
        input_schema={"type": "object", "properties": {"q": {"type": "string"}}},
        output_schema=output,
        read_only_hint=read_only,
    )


def says(text: str, *, error: bool = False) -> McpToolResult:
    return McpToolResult(content=[{"type": "text", "text": text}], is_error=error)


@dataclass
class FakeServer:
    """One server. `down` is raised at connecting; `delay_s` passes before it is connected."""

    tools: Sequence[McpToolInfo] = ()
    answers: dict[str, Answer] = field(default_factory=dict)
    down: Exception | None = None
    delay_s: float = 0.0
    calls: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    opened: int = 0
    closed: int = 0
    cancelled: int = 0


class FakeConnection:
    """A McpConnection to a FakeServer."""

    def __init__(self, namespace: str, server: FakeServer, auth: AuthHeaders) -> None:
        self._namespace = namespace
        self._server = server
        self._auth = auth

    @property
    def namespace(self) -> str:
        return self._namespace

    async def list_tools(self) -> Sequence[McpToolInfo]:
        self._server.headers.append(await self._auth())
        return tuple(self._server.tools)

    async def call_tool(self, name: str, arguments: Mapping[str, object]) -> McpToolResult:
        self._server.headers.append(await self._auth())
        self._server.calls.append((name, dict(arguments)))
        answer = self._server.answers.get(name, says(f"{name} done"))
        if isinstance(answer, Exception):
            raise answer
        if answer is HANGS:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self._server.cancelled += 1
                raise
        return answer

    async def aclose(self) -> None:
        self._server.closed += 1


HANGS = McpToolResult()


class World:
    """Servers by entry id; `connect` is a McpConnect."""

    def __init__(self, **servers: FakeServer) -> None:
        self.servers = servers

    async def connect(self, wanted: McpCatalogueEntry, auth: AuthHeaders, /) -> McpConnection:
        server = self.servers.get(wanted.id)
        if server is None:
            raise McpError(f"{wanted.id}: not reached")
        await asyncio.sleep(server.delay_s)
        if server.down is not None:
            raise server.down
        server.opened += 1
        return FakeConnection(wanted.id, server, auth)

    @property
    def still_open(self) -> dict[str, int]:
        counts = {name: one.opened - one.closed for name, one in self.servers.items()}
        return {name: count for name, count in counts.items() if count}
