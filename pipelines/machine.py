"""The turn machine: one pure reducer per call.

`step(state, event, config) -> (state, effects)`. It reads no clock and does no I/O; every event
carries its sample position. Three floors (see `floors`) and the guards between them decide; an
event that means nothing in its state is ignored and counted, never raised. A recorded list of
events replays a call's decisions exactly (DESIGN 4).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from .answer import acknowledge, on_answered, on_narrated, on_silenced, on_sounded, take_queued
from .asks import on_asked, on_line, on_muted, on_slots, on_talk, on_woken, tend_talk
from .endpoint import on_tick, on_voice, on_words
from .floors import MODES
from .holds import drop_unclaimed, on_verdict
from .state import MachineConfig, State, Step, initial
from .vocabulary import (
    Answered,
    Asked,
    Complete,
    Effect,
    LineMoved,
    Muted,
    Narrated,
    Silenced,
    Slots,
    Sounded,
    Talk,
    Tick,
    TurnEvent,
    Verdict,
    Voice,
    Woken,
    Words,
)

__all__ = ["MachineConfig", "State", "initial", "quiet_below", "replay", "step"]


def step(state: State, event: TurnEvent, config: MachineConfig) -> tuple[State, tuple[Effect, ...]]:
    """The state after `event`, and what is to be done about it, in order. Never raises for any
    event in any state; once the line is closed nothing has an effect but completing commands."""
    if isinstance(event, Tick) and _changes_nothing(state, event, config):
        return state, ()
    return _whole_step(state, event, config)


def _whole_step(
    state: State, event: TurnEvent, config: MachineConfig
) -> tuple[State, tuple[Effect, ...]]:
    move = Step(state, config, event.at)
    if state.line == "closed":
        if isinstance(event, Asked | Muted | Talk):
            move.do(Complete(event.command))
        else:
            move.ignore()
        return move.state, tuple(move.effects)
    _dispatch(move, event)
    take_queued(move)
    move.tell_mode()
    return move.state, tuple(move.effects)


def _changes_nothing(state: State, tick: Tick, config: MachineConfig) -> bool:
    """Whether `tick` is silence that nobody waits in: nine of ten ticks of a call."""
    return tick.prob < quiet_below(state, config)


def quiet_below(state: State, config: MachineConfig) -> float:
    """The probability of voice below which a tick leaves `state` as it is; 0 where every tick
    counts. Above 0 only where the long way would change nothing; saying 0 is always right."""
    nobody_waits = (
        state.user == "silent"
        and state.agent in ("idle", "speaking")
        and state.line == "attached"
        and state.mode == MODES[state.agent]
        and state.hold is None
        and state.barge.stage == "idle"
        and state.speech.words_at is None
        and state.talk.commit_at is None
        and not (state.transcript.pieces or state.queued or state.woken)
    )
    return min(config.turn.room_p, config.turn.evidence_p) if nobody_waits else 0.0


def replay(events: Iterable[TurnEvent], config: MachineConfig) -> Iterable[tuple[State, Effect]]:
    """Run a recorded event log; yields each effect with the state after its event."""
    state = initial(config)
    for event in events:
        state, effects = step(state, event, config)
        for effect in effects:
            yield state, effect


def _dispatch(move: Step, event: TurnEvent) -> None:
    match event:
        case Tick():
            on_tick(move, event)
            tend_talk(move)
            acknowledge(move)
        case Voice():
            on_voice(move, event)
        case Words():
            on_words(move, event)
        case Verdict():
            on_verdict(move, event)
        case _:
            _dispatch_answer(move, event)


def _dispatch_answer(
    move: Step,
    event: Sounded
    | Silenced
    | Answered
    | Narrated
    | Asked
    | Muted
    | Talk
    | Woken
    | Slots
    | LineMoved,
) -> None:
    match event:
        case Sounded():
            on_sounded(move, event)
        case Silenced():
            on_silenced(move, event)
        case Answered():
            if on_answered(move, event):
                drop_unclaimed(move)
        case Narrated():
            on_narrated(move, event)
        case Asked():
            on_asked(move, event)
        case _:
            _dispatch_line(move, event)


def _dispatch_line(move: Step, event: Muted | Talk | Woken | Slots | LineMoved) -> None:
    match event:
        case Muted():
            on_muted(move, event)
        case Talk():
            on_talk(move, event)
        case Woken():
            on_woken(move, event)
        case Slots():
            on_slots(move, event)
        case LineMoved():
            on_line(move, event)
        case _:
            assert_never(event)
