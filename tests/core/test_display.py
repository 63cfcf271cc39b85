"""The display stack: waits and their ends, listeners, and what a tool sees of it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.support import ScriptedModel, call, make_agent, make_tool, results, until
from voxglove.core import (
    AbortError,
    Agent,
    CancelToken,
    DisplayChange,
    DisplayStack,
    Slot,
    SlotRejected,
    ToolContext,
    ToolDisplay,
    tool,
    visible_slots,
)
from voxglove.core.toolkit import confirm_action


async def waiting(
    display: DisplayStack, token: CancelToken | None = None
) -> asyncio.Future[object]:
    """A tool's wait whose slot is shown."""
    wait = asyncio.ensure_future(display.push_and_wait("confirm", token=token))
    await until(lambda: display.pending == 1)
    return wait


async def test_core_row_040_an_answer_settles_a_wait_once() -> None:
    display = DisplayStack()
    wait = await waiting(display)
    (slot,) = display.stack
    assert display.resolve(slot.id, "first")
    assert not display.resolve(slot.id, "second")
    assert not display.reject(slot.id, "third")
    assert await wait == "first"


@pytest.mark.parametrize("late", ["resolve", "reject"])
async def test_core_row_040_an_answer_after_the_abort_is_not_taken(late: str) -> None:
    display, token = DisplayStack(), CancelToken()
    wait = await waiting(display, token=token)
    (slot,) = display.stack
    wait.cancel()
    if late == "resolve":
        assert not display.resolve(slot.id, "too late"), "its tool never hears of this"
    else:
        display.reject(slot.id, "too late")
    with pytest.raises(asyncio.CancelledError):
        await wait
    assert display.stack == () and display.pending == 0


async def test_fault_14_a_listener_that_answers_at_once_is_heard_and_removals_free_waiters() -> (
    None
):
    display = DisplayStack()

    def answer(change: DisplayChange) -> None:
        if change.kind == "pushed":
            assert display.resolve(change.slot.id, "at once")

    unsubscribe = display.subscribe(answer)
    assert await display.push_and_wait("confirm") == "at once"
    unsubscribe()
    for end in (lambda: display.remove_slot(display.stack[0].id), display.clear_stack):
        wait = await waiting(display)
        end()
        with pytest.raises(SlotRejected, match="removed"):
            await wait
    shown = display.push_and_forget("card")
    assert display.resolve(shown) and display.stack == ()


async def test_core_row_041_listeners_are_told_in_order_and_do_not_hurt_each_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    display = DisplayStack()
    heard: list[tuple[str, str, int]] = []

    def listener(name: str) -> Callable[[DisplayChange], None]:
        return lambda change: heard.append((name, change.kind, len(change.stack)))

    def broken(change: DisplayChange) -> None:
        raise RuntimeError("a page is gone")

    display.subscribe(listener("first"))
    display.subscribe(broken)
    leave = display.subscribe(listener("last"))
    display.push_and_forget("card")
    leave()
    display.clear_stack()
    assert heard == [("first", "pushed", 1), ("last", "pushed", 1), ("first", "removed", 0)]
    assert [record.message for record in caplog.records] == ["display listener failed"] * 2


async def test_core_row_042_a_slot_for_nobody_has_an_id_of_its_own_and_goes_alone() -> None:
    display = DisplayStack()
    shown = [display.push_and_forget("card", {"n": n}) for n in range(3)]
    assert len(set(shown)) == 3 and display.pending == 0
    assert display.remove_slot(shown[1])
    assert [slot.id for slot in display.stack] == [shown[0], shown[2]]
    assert display.reject(shown[0]) and not display.remove_slot(shown[0])
    assert display.push_and_forget("card") not in shown, "an id is never used again"


Act = st.sampled_from(["push", "resolve", "reject", "remove", "clear", "abort", "cancel", "forget"])


class Play:
    """A display that things happen to in any order, and the waits it had."""

    def __init__(self) -> None:
        self.display = DisplayStack()
        self.waits: list[tuple[asyncio.Task[object], CancelToken]] = []

    def act(self, act: str) -> None:
        display = self.display
        match act:
            case "push":
                token = CancelToken()
                wait = asyncio.create_task(display.push_and_wait("confirm", token=token))
                self.waits.append((wait, token))
            case "forget":
                display.push_and_forget("card")
            case "clear":
                display.clear_stack()
            case "abort" if self.waits:
                self.waits[-1][1].abort("stop")
            case "cancel" if self.waits:
                self.waits[0][0].cancel()
            case "resolve" | "reject" | "remove" if display.stack:
                do = display.remove_slot if act == "remove" else getattr(display, act)
                do(display.stack[0].id)

    async def end(self) -> None:
        for wait, _ in self.waits:
            wait.cancel()
        await asyncio.gather(*(wait for wait, _ in self.waits), return_exceptions=True)


@given(st.lists(Act, max_size=30))
def test_core_row_043_any_order_of_ends_leaves_nothing_pending(acts: list[str]) -> None:
    async def play() -> None:
        game = Play()
        for act in acts:
            game.act(act)
            for _ in range(4):
                await asyncio.sleep(0)
            assert game.display.pending_ids <= {slot.id for slot in game.display.stack}
            assert game.display.pending == sum(not wait.done() for wait, _ in game.waits)
        await game.end()
        assert game.display.pending == 0
        assert all(slot.renderer == "card" for slot in game.display.stack)

    asyncio.run(play())


def slot(at: int, **options: object) -> Slot:
    return replace(Slot(id=f"slot_{at}", renderer="r", input=None), **options)  # type: ignore[arg-type]


