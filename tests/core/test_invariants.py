"""DESIGN 5.4, 5.6, 5.7 under random interleavings of everything a call can do to an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.support import (
    Recorder,
    SlowStore,
    assert_valid,
    make_agent,
    make_tool,
)
from tests.support.vloop import run_virtual
from voxglove.core import (
    AbortError,
    Agent,
    AgentEvent,
    CancelToken,
    Hold,
    InboxItem,
    MemoryStore,
    Message,
    ModelError,
    ModelRequest,
    ModelResponseComplete,
    ModelResult,
    Notify,
    TextDelta,
    Tool,
    ToolCall,
    ToolContext,
    ToolUse,
    Usage,
    Wake,
)

TOOLS = ("quick", "slow", "stuck", "checkout", "gated", "asking", "boom", "beside", "missing")

reply = st.tuples(
    st.sampled_from(["", "Well.", "One moment please."]),
    st.lists(st.sampled_from(TOOLS), max_size=3),
    st.sampled_from([0.0, 0.0, 0.4, 3.0]),
    st.sampled_from(["ok", "ok", "ok", "fail"]),
)
act = st.one_of(
    st.tuples(st.just("request"), st.sampled_from(["free", "committed", "later", "withdrawn"])),
    st.tuples(st.just("request"), st.just("free")),
    st.tuples(st.just("wake"), st.just("")),
    st.tuples(st.just("abort"), st.sampled_from(["generation", "tools"])),
    st.tuples(st.just("interrupt"), st.just("")),
    st.tuples(st.just("cancel"), st.just("")),
    st.tuples(st.just("commit"), st.sampled_from(["yes", "no"])),
    st.tuples(st.just("sleep"), st.sampled_from(["0", "0.1", "0.5", "2"])),
    st.tuples(st.just("sleep"), st.sampled_from(["0.1", "0.2", "0.3", "1.6"])),
    st.tuples(st.just("answer"), st.sampled_from(["yes", "no", "reject"])),
    st.tuples(st.just("event"), st.sampled_from(["wake", "defer"])),
    st.tuples(st.just("inbox"), st.sampled_from(["post", "resolve", "resolve outside"])),
    st.tuples(st.just("amend"), st.integers(0, 20)),
)


class RandomModel:
    """Replies as drawn; every request it gets must be valid. Reuses call ids on purpose."""

    name = "random"

    def __init__(self, replies: list[Any]) -> None:
        self.replies = replies
        self.asked = 0
        self.last: ModelRequest | None = None

    def set_system_prompt(self, prompt: str) -> None:
        return None

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        assert_valid(request)
        self.last = request
        text, names, delay, outcome = self.replies[self.asked % len(self.replies)]
        self.asked += 1
        if self.asked % 4 == 0:
            names = []  # requests must end some time
        if text:
            notify(TextDelta(text=text))
        if delay:
            await asyncio.sleep(delay)
        if outcome == "fail":
            raise ModelError("down")
        calls = tuple(ToolCall(name, {}, f"call_{at}") for at, name in enumerate(names))
        for one in calls:
            notify(ToolUse(id=one.id, name=one.tool_name, input={}))
        answer = text or ("" if calls else "fine")
        notify(ModelResponseComplete(text=answer, tool_calls=calls))
        message = Message(sender="agent", text=answer, tool_calls=calls)
        return ModelResult(messages=(message,), usage=Usage(1, 1))


@dataclass
class World:
    """One agent on a call, what was done to it, and what its tools did."""

    agent: Agent
    hold: Hold | None = None
    requests: list[tuple[asyncio.Task[Any], CancelToken]] = field(default_factory=list)
    gates: list[asyncio.Future[bool]] = field(default_factory=list)
    heard: dict[str, str] = field(default_factory=dict)
    said: int = 0
    told: int = 0
    side_effects: int = 0

    async def do(self, what: str, how: Any, tasks: asyncio.TaskGroup) -> None:
        await getattr(self, f"do_{what}")(how, tasks)
        await asyncio.sleep(0)

    async def do_request(self, how: str, tasks: asyncio.TaskGroup) -> None:
        gate: asyncio.Future[bool] | None = None
        if how != "free":
            gate = asyncio.get_running_loop().create_future()
            self.gates.append(gate)
            if how != "later":
                gate.set_result(how == "committed")
        self.said += 1
        self.start(f"turn {self.said}", gate, tasks)

    async def do_wake(self, how: str, tasks: asyncio.TaskGroup) -> None:
        self.start(Wake(), None, tasks)

    def start(
        self, request: str | Wake, gate: asyncio.Future[bool] | None, tasks: asyncio.TaskGroup
    ) -> None:
        token = CancelToken()

        async def run() -> None:
            try:
                await self.agent.process_request(
                    request, token=token, hold=self.hold, playback=True, committed=gate
                )
            except (AbortError, ModelError):
                return

        self.requests.append((tasks.create_task(run()), token))

    async def do_abort(self, how: str, tasks: asyncio.TaskGroup) -> None:
        for _, token in self.requests[-1:]:
            token.abort("cut", tools=how == "tools")

    async def do_interrupt(self, how: str, tasks: asyncio.TaskGroup) -> None:
        self.agent.interrupt()

    async def do_cancel(self, how: str, tasks: asyncio.TaskGroup) -> None:
        for task, _ in self.requests[-1:]:
            task.cancel()

    async def do_commit(self, how: str, tasks: asyncio.TaskGroup) -> None:
        for gate in self.gates:
            if not gate.done():
                gate.set_result(how == "yes")

    async def do_sleep(self, how: str, tasks: asyncio.TaskGroup) -> None:
        await asyncio.sleep(float(how))

    async def do_answer(self, how: str, tasks: asyncio.TaskGroup) -> None:
        for slot_id in sorted(self.agent.display.pending_ids)[:1]:
            if how == "reject":
                self.agent.display.reject(slot_id)
            else:
                self.agent.display.resolve(slot_id, how == "yes")

    async def do_event(self, how: Any, tasks: asyncio.TaskGroup) -> None:
        self.told += 1
        news = AgentEvent(source="s", content=f"news {self.told}.")
        await self.agent.emit_event(news, when_idle=how)

    async def do_inbox(self, how: str, tasks: asyncio.TaskGroup) -> None:
        store = self.agent.store
        assert isinstance(store, MemoryStore)
        items = await store.get_inbox_items()
        if how == "post":
            name = f"i{len(items)}"
            wish = InboxItem(id=name, tag="t", request="r", created_at="now", blocking=True)
            await store.add_inbox_item(wish)
        for one in [one for one in items if one.status == "pending"][:1]:
            if how == "resolve":
                await self.agent.resolve_inbox_item(one.id, f"answer {one.id}.")
            elif how == "resolve outside":
                await store.resolve_inbox_item(one.id, f"answer {one.id}.", "now")

    async def do_amend(self, characters: int, tasks: asyncio.TaskGroup) -> None:
        for message in await self.agent.store.get_messages():
            if message.playback == "pending":
                heard, rest = message.text[:characters], message.text[characters:]
                self.heard[message.id] = heard
                await self.agent.amend_heard(message.id, heard, rest, interrupted=bool(rest))
                return


def tools_of(world: list[World]) -> list[Tool]:
    async def slow(value: object) -> str:
        await asyncio.sleep(0.7)
        return "slow"

    async def stuck(value: object) -> None:
        await asyncio.Event().wait()

    async def checkout(value: object) -> str:
        world[0].side_effects += 1
        await asyncio.sleep(2.5)
        return "paid"

    async def quick(value: object) -> str:
        return "quick"

    async def asking(value: object, ctx: ToolContext) -> object:
        return await ctx.display.push_and_wait("confirm")

    async def boom(value: object) -> None:
        raise ValueError

    return [
        make_tool(quick, "quick", read_only=True),
        make_tool(slow, "slow", parallel=True, read_only=True),
        make_tool(stuck, "stuck", read_only=True),
        make_tool(checkout, "checkout", un_abortable=True),
        make_tool(quick, "gated", requires_permission=True, read_only=True),
        make_tool(asking, "asking", read_only=True),
        make_tool(boom, "boom", retries=1),
        make_tool(slow, "beside", parallel=True, read_only=True),
    ]


async def slow_context(token: CancelToken) -> str:
    await asyncio.sleep(0.05)
    return "it is raining"


async def play(replies: list[Any], acts: list[Any], owned: bool, store: MemoryStore) -> None:
    worlds: list[World] = []
    model = RandomModel(replies)
    agent = make_agent(
        model,  # type: ignore[arg-type]
        *tools_of(worlds),
        store=store,
        max_turns=6,
        join_wait_s=0.5,
    )
    recorder = Recorder()
    agent.add_subscriber(recorder)
    agent.add_context_provider(slow_context)
    agent.display.subscribe(lambda change: None)
    world = World(agent)
    worlds.append(world)
    async with asyncio.TaskGroup() as tasks:
        if owned:
            async with agent.running(), agent.turn_queue.hold("call") as world.hold:
                await drive(world, acts, tasks)
        else:
            await drive(world, acts, tasks)
    world.hold = None
    await check(world, recorder, model)


async def drive(world: World, acts: list[Any], tasks: asyncio.TaskGroup) -> None:
    async with asyncio.TaskGroup() as requests:
        for what, how in acts:
            await world.do(what, how, requests)
        for _, token in world.requests:
            token.abort("the end", tools=True)
        world.agent.interrupt("the end")


async def check(world: World, recorder: Recorder, model: RandomModel) -> None:
    agent = world.agent
    assert not agent.busy and not agent.outstanding and agent.display.pending == 0
    messages = await agent.store.get_messages()
    answered: set[str] = set()
    for at, message in enumerate(messages):
        if message.tool_calls:
            wanted = {one.id for one in message.tool_calls}
            got = [one.call_id for one in messages[at + 1].tool_results]
            assert set(got) == wanted and len(got) == len(wanted)
            assert not wanted & answered
            answered |= wanted
    model.replies, model.asked = [("Bye.", [], 0.0, "ok")], 0
    await agent.process_request("bye")
    # Events a cancelled request left in the queues have come with the request after it.
    reported = [one.call_id for one in recorder.of("tool_use_result")]
    assert sorted(reported) == sorted(set(reported))
    assert set(reported) >= answered
    final = model.last.messages if model.last is not None else ()
    shown = [one.result.data for message in final for one in message.tool_results]
    assert "still running" not in shown and "No result available" not in shown
    await check_told(world)


async def check_told(world: World) -> None:
    """History is what was heard, and everything from outside stands in it once."""
    messages = await world.agent.store.get_messages()
    by_id = {message.id: message for message in messages}
    for message_id, heard in world.heard.items():
        assert by_id[message_id].heard == heard
    texts = "\n".join(message.text for message in messages)
    for number in range(1, world.told + 1):
        assert texts.count(f"news {number}.") == 1
    store = world.agent.store
    assert isinstance(store, MemoryStore)
    for item in await store.get_inbox_items():
        assert item.status in ("pending", "consumed")
        assert texts.count(f"answer {item.id}.") == (item.status == "consumed")


whatever_happens = given(
    st.lists(reply, min_size=1, max_size=6), st.lists(act, min_size=1, max_size=14)
)


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("store", [MemoryStore, SlowStore])
@settings(max_examples=300)
@whatever_happens
def test_invariants_4_6_7_hold_whatever_happens(
    owned: bool, store: type[MemoryStore], replies: list[Any], acts: list[Any]
) -> None:
    run_virtual(play(replies, acts, owned, store()))


HIT_TWICE: list[tuple[list[Any], list[Any]]] = [
    (
        [("", ["quick", "quick"], 0.0, "ok")],
        [("wake", ""), ("amend", 0), ("amend", 0), ("amend", 0), ("cancel", ""), ("cancel", "")],
    ),
    (
        [("", [], 0.0, "ok")],
        [("event", "wake"), ("request", "free"), ("sleep", "0.1"), ("cancel", ""), ("amend", 0)]
        + [("cancel", "")],
    ),
    (
        [("Well.", [], 3.0, "ok")],
        [("request", "free"), ("sleep", "0.5"), ("cancel", ""), ("cancel", ""), ("cancel", "")],
    ),
]
"""A request that is cancelled again while it tidies up."""


@pytest.mark.parametrize(("replies", "acts"), HIT_TWICE)
@pytest.mark.parametrize("owned", [True, False])
def test_a_second_cancellation_leaves_nothing_half(
    owned: bool, replies: list[Any], acts: list[Any]
) -> None:
    run_virtual(play(replies, acts, owned, SlowStore()))


@pytest.mark.soak
@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("store", [MemoryStore, SlowStore])
@settings(max_examples=10_000)
@whatever_happens
def test_invariants_4_6_7_hold_ten_thousand_times(
    owned: bool, store: type[MemoryStore], replies: list[Any], acts: list[Any]
) -> None:
    run_virtual(play(replies, acts, owned, store()))


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3), min_size=1, max_size=3),
    st.lists(act, min_size=1, max_size=10).map(
        lambda acts: [
            ("request", "withdrawn") if one[0] == "request" else one
            for one in acts
            if one[0] not in ("wake", "event", "commit")
        ]
    ),
)
def test_no_side_effect_of_an_uncommitted_turn(replies: list[list[str]], acts: list[Any]) -> None:
    async def run() -> None:
        worlds: list[World] = []
        model = RandomModel([("", names, 0.0, "ok") for names in replies])
        agent = make_agent(model, *tools_of(worlds), max_turns=4, join_wait_s=0.1)  # type: ignore[arg-type]
        worlds.append(World(agent))
        async with asyncio.TaskGroup() as tasks, agent.running():
            await drive(worlds[0], acts, tasks)
        assert worlds[0].side_effects == 0

    run_virtual(run())


Hit = Callable[["Sweep", "asyncio.Future[None]"], Awaitable[None]]


class Sweep:
    """One request with a slow store, hit once at a chosen moment of its life."""

    def __init__(self) -> None:
        worlds: list[World] = []
        replies = [("Let me see.", ["checkout", "slow"], 0.1, "ok"), ("So.", [], 0, "ok")]
        self.model = RandomModel(replies)
        self.agent = make_agent(self.model, *tools_of(worlds), store=SlowStore())  # type: ignore[arg-type]
        self.world = World(self.agent)
        worlds.append(self.world)
        self.recorder = Recorder()
        self.agent.add_subscriber(self.recorder)
        self.spoken: list[str] = []
        self.token = CancelToken()

    def listen(self, event: Any) -> None:
        if event.wire == "text_delta" and event.message_id not in self.spoken:
            self.spoken.append(event.message_id)

    async def request(self) -> None:
        try:
            await self.agent.process_request(
                "go", token=self.token, playback=True, subscriber=self.listen
            )
        except AbortError:
            return

    async def play(self, moment: float, hit: Hit) -> None:
        task = asyncio.ensure_future(self.request())
        await asyncio.sleep(moment)
        await hit(self, task)
        await asyncio.wait([task])


async def hit_cancel(sweep: Sweep, task: asyncio.Future[None]) -> None:
    task.cancel()


async def hit_abort(sweep: Sweep, task: asyncio.Future[None]) -> None:
    sweep.token.abort("barge-in")


async def hit_tools(sweep: Sweep, task: asyncio.Future[None]) -> None:
    sweep.token.abort("hang-up", tools=True)


@pytest.mark.parametrize("hit", [hit_cancel, hit_abort, hit_tools])
@pytest.mark.parametrize("owned", [True, False])
def test_no_moment_of_a_cut_is_special(hit: Hit, owned: bool) -> None:
    async def run(moment: float) -> None:
        sweep = Sweep()
        if owned:
            async with sweep.agent.running():
                await sweep.play(moment, hit)
        else:
            await sweep.play(moment, hit)
        await check(sweep.world, sweep.recorder, sweep.model)

    for step in range(100):
        run_virtual(run(step * 0.04))


def test_no_moment_of_an_amendment_is_special() -> None:
    async def hit(sweep: Sweep, task: asyncio.Future[None]) -> None:
        for message_id in sweep.spoken:
            await sweep.agent.amend_heard(message_id, "Let", " me see.", interrupted=True)
        sweep.amended = list(sweep.spoken)  # type: ignore[attr-defined]

    async def run(moment: float) -> int:
        sweep = Sweep()
        await sweep.play(moment, hit)
        amended = sweep.amended  # type: ignore[attr-defined]
        heard = {one.id: one.heard for one in await sweep.agent.store.get_messages()}
        assert [heard[one] for one in amended] == ["Let"] * len(amended)
        return len(amended)

    amendments = [run_virtual(run(step * 0.02)) for step in range(200)]
    assert set(amendments) == {0, 1, 2}
