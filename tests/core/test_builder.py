"""The builder and what can be changed on a built agent (spec core 1, rows 1-12)."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from tests.core.support import (
    NO_INPUT,
    Recorder,
    ScriptedModel,
    call,
    make_agent,
    make_tool,
    results,
    stored,
)
from voxglove.core import (
    Agent,
    AgentConfig,
    DisplayStack,
    DuplicateToolError,
    Glove,
    MemoryStore,
    NotBuiltError,
    SubscriberEvent,
    Tool,
    ToolContext,
    ToolResultData,
    UsageError,
    tool,
)


class Add(BaseModel):
    """Two numbers."""

    a: int
    b: int = Field(default=2)


def names(request_tools: object) -> list[str]:
    return [spec.name for spec in request_tools]  # type: ignore[attr-defined]


@pytest.mark.parametrize("schemas", [{}, {"input_model": Add, "json_schema": NO_INPUT}])
def test_core_row_001_fold_needs_exactly_one_schema(schemas: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="exactly one of input_model"):
        Tool(name="x", description="x", do=lambda value: value, **schemas)  # type: ignore[arg-type]


async def test_core_row_002_tool_folded_by_a_tool_is_offered_next() -> None:
    late = make_tool(lambda value: "late", "late")

    async def folder(value: object, ctx: ToolContext) -> str:
        ctx.agent.fold(late)
        return "folded"

    model = ScriptedModel(call(("folder", {})), "done")
    await make_agent(model, make_tool(folder, "folder")).process_request("go")
    assert names(model.requests[0].tools) == ["folder"]
    assert names(model.requests[1].tools) == ["folder", "late"]


async def test_core_row_003_tool_gets_input_display_agent_token() -> None:
    got: list[object] = []

    async def do(input: object, display: object, agent: object, token: object) -> str:
        got.extend((input, display, agent, token))
        return "ok"

    agent = make_agent(ScriptedModel(call(("act", {"x": 1})), "done"), make_tool(do))
    await agent.process_request("go")
    assert got[0] == {"x": 1}
    assert got[1].stack == agent.display.stack  # type: ignore[attr-defined]
    assert got[2] is agent
    assert got[3].aborted is False  # type: ignore[attr-defined]


async def test_core_row_004_input_is_validated_and_defaults_applied() -> None:
    seen: list[Add] = []

    def add(value: Add) -> int:
        seen.append(value)
        return value.a + value.b

    model = ScriptedModel(
        call(("add", {"a": "no"})), call(("add", "{broken")), call(("add", {"a": 3})), "done"
    )
    agent = make_agent(model, make_tool(add, "add", input_model=Add))
    await agent.process_request("go")
    first, second, third = (await results(agent)).values()
    assert first.result.message == second.result.message == "TOOL_INPUT_INVALID"
    assert "a: " in str(first.result.data)
    assert seen == [Add(a=3, b=2)]
    assert third.result == ToolResultData("success", 5)


async def test_core_row_005_json_schema_is_passed_verbatim() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "x-own": True}
    got: list[object] = []
    model = ScriptedModel(call(("act", {"n": "not a number"})), "done")
    agent = make_agent(model, make_tool(lambda value: got.append(value), json_schema=schema))
    await agent.process_request("go")
    assert model.requests[0].tools[0].parameters is schema
    assert got == [{"n": "not a number"}]


@pytest.mark.parametrize(
    ("returned", "stored_as"),
    [
        ("x", ToolResultData("success", "x")),
        (None, ToolResultData("success", None)),
        ({"status": "open"}, ToolResultData("success", {"status": "open"})),
        ({"status": "error", "data": 1, "message": "m"}, ToolResultData("error", 1, "m")),
        (ToolResultData("error", None, "no"), ToolResultData("error", None, "no")),
    ],
)
async def test_core_row_006_plain_returns_are_wrapped(
    returned: object, stored_as: ToolResultData
) -> None:
    agent = make_agent(ScriptedModel(call(("act", {})), "done"), make_tool(lambda value: returned))
    await agent.process_request("go")
    (result,) = (await results(agent)).values()
    assert result.result == stored_as


async def test_core_row_007_request_before_build_is_an_error() -> None:
    glove = Glove(model=ScriptedModel("hello"))
    with pytest.raises(NotBuiltError, match="build"):
        await glove.process_request("hi")
    glove.build()
    assert (await glove.process_request("hi")).text == "hello"


async def test_core_row_008_build_with_store_keeps_tools_and_subscribers() -> None:
    store, recorder = MemoryStore("mine"), Recorder()
    glove = Glove(model=ScriptedModel(call(("act", {})), "done"))
    glove.fold(make_tool(lambda value: "ok")).add_subscriber(recorder)
    agent = glove.build(store)
    await agent.process_request("go")
    assert agent.store is store
    assert (await results(agent))["c1_0"].result.data == "ok"
    assert "tool_use_result" in recorder.wires


async def test_core_row_009_default_memory_store() -> None:
    agent = make_agent(ScriptedModel("hello"))
    await agent.process_request("hi")
    assert [message.text for message in await stored(agent)] == ["hi", "hello"]


async def test_core_row_010_model_and_prompt_swaps_wait_for_the_next_call() -> None:
    other = ScriptedModel("from the other", name="other")

    async def swap(value: object, ctx: ToolContext) -> str:
        ctx.agent.set_model(other)
        ctx.agent.set_system_prompt("Be brief.")
        return "swapped"

    first = ScriptedModel(call(("swap", {})))
    agent = make_agent(first, make_tool(swap, "swap"), system_prompt="Be long.")
    result = await agent.process_request("go")
    assert result.text == "from the other"
    assert (first.prompts, other.prompts) == (["Be long."], ["Be brief."])
    assert other.requests[0].system_prompt == "Be brief."


async def test_core_row_011_tools_are_readable_in_order() -> None:
    agent = make_agent(ScriptedModel(), *(make_tool(print, name) for name in ("b", "a", "c")))
    assert [one.name for one in agent.tools] == ["b", "a", "c"]


async def test_core_row_012_replace_tools_is_atomic_and_keeps_the_place() -> None:
    agent = make_agent(ScriptedModel(), *(make_tool(print, name) for name in ("a", "b", "c")))
    before = agent.tools
    for previous, following in ((["b"], ["C"]), (["b"], ["x", "X"]), (["nope"], ["x"])):
        with pytest.raises(UsageError):
            agent.replace_tools(previous, [make_tool(print, name) for name in following])
        assert agent.tools is before
    agent.replace_tools(["B"], [make_tool(print, "x"), make_tool(print, "b")])
    assert [one.name for one in agent.tools] == ["a", "x", "b", "c"]
    assert [one.name for one in before] == ["a", "b", "c"]


def test_fault_06_duplicate_names_are_rejected() -> None:
    glove = Glove(model=ScriptedModel()).fold(make_tool(print, "Same"))
    with pytest.raises(DuplicateToolError, match="same"):
        glove.fold(make_tool(print, "same"))


def test_fault_07_late_build_with_a_store_raises() -> None:
    glove = Glove(model=ScriptedModel())
    agent = glove.build()
    assert glove.build() is agent
    with pytest.raises(UsageError, match="built already"):
        glove.build(MemoryStore())
    with pytest.raises(UsageError, match="only one"):
        Glove(model=ScriptedModel(), store=MemoryStore()).build(MemoryStore())


def test_decorator_derives_schema_from_the_function() -> None:
    @tool(read_only=True)
    async def lookup(name: str, ctx: ToolContext, limit: int = 3) -> str:
        """Find a guest."""
        return f"{name}/{limit}/{ctx.tool_name}"

    assert (lookup.name, lookup.description, lookup.read_only) == ("lookup", "Find a guest.", True)
    schema = lookup.spec.parameters
    assert schema["required"] == ["name"]
    assert set(schema["properties"]) == {"name", "limit"}  # type: ignore[call-overload]


async def test_decorated_tools_run_async_and_in_a_thread() -> None:
    @tool
    async def greet(name: str, ctx: ToolContext) -> str:
        """Greet."""
        return f"{name} by {ctx.tool_name}"

    @tool
    def double(number: int) -> int:
        """Double."""
        return number * 2

    model = ScriptedModel(call(("greet", {"name": "Ann"}), ("double", {"number": 4})), "done")
    agent = make_agent(model, greet, double)
    await agent.process_request("go")
    assert [one.result.data for one in (await results(agent)).values()] == ["Ann by greet", 8]


@pytest.mark.parametrize(
    "build",
    [
        lambda: make_tool(print, ""),
        lambda: make_tool(lambda a, b, c: None),
        lambda: make_tool(print, retries=-1),
        lambda: make_tool(print, timeout_s=0),
        lambda: make_agent(ScriptedModel(), max_turns=0),
        lambda: make_agent(ScriptedModel(), join_wait_s=-1),
        lambda: tool(lambda value: value),
    ],
)
def test_misuse_names_the_field(build: object) -> None:
    with pytest.raises(UsageError, match=r"\w"):
        build()  # type: ignore[operator]


async def test_closed_agent_refuses_requests() -> None:
    agent: Agent = make_agent(ScriptedModel())
    await agent.aclose()
    with pytest.raises(UsageError, match="closed"):
        await agent.process_request("hi")


async def test_the_builder_keeps_working_after_build() -> None:
    first, second, recorder = DisplayStack(), DisplayStack(), Recorder()
    plain = AgentConfig(builtin_tools=())
    glove = Glove(model=ScriptedModel("one", "two"), display=first, config=plain)
    agent = glove.build()
    glove.set_display(second).fold(make_tool(print, "a")).add_subscriber(recorder)
    glove.replace_tools(["a"], [make_tool(print, "b")])
    assert agent.display is second
    assert agent.tools == glove.tools
    assert [one.name for one in agent.tools] == ["b"]
    await glove.process_request("hi")
    assert "text_delta" in recorder.wires
    heard = len(recorder.events)
    glove.remove_subscriber(recorder)
    await glove.process_request("hi")
    assert len(recorder.events) == heard


async def test_subscribers_come_and_go_while_running() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel("one", "two"))
    async with agent.running():
        agent.add_subscriber(recorder)
        agent.add_subscriber(recorder)
        await agent.process_request("hi")
        await asyncio.sleep(0)
        agent.remove_subscriber(recorder)
    assert recorder.wires.count("request_ended") == 1


async def test_type_adapters_describe_input_too() -> None:
    adapter: TypeAdapter[object] = TypeAdapter(dict[str, int])
    got: list[object] = []
    model = ScriptedModel(call(("act", '{"a": "1"}')), call(("act", {"a": "x"})), "done")
    agent = make_agent(model, make_tool(got.append, input_model=adapter))
    await agent.process_request("go")
    assert got == [{"a": 1}]
    assert model.requests[0].tools[0].parameters == adapter.json_schema()


async def test_a_typed_function_is_folded_as_a_tool() -> None:
    def double(number: int) -> int:
        """Twice a number."""
        return 2 * number

    model = ScriptedModel(call(("double", {"number": 4})), "eight")
    agent = make_agent(model).fold(double)
    await agent.process_request("go")
    (result,) = (await results(agent)).values()
    assert result.result.data == 8
    with pytest.raises(UsageError, match="docstring"):
        agent.fold(lambda number: number)


async def test_a_function_may_subscribe_and_what_cannot_hear_is_refused() -> None:
    heard: list[str] = []

    async def hear(event: SubscriberEvent) -> None:
        heard.append(event.wire)

    agent = make_agent(ScriptedModel("one", "two")).add_subscriber(hear)
    await agent.process_request("go")
    assert heard[0] == "request_started" and heard[-1] == "request_ended"
    agent.remove_subscriber(hear)
    with pytest.raises(UsageError, match="record"):
        agent.add_subscriber(5)  # type: ignore[arg-type]
