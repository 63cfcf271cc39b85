"""Wakes and what they cost: nothing new costs no call, a failing one ends nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.core.support import (
    Recorder,
    ScriptedModel,
    call,
    fail,
    hang,
    make_agent,
    make_tool,
    say,
    stored,
)
from voxglove.core import (
    AbortError,
    AgentEvent,
    CancelToken,
    CompactionConfig,
    EventConfig,
    InboxItem,
    TurnPreparation,
    Usage,
    UsageError,
    Wake,
)
from voxglove.core.external import PolicyContext


def news(content: str = "order shipped", **fields: Any) -> AgentEvent:
    return AgentEvent(source="shop", content=content, **fields)


@pytest.mark.parametrize("where", ["preparer", "model"])
async def test_a_wake_that_fails_in_any_way_does_not_end_its_owner(where: str) -> None:
    def broken(turn: TurnPreparation) -> None:
        if where == "preparer" and turn.reason == "event":
            raise LookupError("no crm")

    steps = [fail(KeyError("an adapter's own fault"))] if where == "model" else []
    agent = make_agent(ScriptedModel(*steps, "still here"))
    agent.add_turn_preparer(broken)
    async with agent.running():
        await agent.emit_event(news())
        await asyncio.sleep(1)
        assert (await agent.process_request("hello?")).text == "still here"


async def test_a_background_compaction_that_fails_in_any_way_does_not_end_its_owner() -> None:
    recorder = Recorder()
    model = ScriptedModel(
        say("one", usage=Usage(200, 1)), fail(KeyError("an adapter's own fault")), "still here"
    )
    agent = make_agent(model, compaction=CompactionConfig(context_limit=100))
    agent.add_subscriber(recorder)
    async with agent.running():
        await agent.process_request("a")
        await asyncio.sleep(1)
        assert (await agent.process_request("b")).text == "still here"
    assert [one.status for one in recorder.of("compaction_end")] == ["failed"]


async def test_an_answer_stands_though_the_compaction_after_it_fails() -> None:
    model = ScriptedModel(say("one", usage=Usage(200, 1)), fail(KeyError("fault")))
    agent = make_agent(model, compaction=CompactionConfig(context_limit=100))
    assert (await agent.process_request("a")).text == "one"


async def test_core_row_073_a_wake_whose_event_a_user_turn_showed_asks_no_model() -> None:
    model, recorder = ScriptedModel("hello, and your order is on its way"), Recorder()
    agent = make_agent(model)
    agent.add_subscriber(recorder)
    async with agent.running():
        assert (await agent.emit_event(news())).status == "woke"
        await agent.process_request("hi")
        await asyncio.sleep(1)
    assert len(model.requests) == 1
    assert [one.status for one in recorder.of("request_ended")] == ["ok", "ok"]


async def test_core_row_073_a_wake_on_a_call_that_comes_too_late_says_nothing() -> None:
    wakes: list[Wake] = []
    agent = make_agent(ScriptedModel("hello", "anything else?"))
    async with agent.running(), agent.turn_queue.hold("call") as hold:
        hold.on_wake(wakes.append)
        await agent.emit_event(news())
        await agent.process_request("hi", hold=hold)
        late = await agent.process_request(wakes[0], hold=hold)
        assert (late.messages, late.text, late.stop) == ((), "", "nothing_new")
        assert (await agent.process_request(Wake(), hold=hold)).text == "anything else?"
    assert len(wakes) == 1


async def test_core_row_016_an_event_at_the_last_call_allowed_waits_for_the_next_turn() -> None:
    async def answer_late(request: Any, notify: Any, token: Any) -> Any:
        await agent.emit_event(news())
        return await say("the answer")(request, notify, token)

    model = ScriptedModel(answer_late, "about the order")
    agent = make_agent(model, max_turns=1)
    async with agent.running():
        assert (await agent.process_request("hi")).text == "the answer"
        await asyncio.sleep(1)
    assert len(model.requests) == 2, "the event got a turn of its own"
    assert "I had to stop" not in str(await stored(agent))


async def test_core_row_073_a_storm_of_events_is_bounded_while_a_policy_thinks() -> None:
    async def policy(event: AgentEvent, context: PolicyContext) -> None:
        await asyncio.sleep(0.1)

    config = EventConfig(policy=policy, when_idle="defer", max_pending=10)
    agent = make_agent(ScriptedModel("ok"), events=config)
    async with asyncio.TaskGroup() as tasks:
        storm = [tasks.create_task(agent.emit_event(news(f"n{at}"))) for at in range(500)]
    statuses = [one.result().status for one in storm]
    assert statuses.count("deferred") == 10 and statuses.count("dropped") == 490


async def test_an_inbox_answer_shown_by_a_user_turn_wakes_nobody() -> None:
    model = ScriptedModel("it is done")
    agent = make_agent(model)
    wish = InboxItem(id="i", tag="t", request="r", created_at="now")
    await agent.add_inbox_item(wish)
    async with agent.running():
        await agent.resolve_inbox_item("i", "done")
        await agent.process_request("hi")
        await asyncio.sleep(1)
    assert len(model.requests) == 1


async def test_a_wake_after_a_cut_answers_what_the_cut_left_unanswered() -> None:
    model = ScriptedModel(hang(), "about the order")
    agent = make_agent(model)
    token = CancelToken()
    async with agent.running():
        asyncio.get_running_loop().call_later(0.5, token.abort)
        await asyncio.gather(agent.process_request("hi", token=token), return_exceptions=True)
        await agent.emit_event(news())
        await asyncio.sleep(1)
    assert len(model.requests) == 2


async def test_core_row_046_an_agent_may_be_started_beneath_a_running_request() -> None:
    recorder = Recorder()
    model = ScriptedModel(hang("x"), "later")
    agent = make_agent(model)
    agent.add_subscriber(recorder)
    token = CancelToken()
    asked = asyncio.ensure_future(agent.process_request("hi", token=token))
    await asyncio.sleep(1)
    async with agent.running():
        token.abort()
        with pytest.raises(AbortError):
            await asked
        assert recorder.wires.count("request_ended") == 1
        assert (await agent.process_request("again")).text == "later"
        await asyncio.sleep(0)
        assert recorder.wires.count("request_ended") == 2, "still served"
    assert recorder.wires.count("text_delta") == 2, "nothing comes twice"


@pytest.mark.parametrize("how", ["hook", "tool", "group"])
async def test_a_turn_that_would_wait_for_itself_is_refused(how: str) -> None:
    refused: list[str] = []

    async def ask_again(*arguments: object) -> str:
        try:
            await agent.process_request("and?")
        except UsageError as error:
            refused.append(str(error))
        return "ok"

    steps = [] if how == "hook" else [call(("act", {}), *([("act", {})] if how == "group" else []))]
    agent = make_agent(ScriptedModel(*steps, "done"))
    agent.fold(make_tool(lambda value: ask_again(), parallel=how == "group"))

    async def hook(context: object) -> None:
        await ask_again()

    agent.define_hook("again", hook)
    for owned in (True, False):
        refused.clear()
        agent.model.steps = [*steps, say("done")]  # type: ignore[attr-defined]
        if owned:
            async with agent.running():
                await asyncio.wait_for(
                    agent.process_request("/again" if how == "hook" else "go"), 5
                )
        else:
            await asyncio.wait_for(agent.process_request("/again" if how == "hook" else "go"), 5)
        assert len(refused) == (2 if how == "group" else 1)
        assert "would wait for itself" in refused[0]


async def test_a_holder_that_forgets_its_hold_is_refused() -> None:
    agent = make_agent(ScriptedModel("ok"))
    async with agent.turn_queue.hold("call") as hold:
        with pytest.raises(UsageError, match="hold="):
            await agent.process_request("hi")
        assert (await agent.process_request("hi", hold=hold)).text == "ok"


async def test_an_outstanding_tool_and_a_task_of_its_own_may_wait_for_a_turn() -> None:
    done: list[str] = []

    async def act(value: object) -> str:
        await asyncio.sleep(1)
        done.append((await agent.process_request("from the tool")).text)
        return "ok"

    async def spawn(value: object) -> str:
        tasks.create_task(ask())
        return "ok"

    async def ask() -> None:
        done.append((await agent.process_request("from a task")).text)

    model = ScriptedModel(call(("act", {})), "asked", call(("spawn", {})), "spawned", "by itself")
    agent = make_agent(model, make_tool(act), make_tool(spawn, "spawn"))
    token = CancelToken()
    async with agent.running(), asyncio.TaskGroup() as tasks:
        asyncio.get_running_loop().call_later(0.5, token.abort)
        await asyncio.gather(agent.process_request("go", token=token), return_exceptions=True)
        await agent.join_tools(5)
        await agent.process_request("go on")
    assert done == ["asked", "by itself"]
