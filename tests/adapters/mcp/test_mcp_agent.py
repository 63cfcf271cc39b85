"""A whole agent and real servers: found, opened and used within one conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types
import pytest

from tests.core.support import ScriptedModel, call, make_agent, results
from tests.simulators.mcp_server import McpServer, text
from voxglove.adapters.mcp.client import McpConnections
from voxglove.core.mcp import McpCatalogueEntry, MemoryMcpAdapter, mount_mcp

pytestmark = pytest.mark.real_loop


def entry(entry_id: str, server: McpServer, description: str) -> McpCatalogueEntry:
    return McpCatalogueEntry(
        id=entry_id, name=entry_id.title(), description=description, url=server.url
    )


async def test_core_row_089_an_agent_finds_opens_and_uses_a_server() -> None:
    async def send(arguments: Mapping[str, Any]) -> mcp_types.CallToolResult:
        return mcp_types.CallToolResult(
            content=[text(f"sent to {arguments['to']}").content[0]],
            structured_content={"id": 7},
        )

    server, other = McpServer(token="t0"), McpServer()
    shape = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    server.tool("send mail!", send, output=shape)
    adapter = MemoryMcpAdapter(["notes"], {"mail": "t0"})
    async with other.running(), server.running(), McpConnections().running() as connections:
        child = ScriptedModel(
            call(("list_capabilities", {"query": "send mail"})),
            call(("activate", {"id": "mail"})),
            "Mail is active.",
        )
        model = ScriptedModel(call(("find_capability", {"need": "send mail"})))
        agent = make_agent(model, server_mode=True)
        mcp = await mount_mcp(
            agent,
            adapter=adapter,
            entries=[entry("mail", server, "Sends mail"), entry("notes", other, "Keeps notes")],
            connect=connections.connect,
            subagent_model=child,
        )

        def found() -> str:
            return next(tool.name for tool in agent.tools if tool.name.startswith("mail__"))

        async def use(request: Any, notify: Any, token: Any) -> Any:
            (spec,) = [tool for tool in request.tools if tool.name.startswith("mail__")]
            assert spec.name.startswith("mail__send_mail_")
            assert spec.description.endswith("Returns: {id: integer}")
            return await call((spec.name, {"to": "ann"}))(request, notify, token)

        model.then(use, "It is sent.")
        assert (await agent.process_request("mail ann")).text == "It is sent."
        assert list(await adapter.get_active()) == ["notes", "mail"]
        sent = list((await results(agent)).values())[-1].result
        assert sent.data == '{"id":7}'
        assert sent.render_data == [{"type": "text", "text": "sent to ann"}]

        # The token expires, the host refreshes it, the next call goes through (row 87).
        server.token = "t1"
        model.then(call((found(), {"to": "bob"})), "sign in again")
        await agent.process_request("and bob")
        assert list((await results(agent)).values())[-1].result.message == "auth_expired"
        adapter.tokens["mail"] = "t1"
        model.then(call((found(), {"to": "bob"})), "sent")
        await agent.process_request("done, go on")
        assert list((await results(agent)).values())[-1].result.status == "success"

        await mcp.aclose()
        assert [tool.name for tool in agent.tools] == []


async def test_core_row_088_a_dead_server_beside_a_real_one() -> None:
    alive, dead = McpServer(legacy=True), McpServer()
    alive.tool("look")
    async with dead.running():
        gone = entry("dead", dead, "is dead")
    async with alive.running(), McpConnections().running() as connections:
        agent = make_agent(ScriptedModel(call(("alive__look", {})), "seen"), server_mode=True)
        mcp = await mount_mcp(
            agent,
            adapter=MemoryMcpAdapter(["dead", "alive"]),
            entries=[gone, entry("alive", alive, "is alive")],
            connect=connections.connect,
        )
        assert mcp.active == ("alive",)
        await agent.process_request("look")
        (seen,) = (await results(agent)).values()
        assert seen.result.data == "look did it"
    assert "DELETE" in alive.methods, "connections end with their block, closed mount or not"


async def test_core_row_087_401_of_a_real_server_is_auth_expired() -> None:
    server = McpServer(token="right")
    server.tool("look")
    adapter = MemoryMcpAdapter(["eye"], {"eye": "right"})
    async with server.running(), McpConnections().running() as connections:
        model = ScriptedModel(call(("eye__look", {})), "expired", call(("eye__look", {})), "seen")
        agent = make_agent(model, server_mode=True)
        await mount_mcp(
            agent,
            adapter=adapter,
            entries=[entry("eye", server, "looks")],
            connect=connections.connect,
        )
        adapter.tokens["eye"] = "wrong"
        await agent.process_request("look")
        adapter.tokens["eye"] = "right"
        await agent.process_request("again")
    first, second = (one.result for one in (await results(agent)).values())
    assert (first.status, first.message, first.data) == ("error", "auth_expired", None)
    assert second.data == "look did it"
