"""The dialogue rebuilt from what happened: a fold over events, then one plan. Pure.

Nothing is kept between requests, so a call that lost its line, was reloaded from a store or was
cut in the middle of a sentence goes on from what really happened and was really heard.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from .absorb import absorb
from .plan import WAITING, Plan, plan
from .state import (
    AgentSaid,
    Goal,
    Happened,
    Note,
    Side,
    State,
    ToolRan,
    UserSaid,
    booking_of,
    check_of,
    wish_of,
)
from .understand import Ask, Slots

_WRITES = ("book_table", "change_booking", "cancel_booking")


def next_step(
    events: Sequence[Happened], *, today: date, tools: frozenset[str] = frozenset()
) -> Plan:
    """What a front desk does next after these events."""
    return plan(replay(events, today=today, tools=tools))


def replay(events: Sequence[Happened], *, today: date, tools: frozenset[str]) -> State:
    """The state after these events."""
    state = State(today=today, tools=tools)
    for event in events:
        match event:
            case UserSaid(text):
                state = absorb(state, text)
            case AgentSaid():
                state = _spoke(state, event)
            case ToolRan():
                state = _learned(state, event)
    return state


def _spoke(state: State, event: AgentSaid) -> State:
    """An answer was heard, as far as it was: it asked what the plan of that moment asks."""
    if event.text.startswith(WAITING[:20]):
        return replace(state, said=event.text)
    step = plan(state)
    if step.calls:
        return replace(state, said=event.text)
    if step.ends_goal:
        state = replace(
            state, goal=None, slots=Slots(name=state.slots.name), looked=None, chosen=None,
            check=None, wanted=None,
        )  # fmt: skip
    heard = not event.interrupted or _plain(step.facts) in _plain(event.text)
    return replace(
        state, asked=step.asked, settled=heard, sides=(), note=None, news=None, fresh=False,
        said=event.text,
    )  # fmt: skip


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _learned(state: State, ran: ToolRan) -> State:
    """A tool returned; what it was asked and what it answered are facts of the dialogue."""
    if ran.outcome == "running":
        return replace(state, running=True, confirmed=False)
    sides = _answered(state.sides, ran)
    if sides is not None:
        return replace(state, sides=sides)
    match ran.name:
        case "free_tables":
            return _checked(state, ran)
        case "find_booking":
            return replace(state, looked=ran)
        case name if name in _WRITES:
            return _written(state, ran)
    return state


def _answered(sides: tuple[Side, ...], ran: ToolRan) -> tuple[Side, ...] | None:
    for at, side in enumerate(sides):
        if side.ran is None and side.call is not None and side.call.name == ran.name:
            if ran.name == "free_tables" and "time" in ran.args:
                continue
            return (*sides[:at], replace(side, ran=ran), *sides[at + 1 :])
    return None


def _checked(state: State, ran: ToolRan) -> State:
    """The call's own arguments win: "tomorrow" stays the day it was when it was said."""
    wish = wish_of(ran.args)
    check = check_of(wish, ran.data)
    if check is None:
        check = check_of(wish, {"verdict": "free"})  # the look-up failed; booking checks again
    slots = wish.over(state.slots) if state.goal is Goal.BOOK else state.slots
    return replace(state, check=check, slots=slots)


def _written(state: State, ran: ToolRan) -> State:
    """A booking was made, changed or cancelled, or it was not."""
    if ran.outcome == "ok":
        cancelled = ran.name == "cancel_booking"
        return replace(
            state, news=ran, confirmed=False, goal=None, wanted=None, looked=None, chosen=None,
            check=None, slots=Slots(name=state.slots.name),
            last=None if cancelled else booking_of(ran.data) or state.last,
        )  # fmt: skip
    check = check_of(state.wish, ran.data)
    if check is not None and check.verdict != "free":
        return replace(state, confirmed=False, check=check)
    return replace(state, confirmed=False, note=Note.FAILED, asked=Ask.CONFIRM)
