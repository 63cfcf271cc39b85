"""The blocks of docs/mcp.md run as they stand, against a real server."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.core.support import ScriptedModel, call, make_agent, results
from tests.simulators.mcp_oauth import OAuthProvider, browse
from tests.simulators.mcp_server import McpServer
from voxglove.adapters.mcp import oauth

pytestmark = pytest.mark.real_loop

PAGE = Path(__file__).parents[3] / "docs" / "mcp.md"
MOUNT, BY_HAND, AUTHORISE = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
ADDRESS = "https://mcp.notion.com/mcp"


async def run(block: str, address: str, /, **names: Any) -> dict[str, Any]:
    """Run a block that may await, with the server's address in place of the page's."""
    code = compile(
        block.replace(ADDRESS, address), "mcp.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    outcome = eval(code, names)
    if inspect.isawaitable(outcome):
        await outcome
    return names


async def test_mounting() -> None:
    server = McpServer(token="t0")
    server.tool("search", read_only=True)
    agent = make_agent(ScriptedModel(call(("notion__search", {})), "done"))
    async with server.running():
        await run(MOUNT, server.url, agent=agent, token="t0")
    (found,) = (await results(agent)).values()
    assert found.result.data == "search did it"
    assert agent.tools == ()


async def test_by_hand() -> None:
    server = McpServer(token="t0")
    server.tool("search")
    agent = make_agent(ScriptedModel())
    async with server.running():
        await run(BY_HAND, server.url, agent=agent, url=server.url, current_token=lambda: "t0")
    assert [tool.name for tool in agent.tools] == ["notion__search"]


async def test_authorising(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth, "open_in_browser", browse)
    server, provider = McpServer(), OAuthProvider()
    provider.guard(server)
    async with server.running():
        bearer = (await run(BY_HAND.splitlines()[0], server.url))["bearer"]
        names = await run(AUTHORISE, server.url, folder=tmp_path, bearer=bearer)
        assert await names["auth"]() == {"Authorization": "Bearer access-code1"}
