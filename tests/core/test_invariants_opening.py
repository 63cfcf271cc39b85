"""A request with everything an application can hang on it, hit once at each moment of its life.

Preparers, context of each delivery, a hook, a skill, an inbox answer, an outside event, goals, a
sub-agent, a compaction in the middle: whatever the hit, history stays valid, what came from outside
stands in it once, and nothing is left running or told twice (DESIGN 5.6, 5.7; rows 56, 69, 75, 92).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
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
from tests.support.vloop import run_virtual
from voxglove.core import (
    AbortError,
    Agent,
    AgentEvent,
    CancelToken,
    CompactionConfig,
    HookContext,
    HookOutcome,
    InboxItem,
    MemoryStore,
    ModelError,
    SubAgentContext,
    TurnPreparation,
    Usage,
    Wake,
)
from voxglove.core.goals import (
    Goal,
    GoalHooks,
    GoalInstance,
    GoalSpec,
    MemoryGoalAdapter,
    Program,
    Scope,
    use_goal_runner,
)
from voxglove.core.timeline import TimelineBuilder

PROGRAM = Program(id="p", goals=[GoalSpec(id="g", title="Greet", done_when="greeted")])
MET = ("glove_goal_update", {"goal_id": "g", "status": "met", "expected_version": 1})
ASK = ("glove_invoke_subagent", {"name": "worker", "prompt": "count"})


class Everything:
    """One agent with all of it, and what its parts did."""

    def __init__(self) -> None:
        self.model = ScriptedModel(*self.script())
        self.agent = make_agent(
            self.model,
            make_tool(self.pay, "pay", un_abortable=True),
            store=SlowStore(),
            compaction=CompactionConfig(context_limit=100),
            join_wait_s=0.1,
        )
        self.token = CancelToken()
        self.recorder, self.timeline = Recorder(), TimelineBuilder()
        self.asked = self.paid = self.ended = 0
        agent = self.agent
        agent.add_subscriber(self.recorder).add_subscriber(self.timeline)
        agent.add_turn_preparer(self.prepare)
        for delivery in ("iteration", "request", "history"):
            agent.add_context_provider(self.say(delivery), delivery=delivery, id=delivery)
        agent.define_hook("mark", self.mark)
        agent.define_skill("polite", lambda context: "Be polite.")
        agent.define_sub_agent("worker", self.worker, description="Counts")
        self.goals = use_goal_runner(
            agent,
            MemoryGoalAdapter(),
            scope=Scope(subject="s", key="k"),
            hooks=GoalHooks(on_end=self.on_end),
        )

    @staticmethod
    def script() -> list[Any]:
        async def big(request: Any, notify: Any, token: Any) -> Any:
            result = await call(("pay", {}), MET, text="Let me see.")(request, notify, token)
            await asyncio.sleep(0.1)
            return type(result)(messages=result.messages, usage=Usage(95, 1))

        return [big, "the summary", call(ASK, text="One moment."), "All done."]

    async def pay(self, value: object) -> str:
        await asyncio.sleep(0.2)
        self.paid += 1
        await self.agent.emit_event(AgentEvent(source="bank", content="event b."))
        return "paid"

    async def prepare(self, turn: TurnPreparation) -> None:
        await asyncio.sleep(0.05)
        turn.agent.set_system_prompt("Prepared.")

    @staticmethod
    def say(text: str) -> Callable[[CancelToken], Awaitable[str]]:
        async def provide(token: CancelToken) -> str:
            await asyncio.sleep(0.05)
            return f"context {text}."

        return provide

    async def mark(self, context: HookContext) -> HookOutcome:
        await asyncio.sleep(0.05)
        return HookOutcome(rewrite_text=f"{context.parsed_text} (marked)")

    async def worker(self, context: SubAgentContext) -> Agent:
        await asyncio.sleep(0.05)
        model = ScriptedModel(call(("count", {})), "three")
        return make_agent(model, make_tool(lambda value: "3", "count"), store=SlowStore())

    async def on_end(self, goal: Goal, instance: GoalInstance) -> None:
        await asyncio.sleep(0.05)
        self.ended += 1

    async def begin(self) -> None:
        await self.goals.start(PROGRAM)
        item = InboxItem(id="i", tag="t", request="r", created_at="now")
        await self.agent.add_inbox_item(item)
        await self.agent.resolve_inbox_item("i", "answer i.", wake=False)
        await self.agent.emit_event(
            AgentEvent(source="shop", content="event a."), when_idle="defer"
        )

    async def request(self) -> None:
        try:
            await self.agent.process_request("/mark /polite hello", token=self.token, playback=True)
        except (AbortError, ModelError):
            return

    async def settle(self) -> None:
        """A further turn, unhurt: it sees everything, and the model's view is valid."""
        agent = self.agent
        for message in await stored(agent):
            if message.playback == "pending":
                await agent.amend_heard(message.id, message.text)
        await agent.join_tools(5)
        self.model.steps = []
        self.model.then(*["bye"] * 4)
        await agent.process_request("bye")


