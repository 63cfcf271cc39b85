"""Props that do not fit are refused before anybody sees them, answers before anybody hears them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from tests.core.support import ScriptedModel, call, make_agent, make_tool, results, until
from voxglove.core import (
    DisplayChange,
    DisplayStack,
    MemoryStore,
    SlotRejected,
    ToolContext,
    UsageError,
)
from voxglove.core.renderers import InvalidAnswer, Problem, Renderers, finished_card


class SeatMap(BaseModel):
    rows: int = Field(ge=1)
    title: str = "Seats"


class Seat(BaseModel):
    row: int
    day: date


def answer_at_once(display: DisplayStack, value: object) -> None:
    """Somebody answers each slot with `value` the moment it is shown."""

    def answer(change: DisplayChange) -> None:
        if change.kind == "pushed":
            display.resolve(change.slot.id, value)

    display.subscribe(answer)


@dataclass(frozen=True, slots=True)
class Case:
    """A shape, a value of it, what comes out, and a value that is none with the field at fault."""

    shape: Any
    good: object
    parsed: object
    bad: object
    field: str


CASES = [
    Case(bool, True, True, "perhaps", "value"),
    Case(TypeAdapter(list[int]), [1, 2], [1, 2], [1, "x"], "1"),
    Case(
        Seat,
        {"row": 3, "day": "2030-01-31"},
        Seat(row=3, day=date(2030, 1, 31)),
        {"row": 3, "day": "never"},
        "day",
    ),
    Case(
        TypeAdapter(dict[str, Seat]),
        {"a": {"row": 1, "day": "2030-01-01"}},
        {"a": Seat(row=1, day=date(2030, 1, 1))},
        {"a": {"day": "2030-01-01"}},
        "a.row",
    ),
    Case(None, {"any": "thing"}, {"any": "thing"}, None, ""),
]


@pytest.mark.parametrize("where", ["registered", "pushed", "shared"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.shape)[:30])
async def test_core_row_040_an_answer_is_parsed_or_the_question_stays_open(
    case: Case, where: str
) -> None:
    renderers = Renderers()
    display = DisplayStack(renderers)
    if where == "registered":
        display.register_renderer("seat", resolve=case.shape)
    elif where == "shared":
        renderers.register("seat", resolve=case.shape)
    push: dict[str, Any] = {"answers": case.shape} if where == "pushed" else {}
    removed: list[str] = []

    def left(change: DisplayChange) -> None:
        if change.kind == "removed":
            removed.append(change.slot.id)

    display.subscribe(left)
    wait = asyncio.ensure_future(display.push_and_wait("seat", {"q": 1}, **push))
    await until(lambda: display.pending == 1)
    (slot,) = display.stack
    if case.field:
        for _ in range(2):
            with pytest.raises(InvalidAnswer) as refused:
                display.resolve(slot.id, case.bad)
            assert (refused.value.field, refused.value.slot_id) == (case.field, slot.id)
            assert case.field in str(refused.value)
        assert display.stack == (slot,) and display.pending == 1 and not removed
        assert not wait.done()
    assert display.resolve(slot.id, case.good)
    assert await wait == case.parsed
    assert removed == [slot.id]


async def test_props_get_their_defaults_and_become_json() -> None:
    display = DisplayStack()
    display.register_renderer("seats", props=SeatMap)
    display.push_and_forget("seats", {"rows": 2})
    display.push_and_forget("seats", SeatMap(rows=3, title="Hall"))
    display.push_and_forget("other", Seat(row=1, day=date(2030, 1, 1)))
    display.push_and_forget("other", {"left": "alone"}, props=TypeAdapter(dict[str, str]))
    assert [slot.input for slot in display.stack] == [
        {"rows": 2, "title": "Seats"},
        {"rows": 3, "title": "Hall"},
        {"row": 1, "day": "2030-01-01"},
        {"left": "alone"},
    ]


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("where", ["registered", "pushed"])
async def test_props_that_do_not_fit_are_an_error_of_the_tool_before_anybody_sees_them(
    where: str, waits: bool
) -> None:
    seen: list[object] = []
    shape: dict[str, Any] = {"props": SeatMap} if where == "pushed" else {}

    async def act(value: object, ctx: ToolContext) -> object:
        if waits:
            return await ctx.display.push_and_wait("seats", {"rows": 0}, **shape)
        return ctx.display.push_and_forget("seats", {"rows": 0}, **shape)

    agent = make_agent(ScriptedModel(call(("act", {}), ids=["c"]), "ok"), make_tool(act))
    if where == "registered":
        agent.display.register_renderer("seats", props=SeatMap)
    agent.display.subscribe(seen.append)
    await agent.process_request("go")
    result = (await results(agent))["c"].result
    assert result.status == "error"
    assert result.message and "props of 'seats' do not fit: rows:" in result.message
    assert seen == [] and agent.display.pending == 0


async def test_a_tool_gets_its_answer_typed() -> None:
    async def act(value: object, ctx: ToolContext) -> str:
        seat = await ctx.display.push_and_wait("seat", answers=Seat)
        return f"{seat.row} on {seat.day:%d %B}"

    agent = make_agent(ScriptedModel(call(("act", {}), ids=["c"]), "ok"), make_tool(act))
    answer_at_once(agent.display, {"row": "7", "day": "2030-05-03"})
    await agent.process_request("go")
    assert (await results(agent))["c"].result.data == "7 on 03 May"


async def test_a_refused_answer_inside_a_listener_does_not_end_the_wait() -> None:
    display = DisplayStack()
    answer_at_once(display, "no number")
    wait = asyncio.ensure_future(display.push_and_wait("ask", answers=int))
    await until(lambda: display.pending == 1)
    assert display.resolve(display.stack[0].id, 4)
    assert await wait == 4


async def test_a_refusal_names_every_field_and_never_the_value() -> None:
    display = DisplayStack()
    wait = asyncio.ensure_future(display.push_and_wait("seat", answers=Seat))
    await until(lambda: display.pending == 1)
    with pytest.raises(InvalidAnswer) as refused:
        display.resolve(display.stack[0].id, {"row": "secret-4711"})
    assert [problem.field for problem in refused.value.problems] == ["row", "day"]
    assert refused.value.problems[1] == Problem("day", "Field required")
    assert "secret-4711" not in str(refused.value)
    display.clear_stack()
    with pytest.raises(SlotRejected):
        await wait


@pytest.mark.parametrize(
    "register",
    [
        lambda display: display.register_renderer("", props=SeatMap),
        lambda display: display.register_renderer("x", props=3),
        lambda display: display.push_and_forget("x", {}, props=3),
    ],
)
def test_a_shape_that_is_none_is_refused(register: Callable[[DisplayStack], object]) -> None:
    display = DisplayStack()
    with pytest.raises(UsageError):
        register(display)
    assert display.stack == ()


def test_what_was_said_of_a_renderer_last_holds_and_others_are_free() -> None:
    renderers = Renderers()
    assert renderers.names == {"permission_request"}
    renderers.register("a", props=SeatMap)
    renderers.register("a", resolve=bool)
    assert renderers.get("a").props is None and renderers.get("a").resolve is not None
    assert renderers.get("unheard_of").resolve is None


@pytest.mark.parametrize("word", ["yes", "no", 1, 0, None, [], {"granted": True}])
async def test_core_row_035_a_permission_takes_true_or_false_and_nothing_that_looks_like_it(
    word: object,
) -> None:
    ran: list[object] = []
    store = MemoryStore()
    agent = make_agent(
        ScriptedModel(call(("act", {}), ids=["c"]), "ok"),
        make_tool(ran.append, requires_permission=True),
        store=store,
    )
    agent.display.subscribe(lambda change: None)
    request = asyncio.ensure_future(agent.process_request("go"))
    await until(lambda: agent.display.pending == 1)
    (slot,) = agent.display.stack
    with pytest.raises(InvalidAnswer) as refused:
        agent.display.resolve(slot.id, word)
    assert refused.value.field == "value"
    assert agent.display.pending == 1 and ran == []
    agent.display.resolve(slot.id, False)
    await request
    assert ran == []
    assert (await results(agent))["c"].result.status == "error"


def test_a_finished_card_is_json() -> None:
    card = finished_card("seat", SeatMap(rows=1), Seat(row=2, day=date(2030, 1, 1)))
    assert card == {
        "renderer": "seat",
        "input": {"rows": 1, "title": "Seats"},
        "value": {"row": 2, "day": "2030-01-01"},
    }
    assert finished_card("card", {"a": 1})["value"] is None
