"""The calls of a realtime model: one result for each, whatever happens (rows 39, 93)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import BaseModel

from tests.core.live_rig import assert_view_valid, on_line
from tests.core.support import (
    Recorder,
    ScriptedModel,
    SlowStore,
    make_agent,
    make_tool,
    results,
    stored,
    until,
)
from voxglove.core import (
    AbortError,
    Agent,
    CancelToken,
    DisplayStack,
    LiveConversation,
    MemoryStore,
    Message,
    MessagePatch,
    PermissionPolicy,
    PermissionRequest,
    StoreError,
    Tool,
    ToolCall,
    ToolContext,
    ToolResult,
    UsageError,
    result_text,
)


class Amount(BaseModel):
    euros: int


class Work:
    """A tool body that waits until it is told to finish."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.finish = asyncio.Event()
        self.runs = 0

    async def __call__(self, value: object) -> str:
        self.runs += 1
        self.started.set()
        await self.finish.wait()
        return "finished"


def boom(value: object) -> None:
    raise OSError("no paper")


def tools() -> list[Tool]:
    return [
        make_tool(lambda value: "fine", "quick"),
        make_tool(lambda value: f"paid {value.euros}", "pay", input_model=Amount),
        make_tool(lambda value: "opened", "vault", requires_permission=True),
        make_tool(boom, "print"),
    ]


async def assert_answered_once(
    agent: Agent, live: LiveConversation, told: tuple[ToolResult, ...]
) -> None:
    """Each call is in the store with the one result that was given back, next to it."""
    kept = await results(agent)
    messages = await stored(agent)
    asked = [call.id for message in messages for call in message.tool_calls]
    assert sorted(kept) == sorted(asked)
    assert [kept[one.call_id] for one in told] == list(told)
    for at, message in enumerate(messages):
        if message.tool_calls:
            behind = [one.call_id for one in messages[at + 1].tool_results]
            assert sorted(behind) == sorted(call.id for call in message.tool_calls)
    await assert_view_valid(live)


OUTCOMES = [
    pytest.param("quick", {}, "success", "fine", id="success"),
    pytest.param("Quick", {}, "success", "fine", id="another spelling"),
    pytest.param("fly", {}, "error", "There is no tool 'fly'", id="unknown"),
    pytest.param("pay", '{"euros": ', "error", "", id="bad JSON"),
    pytest.param("pay", {"euros": "many"}, "error", "euros", id="invalid"),
    pytest.param("vault", {}, "error", "Permission denied", id="denied"),
    pytest.param("print", {}, "error", "OSError: no paper", id="raises"),
]


@pytest.mark.parametrize(("name", "given", "status", "text"), OUTCOMES)
async def test_core_row_093_every_outcome_of_a_call_is_answered_once(
    name: str, given: object, status: str, text: str
) -> None:
    recorder = Recorder()
    agent = make_agent(ScriptedModel(), *tools()).add_subscriber(recorder)
    async with on_line(agent, permissions="deny") as live:
        told = await live.run_calls([ToolCall(name, given, "c1")], run_id="r1")
        assert [(one.call_id, one.result.status) for one in told] == [("c1", status)]
        assert text in result_text(told[0].result)
        await assert_answered_once(agent, live, told)
    for wire in ("tool_use", "tool_started", "tool_use_result"):
        (event,) = recorder.of(wire)
        assert event.run_id == "r1"
    assert recorder.of("tool_settled_idle") == []  # it was awaited
    assert agent.outstanding == frozenset()


async def test_core_row_093_results_come_in_the_order_of_the_calls() -> None:
    agent = make_agent(ScriptedModel(), *tools())
    wanted = [ToolCall(name, {}, f"c{at}") for at, name in enumerate(["print", "fly", "quick"])]
    async with on_line(agent) as live:
        told = await live.run_calls(wanted, text="One moment.", message_id="m1", playback=True)
        assert [one.call_id for one in told] == ["c0", "c1", "c2"]
        assert [one.tool_name for one in told] == ["print", "fly", "quick"]
        await assert_answered_once(agent, live, told)
        await agent.amend_heard("m1", "One", " moment.", interrupted=True)
        assert (await live.view())[0].text == "One [interrupted]"
        with pytest.raises(UsageError, match="at least one"):
            await live.run_calls([])


