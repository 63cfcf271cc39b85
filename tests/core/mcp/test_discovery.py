"""Discovery: both ways in, three policies, and what it changes at its agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.core.mcp.servers_rig import FakeServer, World, entry, info
from tests.core.support import Recorder, ScriptedModel, call, make_agent, results, say
from voxglove.core import Agent, DisplayStack, ModelRequest, Slot
from voxglove.core.display import DisplayChange
from voxglove.core.mcp import (
    AmbiguityPolicy,
    McpMount,
    McpUnauthorized,
    MemoryMcpAdapter,
    mount_mcp,
)

ENTRIES = [entry("gmail", "Send mail", "mail"), entry("outlook", "Send mail and plan", "mail")]
BY_ALIAS = call(("find_capability", {"need": "send a mail"}))
BY_NAME = call(("glove_invoke_subagent", {"name": "discovermcp", "prompt": "send a mail"}))
ways = pytest.mark.parametrize("way", [BY_ALIAS, BY_NAME], ids=["find_capability", "discovermcp"])


def world() -> World:
    return World(
        gmail=FakeServer(tools=[info("send"), info("read", read_only=True)]),
        outlook=FakeServer(tools=[info("send")]),
    )


async def discovering(
    child: ScriptedModel,
    *steps: Any,
    servers: World | None = None,
    display: DisplayStack | None = None,
    adapter: MemoryMcpAdapter | None = None,
    policy: AmbiguityPolicy | None = None,
    **config: Any,
) -> tuple[Agent, ScriptedModel, McpMount]:
    model = ScriptedModel(*steps)
    agent = make_agent(model, display=display, **config)
    mcp = await mount_mcp(
        agent,
        adapter=adapter or MemoryMcpAdapter(),
        entries=ENTRIES,
        connect=(servers or world()).connect,
        subagent_model=child,
        ambiguity_policy=policy,
    )
    return agent, model, mcp


def offered(request: ModelRequest) -> list[str]:
    return [tool.name for tool in request.tools]


async def child_results(model: ScriptedModel) -> list[Any]:
    return [one.result for message in model.requests[-1].messages for one in message.tool_results]


@ways
async def test_core_row_089_what_is_activated_is_offered_by_the_next_model_call(way: Any) -> None:
    adapter, servers = MemoryMcpAdapter(), world()
    child = ScriptedModel(
        call(("list_capabilities", {"query": "mail"})),
        call(("activate", {"id": "gmail"})),
        "Gmail is active: use gmail__send.",
    )
    agent, model, mcp = await discovering(
        child,
        way,
        call(("gmail__send", {"q": "hi"})),
        "sent",
        adapter=adapter,
        servers=servers,
        server_mode=True,
    )
    answer = await agent.process_request("mail them")
    assert answer.text == "sent"
    assert "gmail__send" not in offered(model.requests[0])
    assert "gmail__send" in offered(model.requests[1]), "of the same request"
    assert servers.servers["gmail"].calls == [("send", {"q": "hi"})]
    assert list(await adapter.get_active()) == ["gmail"]
    assert mcp.active == ("gmail",)
    told = list((await results(agent)).values())[0].result
    assert told.status == "success"
    assert "Gmail is active" in str(told.data)
    assert [tool.name for tool in child.requests[0].tools] == [
        "list_capabilities",
        "activate",
        "deactivate",
    ]


@ways
async def test_core_row_089_both_ways_are_the_same_sub_agent(way: Any) -> None:
    child = ScriptedModel("nothing fits")
    agent, _, _ = await discovering(child, say("earlier talk"), way, "well")
    heard = Recorder()
    agent.add_subscriber(heard)
    await agent.process_request("a secret")
    await agent.process_request("find something")
    assert heard.wires.count("subagent_invoked") == heard.wires.count("subagent_completed") == 1
    (invoked,) = heard.of("subagent_invoked")
    assert (invoked.name, invoked.prompt) == ("discovermcp", "send a mail")
    (asked,) = child.requests
    assert [message.text for message in asked.messages] == ["send a mail"], "a history of its own"


async def test_core_row_089_it_lists_what_there_is() -> None:
    adapter = MemoryMcpAdapter(["outlook"])
    child = ScriptedModel(
        call(("list_capabilities", {}), ("list_capabilities", {"query": "plan", "tags": ["mail"]})),
        "done",
    )
    agent, _, _ = await discovering(child, BY_ALIAS, "ok", adapter=adapter)
    await agent.process_request("go")
    every, some = [one.data for one in await child_results(child)]
    assert [(one["id"], one["active"]) for one in every["capabilities"]] == [
        ("gmail", False),
        ("outlook", True),
    ]
    assert (every["shown"], every["of"]) == (2, 2)
    assert [one["id"] for one in some["capabilities"]] == ["outlook"]


async def test_core_row_089_failures_are_told_to_discovery() -> None:
    servers = world()
    servers.servers["gmail"].down = McpUnauthorized("gmail: 401")
    adapter = MemoryMcpAdapter()
    child = ScriptedModel(
        call(("activate", {"id": "gmail"}), ("activate", {"id": "x"}), ("deactivate", {"id": "x"})),
        "failed",
    )
    agent, _, mcp = await discovering(child, BY_ALIAS, "ok", servers=servers, adapter=adapter)
    await agent.process_request("go")
    told = [one.message for one in await child_results(child)]
    assert told[0] == "auth_expired"
    assert "gmail, outlook" in told[1]
    assert "gmail, outlook" in told[2]
    assert mcp.active == ()
    assert list(await adapter.get_active()) == [], "what cannot be opened is not remembered"


async def test_core_row_089_deactivating_is_remembered_and_unloads_nothing() -> None:
    adapter = MemoryMcpAdapter(["gmail"])
    child = ScriptedModel(call(("deactivate", {"id": "gmail"})), "off")
    agent, _, _ = await discovering(child, BY_ALIAS, "ok", adapter=adapter)
    await agent.process_request("no more mail")
    assert list(await adapter.get_active()) == []
    assert "gmail__send" in [tool.name for tool in agent.tools]


async def test_an_activation_that_is_not_remembered_works_all_the_same() -> None:
    class Forgetful(MemoryMcpAdapter):
        async def activate(self, entry_id: str) -> None:
            raise OSError("read only")

    child = ScriptedModel(call(("activate", {"id": "gmail"})), "on")
    agent, _, mcp = await discovering(child, BY_ALIAS, "ok", adapter=Forgetful())
    await agent.process_request("go")
    (told,) = await child_results(child)
    assert told.status == "success"
    assert "resumed" in told.data["note"]
    assert mcp.active == ("gmail",)


def pick(value: object) -> tuple[DisplayStack, list[Slot]]:
    """A display whose person chooses `value` at once, or goes away when it is None; what he saw."""
    display = DisplayStack()
    seen: list[Slot] = []

    def answer(change: DisplayChange) -> None:
        if change.kind == "pushed":
            seen.append(change.slot)
            if value is None:
                display.remove_slot(change.slot.id)
            else:
                display.resolve(change.slot.id, value)

    display.subscribe(answer)
    return display, seen


QUESTION = call(("ask_user", {"question": "Which?", "options": ["gmail", "outlook"]}))


@pytest.mark.parametrize(
    ("value", "told"), [("outlook", "chose outlook"), (None, "before it was answered")]
)
async def test_core_row_089_interactive_asks_on_the_parents_display(
    value: object, told: str
) -> None:
    display, seen = pick(value)
    child = ScriptedModel(QUESTION, "as they like")
    agent, _, _ = await discovering(child, BY_ALIAS, "ok", display=display)
    await agent.process_request("mail them")
    (asked,) = seen
    assert asked.renderer == "mcp_picker"
    shown: Any = asked.input
    assert shown["question"] == "Which?"
    assert [option["value"] for option in shown["options"]] == ["gmail", "outlook"]
    (given,) = await child_results(child)
    assert told in given.data
    assert display.pending == 0


async def test_core_row_089_a_question_nobody_would_see_is_not_asked() -> None:
    child = ScriptedModel(QUESTION, "then gmail")
    agent, _, _ = await discovering(child, BY_ALIAS, "ok")
    await agent.process_request("mail them")
    (given,) = await child_results(child)
    assert given.status == "error"
    assert agent.display.stack == ()


async def test_core_row_089_one_option_is_no_question() -> None:
    child = ScriptedModel(call(("ask_user", {"question": "Which?", "options": ["gmail"]})), "ok")
    agent, _, _ = await discovering(child, BY_ALIAS, "ok", display=pick("gmail")[0])
    await agent.process_request("mail them")
    (given,) = await child_results(child)
    assert given.message == "TOOL_INPUT_INVALID"


@pytest.mark.parametrize(
    ("policy", "server_mode", "asks", "prompt"),
    [
        ("interactive", False, True, "ask_user"),
        ("interactive", True, True, "ask_user"),
        ("auto-pick-best", False, False, "Ask nobody"),
        ("defer-to-main", False, False, "ask the user and come back"),
    ],
)
async def test_core_row_089_three_policies(
    policy: AmbiguityPolicy, server_mode: bool, asks: bool, prompt: str
) -> None:
    await assert_policy(policy, server_mode, asks, prompt)


@pytest.mark.parametrize(
    ("server_mode", "asks", "prompt"), [(False, True, "ask_user"), (True, False, "Ask nobody")]
)
async def test_core_row_091_the_default_policy_follows_server_mode(
    server_mode: bool, asks: bool, prompt: str
) -> None:
    await assert_policy(None, server_mode, asks, prompt)


async def assert_policy(
    policy: AmbiguityPolicy | None, server_mode: bool, asks: bool, prompt: str
) -> None:
    child = ScriptedModel("nothing")
    agent, _, _ = await discovering(child, BY_ALIAS, "ok", policy=policy, server_mode=server_mode)
    await agent.process_request("go")
    (request,) = child.requests
    assert ("ask_user" in offered(request)) == asks
    assert prompt in request.system_prompt


@pytest.mark.parametrize("server_mode", [False, True])
async def test_core_row_091_discovered_tools_ask_unless_headless(server_mode: bool) -> None:
    child = ScriptedModel(call(("activate", {"id": "gmail"})), "on")
    agent, _, _ = await discovering(child, BY_ALIAS, "ok", server_mode=server_mode)
    await agent.process_request("go")
    gates = {tool.name: tool.requires_permission for tool in agent.tools}
    assert gates["gmail__send"] is not server_mode
    assert gates["gmail__read"] is False
    assert agent.config.permission_policy == ("deny" if server_mode else "display")


async def test_discovery_uses_the_agents_own_model_and_prompt_of_the_host() -> None:
    model = ScriptedModel(BY_ALIAS, "child answers", "agent answers")
    agent = make_agent(model)
    await mount_mcp(
        agent,
        adapter=MemoryMcpAdapter(),
        entries=ENTRIES,
        connect=world().connect,
        subagent_system_prompt="You find things.",
    )
    assert (await agent.process_request("go")).text == "agent answers"
    prompts: Sequence[str] = [request.system_prompt for request in model.requests]
    assert prompts == ["You are a test.", "You find things.", "You are a test."]


async def test_a_closed_mount_leaves_other_sub_agents() -> None:
    child = ScriptedModel("other")
    agent, _, mcp = await discovering(ScriptedModel(), BY_NAME, "ok")
    agent.define_sub_agent("other", lambda context: make_agent(child), description="another")
    await mcp.aclose()
    (dispatch,) = agent.tools
    assert "discovermcp" not in dispatch.description
    assert "other" in dispatch.description
    await agent.process_request("go")
    (told,) = (await results(agent)).values()
    assert "There is no sub-agent 'discovermcp'" in str(told.result.message)


async def test_the_alias_says_so_when_the_dispatch_tool_was_taken_away() -> None:
    agent, _, _ = await discovering(ScriptedModel(), BY_ALIAS, "ok")
    agent.replace_tools(["glove_invoke_subagent"], [])
    await agent.process_request("go")
    (told,) = (await results(agent)).values()
    assert "glove_invoke_subagent is gone" in str(told.result.message)
