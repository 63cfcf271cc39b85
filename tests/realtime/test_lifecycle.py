"""The connection table: each transition by itself, then its promises in random orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.realtime.lifecycle import State, step, wakes_at
from voxglove.realtime.lifecycle_vocabulary import (
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

PLAIN = Rules(resume=True)
FIRST_CLOSES = Rules(resume=True, closes_first=True)
REFRESHABLE = Rules(resume=True, refreshable=True)
HOUR = Rules(max_session_s=3_600)

NEW = State()
CONNECTING = State(attempt=1)
OPEN = State(phase="open", opened_at=0.0)
WITH_HANDLE = replace(OPEN, handle=True)
LOST = State(phase="reconnecting", attempt=1)
RESUMING = replace(LOST, handle=True, resuming=True)
MOVING = replace(WITH_HANDLE, attempt=1, resuming=True, planned=True)
DOOMED = replace(OPEN, doomed="bad_model")
CLOSED = State(phase="closed")


@dataclass(frozen=True)
class Case:
    """One transition. `then` names fields of the new state."""

    name: str
    state: State
    event: Event
    effects: tuple[Effect, ...]
    rules: Rules = PLAIN
    phase: Phase = "open"
    then: dict[str, object] = field(default_factory=dict)


CASES = (
    Case(
        "start",
        NEW,
        Start(),
        (Announce("connecting"), Dial(1)),
        phase="connecting",
    ),
    Case(
        "start with a handle",
        NEW,
        Start(handle=True),
        (Announce("connecting"), Dial(1, resume=True)),
        phase="connecting",
    ),
    Case(
        "a handle is no use where the provider cannot resume",
        NEW,
        Start(handle=True),
        (Announce("connecting"), Dial(1)),
        rules=Rules(),
        phase="connecting",
    ),
    Case(
        "first connected",
        CONNECTING,
        Connected(9.0),
        (Adopt(), Announce("open"), Resume(1, planned=False, first=True)),
        then={"opened_at": 9.0, "attempt": 0},
    ),
    Case(
        "first refused for now",
        CONNECTING,
        Failed(0, "1006", retryable=True),
        (Dial(2, failures=1),),
        phase="connecting",
    ),
    Case(
        "first refused for good",
        CONNECTING,
        Failed(0, "bad_model", retryable=False),
        (Announce("closed", "bad_model"),),
        phase="closed",
    ),
    Case(
        "the last try failed",
        replace(CONNECTING, attempt=8),
        Failed(0, "1006", retryable=True),
        (Announce("closed", "1006"),),
        phase="closed",
    ),
    Case(
        "credentials are renewed",
        RESUMING,
        Failed(0, "401", retryable=False, credentials=True),
        (Dial(1, resume=True, refresh=True),),
        rules=REFRESHABLE,
        phase="reconnecting",
        then={"refreshed": True},
    ),
    Case(
        "renewed credentials are rejected",
        replace(RESUMING, refreshed=True),
        Failed(0, "401", retryable=False, credentials=True),
        (Announce("closed", "401"),),
        rules=REFRESHABLE,
        phase="closed",
    ),
    Case(
        "nothing renews credentials",
        RESUMING,
        Failed(0, "401", retryable=False, credentials=True),
        (Announce("closed", "401"),),
        phase="closed",
    ),
    Case(
        "drop with a handle",
        WITH_HANDLE,
        Dropped(10, "1006"),
        (Announce("reconnecting", "1006"), Dial(1, resume=True)),
        phase="reconnecting",
        then={"opened_at": None},
    ),
    Case(
        "drop without a handle",
        OPEN,
        Dropped(10, "1006"),
        (Announce("reconnecting", "1006"), Dial(1)),
        phase="reconnecting",
    ),
    Case(
        "the first drop of what did not hold is forgiven",
        OPEN,
        Dropped(1, "1006"),
        (Announce("reconnecting", "1006"), Dial(1)),
        phase="reconnecting",
        then={"flaps": 1},
    ),
    Case(
        "drop of what did not hold once more",
        replace(OPEN, flaps=3),
        Dropped(1, "1006"),
        (Announce("reconnecting", "1006"), Dial(1, failures=3)),
        phase="reconnecting",
        then={"flaps": 4},
    ),
    Case(
        "refused after what did not hold",
        replace(LOST, flaps=3),
        Failed(1, "1006", retryable=True),
        (Dial(2, failures=3),),
        phase="reconnecting",
    ),
    Case(
        "drop of the last that did not hold",
        replace(OPEN, flaps=7),
        Dropped(1, "1006"),
        (Announce("closed", "1006"),),
        phase="closed",
    ),
    Case(
        "drop of what held",
        replace(OPEN, flaps=7),
        Dropped(10, "1006"),
        (Announce("reconnecting", "1006"), Dial(1)),
        phase="reconnecting",
        then={"flaps": 0},
    ),
    Case(
        "drop for good",
        WITH_HANDLE,
        Dropped(10, "insufficient_quota", fatal=True),
        (Announce("closed", "insufficient_quota"),),
        phase="closed",
    ),
    Case(
        "drop for the handle",
        WITH_HANDLE,
        Dropped(10, HANDLE_REFUSED),
        (ForgetHandle(), Announce("reconnecting", HANDLE_REFUSED), Dial(1)),
        phase="reconnecting",
        then={"handle": False},
    ),
    Case(
        "resumption failed",
        RESUMING,
        Failed(0, "1006", retryable=True),
        (Dial(2, failures=1),),
        phase="reconnecting",
        then={"handle": True},
    ),
    Case(
        "handle refused: fresh at once",
        RESUMING,
        Failed(0, HANDLE_REFUSED, retryable=False),
        (ForgetHandle(), Dial(2)),
        phase="reconnecting",
        then={"handle": False},
    ),
    Case(
        "a handle refused that was not given",
        LOST,
        Failed(0, HANDLE_REFUSED, retryable=False),
        (Announce("closed", HANDLE_REFUSED),),
        phase="closed",
    ),
    Case(
        "resumed",
        RESUMING,
        Connected(5),
        (Adopt(), Announce("open"), Resume(1, planned=False, first=False)),
        then={"handle": True},
    ),
    Case(
        "a fresh connection outdates the handle",
        replace(LOST, attempt=2, handle=True),
        Connected(5),
        (ForgetHandle(), Adopt(), Announce("open"), Resume(2, planned=False, first=False)),
        then={"handle": False},
    ),
    Case("a handle", OPEN, HandleKept(), (), then={"handle": True}),
    Case(
        "going away: wait for a gap until 5 s before",
        OPEN,
        GoingAway(10, 50),
        (),
        then={"moving": True, "move_by": 55.0},
    ),
    Case(
        "going away soon",
        OPEN,
        GoingAway(10, 3),
        (),
        then={"moving": True, "move_by": 10.0},
    ),
    Case(
        "the earlier deadline counts",
        replace(OPEN, moving=True, move_by=20.0),
        GoingAway(10, 50),
        (),
        then={"move_by": 20.0},
    ),
    Case("a move is wanted", OPEN, MoveWanted(), (), then={"moving": True, "move_by": None}),
    Case("no gap yet", replace(OPEN, moving=True, move_by=20.0), Tick(19, gap=False), ()),
    Case(
        "a gap",
        replace(WITH_HANDLE, moving=True, move_by=20.0),
        Tick(19, gap=True),
        (Dial(1, resume=True),),
        then={"moving": False, "planned": True},
    ),
    Case(
        "the deadline",
        replace(WITH_HANDLE, moving=True, move_by=20.0),
        Tick(20, gap=False),
        (Dial(1, resume=True),),
        then={"moving": False, "planned": True},
    ),
    Case(
        "the old one is closed first",
        replace(WITH_HANDLE, moving=True),
        Tick(19, gap=True),
        (Announce("reconnecting", "move"), Dial(1, resume=True, close_first=True)),
        rules=FIRST_CLOSES,
        phase="reconnecting",
    ),
    Case(
        "a fresh move drops the handle",
        replace(WITH_HANDLE, moving=True, fresh=True),
        Tick(19, gap=True),
        (ForgetHandle(), Dial(1)),
        then={"handle": False, "fresh": False},
    ),
    Case(
        "a drop is as good as a fresh move",
        replace(WITH_HANDLE, moving=True, fresh=True),
        Dropped(19, "1006"),
        (ForgetHandle(), Announce("reconnecting", "1006"), Dial(1)),
        phase="reconnecting",
        then={"moving": False, "fresh": False},
    ),
    Case(
        "a gap, and nothing waits for it",
        OPEN,
        Tick(19, gap=True),
        (),
    ),
    Case(
        "moved",
        MOVING,
        Connected(30),
        (Adopt(), Resume(1, planned=True, first=False)),
        then={"planned": False, "opened_at": 30},
    ),
    Case("a move's try failed", MOVING, Failed(30, "1006", retryable=True), (Dial(2, failures=1),)),
    Case(
        "a move failed for now: it stays, and tries later",
        replace(MOVING, attempt=8),
        Failed(30, "1006", retryable=True),
        (),
        then={"attempt": 0, "rotate_at": 60.0, "doomed": ""},
    ),
    Case(
        "a move failed for good: it stays until the end",
        MOVING,
        Failed(30, "bad_model", retryable=False),
        (),
        then={"attempt": 0, "rotate_at": None, "doomed": "bad_model"},
    ),
    Case(
        "the end of what could not move",
        DOOMED,
        Dropped(40, "1011"),
        (Announce("closed", "bad_model"),),
        phase="closed",
    ),
    Case(
        "the old one ends during a move",
        MOVING,
        Dropped(30, "1011"),
        (Announce("reconnecting", "1011"),),
        phase="reconnecting",
        then={"attempt": 1, "resuming": True},
    ),
    Case(
        "a move wanted while connecting waits",
        LOST,
        MoveWanted(),
        (),
        phase="reconnecting",
        then={"moving": True},
    ),
    Case("stop when open", OPEN, Stop(), (Announce("closed"),), phase="closed"),
    Case(
        "stop while connecting", CONNECTING, Stop(), (Abort(), Announce("closed")), phase="closed"
    ),
    Case("stop in an outage", LOST, Stop(), (Abort(), Announce("closed")), phase="closed"),
    Case("stop in a move", MOVING, Stop(), (Abort(), Announce("closed")), phase="closed"),
    Case(
        "the cap is near",
        replace(OPEN, rotate_at=3_480.0, cap_at=3_595.0),
        Tick(3_480, gap=False),
        (),
        rules=HOUR,
        then={"moving": True, "move_by": 3_595.0, "rotate_at": None},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_transition(case: Case) -> None:
    state, effects = step(case.state, case.event, case.rules)
    assert effects == case.effects
    assert state.phase == case.phase
    assert {name: getattr(state, name) for name in case.then} == case.then
    assert state.ignored == case.state.ignored


MEANINGLESS = (
    (NEW, Connected(1)),
    (CONNECTING, Start()),
    (CONNECTING, Dropped(1, "1006")),
    (CONNECTING, Tick(1, gap=True)),
    (OPEN, Start()),
    (OPEN, Connected(1)),
    (OPEN, Failed(1, "1006", retryable=True)),
    (MOVING, GoingAway(1, 10)),
    (DOOMED, GoingAway(1, 10)),
    (DOOMED, MoveWanted()),
    (LOST, Dropped(1, "1006")),
    (LOST, GoingAway(1, 10)),
    *((CLOSED, event) for event in (Start(), Connected(1), Dropped(1, ""), HandleKept(), Stop())),
)


@pytest.mark.parametrize(("state", "event"), MEANINGLESS)
def test_an_event_without_meaning_is_counted_and_changes_nothing(
    state: State, event: Event
) -> None:
    after, effects = step(state, event, PLAIN)
    assert effects == ()
    assert after == replace(state, ignored=state.ignored + 1)


@pytest.mark.parametrize(
    ("cap", "rotates", "latest"),
    [(3_600, 3_480, 3_595), (900, 810, 895), (600, 540, 595), (20, 15, 15), (6, 3, 3)],
)
def test_a_capped_connection_rotates_before_its_end(
    cap: float, rotates: float, latest: float
) -> None:
    state, _ = step(CONNECTING, Connected(100.0), Rules(max_session_s=cap))
    assert (state.rotate_at, state.cap_at) == (100 + rotates, 100 + latest)
    assert wakes_at(state) == 100 + rotates


def test_time_wakes_the_table_only_where_it_can_change_something() -> None:
    assert wakes_at(NEW) is None
    assert wakes_at(OPEN) is None
    assert wakes_at(replace(OPEN, moving=True, move_by=7.0, rotate_at=3.0)) == 7.0
    assert wakes_at(replace(MOVING, rotate_at=3.0)) is None


@pytest.mark.parametrize(
    "values", [{"attempts": 0}, {"stable_s": -1}, {"lead_s": -1}, {"max_session_s": 0}]
)
def test_rules_that_cannot_be_kept_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(MediaValueError):
        Rules(**values)  # type: ignore[arg-type]


SECOND = st.floats(0, 20)
RULES = st.builds(
    Rules,
    resume=st.booleans(),
    closes_first=st.booleans(),
    max_session_s=st.sampled_from([None, 30.0]),
    refreshable=st.booleans(),
    attempts=st.integers(1, 8),
)
HAPPENINGS = st.one_of(
    st.sampled_from(
        ["connected", "handle", "gap", "tick", "move", "fresh move", "away", "start", "drop"]
    ),
    st.tuples(st.just("drop"), st.sampled_from(["fatal", HANDLE_REFUSED])),
    st.tuples(st.just("failed"), st.sampled_from(["1006", "bad", "401", HANDLE_REFUSED])),
)
Happening = str | tuple[str, str]


@dataclass
class World:
    """Does what the table says, and holds it to its promises."""

    rules: Rules
    state: State = NEW
    now: float = 0.0
    dialled: Dial | None = None
    serving: bool = False
    failures: int = 0
    refreshes: int = 0
    over: bool = False
    phases: list[Phase] = field(default_factory=list)

    def event(self, what: Happening) -> Event:
        match what:
            case "connected":
                return Connected(self.now)
            case ("failed", code):
                return Failed(self.now, code, code == "1006", credentials=code == "401")
            case ("drop", code):
                return Dropped(self.now, code, fatal=code == "fatal")
            case "drop":
                return Dropped(self.now, "1006")
            case "away":
                return GoingAway(self.now, 8)
            case "move" | "fresh move":
                return MoveWanted(fresh=what == "fresh move")
            case "gap" | "tick":
                return Tick(self.now, gap=what == "gap")
            case "handle":
                return HandleKept()
            case _:
                return Start()

    def happen(self, event: Event) -> None:
        before = self.state
        self.note(event)
        self.state, effects = step(before, event, self.rules)
        for effect in effects:
            self.perform(effect)
        assert (self.state.attempt > 0) == (self.dialled is not None)
        assert (self.state.phase == "open") == self.serving
        assert before.phase != "closed" or not effects

    def note(self, event: Event) -> None:
        dialled = self.dialled
        match event:
            case Failed() if dialled is not None:
                self.failures += 1
                self.dialled = None
                renewable = event.credentials and self.rules.refreshable and not self.refreshes
                handle = event.code == HANDLE_REFUSED and dialled.resume
                self.over |= not (event.retryable or renewable or handle)
            case Dropped() if self.serving:
                self.serving = False
                self.over |= event.fatal
            case _:
                pass

    def perform(self, effect: Effect) -> None:
        match effect:
            case Dial():
                assert self.dialled is None, "two dials at once"
                assert not self.over, "a try after the end"
                assert not effect.resume or (effect.attempt == 1 and self.rules.resume)
                if effect.refresh:
                    self.refreshes += 1
                    assert self.refreshes == 1 and self.rules.refreshable
                assert self.failures - self.refreshes < self.rules.attempts
                assert effect.attempt <= self.rules.attempts
                if effect.close_first:
                    assert self.serving
                    self.serving = False
                assert not (self.serving and self.rules.closes_first)
                self.dialled = effect
            case Adopt():
                assert self.dialled is not None
                self.dialled, self.serving = None, True
                self.failures = self.refreshes = 0
            case Abort():
                assert self.dialled is not None, "nothing to abort"
                self.dialled = None
            case Announce(phase):
                assert not self.phases or self.phases[-1] != phase
                self.phases.append(phase)
                if phase == "closed":
                    self.serving, self.over = False, True
            case _:
                pass


@settings(max_examples=150, deadline=None)
@given(
    rules=RULES, handle=st.booleans(), order=st.lists(st.tuples(SECOND, HAPPENINGS), max_size=60)
)
def test_promises_hold_in_any_order(
    rules: Rules, handle: bool, order: Sequence[tuple[float, Happening]]
) -> None:
    world = World(rules)
    world.happen(Start(handle))
    for seconds, what in order:
        world.now += seconds
        stayed = world.state.phase == "open" and world.state.attempt
        world.happen(world.event(what))
        if stayed and not world.state.attempt:
            world.failures = world.refreshes = 0  # a move that was given up, not a connection
    world.happen(Stop())
    assert world.state.phase == "closed"
    assert world.phases[0] == "connecting" and world.phases[-1] == "closed"
    assert world.dialled is None and not world.serving


@settings(max_examples=50, deadline=None)
@given(rules=RULES, seed=st.lists(st.sampled_from(["connected", "failed"]), min_size=50))
def test_a_provider_that_never_holds_is_given_up(rules: Rules, seed: Sequence[str]) -> None:
    """Whether it refuses or takes each connection and drops it at once."""
    world = World(rules)
    world.happen(Start())
    steps = 0
    for what in seed:
        if world.state.phase == "closed":
            break
        steps += 1
        world.now += 0.5
        if world.state.phase == "open":
            world.happen(Dropped(world.now, "1006"))
        else:
            world.happen(world.event("connected" if what == "connected" else ("failed", "1006")))
    assert world.state.phase == "closed"
    assert steps <= rules.attempts * (rules.attempts + 3) // 2