Hit = Callable[[Everything, "asyncio.Future[None]"], Awaitable[None]]


async def hit_cancel(one: Everything, task: asyncio.Future[None]) -> None:
    task.cancel()


async def hit_abort(one: Everything, task: asyncio.Future[None]) -> None:
    one.token.abort("barge-in")


async def hit_tools(one: Everything, task: asyncio.Future[None]) -> None:
    one.agent.interrupt("stop")


async def hit_event(one: Everything, task: asyncio.Future[None]) -> None:
    await one.agent.emit_event(AgentEvent(source="s", content="event c."), when_idle="defer")


async def hit_inbox(one: Everything, task: asyncio.Future[None]) -> None:
    item = InboxItem(id="j", tag="t", request="r", created_at="now", blocking=True)
    await one.agent.add_inbox_item(item)
    await one.agent.resolve_inbox_item("j", "answer j.", wake=False)


async def hit_wake(one: Everything, task: asyncio.Future[None]) -> None:
    wake = asyncio.ensure_future(one.agent.process_request(Wake("event"), token=one.token))
    await asyncio.sleep(0)
    task.cancel()
    one.token.abort("both")
    await asyncio.wait([wake])
    wake.exception() if not wake.cancelled() else None


async def hit_amend(one: Everything, task: asyncio.Future[None]) -> None:
    for message in await stored(one.agent):
        if message.playback == "pending":
            await one.agent.amend_heard(message.id, "Let", " me see.", interrupted=True)
        if message.is_user_turn:
            await one.agent.amend_user(message.id, "corrected")


async def hit_unregister(one: Everything, task: asyncio.Future[None]) -> None:
    one.goals.unmount()


async def check(one: Everything) -> None:
    agent = one.agent
    assert not agent.busy and not agent.outstanding and agent.turn_queue.waiting == 0
    messages = await stored(agent)
    texts = "\n".join(message.text for message in messages)
    for what in ("event a.", "answer i."):
        assert texts.count(what) == 1, what
    assert texts.count("event b.") == one.paid
    assert texts.count("event c.") <= 1 and texts.count("answer j.") <= 1
    since = messages[max((at for at, one in enumerate(messages) if one.is_compaction), default=0) :]
    assert sum(one.text == "context history." for one in since) == 1, "told once in the view"
    asked = [one_call.id for message in messages for one_call in message.tool_calls]
    answered = [result.call_id for message in messages for result in message.tool_results]
    assert sorted(asked) == sorted(answered)
    told = [event.call_id for event in one.recorder.of("tool_use_result")]
    assert len(told) == len(set(told)) and set(told) >= set(answered)
    for opened, closed in (
        ("compaction_start", "compaction_end"),
        ("subagent_invoked", "subagent_completed"),
        ("request_started", "request_ended"),
    ):
        assert len(one.recorder.of(opened)) == len(one.recorder.of(closed))
    now = await one.goals.status()
    assert now is not None and (one.ended >= 1) == now.complete
    assert one.timeline.entries == TimelineBuilder.from_history(messages).entries
    reported = [event.message.id for event in one.recorder.of("message_stored")]
    assert sorted(reported) == sorted(message.id for message in messages)
    store = agent.store
    assert isinstance(store, MemoryStore)
    assert {item.status for item in await store.get_inbox_items()} == {"consumed"}


HITS = [
    hit_cancel,
    hit_abort,
    hit_tools,
    hit_event,
    hit_inbox,
    hit_wake,
    hit_amend,
    hit_unregister,
]


def sweep(hit: Hit, owned: bool, step_s: float) -> None:
    async def play(one: Everything, moment: float) -> bool:
        task = asyncio.ensure_future(one.request())
        await asyncio.sleep(moment)
        over = task.done()
        await hit(one, task)
        await asyncio.wait([task])
        await one.settle()
        return over

    async def run(moment: float) -> bool:
        one = Everything()
        await one.begin()
        if owned:
            async with one.agent.running():
                over = await play(one, moment)
        else:
            over = await play(one, moment)
        await one.agent.process_request("last")  # delivers what came after the request before it
        await check(one)
        return over

    step = 0
    while not run_virtual(run(step * step_s)):
        step += 1
    assert step * step_s > 2, "the request is longer than a few steps"


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("hit", HITS)
def test_no_moment_of_a_request_with_everything_is_special(hit: Hit, owned: bool) -> None:
    sweep(hit, owned, 0.29)


@pytest.mark.soak
@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("hit", HITS)
def test_no_moment_at_all_of_a_request_with_everything_is_special(hit: Hit, owned: bool) -> None:
    sweep(hit, owned, 0.03)