@pytest.mark.parametrize("how", ["abort_tools", "interrupt", "token"])
async def test_core_row_093_an_aborted_call_is_answered_once(how: str) -> None:
    work, token = Work(), CancelToken()
    agent = make_agent(ScriptedModel(), make_tool(work))
    async with on_line(agent) as live:
        calls = [ToolCall("act", {}, "c1"), ToolCall("act", {}, "c2")]
        running = asyncio.ensure_future(live.run_calls(calls, token=token))
        await work.started.wait()
        if how == "token":
            token.abort("stop word", tools=True)
            with pytest.raises(AbortError, match="stop word"):
                await running
            await until(lambda: not agent.outstanding)
        else:
            getattr(agent, how)("stop word")
            told = await running
            assert {one.result.status for one in told} == {"aborted"}
        kept = await results(agent)
        assert ["stop word" in result_text(one.result) for one in kept.values()] == [True, True]
        await assert_view_valid(live)
    assert work.runs == 1


async def test_core_row_093_a_call_the_provider_cancels_is_answered_once() -> None:
    works = [Work(), Work(), Work()]
    agent = make_agent(
        ScriptedModel(),
        make_tool(works[0], "first", parallel=True),
        make_tool(works[1], "other", parallel=True),
        make_tool(works[2], "queued"),
    )
    async with on_line(agent) as live:
        calls = [ToolCall(name, {}, name) for name in ("first", "other", "queued")]
        running = asyncio.ensure_future(live.run_calls(calls))
        await works[1].started.wait()
        live.abort_calls(["first", "queued", "unknown"], "not wanted")
        live.abort_calls(["first"], "a second reason")
        works[1].finish.set()
        told = await running
        assert [one.result.status for one in told] == ["aborted", "success", "aborted"]
        assert "not wanted" in result_text(told[0].result)
        assert "not wanted" in result_text(told[2].result)
        await assert_answered_once(agent, live, told)
        live.abort_calls(["other"], "too late")
    assert works[2].runs == 0


async def test_core_row_093_a_cancelled_un_abortable_call_finishes_and_its_result_is_kept() -> None:
    work = Work()
    agent = make_agent(ScriptedModel(), make_tool(work, un_abortable=True))
    async with on_line(agent) as live:
        calls = [ToolCall("act", {}, "c1"), ToolCall("act", {}, "c2")]
        running = asyncio.ensure_future(live.run_calls(calls))
        await work.started.wait()
        live.abort_calls(["c1", "c2"])
        await asyncio.sleep(1)
        assert not running.done()
        work.finish.set()
        told = await running
        # The one that was queued never started.
        assert [one.result.status for one in told] == ["success", "aborted"]
        await assert_answered_once(agent, live, told)
    assert work.runs == 1


@pytest.mark.parametrize("when_s", [None, 0.0, SlowStore.delay_s, SlowStore.delay_s * 3.5])
async def test_core_row_093_a_call_cancelled_before_it_began_never_runs(
    when_s: float | None,
) -> None:
    work = Work()
    agent = make_agent(ScriptedModel(), make_tool(work), store=SlowStore())
    async with on_line(agent) as live:
        running = asyncio.ensure_future(live.run_calls([ToolCall("act", {}, "c1")]))
        if when_s is not None:
            await asyncio.sleep(when_s)
        live.abort_calls(["c1"], "not wanted")
        told = await running
        assert told[0].result.status == "aborted"
        assert "not wanted" in result_text(told[0].result)
        await assert_answered_once(agent, live, told)
    assert work.runs == 0


@pytest.mark.parametrize("how", ["abort_tools", "interrupt"])
async def test_what_stops_tools_reaches_calls_on_their_way_into_the_store(how: str) -> None:
    work = Work()
    agent = make_agent(ScriptedModel(), make_tool(work), store=SlowStore())
    async with on_line(agent) as live:
        running = asyncio.ensure_future(live.run_calls([ToolCall("act", {}, "c1")]))
        await asyncio.sleep(SlowStore.delay_s)
        getattr(agent, how)("stop word")
        (told,) = await running
        assert "stop word" in result_text(told.result)
    assert work.runs == 0


async def test_a_cancelled_caller_leaves_the_tool_running_and_its_result_is_announced() -> None:
    work, recorder = Work(), Recorder()
    agent = make_agent(ScriptedModel(), make_tool(work)).add_subscriber(recorder)
    async with on_line(agent) as live:
        running = asyncio.ensure_future(live.run_calls([ToolCall("act", {}, "c1")]))
        await work.started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        view = await assert_view_valid(live)
        assert view[1].tool_results[0].result.data == "still running"
        work.finish.set()
        await until(lambda: not agent.outstanding)
        await assert_answered_once(agent, live, ())
    (settled,) = recorder.of("tool_settled_idle")
    assert (settled.call_id, settled.status) == ("c1", "success")


