"""Context, preparers and hooks that change, fail or are hit while a request is on its way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.core.support import (
    Recorder,
    ScriptedModel,
    SlowStore,
    call,
    make_agent,
    make_tool,
    stored,
)
from voxglove.core import (
    AbortError,
    AgentEvent,
    CancelToken,
    CompactionConfig,
    EventConfig,
    HookContext,
    HookOutcome,
    ModelError,
    ModelRequest,
    Usage,
)
from voxglove.core.timeline import TimelineBuilder


def shown(request: ModelRequest, kind: str) -> list[str]:
    return [one.text for one in request.messages if one.framework_context == kind]


async def cancels_itself(*arguments: object) -> Any:
    """Awaits what somebody else cancelled, as a client does whose connection was closed."""
    gone = asyncio.get_running_loop().create_future()
    gone.cancel()
    return await gone


@pytest.mark.parametrize("delivery", ["iteration", "request", "history"])
async def test_fault_28_a_provider_that_cancels_itself_is_left_out(delivery: Any) -> None:
    model, recorder = ScriptedModel("fine"), Recorder()
    agent = make_agent(model)
    agent.add_subscriber(recorder)
    agent.add_context_provider(cancels_itself, id="broken", delivery=delivery)
    assert (await agent.process_request("go")).text == "fine"
    assert [(one.stage, one.name) for one in recorder.of("error")] == [
        ("context_provider", "broken")
    ]


async def test_core_row_071_a_preparer_or_hook_that_cancels_itself_is_left_out_on_a_call() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel("spoken"))
    agent.add_subscriber(recorder)
    agent.add_turn_preparer(cancels_itself)
    agent.define_hook("save", cancels_itself)
    async with agent.turn_queue.hold("call") as hold:
        assert (await agent.process_request("/save it", hold=hold)).text == "spoken"
    assert [one.stage for one in recorder.of("error")] == ["turn_preparer", "directive"]


async def test_a_model_or_policy_that_cancels_itself_is_a_failure_not_a_cancellation() -> None:
    agent = make_agent(ScriptedModel(cancels_itself), events=EventConfig(policy=cancels_itself))
    assert (await agent.emit_event(AgentEvent(source="s", content="c"))).status == "deferred"
    with pytest.raises(ModelError, match="cancelled"):
        await agent.process_request("go")


async def test_core_row_068_who_was_taken_away_is_asked_and_shown_no_more() -> None:
    asked: list[str] = []
    model = ScriptedModel(call(("act", {})), "done")

    def act(value: object) -> str:
        frozen_gone()
        return "ok"

    agent = make_agent(model, make_tool(act))

    def first(token: CancelToken) -> str:
        asked.append("first")
        second_gone()
        return "first"

    agent.add_context_provider(first)
    second_gone = agent.add_context_provider(lambda token: asked.append("second"))
    frozen_gone = agent.add_context_provider(lambda token: "frozen", delivery="request")
    await agent.process_request("go")
    assert asked == ["first", "first"]
    assert [shown(one, "runtime") for one in model.requests] == [["first", "frozen"], ["first"]]


async def test_core_row_071_a_preparer_that_another_took_away_is_not_asked() -> None:
    asked: list[str] = []
    agent = make_agent(ScriptedModel("ok"))
    agent.add_turn_preparer(lambda turn: gone())
    gone = agent.add_turn_preparer(lambda turn: asked.append("second"))
    await agent.process_request("go")
    assert asked == []


async def test_core_row_069_history_is_told_once_though_two_ask_at_once() -> None:
    agent = make_agent(ScriptedModel("ok"), store=SlowStore())
    agent.add_context_provider(lambda token: "the offer", delivery="history", id="offer")
    await asyncio.gather(
        agent.get_runtime_context(), agent.get_runtime_context(), agent.process_request("go")
    )
    assert [one.text for one in await stored(agent)].count("the offer") == 1


@pytest.mark.parametrize("where", ["before calls", "hook"])
async def test_core_row_069_a_compaction_inside_a_request_takes_no_history_away(where: str) -> None:
    async def tidy(context: HookContext) -> None:
        assert await context.controls.force_compaction()

    async def big(request: Any, notify: Any, token: Any) -> Any:
        result = await call(("act", {}))(request, notify, token)
        return type(result)(messages=result.messages, usage=Usage(200, 1))

    steps = ["the summary", "done"] if where == "hook" else [big, "the summary", "done"]
    model = ScriptedModel("hello", *steps)
    agent = make_agent(
        model, make_tool(lambda value: "ok"), compaction=CompactionConfig(context_limit=100)
    )
    agent.define_hook("tidy", tidy)
    agent.add_context_provider(lambda token: "the offer", delivery="history", id="offer")
    await agent.process_request("hi")
    await agent.process_request("/tidy" if where == "hook" else "go")
    assert [shown(one, "history") for one in model.requests] == [["the offer"]] * len(
        model.requests
    )


@pytest.mark.parametrize("how", ["hook", "on demand"])
async def test_a_compaction_waits_for_no_tool_and_parts_no_call_from_its_result(how: str) -> None:
    """DESIGN 5.6: the model must see the late result."""
    outcomes: list[bool] = []

    async def slow(value: object) -> str:
        await asyncio.sleep(10)
        return "paid 5 euros"

    async def tidy(context: HookContext) -> None:
        outcomes.append(await context.controls.force_compaction())

    model = ScriptedModel(call(("act", {})), "still at it", "so it is paid")
    agent = make_agent(model, make_tool(slow, un_abortable=True), join_wait_s=0)
    agent.define_hook("tidy", tidy)
    token = CancelToken()
    async with agent.running():
        asyncio.get_running_loop().call_later(1, token.abort)
        with pytest.raises(AbortError):
            await agent.process_request("pay", token=token)
        if how == "hook":
            await agent.process_request("/tidy")
        else:
            outcomes.append(await agent.compact())
            await agent.process_request("and?")
        await agent.join_tools(20)
        await agent.process_request("done?")
    assert outcomes == [False]
    last = model.requests[-1].messages
    told = [one.result.data for message in last for one in message.tool_results]
    assert told == ["paid 5 euros"]


async def test_core_row_062_hooks_read_what_the_user_really_said() -> None:
    seen: list[str] = []

    def note(context: HookContext) -> HookOutcome:
        seen.append(context.raw_text)
        return HookOutcome(rewrite_text="noted")

    model = ScriptedModel("first", "second")
    agent = make_agent(model)
    agent.define_hook("note", note)
    async with agent.turn_queue.hold("somebody else"):
        asked = asyncio.ensure_future(agent.process_request("/node milk", message_id="m"))
        await asyncio.sleep(1)
        await agent.amend_user("m", "/note milk")
    await asked
    assert seen == ["/note milk"]
    assert model.requests[0].messages[-1].text == "noted"
    kept = (await stored(agent))[0]
    assert (kept.text, kept.pre_modified_text) == ("noted", "/node milk")


async def test_a_problem_with_a_directive_names_it_and_none_of_the_users_words() -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel())
    agent.add_subscriber(recorder)

    def broken(context: HookContext) -> None:
        raise LookupError("no such order")

    agent.define_hook("order", broken)
    with pytest.raises(LookupError):
        await agent.process_request("Mary said /order 5")
    assert [one.name for one in recorder.of("error")] == ["/order"]


async def test_core_row_092_what_a_cancelled_request_stored_is_told() -> None:
    async def run(moment: float) -> None:
        agent = make_agent(
            ScriptedModel(call(("act", {}), text="Well."), "done"), store=SlowStore()
        )
        agent.fold(make_tool(lambda value: "ok"))
        builder = TimelineBuilder()
        agent.add_subscriber(builder)
        async with agent.running():
            asked = asyncio.ensure_future(agent.process_request("go", playback=True))
            await asyncio.sleep(moment)
            asked.cancel()
            await asyncio.wait([asked])
            await asyncio.sleep(1)
        history = TimelineBuilder.from_history(await stored(agent), agent.outstanding)
        assert builder.entries == history.entries, f"cancelled at {moment}"

    for step in range(60):
        await run(step * 0.02)
