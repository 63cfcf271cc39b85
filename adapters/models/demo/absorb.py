"""How one user turn changes the state: goals, slots, yes and no, side questions. Pure.

Owned by `dialogue`. The order is fixed: goal, slots, answer to the open question, side questions;
a turn that changed nothing counts as not understood.
"""

from __future__ import annotations

from dataclasses import replace

from .intents import Intent
from .state import Booking, Call, Goal, Note, Side, State
from .understand import Ask, Frame, Slots, understand

_GOALS = {
    Intent.BOOK: Goal.BOOK,
    Intent.CHANGE: Goal.CHANGE,
    Intent.CANCEL: Goal.CANCEL,
    Intent.FIND: Goal.FIND,
}
_TOOLS = {
    Intent.CLOCK: "current_time",
    Intent.SLOWER: "slower",
    Intent.REPEAT: "repeat",
    Intent.TRANSFER: "transfer",
    Intent.GOODBYE: "end_call",
}
_PLAIN_SIDES = (Intent.IDENTITY, Intent.WAIT)
_POLITE = {Intent.HELLO, Intent.THANKS}


def absorb(state: State, said: str) -> State:
    """The state after a user turn."""
    frame = understand(said, today=state.today, asked=state.asked)
    if Intent.RESTART in frame.intents:
        return State(
            today=state.today, tools=state.tools, note=Note.RESTARTED, last=state.last,
            said=state.said, running=state.running,
        )  # fmt: skip
    untold = state.note if state.note is Note.FAILED else None
    before = replace(state, fresh=False, note=untold, confirmed=False)
    frame = _number_kind(before, frame)
    after = _goal(before, frame)
    after = _slots(after, frame)
    after = _answer(after, frame)
    after = _sides(after, frame)
    understood = after != before or bool(frame.intents) or _expected(before, frame)
    return replace(after, misses=0 if understood else before.misses + 1)


def _number_kind(state: State, frame: Frame) -> Frame:
    """A bare number made people or an hour, when the caller said which it was."""
    value = state.number
    if state.asked is not Ask.NUMBER or value is None or not frame.slots.empty:
        return frame
    if Ask.PARTY in frame.fields:
        return replace(frame, slots=Slots(party=value), fields=frozenset())
    if Ask.TIME in frame.fields or Ask.DATE in frame.fields:
        timed = understand(f"at {value}", today=state.today)
        return replace(frame, slots=timed.slots, fields=frozenset())
    return frame


def _goal(state: State, frame: Frame) -> State:
    under_way = state.goal in (Goal.BOOK, Goal.CHANGE)
    drops = Intent.CANCEL in frame.intents and under_way and not frame.mine
    if drops or (Intent.NEVER_MIND in frame.intents and state.goal is not None):
        return _without_goal(state, Note.DROPPED)
    goal = next((_GOALS[intent] for intent in frame.intents if intent in _GOALS), None)
    if goal is None:
        return replace(state, goal=Goal.BOOK) if _implies_booking(state, frame) else state
    if goal is state.goal or not _switches(state, goal, frame):
        return state
    chosen = state.last if goal is not Goal.BOOK and frame.slots.name is None else None
    slots = state.slots if state.goal is None else Slots(name=state.slots.name)
    if goal in (Goal.CANCEL, Goal.FIND):
        slots = Slots(name=slots.name)
    return replace(
        state, goal=goal, slots=slots, chosen=chosen, looked=None, wanted=None, check=None,
        asked=None if state.goal is not None else state.asked,
    )  # fmt: skip


def _switches(state: State, goal: Goal, frame: Frame) -> bool:
    """Whether a word like "booking" or "change" in this turn starts another goal."""
    if state.goal is None:
        return True
    if goal is Goal.BOOK:
        return state.asked not in (Ask.WHICH, Ask.CONFIRM, Ask.WHAT_CHANGE) and not frame.mine
    return frame.mine or goal is not Goal.CHANGE


def _implies_booking(state: State, frame: Frame) -> bool:
    given = frame.slots
    wish = given.party is not None or given.date is not None or given.time is not None
    others = set(frame.intents) - _POLITE - {Intent.FREE}
    timed = Intent.FREE not in frame.intents or given.time is not None
    return state.goal is None and wish and timed and not others


def _slots(state: State, frame: Frame) -> State:
    given = frame.slots
    asides = {Intent.HOURS, Intent.FREE, Intent.GOODBYE}
    if asides & set(frame.intents) and Intent.BOOK not in frame.intents and state.goal is None:
        return replace(state, slots=Slots(date=given.date).over(state.slots))
    if Intent.HOURS in frame.intents and Intent.BOOK not in frame.intents:
        given = Slots(name=given.name)
    slots = given.over(state.slots)
    if slots == state.slots and given.empty:
        return state
    new_name = given.name is not None and given.name != state.slots.name
    if new_name and state.goal is not Goal.BOOK:
        state = replace(state, looked=None, chosen=None)
    return replace(state, slots=slots, fresh=True, wanted=None, number=None)