async def test_what_settled_before_the_caller_was_cancelled_is_announced_too() -> None:
    work, recorder = Work(), Recorder()
    agent = make_agent(ScriptedModel(), *tools(), make_tool(work)).add_subscriber(recorder)
    async with on_line(agent) as live:
        calls = [ToolCall("quick", {}, "c1"), ToolCall("act", {}, "c2")]
        running = asyncio.ensure_future(live.run_calls(calls))
        await work.started.wait()
        await agent.flush()
        assert recorder.of("tool_settled_idle") == []
        running.cancel()
        await asyncio.wait([running])
        await agent.flush()
        assert [one.call_id for one in recorder.of("tool_settled_idle")] == ["c1"]
        work.finish.set()
        await until(lambda: not agent.outstanding)
    assert [one.call_id for one in recorder.of("tool_settled_idle")] == ["c1", "c2"]


@pytest.mark.parametrize("share", [0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
async def test_a_caller_cancelled_at_any_moment_leaves_no_call_without_a_result(
    share: float,
) -> None:
    agent = make_agent(ScriptedModel(), *tools(), store=SlowStore())
    async with on_line(agent) as live:
        running = asyncio.ensure_future(live.run_calls([ToolCall("quick", {}, "c1")]))
        await asyncio.sleep(SlowStore.delay_s * share)
        running.cancel()
        await asyncio.wait([running])
        await asyncio.sleep(2)
        await assert_answered_once(agent, live, ())
        assert await live.compact(live.summarise_with(ScriptedModel("all")))  # nothing is left over


async def test_after_a_hang_up_an_un_abortable_tool_goes_on_in_the_servers_group() -> None:
    works = [Work(), Work()]
    agent = make_agent(
        ScriptedModel(),
        make_tool(works[0], "buy", un_abortable=True, parallel=True),
        make_tool(works[1], "look", parallel=True),
    )
    async with asyncio.TaskGroup() as server:
        async with agent.running(server), agent.turn_queue.hold("a session"):
            live = agent.live()
            calls = [ToolCall("buy", {}, "c1"), ToolCall("look", {}, "c2")]
            running = asyncio.ensure_future(live.run_calls(calls))
            await works[1].started.wait()
            running.cancel()
            await asyncio.wait([running])
        await until(lambda: agent.outstanding == {"c1"})
        kept = await results(agent)
        assert (list(kept), kept["c2"].result.status) == (["c2"], "aborted")
        works[0].finish.set()
    kept = await results(agent)
    assert kept["c1"].result.data == "finished"


class FullStore(MemoryStore):
    """Takes no amendments while it is full."""

    full = False

    async def amend_message(self, message_id: str, patch: MessagePatch) -> Message:
        if self.full:
            raise StoreError("the disk is full")
        return await super().amend_message(message_id, patch)


async def test_a_store_that_takes_no_results_leaves_nobody_waiting() -> None:
    store = FullStore()
    agent = make_agent(ScriptedModel(), *tools(), store=store)
    async with on_line(agent) as live:
        store.full = True
        told = await live.run_calls([ToolCall("quick", {}, "c1"), ToolCall("quick", {}, "c2")])
        # The first ran and the model is told so; the second was never begun.
        assert [result_text(one.result) for one in told] == [
            "fine",
            "Error: Its result could not be stored.",
        ]
        await assert_view_valid(live)
        store.full = False
        (again,) = await live.run_calls([ToolCall("quick", {}, "c3")])
        assert again.result.status == "success"


async def test_ids_that_a_provider_uses_again_are_made_unique() -> None:
    agent = make_agent(ScriptedModel(), *tools())
    async with on_line(agent) as live:
        first = await live.run_calls([ToolCall("quick", {}, "c1"), ToolCall("quick", {}, "c1")])
        again, beside = await asyncio.gather(
            live.run_calls([ToolCall("quick", {}, "c1"), ToolCall("quick", {}, "")]),
            live.run_calls([ToolCall("quick", {}, "c1")]),
        )
        told = (*first, *again, *beside)
        assert told[0].call_id == "c1"
        assert len({one.call_id for one in told}) == 5
        await assert_answered_once(agent, live, told)


async def test_of_two_calls_of_one_id_the_latest_is_cancelled() -> None:
    work = Work()
    agent = make_agent(ScriptedModel(), make_tool(work))
    async with on_line(agent) as live:
        first = asyncio.ensure_future(live.run_calls([ToolCall("act", {}, "c1")]))
        second = asyncio.ensure_future(live.run_calls([ToolCall("act", {}, "c1")]))
        await until(lambda: work.runs == 2)
        live.abort_calls(["c1"])
        assert (await second)[0].result.status == "aborted"
        assert not first.done()
        work.finish.set()
        assert (await first)[0].result.status == "success"


@pytest.mark.parametrize(("bound", "tries"), [(0, 1), (1, 2), (None, 3), (9, 3)])
async def test_retries_are_bounded_by_the_conversation(bound: int | None, tries: int) -> None:
    attempts = 0

    async def flaky(value: object) -> None:
        nonlocal attempts
        attempts += 1
        raise OSError("flaky")

    agent = make_agent(ScriptedModel(), make_tool(flaky, retries=2))
    async with on_line(agent, tool_retries=bound) as live:
        (told,) = await live.run_calls([ToolCall("act", {}, "c1")])
        assert told.result.status == "error"
    assert attempts == tries


async def test_side_effects_wait_for_the_gate_and_reading_does_not() -> None:
    ran: list[str] = []
    agent = make_agent(
        ScriptedModel(),
        make_tool(lambda value: ran.append("look"), "look", read_only=True),
        make_tool(lambda value: ran.append("buy"), "buy"),
    )
    committed = asyncio.Event()
    async with on_line(agent) as live:
        calls = [ToolCall("look", {}, "c1"), ToolCall("buy", {}, "c2")]
        running = asyncio.ensure_future(live.run_calls(calls, gate=committed))
        await asyncio.sleep(1)
        assert ran == ["look"]
        committed.set()
        await running
        assert ran == ["look", "buy"]
        (told,) = await live.run_calls([ToolCall("buy", {}, "c3")], gate=lambda: False)
        assert told.result.status == "aborted" and ran == ["look", "buy"]


async def test_a_tool_that_changes_the_agent_is_seen_when_its_result_comes() -> None:
    def learn(value: object, ctx: ToolContext) -> str:
        ctx.agent.fold(make_tool(lambda value: "new", "skill"))
        ctx.agent.set_system_prompt("You know more.")
        return "learnt"

    agent = make_agent(ScriptedModel(), make_tool(learn))
    async with on_line(agent) as live:
        before = live.tools
        await live.run_calls([ToolCall("act", {}, "c1")])
        assert live.tools is not before and live.prompt == "You know more."
        (told,) = await live.run_calls([ToolCall("skill", {}, "c2")])
        assert told.result.data == "new"


async def test_a_tool_may_not_wait_for_a_turn_of_its_own_agent() -> None:
    async def asks(value: object) -> str:
        return (await agent.process_request("and you?")).text

    agent = make_agent(ScriptedModel(), make_tool(asks))
    async with on_line(agent) as live:
        (told,) = await live.run_calls([ToolCall("act", {}, "c1")])
        assert "would wait for itself" in result_text(told.result)


async def test_core_row_048_no_summary_while_a_call_has_no_result() -> None:
    work, summaries = Work(), ScriptedModel("one", "two")
    agent = make_agent(ScriptedModel(), make_tool(work), store=SlowStore())
    async with on_line(agent) as live:
        await live.add_user("hello", directives=False)
        running = asyncio.ensure_future(live.run_calls([ToolCall("act", {}, "c1")]))
        await asyncio.sleep(SlowStore.delay_s)  # on its way into the store
        assert not await live.compact(live.summarise_with(summaries))
        await work.started.wait()
        assert not await live.compact(live.summarise_with(summaries))
        work.finish.set()
        await running
        assert await live.compact(live.summarise_with(summaries))
    assert len(summaries.requests) == 1


async def test_core_row_048_a_call_that_comes_during_a_summary_is_not_hidden_by_it() -> None:
    agent = make_agent(ScriptedModel(), *tools())
    async with on_line(agent) as live:

        async def slowly(view: list[Message], text: str, token: CancelToken) -> Any:
            await live.run_calls([ToolCall("quick", {}, "c1")])
            return "old news", None

        assert not await live.compact(slowly)
        assert [len(one.tool_results) for one in await live.view()] == [0, 1]


# -- permissions


async def decision(
    policy: PermissionPolicy | None,
    *,
    remembered: bool | None = None,
    display: DisplayStack | None = None,
    **config: Any,
) -> tuple[bool, str]:
    """Whether a gated tool ran on a call with this policy, and what the model was told."""
    ran: list[object] = []
    store = MemoryStore()
    if remembered is not None:
        await store.set_permission("vault", "granted" if remembered else "denied", "{}")
    vault = make_tool(ran.append, "vault", requires_permission=True)
    agent = make_agent(ScriptedModel(), vault, store=store, display=display, **config)
    async with on_line(agent, permissions=policy) as live:
        (told,) = await live.run_calls([ToolCall("vault", {}, "c1")])
        await assert_answered_once(agent, live, (told,))
    return bool(ran), result_text(told.result)


def yes(request: PermissionRequest) -> bool:
    return (request.tool, request.input) == ("vault", {})


async def yes_later(request: PermissionRequest) -> bool:
    await asyncio.sleep(0.1)
    return yes(request)


async def no_later(request: PermissionRequest) -> bool:
    return False


def fails(request: PermissionRequest) -> bool:
    raise OSError("directory down")


async def fails_later(request: PermissionRequest) -> bool:
    raise TimeoutError


async def cancelled_inside(request: PermissionRequest) -> bool:
    raise asyncio.CancelledError


POLICIES = [
    pytest.param("allow", True, "", id="allow"),
    pytest.param("deny", False, "nobody can be asked", id="deny"),
    pytest.param(yes, True, "", id="plain function"),
    pytest.param(yes_later, True, "", id="async function"),
    pytest.param(lambda request: False, False, "refused", id="plain refusal"),
    pytest.param(no_later, False, "refused", id="async refusal"),
    pytest.param(fails, False, "failed (OSError)", id="raises"),
    pytest.param(fails_later, False, "failed (TimeoutError)", id="raises later"),
    pytest.param(cancelled_inside, False, "failed (CancelledElsewhere)", id="cancelled inside"),
    pytest.param("display", False, "no display", id="display, nobody looks"),
]


@pytest.mark.parametrize(("policy", "allowed", "why"), POLICIES)
async def test_core_row_039_a_conversation_brings_its_policy(
    policy: PermissionPolicy, allowed: bool, why: str
) -> None:
    for config in ({"permissions": "deny"}, {"permissions": "allow"}, {"server_mode": True}):
        ran, told = await decision(policy, **config)
        assert ran == allowed
        assert allowed or ("Permission denied" in told and why in told)


@pytest.mark.parametrize("remembered", [True, False])
@pytest.mark.parametrize("policy", ["allow", "deny", "display", yes, no_later, fails])
async def test_core_row_039_what_the_store_remembers_comes_first(
    policy: PermissionPolicy, remembered: bool
) -> None:
    ran, told = await decision(policy, remembered=remembered)
    assert ran == remembered
    assert remembered or "refused this before" in told


@pytest.mark.parametrize(
    ("config", "allowed"),
    [({}, False), ({"server_mode": True}, False), ({"permissions": "allow"}, True)],
)
async def test_core_row_039_without_one_the_agents_policy_counts(
    config: dict[str, Any], allowed: bool
) -> None:
    ran, told = await decision(None, **config)
    assert ran == allowed
    if config.get("server_mode"):
        assert "nobody can be asked" in told


@pytest.mark.parametrize("answer", [True, False])
async def test_core_row_039_the_display_is_asked_also_for_a_server(answer: bool) -> None:
    display = DisplayStack()
    display.subscribe(lambda change: None)
    deciding = asyncio.ensure_future(decision("display", display=display, server_mode=True))
    await until(lambda: bool(display.pending_ids))
    (slot,) = display.stack
    assert slot.renderer == "permission_request"
    display.resolve(slot.id, answer)
    ran, _ = await deciding
    assert ran == answer


async def hangs(request: PermissionRequest) -> bool:
    await asyncio.Event().wait()
    return True


async def rule_hangs(value: object) -> bool:
    await asyncio.Event().wait()
    return False


@pytest.mark.parametrize("rule", [True, rule_hangs])
@pytest.mark.parametrize("un_abortable", [True, False])
async def test_core_row_039_a_policy_that_hangs_ends_with_the_call_and_nothing_ran(
    rule: bool | Callable[..., Awaitable[bool]], un_abortable: bool
) -> None:
    ran: list[object] = []
    gated = make_tool(ran.append, requires_permission=rule, un_abortable=un_abortable)
    agent = make_agent(ScriptedModel(), gated)
    async with on_line(agent, permissions=hangs) as live:
        running = asyncio.ensure_future(live.run_calls([ToolCall("act", {}, "c1")]))
        await asyncio.sleep(60)
        live.abort_calls(["c1"], "not wanted")
        (told,) = await running
        assert told.result.status == "aborted"
        await assert_answered_once(agent, live, (told,))
    assert ran == []