STRATEGY_CASES = [
    ("stay is always there", [slot(1), slot(2)], [], ["slot_1", "slot_2"]),
    (
        "hide-on-complete while its answer is pending",
        [slot(1, strategy="hide-on-complete"), slot(2, strategy="hide-on-complete")],
        ["slot_2"],
        ["slot_2"],
    ),
    (
        "hide-on-new is the newest of its tool",
        [slot(n, strategy="hide-on-new", tool_name="t" if n < 3 else "u") for n in (1, 2, 3)],
        [],
        ["slot_2", "slot_3"],
    ),
    (
        "without a tool the renderer counts",
        [slot(n, strategy="hide-on-new", renderer="a" if n < 3 else "b") for n in (1, 2, 3)],
        [],
        ["slot_2", "slot_3"],
    ),
    (
        "a newer slot hides it whatever that one's own strategy",
        [slot(1, strategy="hide-on-new"), slot(2)],
        [],
        ["slot_2"],
    ),
]


@pytest.mark.parametrize(
    ("slots", "pending", "shown"),
    [case[1:] for case in STRATEGY_CASES],
    ids=[case[0] for case in STRATEGY_CASES],
)
def test_core_row_044_each_strategy_shows_a_slot_while_it_should(
    slots: list[Slot], pending: list[str], shown: list[str]
) -> None:
    assert [one.id for one in visible_slots(slots, pending)] == shown


async def test_fault_05_a_tool_folded_before_uses_the_display_set_while_it_runs() -> None:
    """Core row 45, and later still: between two uses of one running tool."""
    second = DisplayStack()
    stacks: list[tuple[int, int]] = []

    async def act(value: object, ctx: ToolContext) -> str:
        ctx.display.push_and_forget("card", {"n": 1})
        ctx.agent.set_display(second)
        ctx.display.push_and_forget("card", {"n": 2})
        stacks.append((len(first.stack), len(second.stack)))
        return "done"

    agent = make_agent(ScriptedModel(call(("act", {})), "ok"), make_tool(act))
    first = agent.display
    await agent.process_request("go")
    assert stacks == [(1, 1)]


async def test_core_row_045_a_tool_of_the_kit_asks_on_the_display_that_is_set_later() -> None:
    agent = make_agent(
        ScriptedModel(call(("confirm_action", {"title": "Go?"}), ids=["c"]), "ok"), confirm_action()
    )
    first, second = agent.display, DisplayStack()
    agent.set_display(second)
    first.subscribe(lambda change: None)
    await agent.process_request("go")
    assert (await results(agent))["c"].result.status == "error", "nobody looks at the second"
    assert first.stack == () and second.stack == ()


def public(kind: type) -> dict[str, list[str]]:
    """Public members of a class and the parameters of those that are functions."""
    return {
        name: list(inspect.signature(member).parameters) if callable(member) else []
        for name, member in inspect.getmembers(kind)
        if not name.startswith("_")
    }


def test_fault_26_a_tools_display_has_every_method_of_the_display() -> None:
    whole, of_a_tool = public(DisplayStack), public(ToolDisplay)
    of_a_tool.pop("renderers")  # an attribute of the other
    given_by_the_tool = {"tool_call_id", "tool_name", "token"}
    assert of_a_tool == {
        name: [one for one in parameters if one not in given_by_the_tool]
        for name, parameters in whole.items()
    }


async def test_fault_26_all_four_arguments_reach_a_tool_however_it_was_made() -> None:
    got: dict[str, tuple[object, ...]] = {}

    async def plain(value: object, display: object, agent: object, token: object) -> str:
        got["plain"] = (display, agent, token)
        return "ok"

    @tool
    async def decorated(day: str, ctx: ToolContext) -> str:
        """Needs a day."""
        got["decorated"] = (ctx.display, ctx.agent, ctx.token)
        return day

    model = ScriptedModel(call(("plain", {}), ("decorated", {"day": "Monday"})), "ok")
    agent = make_agent(model, make_tool(plain, name="plain"), decorated)
    await agent.process_request("go")
    for display, host, token in got.values():
        assert isinstance(display, ToolDisplay) and isinstance(host, Agent)
        assert isinstance(token, CancelToken)
        shown = display.push_and_forget("card")
        assert agent.display.stack[-1].id == shown
        assert display.has_audience is False and display.pending == 0
        assert display.remove_slot(shown) and display.stack == ()
    assert agent.display.stack == ()


async def test_fault_26_a_tool_of_the_kit_asks_on_the_agents_own_display() -> None:
    asked: list[Slot] = []
    agent = make_agent(
        ScriptedModel(call(("confirm_action", {"title": "Go?"}), ids=["c"]), "ok"), confirm_action()
    )

    def answer(change: DisplayChange) -> None:
        if change.kind == "pushed":
            asked.append(change.slot)
            agent.display.resolve(change.slot.id, True)

    agent.display.subscribe(answer)
    await agent.process_request("go")
    assert (asked[0].tool_call_id, asked[0].tool_name) == ("c", "confirm_action")
    assert (await results(agent))["c"].result.data == 'The user confirmed: "Go?".'


async def test_core_row_043_an_aborted_tool_takes_its_question_with_it() -> None:
    agent = make_agent(
        ScriptedModel(call(("confirm_action", {"title": "Go?"}), ids=["c"]), "ok"), confirm_action()
    )
    agent.display.subscribe(lambda change: None)
    token = CancelToken()
    request = asyncio.ensure_future(agent.process_request("go", token=token))
    await until(lambda: agent.display.pending == 1)
    token.abort("stop", tools=True)
    with pytest.raises(AbortError):
        await request
    assert agent.display.stack == () and agent.display.pending == 0
    assert (await results(agent))["c"].result.status == "aborted"
