"""Mounting: what is opened at the start, what a dead server costs, and what is left afterwards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.core.mcp.servers_rig import FakeConnection, FakeServer, World, entry, info
from tests.core.support import ScriptedModel, call, make_agent, make_tool, results
from voxglove.core import Agent, AgentConfig, DuplicateToolError, Glove, Tool, UsageError
from voxglove.core.mcp import (
    McpError,
    McpMount,
    McpToolInfo,
    McpUnauthorized,
    MemoryMcpAdapter,
    mount_mcp,
)
from voxglove.core.mcp.servers import CLOSE_S

NOTION = entry("notion")
GMAIL = entry("gmail", exclude_tools=("purge",))
DISCOVERY = ["find_capability", "glove_invoke_subagent"]


def two() -> World:
    return World(
        notion=FakeServer(tools=[info("search", read_only=True), info("write")]),
        gmail=FakeServer(tools=[info("send"), info("purge")]),
    )


async def mounted(
    world: World, agent: Agent | Glove, active: Sequence[str] = ("notion", "gmail"), **options: Any
) -> McpMount:
    options.setdefault("adapter", MemoryMcpAdapter(active))
    options.setdefault("entries", [NOTION, GMAIL])
    return await mount_mcp(agent, connect=world.connect, **options)


def names(agent: Agent | Glove) -> list[str]:
    return [tool.name for tool in agent.tools if tool.name not in DISCOVERY]


async def test_core_row_088_active_servers_are_opened_at_the_start() -> None:
    world, agent = two(), make_agent(ScriptedModel("hello"))
    mcp = await mounted(world, agent)
    assert names(agent) == ["notion__search", "notion__write", "gmail__send"]
    assert mcp.active == ("notion", "gmail")
    await mcp.aclose()
    await mcp.aclose()
    assert agent.tools == ()
    assert world.still_open == {}
    with pytest.raises(McpError, match="mount again"):
        await mcp.activate("notion")


async def test_core_row_088_a_dead_server_is_logged_and_the_others_are_mounted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world, agent = two(), make_agent(ScriptedModel())
    world.servers["notion"].down = McpError("notion: not reached")
    with caplog.at_level(logging.WARNING):
        mcp = await mounted(world, agent, ["notion", "lost", "gmail"])
    assert names(agent) == ["gmail__send"]
    assert mcp.active == ("gmail",)
    told = {record.message: record.__dict__["server"] for record in caplog.records}
    assert told == {
        "mcp server was not mounted": "notion",
        "mcp server is not in the catalogue": "lost",
    }


@pytest.mark.parametrize("error", [McpUnauthorized("401"), RuntimeError("broken connector")])
async def test_core_row_088_nothing_is_raised_whatever_fails(error: Exception) -> None:
    world, agent = two(), make_agent(ScriptedModel())
    for server in world.servers.values():
        server.down = error
    assert (await mounted(world, agent)).active == ()
    assert sorted(tool.name for tool in agent.tools) == sorted(DISCOVERY)


async def test_core_row_088_a_host_that_cannot_say_what_is_active() -> None:
    class Broken(MemoryMcpAdapter):
        async def get_active(self) -> Sequence[str]:
            raise OSError("database is down")

    agent = make_agent(ScriptedModel())
    assert (await mounted(two(), agent, adapter=Broken())).active == ()


async def test_fault_22_servers_are_waited_for_together_and_only_so_long() -> None:
    world, agent = two(), make_agent(ScriptedModel())
    world.servers["notion"].delay_s = 3_600
    world.servers["gmail"].delay_s = 4
    loop = asyncio.get_running_loop()
    started = loop.time()
    await mounted(world, agent, timeout_s=5.0)
    assert loop.time() - started == pytest.approx(5.0)
    assert names(agent) == ["gmail__send"]


async def test_tools_stand_in_the_order_of_the_host_whoever_answers_first() -> None:
    world, agent = two(), make_agent(ScriptedModel())
    world.servers["notion"].delay_s = 3
    await mounted(world, agent)
    assert names(agent) == ["notion__search", "notion__write", "gmail__send"]


async def test_fault_06_activating_twice_replaces() -> None:
    world, agent = two(), make_agent(ScriptedModel())
    mcp = await mounted(world, agent)
    world.servers["notion"].tools = [info("search"), info("new")]
    assert await mcp.activate("notion") == ("notion__search", "notion__new")
    assert names(agent) == ["notion__search", "notion__new", "gmail__send"]
    assert world.servers["notion"].opened == 1, "the connection is used again"


async def test_fault_06_activating_at_the_same_time_opens_once() -> None:
    world, agent = two(), make_agent(ScriptedModel())
    world.servers["notion"].delay_s = 1
    mcp = await mounted(world, agent, [])
    await asyncio.gather(*(mcp.activate("notion") for _ in range(4)))
    assert names(agent) == ["notion__search", "notion__write"]
    assert world.servers["notion"].opened == 1
    await mcp.aclose()
    assert world.still_open == {}


async def test_fault_06_a_second_mount_is_refused_and_opens_nothing() -> None:
    world, agent = two(), make_agent(ScriptedModel())
    first = await mounted(world, agent)
    with pytest.raises(DuplicateToolError, match="mount"):
        await mounted(world, agent)
    assert world.servers["notion"].opened == 1
    await first.aclose()
    await mounted(world, agent)
    assert names(agent) == ["notion__search", "notion__write", "gmail__send"]


async def test_a_name_of_another_tool_is_not_taken() -> None:
    world = two()
    own = make_tool(lambda value: "mine", "notion__write")
    agent = make_agent(ScriptedModel(), own)
    mcp = await mounted(world, agent)
    assert mcp.active == ("gmail",)
    with pytest.raises(DuplicateToolError, match="notion__write"):
        await mcp.activate("notion")
    await mcp.aclose()
    assert agent.tools == (own,)
    assert world.still_open == {}


async def test_what_the_user_made_of_a_tool_stays_at_the_end() -> None:
    world, agent = two(), make_agent(ScriptedModel())
    mcp = await mounted(world, agent)
    own = make_tool(lambda value: "mine", "gmail__send")
    agent.replace_tools(["gmail__send"], [own])
    await mcp.aclose()
    assert agent.tools == (own,)


async def test_filtered_and_wrapped_tools() -> None:
    def careful(tool: Tool, told: McpToolInfo) -> Tool:
        return replace(tool, description=f"{tool.description} ({told.name})", timeout_s=5)

    agent = make_agent(ScriptedModel())
    await mounted(two(), agent, filter_tools=lambda told: told.name != "write", wrap_tool=careful)
    assert names(agent) == ["notion__search", "gmail__send"]
    assert agent.tools[0].description == "search it (search)"


async def test_a_wrap_that_fails_changes_nothing() -> None:
    def breaks(tool: Tool, told: McpToolInfo) -> Tool:
        if told.name == "write":
            raise ValueError("no")
        return tool

    world, agent = two(), make_agent(ScriptedModel())
    mcp = await mounted(world, agent, wrap_tool=breaks)
    assert names(agent) == ["gmail__send"]
    assert mcp.active == ("gmail",)
    await mcp.aclose()
    assert world.still_open == {}


async def test_a_mount_that_is_cancelled_leaves_nothing() -> None:
    world, agent = two(), make_agent(ScriptedModel())
    world.servers["gmail"].delay_s = 10
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await mounted(world, agent)
    assert agent.tools == ()
    assert world.still_open == {}


async def test_closing_while_a_server_opens_leaves_nothing() -> None:
    world, agent = two(), make_agent(ScriptedModel())
    mcp = await mounted(world, agent, [])
    world.servers["notion"].delay_s = 5
    async with asyncio.TaskGroup() as group:

        async def activate() -> None:
            with pytest.raises(McpError, match="closed"):
                await mcp.activate("notion")

        group.create_task(activate())
        await asyncio.sleep(1)
        await mcp.aclose()
    assert agent.tools == ()
    assert world.still_open == {}


async def test_fault_22_a_connection_that_does_not_close_is_left() -> None:
    world, agent = two(), make_agent(ScriptedModel())

    class Stubborn(FakeConnection):
        async def aclose(self) -> None:
            await asyncio.Event().wait()

    server = world.servers["notion"]

    async def connect(wanted: Any, auth: Any, /) -> Any:
        return Stubborn(wanted.id, server, auth)

    loop = asyncio.get_running_loop()
    mcp = await mount_mcp(
        agent, adapter=MemoryMcpAdapter(["notion"]), entries=[NOTION], connect=connect
    )
    started = loop.time()
    async with mcp:
        assert mcp.active == ("notion",)
    assert loop.time() - started == pytest.approx(CLOSE_S)
    assert agent.tools == ()


async def test_core_row_087_the_adapter_is_asked_for_its_token_before_each_request() -> None:
    world, adapter = two(), MemoryMcpAdapter(["notion"], {"notion": "old"})
    model = ScriptedModel(call(("notion__search", {})), "a", call(("notion__search", {})), "b")
    agent = make_agent(model, server_mode=True)
    await mounted(world, agent, adapter=adapter)
    await agent.process_request("go")
    adapter.tokens["notion"] = "new"
    await agent.process_request("again")
    sent = [one["Authorization"] for one in world.servers["notion"].headers]
    assert sent == ["Bearer old", "Bearer old", "Bearer new"]


async def test_headers_of_the_adapter_win_over_its_token() -> None:
    class Signed(MemoryMcpAdapter):
        async def get_auth_headers(self, entry_id: str) -> Mapping[str, str]:
            return {"X-Signature": entry_id}

    world, agent = two(), make_agent(ScriptedModel())
    await mounted(world, agent, adapter=Signed(["notion"], {"notion": "unused"}))
    assert world.servers["notion"].headers == [{"X-Signature": "notion"}]
    none = two()
    await mounted(none, make_agent(ScriptedModel()), ["notion"])
    assert none.servers["notion"].headers == [{}], "no token, no header"


async def test_a_builder_can_be_mounted_before_it_builds() -> None:
    glove = Glove(
        model=ScriptedModel(call(("notion__write", {})), "done"),
        config=AgentConfig(server_mode=True, builtin_tools=()),
    )
    await mounted(two(), glove)
    agent = glove.build()
    await agent.process_request("go")
    (result,) = (await results(agent)).values()
    assert result.result.data == "write done", "headless: nobody is asked"


async def test_core_row_086_a_writing_tool_asks_for_permission_by_default() -> None:
    agent = make_agent(ScriptedModel(call(("notion__write", {})), "well"), permissions="deny")
    world = two()
    await mounted(world, agent)
    await agent.process_request("go")
    (result,) = (await results(agent)).values()
    assert "Permission denied" in str(result.result.message)
    assert world.servers["notion"].calls == []


async def test_arguments_of_a_mount_are_checked() -> None:
    agent = make_agent(ScriptedModel())
    with pytest.raises(UsageError, match="ambiguity_policy"):
        await mounted(two(), agent, ambiguity_policy="guess")
    with pytest.raises(UsageError, match="timeout_s"):
        await mounted(two(), agent, timeout_s=0)
    assert agent.tools == ()
