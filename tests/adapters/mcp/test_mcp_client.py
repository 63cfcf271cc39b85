"""The client against a real server: requests, tokens, endings, and servers that fail."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import mcp_types
import pytest

from tests.simulators.mcp_server import McpServer, text
from voxglove.adapters.credentials import Secret
from voxglove.adapters.mcp.auth import bearer, headers
from voxglove.adapters.mcp.client import McpConnections, connect_mcp
from voxglove.adapters.mcp.config import McpClientConfig
from voxglove.core.errors import UsageError
from voxglove.core.mcp import McpCatalogueEntry, McpError, McpUnauthorized

pytestmark = pytest.mark.real_loop

QUICK = McpClientConfig(
    connect_timeout_s=0.2, list_timeout_s=0.2, call_timeout_s=0.2, close_timeout_s=0.1
)
LONG_S = 15.0
"""What no bounded wait takes on the slowest machine; an unbounded one takes a minute or more."""
both = pytest.mark.parametrize("legacy", [False, True], ids=["newer", "sessions"])


async def until(condition: Any, seconds: float = LONG_S) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for happens at the server
            await asyncio.sleep(0.005)


@both
async def test_lists_and_calls(legacy: bool) -> None:
    server = McpServer(legacy=legacy)
    server.tool("look", read_only=True, description="Looks.")
    async with server.running():
        async with connect_mcp("eye", server.url) as connection:
            (tool,) = await connection.list_tools()
            assert (tool.name, tool.description, tool.read_only_hint) == ("look", "Looks.", True)
            result = await connection.call_tool("look", {"a": 1})
            assert result.content == [{"type": "text", "text": "look did it"}]
        assert ("DELETE" in server.methods) == legacy, "a session is ended at the server"
        await until(lambda: server.connections == 0)


async def test_what_a_tool_gives_arrives_whole() -> None:
    async def total(arguments: Mapping[str, Any]) -> mcp_types.CallToolResult:
        return mcp_types.CallToolResult(
            content=[mcp_types.TextContent(type="text", text="7")],
            structured_content={"sum": sum(arguments["parts"])},
        )

    async def fails(arguments: Mapping[str, Any]) -> mcp_types.CallToolResult:
        return text("no such page", error=True)

    shape = {"type": "object", "properties": {"sum": {"type": "number"}}}
    server = McpServer()
    server.tool("total", total, output=shape)
    server.tool("fails", fails)
    async with server.running(), connect_mcp("maths", server.url) as connection:
        listed = await connection.list_tools()
        assert listed[0].output_schema == shape
        given = await connection.call_tool("total", {"parts": [3, 4]})
        assert (given.structured, given.is_error) == ({"sum": 7}, False)
        refused = await connection.call_tool("fails", {})
        assert refused.is_error
        assert refused.content[0]["text"] == "no such page"
        with pytest.raises(McpError, match="maths"):
            await connection.call_tool("nothing_like_it", {})


@both
async def test_fault_22_every_page_of_a_list_is_read(legacy: bool) -> None:
    server = McpServer(page_size=2, legacy=legacy)
    for at in range(5):
        server.tool(f"t{at}")
    async with server.running(), connect_mcp("many", server.url) as connection:
        assert [tool.name for tool in await connection.list_tools()] == [
            f"t{at}" for at in range(5)
        ]
    assert server.methods.count("tools/list") == 3


async def test_fault_22_a_list_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    server = McpServer(page_size=1)
    for at in range(5):
        server.tool(f"t{at}")
    async with server.running(), connect_mcp("many", server.url) as connection:
        monkeypatch.setattr("voxglove.adapters.mcp.sdk_session.MOST_PAGES", 3)
        with pytest.raises(McpError, match="more than 3 pages"):
            await connection.list_tools()


async def test_excluded_and_filtered_tools_are_not_listed() -> None:
    server = McpServer()
    for name in ("read", "write", "drop"):
        server.tool(name, read_only=name == "read")
    async with (
        server.running(),
        connect_mcp(
            "db", server.url, exclude_tools=["drop"], filter_tools=lambda tool: tool.name != "write"
        ) as connection,
    ):
        assert [tool.name for tool in await connection.list_tools()] == ["read"]


@both
async def test_fault_22_a_refreshed_token_is_used_by_the_next_request(legacy: bool) -> None:
    token = "first"
    server = McpServer(token="first", legacy=legacy)
    server.tool("look")
    async with (
        server.running(),
        connect_mcp("eye", server.url, auth=bearer(lambda: token)) as connection,
    ):
        await connection.call_tool("look", {})
        server.token = "second"
        with pytest.raises(McpUnauthorized):
            await connection.call_tool("look", {})
        token = "second"
        assert not (await connection.call_tool("look", {})).is_error


async def test_tokens_and_headers_of_every_kind_are_sent() -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "s3cret"

    async def trio() -> Mapping[str, str]:
        return {"x-key": "k", "x-tenant": "t"}

    asked = []

    def counted() -> None:
        asked.append(1)

    server = McpServer()
    async with server.running():
        for auth, name, wanted in (
            (bearer("s3cret\n"), "authorization", "Bearer s3cret"),
            (bearer(Secret("s3cret")), "authorization", "Bearer s3cret"),
            (bearer(later), "authorization", "Bearer s3cret"),
            (bearer(counted), "authorization", None),
            (headers({"x-key": "k"}), "x-key", "k"),
            (headers(lambda: {"x-key": "k"}), "x-key", "k"),
            (headers(trio), "x-tenant", "t"),
        ):
            server.requests.clear()
            async with connect_mcp("any", server.url, auth=auth) as connection:
                await connection.list_tools()
            assert {sent.get(name) for _, sent in server.requests} == {wanted}
    assert len(asked) == 2, "asked once for each request"


@pytest.mark.parametrize("says", ["401 is how many I found", "Unauthorized"])
async def test_fault_22_unauthorised_is_decided_by_the_status(says: str) -> None:
    async def fails(arguments: Mapping[str, Any]) -> mcp_types.CallToolResult:
        raise mcp_types_error(says)

    server = McpServer()
    server.tool("fails", fails)
    server.tool("look")
    async with server.running(), connect_mcp("eye", server.url) as connection:
        with pytest.raises(McpError) as caught:
            await connection.call_tool("fails", {})
        assert not isinstance(caught.value, McpUnauthorized)
        for status, kind in ((403, McpError), (500, McpError), (429, McpError)):
            server.statuses.append(("tools/call", status))
            with pytest.raises(kind, match=str(status)) as caught:
                await connection.call_tool("look", {})
            assert not isinstance(caught.value, McpUnauthorized)
        server.statuses.append(("tools/call", 401))
        with pytest.raises(McpUnauthorized):
            await connection.call_tool("look", {})
        assert not (await connection.call_tool("look", {})).is_error, "it goes on after all that"


def mcp_types_error(message: str) -> Exception:
    from mcp.shared.exceptions import MCPError

    data = {"seal": "x", "kind": "unauthorized", "status": 401}
    return MCPError(code=-32_000, message=message, data=data)


@pytest.mark.parametrize("token", [RuntimeError("vault: s3cret"), "s3cret\r\nx: y", "s3cret\u00e9"])
async def test_headers_that_cannot_be_sent_fail_one_request_and_are_not_told(
    token: str | Exception,
) -> None:
    now: str | Exception = "t"

    def vault() -> str:
        if isinstance(now, Exception):
            raise now
        return now

    server = McpServer()
    server.tool("look")
    async with (
        server.running(),
        connect_mcp("eye", server.url, auth=bearer(vault)) as connection,
    ):
        now = token
        with pytest.raises(McpError, match="no headers to authorise it") as caught:
            await connection.call_tool("look", {})
        assert "s3cret" not in str(caught.value)
        now = "t"
        await connection.call_tool("look", {})


async def test_a_token_goes_to_no_other_server() -> None:
    server, other = McpServer(), McpServer()
    server.tool("look")
    async with (
        server.running(),
        other.running(),
        connect_mcp("eye", server.url, auth=bearer("s3cret")) as connection,
    ):
        for status in (307, 308, 302):
            server.statuses.append(("tools/call", status))
            server.location = other.url
            with pytest.raises(McpError, match="[Rr]edirect"):
                await connection.call_tool("look", {})
        assert other.requests == []
        server.statuses.append(("tools/call", 307))
        server.location = server.url
        assert not (await connection.call_tool("look", {})).is_error, "within a server it may"
        assert server.requests[-1][1]["authorization"] == "Bearer s3cret"


async def test_an_answer_that_is_too_large_is_not_read_to_its_end() -> None:
    async def much(arguments: Mapping[str, Any]) -> mcp_types.CallToolResult:
        return text("x" * 100_000)

    server = McpServer()
    server.tool("much", much)
    server.tool("look")
    config = McpClientConfig(most_answer_bytes=50_000)
    async with server.running(), connect_mcp("eye", server.url, config=config) as connection:
        with pytest.raises(McpError, match="50000 bytes"):
            await connection.call_tool("much", {})
        await connection.call_tool("look", {})


async def test_fault_22_a_wrong_token_at_the_start_leaves_nothing_open() -> None:
    server = McpServer(token="right")
    async with server.running():
        with pytest.raises(McpUnauthorized):
            async with connect_mcp("eye", server.url, auth=bearer("wrong")):
                pytest.fail("it must not open")
        await until(lambda: server.connections == 0)


@pytest.mark.parametrize(
    ("method", "legacy"),
    [
        ("server/discover", False),
        ("initialize", True),
        ("tools/list", False),
        ("tools/call", False),
        ("tools/call", True),
    ],
)
async def test_fault_22_a_server_that_hangs_costs_only_so_long(method: str, legacy: bool) -> None:
    server = McpServer(legacy=legacy)
    server.tool("look")
    server.hanging.add(method)
    async with server.running():
        started = asyncio.get_running_loop().time()
        with pytest.raises(McpError, match=r"within 0\.2 s"):
            async with connect_mcp("eye", server.url, config=QUICK) as connection:
                await connection.list_tools()
                await connection.call_tool("look", {})
        assert asyncio.get_running_loop().time() - started < LONG_S
        await until(lambda: server.connections == 0)


async def test_a_server_that_never_says_goodbye_is_left_all_the_same() -> None:
    server = McpServer(legacy=True)
    server.hanging.add("DELETE")
    async with server.running():
        started = asyncio.get_running_loop().time()
        async with connect_mcp(
            "eye", server.url, config=McpClientConfig(close_timeout_s=0.1)
        ) as connection:
            await connection.list_tools()
            await connection.aclose()
            await connection.aclose()
            with pytest.raises(McpError, match="closed"):
                await connection.list_tools()
        assert asyncio.get_running_loop().time() - started < LONG_S


@both
async def test_a_cancelled_call_is_cancelled_at_the_server(legacy: bool) -> None:
    begun = asyncio.Event()

    async def slow(arguments: Mapping[str, Any]) -> mcp_types.CallToolResult:
        begun.set()
        await asyncio.sleep(60)
        return text("too late")

    server = McpServer(legacy=legacy)
    server.tool("slow", slow)
    server.tool("look")
    async with server.running(), connect_mcp("eye", server.url) as connection:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(connection.call_tool("slow", {}))
            await begun.wait()
            task.cancel()
        await until(lambda: server.cancelled == ["slow"])
        assert not (await connection.call_tool("look", {})).is_error


@both
async def test_fault_22_a_server_killed_in_a_call_is_an_error_and_no_second_call(
    legacy: bool,
) -> None:
    runs = 0
    begun = asyncio.Event()

    async def slow(arguments: Mapping[str, Any]) -> mcp_types.CallToolResult:
        nonlocal runs
        runs += 1
        begun.set()
        if runs > 1:
            return text("again")
        await asyncio.sleep(60)
        return text("too late")

    server = McpServer(legacy=legacy)
    server.tool("slow", slow)
    async with (
        server.running(),
        connect_mcp("eye", server.url) as connection,
        asyncio.TaskGroup() as group,
    ):

        async def dies() -> None:
            await begun.wait()
            server.kill()

        group.create_task(dies())
        with pytest.raises(McpError, match="eye"):
            await connection.call_tool("slow", {})
        with pytest.raises(McpError, match="not reached"):
            await connection.call_tool("slow", {})
        await server.start()
        assert runs == 1
        given = await connection.call_tool("slow", {})
        assert given.content[0]["text"] == "again"


async def test_a_connection_that_breaks_before_an_answer_costs_one_request() -> None:
    server = McpServer()
    server.tool("look")
    server.hanging.add("tools/call")
    async with (
        server.running(),
        connect_mcp("eye", server.url) as connection,
        asyncio.TaskGroup() as group,
    ):

        async def dies() -> None:
            await until(lambda: "tools/call" in server.methods)
            server.kill()

        group.create_task(dies())
        with pytest.raises(McpError, match="the connection broke"):
            await connection.call_tool("look", {})
        server.hanging.clear()
        await server.start()
        assert not (await connection.call_tool("look", {})).is_error


@both
async def test_answers_of_calls_at_the_same_time_are_not_mixed_up(legacy: bool) -> None:
    dice = random.Random(22)

    async def echo(arguments: Mapping[str, Any]) -> mcp_types.CallToolResult:
        await asyncio.sleep(arguments["after_s"])
        return text(arguments["word"])

    server = McpServer(legacy=legacy)
    server.tool("echo", echo)
    outcomes: dict[int, str] = {}

    async with server.running(), connect_mcp("eye", server.url) as connection:

        async def ask(at: int, after_s: float, patience_s: float) -> None:
            try:
                async with asyncio.timeout(patience_s):
                    given = await connection.call_tool(
                        "echo", {"word": f"w{at}", "after_s": after_s}
                    )
            except TimeoutError:
                outcomes[at] = "gone"
            else:
                outcomes[at] = str(given.content[0]["text"])

        async with asyncio.TaskGroup() as group:
            for at in range(40):
                patient = at % 2 == 0
                group.create_task(ask(at, dice.uniform(0, 0.2), 30 if patient else 0.05))
        assert {at: outcomes[at] for at in range(0, 40, 2)} == {
            at: f"w{at}" for at in range(0, 40, 2)
        }
        assert all(outcomes[at] in ("gone", f"w{at}") for at in range(1, 40, 2))
        assert "gone" in outcomes.values()


@both
async def test_a_server_that_was_started_anew_is_used_in_another_session(legacy: bool) -> None:
    server = McpServer(legacy=legacy)
    server.tool("look")
    async with server.running(), connect_mcp("eye", server.url) as connection:
        await connection.call_tool("look", {})
        server.kill()
        await server.start()
        given = await asyncio.gather(*(connection.call_tool("look", {}) for _ in range(5)))
        assert all(not one.is_error for one in given)
    assert server.methods.count("initialize") == (2 if legacy else 0), "one session for all five"


async def test_connections_open_use_and_close_in_different_tasks() -> None:
    server = McpServer(legacy=True)
    server.tool("look")
    entry = McpCatalogueEntry(id="eye", name="Eye", description="", url="http://later")
    async with server.running():
        entry = McpCatalogueEntry(id="eye", name="Eye", description="", url=server.url)
        async with McpConnections().running() as connections, asyncio.TaskGroup() as group:
            connection = await group.create_task(connections.connect(entry))
            await group.create_task(connection.call_tool("look", {}))
            await group.create_task(connection.aclose())
            left_open = await group.create_task(connections.connect(entry))
            assert left_open.namespace == "eye"
        await until(lambda: server.connections == 0)


async def test_connections_need_their_block() -> None:
    connections = McpConnections()
    entry = McpCatalogueEntry(id="eye", name="Eye", description="", url="http://127.0.0.1:9")
    with pytest.raises(UsageError, match="running"):
        await connections.connect(entry)
    async with connections.running():
        with pytest.raises(UsageError, match="running already"):
            async with connections.running():
                pytest.fail("it must not run twice")
        with pytest.raises(McpError, match="not reached"):
            await connections.connect(entry)
    with pytest.raises(ZeroDivisionError):
        async with connections.running():
            raise ZeroDivisionError


async def test_closing_ends_calls_that_wait() -> None:
    server = McpServer()
    server.tool("look")
    server.hanging.add("tools/call")
    async with server.running(), connect_mcp("eye", server.url) as connection:

        async def close_soon() -> None:
            await until(lambda: "tools/call" in server.methods)
            await connection.aclose()

        async with asyncio.TaskGroup() as group:
            group.create_task(close_soon())
            with pytest.raises(McpError, match="was closed"):
                await connection.call_tool("look", {})


def test_the_sdk_is_loaded_with_the_first_connection() -> None:
    code = (
        "import sys, voxglove.adapters.mcp.client, voxglove.adapters.mcp.auth, voxglove.core.mcp\n"
        "sys.exit(', '.join({'mcp', 'httpx2', 'starlette'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


async def test_without_the_sdk_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "voxglove.adapters.mcp.sdk_session", None)
    monkeypatch.delattr("voxglove.adapters.mcp.sdk_session", raising=False)
    async with McpConnections().running() as connections:
        with pytest.raises(McpError, match="pip install"):
            await connections.open("eye", "http://127.0.0.1:9", bearer("x"))


@pytest.mark.parametrize(
    "wrong",
    [{"call_timeout_s": 0}, {"most_answer_bytes": -1}, {"client_name": ""}],
)
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        McpClientConfig(**wrong)
