"""Permissions and the display stack (spec core 7, 8; rows 35-45)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from tests.core.support import ScriptedModel, call, make_agent, make_tool, results, until
from voxglove.core import (
    AbortError,
    Agent,
    CancelToken,
    DisplayChange,
    DisplayStack,
    MemoryStore,
    PermissionRequest,
    RequestResult,
    Slot,
    SlotRejected,
    ToolContext,
    UsageError,
    visible_slots,
)


def answering(display: DisplayStack, answer: Callable[[Slot], object]) -> list[Slot]:
    """Listen and answer every slot at once, from inside the listener."""
    asked: list[Slot] = []

    def listener(change: DisplayChange) -> None:
        if change.kind == "pushed":
            asked.append(change.slot)
            answer(change.slot)

    display.subscribe(listener)
    return asked


def refuse(display: DisplayStack, slot: Slot) -> None:
    display.resolve(slot.id, False)


async def run_gated(
    display: DisplayStack, *inputs: dict[str, Any], rule: Any = True, **config: Any
) -> tuple[list[str], list[object]]:
    """(statuses, inputs the tool really ran with) of one call per input."""
    ran: list[object] = []
    gated = make_tool(ran.append, requires_permission=rule)
    model = ScriptedModel(*(call(("act", one)) for one in inputs), "done")
    agent = make_agent(model, gated, display=display, **config)
    await agent.process_request("go")
    return [one.result.status for one in (await results(agent)).values()], ran


@pytest.mark.parametrize(("answer", "status"), [(True, "success"), (False, "error")])
async def test_core_row_035_the_user_is_asked_by_a_slot(answer: bool, status: str) -> None:
    display = DisplayStack()
    asked = answering(display, lambda slot: display.resolve(slot.id, answer))
    statuses, ran = await run_gated(display, {"x": 1})
    assert statuses == [status]
    assert bool(ran) is answer
    (slot,) = asked
    assert slot.renderer == "permission_request"
    assert slot.input == {
        "renderer": "permission_request",
        "toolName": "act",
        "toolInput": {"x": 1},
    }
    assert slot.tool_call_id == "c1_0"
    assert display.stack == () and display.pending == 0


async def test_core_row_036_the_rule_may_depend_on_the_input() -> None:
    async def slowly(value: dict[str, int]) -> bool:
        await asyncio.sleep(0)
        return value["amount"] > 10

    for rule in (lambda value: value["amount"] > 10, slowly):
        display = DisplayStack()
        asked = answering(display, partial(refuse, display))
        statuses, _ = await run_gated(display, {"amount": 5}, {"amount": 50}, rule=rule)
        assert statuses == ["success", "error"]
        assert len(asked) == 1


async def test_core_row_037_decisions_are_remembered_per_input() -> None:
    display = DisplayStack()
    asked = answering(display, lambda slot: display.resolve(slot.id, True))
    statuses, _ = await run_gated(display, {"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 2})
    assert statuses == ["success"] * 3
    assert len(asked) == 2  # key order does not make it another input (19.25)


async def test_core_row_038_a_rejected_prompt_is_an_error_and_leaves_nothing_stale() -> None:
    ran: list[object] = []
    display = DisplayStack()
    answering(display, lambda slot: display.reject(slot.id, "closed the page"))
    model = ScriptedModel(call(("act", {}), ("free", {})), "one", "two")
    gated = make_tool(ran.append, requires_permission=True)
    store = MemoryStore()
    agent = make_agent(
        model, gated, make_tool(lambda value: "ok", "free"), display=display, store=store
    )
    await agent.process_request("go")
    denied, free = (one.result for one in (await results(agent)).values())
    assert denied.status == "error" and "closed the page" in str(denied.message)
    assert free.status == "success"
    await agent.process_request("unrelated")
    assert ran == []
    assert await store.get_permission("act", "{}") == "unset"


async def test_fault_01_a_raising_rule_is_a_result_and_not_replayed() -> None:
    def rule(value: object) -> bool:
        raise RuntimeError("rule")

    statuses, ran = await run_gated(DisplayStack(), {}, rule=rule)
    assert (statuses, ran) == (["error"], [])


@pytest.mark.parametrize(
    ("config", "allowed"),
    [
        ({"permissions": "allow"}, True),
        ({"permissions": "deny"}, False),
        ({"permissions": "display"}, False),  # nobody listens: closed
        ({}, False),
        ({"server_mode": True}, False),
        ({"server_mode": True, "permissions": "allow"}, True),
    ],
)
async def test_core_row_039_policies_and_defaults(config: dict[str, Any], allowed: bool) -> None:
    statuses, ran = await run_gated(DisplayStack(), {}, **config)
    assert statuses == ["success" if allowed else "error"]
    assert bool(ran) is allowed


async def test_core_row_039_a_policy_function_decides_and_the_model_is_told() -> None:
    asked: list[PermissionRequest] = []

    async def policy(request: PermissionRequest) -> bool:
        asked.append(request)
        return False

    model = ScriptedModel(call(("act", {"x": 1})), "done")
    agent = make_agent(model, make_tool(print, requires_permission=True), permissions=policy)
    await agent.process_request("go")
    assert asked == [PermissionRequest("act", {"x": 1})]
    told = model.requests[1].messages[-1].tool_results[0].result.message
    assert told == "Permission denied for tool act: the permission policy refused it."


async def test_fault_25_the_rule_sees_validated_input() -> None:
    class Amount(BaseModel):
        amount: int = 3

    seen: list[object] = []

    def rule(value: object) -> bool:
        seen.append(value)
        return False

    tool = make_tool(lambda value: "ok", input_model=Amount, requires_permission=rule)
    model = ScriptedModel(call(("act", {"amount": "x"}), ("act", {})), "done")
    await make_agent(model, tool).process_request("go")
    assert seen == [Amount(amount=3)]


async def wait_on(display: DisplayStack) -> asyncio.Future[object]:
    wait = asyncio.ensure_future(display.push_and_wait("confirm", {"q": 1}))
    await until(lambda: display.pending == 1)
    return wait


async def test_core_row_040_push_and_wait_returns_or_raises() -> None:
    display = DisplayStack()
    wait = await wait_on(display)
    assert display.resolve(display.stack[0].id, {"ok": 1})
    assert await wait == {"ok": 1}
    wait = await wait_on(display)
    display.reject(display.stack[0].id, KeyError("why"))
    with pytest.raises(KeyError):
        await wait
    assert display.resolve("slot_99") is False
    assert display.reject("slot_1") is False


async def test_core_row_041_a_listener_may_answer_at_once() -> None:
    display = DisplayStack()
    answering(display, lambda slot: display.resolve(slot.id, "quick"))
    assert await display.push_and_wait("confirm") == "quick"
    assert display.stack == ()


async def test_core_row_042_push_and_forget_and_remove() -> None:
    display, seen = DisplayStack(), []
    unsubscribe = display.subscribe(lambda change: seen.append((change.kind, len(change.stack))))
    first = display.push_and_forget("card", {"n": 1})
    second = display.push_and_forget("card", {"n": 2}, strategy="hide-on-new")
    assert [slot.id for slot in display.stack] == [first, second]
    assert display.remove_slot(first) and not display.remove_slot(first)
    assert display.resolve(second)  # a slot nobody waits for is removed by an answer
    assert seen == [("pushed", 1), ("pushed", 2), ("removed", 1), ("removed", 0)]
    unsubscribe()
    display.push_and_forget("card")
    assert len(seen) == 4
    with pytest.raises(UsageError, match="strategy"):
        display.push_and_forget("card", strategy="never")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="renderer"):
        display.push_and_forget("")


@pytest.mark.parametrize("how", ["abort", "cancel", "remove", "clear"])
async def test_core_row_043_pending_returns_to_zero_however_a_wait_ends(how: str) -> None:
    display, token = DisplayStack(), CancelToken()
    wait = asyncio.ensure_future(display.push_and_wait("confirm", token=token))
    await until(lambda: display.pending == 1)
    if how == "abort":
        token.abort("stop")
    elif how == "cancel":
        wait.cancel()
    elif how == "remove":
        display.remove_slot(display.stack[0].id)
    else:
        display.clear_stack()
    with pytest.raises((AbortError, asyncio.CancelledError, SlotRejected)):
        await wait
    assert (display.pending, display.stack) == (0, ())


def _slot(identity: str, strategy: Any, tool: str | None = None) -> Slot:
    return Slot(id=identity, renderer="r", input=None, strategy=strategy, tool_name=tool)


@pytest.mark.parametrize(
    ("slots", "pending", "visible"),
    [
        ([_slot("1", "stay"), _slot("2", "stay")], [], ["1", "2"]),
        ([_slot("1", "hide-on-complete"), _slot("2", "hide-on-complete")], ["2"], ["2"]),
        ([_slot("1", "hide-on-new", "a"), _slot("2", "hide-on-new", "a")], [], ["2"]),
        ([_slot("1", "hide-on-new", "a"), _slot("2", "stay", "a")], [], ["2"]),
        ([_slot("1", "hide-on-new", "a"), _slot("2", "hide-on-new", "b")], [], ["1", "2"]),
    ],
)
def test_core_row_044_strategies(slots: list[Slot], pending: list[str], visible: list[str]) -> None:
    assert [slot.id for slot in visible_slots(slots, pending)] == visible


async def test_core_row_045_a_late_display_is_used() -> None:
    first, second = DisplayStack(), DisplayStack()

    async def show(value: object, ctx: ToolContext) -> str:
        return ctx.display.push_and_forget("card", value)

    agent = make_agent(ScriptedModel(call(("act", {"n": 1})), "ok"), make_tool(show), display=first)
    agent.set_display(second)
    await agent.process_request("go")
    assert first.stack == ()
    (slot,) = second.stack
    assert (slot.tool_name, slot.tool_call_id, slot.input) == ("act", "c1_0", {"n": 1})


async def waiting_tool(
    *, un_abortable: bool
) -> tuple[Agent, DisplayStack, asyncio.Future[RequestResult]]:
    async def ask(value: object, ctx: ToolContext) -> object:
        return await ctx.display.push_and_wait("confirm")

    agent = make_agent(
        ScriptedModel(call(("act", {})), "ok"), make_tool(ask, un_abortable=un_abortable)
    )
    request = asyncio.ensure_future(agent.process_request("go"))
    await until(lambda: agent.display.pending == 1)
    return agent, agent.display, request


async def test_fault_14_an_interrupt_takes_the_question_of_a_tool_away() -> None:
    agent, display, request = await waiting_tool(un_abortable=False)
    agent.interrupt("stop")
    with pytest.raises(AbortError):
        await request
    assert (display.pending, display.stack) == (0, ())


async def test_the_question_of_an_un_abortable_tool_stays() -> None:
    agent, display, request = await waiting_tool(un_abortable=True)
    agent.interrupt("stop")
    await asyncio.sleep(1)
    assert display.pending == 1
    display.resolve(display.stack[0].id, "yes")
    with pytest.raises(AbortError):
        await request
    assert (await results(agent))["c1_0"].result.data == "yes"


async def test_a_raising_display_listener_stops_nobody() -> None:
    display, seen = DisplayStack(), []

    def broken(change: DisplayChange) -> None:
        raise RuntimeError("listener")

    display.subscribe(broken)
    display.subscribe(lambda change: seen.append(change.kind))
    display.push_and_forget("card")
    assert seen == ["pushed"]


def test_who_only_watches_the_display_is_no_audience() -> None:
    """A call's brain watches for pending questions; that must not turn a denial into a wait."""
    display = DisplayStack()
    seen: list[DisplayChange] = []
    leave = display.subscribe(seen.append, answers=False)
    assert not display.has_audience
    display.push_and_forget("note")
    assert len(seen) == 1
    stay = display.subscribe(lambda change: None)
    assert display.has_audience
    stay()
    assert not display.has_audience
    leave()


async def test_core_row_039_a_policy_may_be_a_plain_function() -> None:
    def policy(request: PermissionRequest) -> bool:
        return request.input == {"safe": True}

    model = ScriptedModel(call(("act", {"safe": True}), ("act", {})), "done")
    tool = make_tool(lambda value: "ok", requires_permission=True)
    agent = make_agent(model, tool, permissions=policy)
    await agent.process_request("go")
    assert [one.result.status for one in (await results(agent)).values()] == ["success", "error"]
