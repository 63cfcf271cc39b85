"""When a realtime session connects, moves, tries again and gives up: a table without I/O.

`step(state, event, rules) -> (state, effects)`. Owned by one link, which does what the effects say
and reports what came of it. It reads no clock, draws no random number and knows no provider: events
carry the loop's time, `Rules` what the provider's capabilities ask for. A move is a planned change
of connection (the provider goes away, its cap comes near, the tools changed); an outage is an
unplanned one. Source: spec/voice 18.4, rows 78-80, DESIGN 5.8.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from .lifecycle_vocabulary import (
    HANDLE_REFUSED,
    Abort,
    Adopt,
    Announce,
    Connected,
    Dial,
    Dropped,
    Effect,
    Event,
    Failed,
    ForgetHandle,
    GoingAway,
    HandleKept,
    MoveWanted,
    Phase,
    Resume,
    Rules,
    Start,
    Stop,
    Tick,
)

ROTATE_SHARE, ROTATE_BEFORE_S = 0.9, 120.0
"""A connection with a cap moves at this share of it, or this long before it: whichever is later."""
MOVE_AGAIN_S = 30.0
"""A move that failed for good is tried again after this long, while the old connection holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All there is to know.

    attempt    of the connection that is being sought, 0 when none is
    flaps      connections in a row that ended before they held
    resuming   the dial in flight resumes
    handle     there is one
    refreshed  the credentials were renewed for the connection that is being sought
    opened_at  when the connection that carries the session opened; None: there is none
    rotate_at  when it begins to wait for a gap to move in
    cap_at     when it must have moved
    moving     a move waits for its gap; `move_by`: at the latest then; `fresh`: without a handle
    planned    what is being sought is a move
    doomed     a move failed for good: the end of the old connection is the end
    ignored    events that meant nothing in their state
    """

    phase: Phase = "connecting"
    attempt: int = 0
    flaps: int = 0
    resuming: bool = False
    handle: bool = False
    refreshed: bool = False
    opened_at: float | None = None
    rotate_at: float | None = None
    cap_at: float | None = None
    moving: bool = False
    move_by: float | None = None
    fresh: bool = False
    planned: bool = False
    doomed: str = ""
    ignored: int = 0


Step = tuple[State, tuple[Effect, ...]]


LEGAL: dict[Phase, frozenset[type[Event]]] = {
    "connecting": frozenset({Start, Connected, Failed, MoveWanted, Stop}),
    "open": frozenset({Connected, Failed, Dropped, HandleKept, GoingAway, MoveWanted, Tick, Stop}),
    "reconnecting": frozenset({Connected, Failed, HandleKept, MoveWanted, Stop}),
    "closed": frozenset(),
}
"""What can mean something in each phase; everything else is counted and changes nothing."""


def step(state: State, event: Event, rules: Rules) -> Step:
    """The state after `event` and what is to be done, in order. Never raises: an event that means
    nothing in `state` is counted."""
    if type(event) not in LEGAL[state.phase]:
        return _ignore(state)
    match event:
        case Start():
            return _start(state, event, rules)
        case Connected():
            return _connected(state, event, rules)
        case Failed():
            return _failed(state, event, rules)
        case Dropped():
            return _dropped(state, event, rules)
        case Tick():
            return _tick(state, event, rules)
        case Stop():
            return _close(state, "")
        case _:
            return _told(state, event, rules)


def _told(state: State, event: HandleKept | GoingAway | MoveWanted, rules: Rules) -> Step:
    match event:
        case HandleKept():
            return replace(state, handle=True), ()
        case GoingAway():
            return _going_away(state, event, rules)
        case MoveWanted():
            return _move_wanted(state, event)
        case _:
            assert_never(event)


def wakes_at(state: State) -> float | None:
    """When a Tick can next change something by its time alone; None: it cannot."""
    if state.phase != "open" or state.attempt:
        return None
    return state.move_by if state.moving else state.rotate_at


def _ignore(state: State) -> Step:
    return replace(state, ignored=state.ignored + 1), ()


def _dial(state: State, rules: Rules, *, close_first: bool = False, wait: bool = True) -> Step:
    """The next attempt; the first of them resumes where that is possible. The first connection
    that did not hold is forgiven, the others make it wait as attempts do."""
    failures = state.attempt * wait + max(0, state.flaps - 1)
    attempt = state.attempt + 1
    resume = attempt == 1 and rules.resume and state.handle
    effect = Dial(attempt, failures, resume, close_first)
    return replace(state, attempt=attempt, resuming=resume), (effect,)


def _may_dial(state: State, rules: Rules) -> bool:
    return state.attempt + state.flaps < rules.attempts


def _ended(state: State, at: float, rules: Rules) -> State:
    """The connection ends at `at`: whether it had held counts from now on."""
    held = state.opened_at is not None and at - state.opened_at >= rules.stable_s
    return replace(state, flaps=0 if held else state.flaps + 1)


def _close(state: State, code: str) -> Step:
    abort = (Abort(),) if state.attempt else ()
    closed = State(phase="closed", ignored=state.ignored)
    return closed, (*abort, Announce("closed", code))


def _start(state: State, event: Start, rules: Rules) -> Step:
    if state.attempt:
        return _ignore(state)
    state, effects = _dial(replace(state, handle=event.handle), rules)
    return state, (Announce("connecting"), *effects)


def _connected(state: State, event: Connected, rules: Rules) -> Step:
    if not state.attempt:
        return _ignore(state)
    resume = Resume(state.attempt, state.planned, state.phase == "connecting")
    forget = () if state.resuming or not state.handle else (ForgetHandle(),)
    announce = () if state.phase == "open" else (Announce("open"),)
    cap = rules.max_session_s
    opened = replace(
        state,
        phase="open",
        attempt=0,
        resuming=False,
        handle=state.handle and state.resuming,
        refreshed=False,
        planned=False,
        opened_at=event.at,
        rotate_at=None if cap is None else event.at + _rotate_after(cap, rules),
        cap_at=None if cap is None else event.at + _latest(cap, rules),
    )
    return opened, (*forget, Adopt(), *announce, resume)


def _latest(cap: float, rules: Rules) -> float:
    return max(cap - rules.lead_s, cap / 2)


def _rotate_after(cap: float, rules: Rules) -> float:
    return min(max(cap * ROTATE_SHARE, cap - ROTATE_BEFORE_S), _latest(cap, rules))


def _failed(state: State, event: Failed, rules: Rules) -> Step:
    """A dial failed. While an old connection carries the session, giving up means staying."""
    if not state.attempt:
        return _ignore(state)
    if event.credentials and rules.refreshable and not state.refreshed:
        again = Dial(state.attempt, resume=state.resuming, refresh=True)
        return replace(state, refreshed=True), (again,)
    refused = event.code == HANDLE_REFUSED and state.resuming
    state, forget = _forget(state) if refused else (state, ())
    if (event.retryable or refused) and _may_dial(state, rules):
        state, effects = _dial(state, rules, wait=not refused)
        return state, (*forget, *effects)
    final = not (event.retryable or refused)
    if state.phase == "open":
        return _stay(state, event, final=final), forget
    return _close(replace(state, attempt=0), event.code)


def _stay(state: State, event: Failed, *, final: bool) -> State:
    """The move is given up: for a while, or for good."""
    return replace(
        state,
        attempt=0,
        resuming=False,
        refreshed=False,
        planned=False,
        moving=False,
        move_by=None,
        fresh=False,
        rotate_at=None if final else event.at + MOVE_AGAIN_S,
        doomed=event.code if final else "",
    )


def _dropped(state: State, event: Dropped, rules: Rules) -> Step:
    """The connection is gone: an outage begins, or a move that was under way becomes one."""
    unwanted = event.code == HANDLE_REFUSED or (state.fresh and not state.attempt)
    state, forget = _forget(state) if unwanted else (state, ())
    if event.fatal or state.doomed:
        return _close(state, state.doomed or event.code)
    if not state.attempt:
        state = _ended(state, event.at, rules)
        if not _may_dial(state, rules):
            return _close(state, event.code)
    state = replace(_unopened(state), planned=False)
    announce = Announce("reconnecting", event.code)
    if state.attempt:
        return state, (*forget, announce)
    state, effects = _dial(_begun(state), rules)
    return state, (*forget, announce, *effects)


def _forget(state: State) -> Step:
    """The handle is worth nothing."""
    return replace(state, handle=False), ((ForgetHandle(),) if state.handle else ())


def _unopened(state: State) -> State:
    return replace(state, phase="reconnecting", opened_at=None, rotate_at=None, cap_at=None)


def _begun(state: State) -> State:
    """Nothing waits for a gap any more: what it waited for begins."""
    return replace(state, moving=False, move_by=None, fresh=False)


def _going_away(state: State, event: GoingAway, rules: Rules) -> Step:
    """The move waits for its gap until `lead_s` before the end."""
    if state.attempt or state.doomed:
        return _ignore(state)
    return _want(state, event.at + max(0.0, event.time_left_s - rules.lead_s)), ()


def _move_wanted(state: State, event: MoveWanted) -> Step:
    """Also while a connection is being sought: what it starts with may be old already."""
    if state.doomed:
        return _ignore(state)
    return replace(_want(state, event.by), fresh=state.fresh or event.fresh), ()


def _want(state: State, by: float | None) -> State:
    known = [at for at in (state.move_by, by) if at is not None]
    return replace(state, moving=True, move_by=min(known, default=None))


def _tick(state: State, event: Tick, rules: Rules) -> Step:
    if state.attempt:
        return state, ()
    if state.rotate_at is not None and event.at >= state.rotate_at:
        state = replace(_want(state, state.cap_at), rotate_at=None)
    due = state.move_by is not None and event.at >= state.move_by
    if not state.moving or not (event.gap or due):
        return state, ()
    state, forget = _forget(state) if state.fresh else (state, ())
    state = _begun(_ended(state, event.at, rules))
    state = replace(state, planned=True, flaps=min(state.flaps, rules.attempts - 1))
    if not rules.closes_first:
        state, effects = _dial(state, rules)
        return state, (*forget, *effects)
    state, effects = _dial(_unopened(state), rules, close_first=True)
    return state, (*forget, Announce("reconnecting", "move"), *effects)