def _answer(state: State, frame: Frame) -> State:
    """What the turn answers to the open question."""
    match state.asked:
        case Ask.CONFIRM | Ask.WHAT_CHANGE:
            return _confirmed(state, frame)
        case Ask.WHICH:
            return _chosen(state, frame)
        case Ask.TRANSFER if frame.yes is not None:
            if frame.yes:
                return _with_side(state, Intent.TRANSFER)
            return replace(state, wanted=None if state.fresh else Ask.PARTY)
        case _ if Intent.CHANGE in frame.intents and frame.number is not None:
            return replace(state, number=frame.number)
        case Ask.ANYTHING if frame.yes is not None and not set(frame.intents) - _POLITE:
            if state.fresh or state.goal is not None:
                return state
            return replace(state, note=Note.HOW) if frame.yes else _with_side(state, Intent.GOODBYE)
        case Ask.TIME if frame.yes and not state.fresh and state.check is not None:
            if len(state.check.alternatives) == 1:
                slots = replace(state.slots, time=state.check.alternatives[0])
                return replace(state, slots=slots, fresh=True)
    return state


def _confirmed(state: State, frame: Frame) -> State:
    if state.goal is None or state.fresh:
        return state
    if frame.number is not None and state.goal is not Goal.CANCEL:
        if frame.number > 12:
            return replace(state, slots=replace(state.slots, party=frame.number), fresh=True)
        return replace(state, number=frame.number)
    if frame.fields and not (frame.yes and state.asked is Ask.CONFIRM):
        return replace(state, wanted=sorted(frame.fields)[0])
    if frame.yes and state.asked is Ask.CONFIRM:
        return replace(state, confirmed=state.settled)
    if frame.yes is False:
        if state.goal is Goal.CANCEL:
            return _without_goal(state, Note.KEPT)
        return replace(state, note=Note.WHAT_CHANGE)
    return state


def _chosen(state: State, frame: Frame) -> State:
    if frame.choice is not None:
        at = frame.choice - 1 if frame.choice > 0 else -1
        if at < len(state.found):
            return replace(state, chosen=sorted(state.found, key=_when)[at])
        return state
    given = frame.slots
    fits = [
        booking
        for booking in state.found
        if given.date in (None, booking.date)
        and given.time in (None, booking.time)
        and given.party in (None, booking.party)
    ]
    if len(fits) == 1 and not given.empty:
        return replace(state, chosen=fits[0], slots=Slots(name=state.slots.name))
    return state


def _when(booking: Booking) -> tuple[str, str]:
    return booking.date.isoformat(), booking.time.isoformat()


def _sides(state: State, frame: Frame) -> State:
    for intent in frame.intents:
        if intent is Intent.GOODBYE and frame.yes and state.confirmed:
            continue
        if intent in _TOOLS or intent in _PLAIN_SIDES:
            state = _with_side(state, intent)
        elif intent is Intent.HOURS:
            day = frame.slots.date
            args = {"date": day.isoformat()} if day is not None else {}
            state = _with_side(state, intent, Call("opening_hours", args))
        elif intent is Intent.FREE and state.goal is None:
            state = _with_side(state, intent, _free(state, frame))
    alone = frame.slots.empty and not set(frame.intents) - _POLITE
    if alone and frame.intents and not state.sides and not state.confirmed:
        state = _with_side(state, frame.intents[0])
    return state


def _free(state: State, frame: Frame) -> Call:
    day = frame.slots.date or state.slots.date or state.today
    party = frame.slots.party or state.slots.party or 2
    return Call("free_tables", {"date": day.isoformat(), "party": party})


def _with_side(state: State, kind: Intent, call: Call | None = None) -> State:
    if any(side.kind is kind for side in state.sides):
        return state
    if call is None and kind in _TOOLS:
        args = {"reason": "the caller said goodbye"} if kind is Intent.GOODBYE else {}
        call = Call(_TOOLS[kind], args)
    return replace(state, sides=(*state.sides, Side(kind, call)))


def _without_goal(state: State, note: Note) -> State:
    return replace(
        state, goal=None, slots=Slots(name=state.slots.name), wanted=None, looked=None,
        chosen=None, check=None, number=None, note=note,
    )  # fmt: skip


def _expected(state: State, frame: Frame) -> bool:
    """Whether the turn answered even though it changed nothing: a yes to a read-back unheard."""
    yes_or_no = state.asked in (Ask.CONFIRM, Ask.ANYTHING, Ask.TRANSFER)
    return (yes_or_no and frame.yes is not None) or not frame.slots.empty
