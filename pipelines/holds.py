"""When a user turn is over: holds, the four commit paths, and the guards before a commit.

Rules of the turn machine (state in, effects out), no I/O. The paths are: the hold after speech
ended; text that stands still while the detector still hears voice; the sweep of text that no
boundary ended; a final text that comes late (spec/voice 5.2). How long a hold lasts is `commit`'s.
"""

from __future__ import annotations

from dataclasses import replace

from ..media.turns.nearfield import judge
from .answer import has_floor, start_reply
from .commit import RATE, Answer, hold_for
from .detectors.port import Decision
from .state import Committed, Holding, Speech, Step, samples
from .vocabulary import (
    AskDetector,
    Complete,
    FlushStt,
    Gate,
    SettleStt,
    TellMetric,
    TellTurn,
    Timing,
    Verdict,
)


def begin_hold(step: Step, anchor: int, *, forced: str = "", final_known: bool = False) -> None:
    """Speech ended at `anchor`: ask for what is missing and wait as long as the text wants."""
    text = step.state.transcript.text
    wanted = not final_known and (not step.config.continuous or not text)
    query = step.state.queries + 1
    step.put(
        queries=query,
        hold=Holding(
            anchor=anchor,
            known_at=step.at,
            query=query,
            asked_at=step.at,
            asked_text=text,
            answered_at=None if step.config.detector else step.at,
            answer=None if step.config.detector else Answer(text, None),
            awaiting_since=step.at if wanted else None,
            text_at=step.state.transcript.changed_at,
            forced=forced,
        ),
    )
    if wanted:
        step.do(FlushStt(anchor))
    step.do(Gate("close"))
    step.speech(gate_open=False)
    if not forced and step.config.detector:
        step.do(AskDetector(query, text, anchor, again=False))


def final_came(step: Step) -> None:
    hold = step.state.hold
    if hold is None or hold.awaiting_since is None:
        return
    hold = replace(hold, awaiting_since=None, text_at=step.at)
    step.put(hold=hold)
    text = step.state.transcript.text
    judged_blind = hold.answer is not None and _judged(hold.answer) and not hold.asked_text
    if text and judged_blind and not hold.forced:
        # A detector that reads had nothing to read yet.
        _ask_again(step, hold, again=hold.again)


def _judged(answer: Answer) -> bool:
    """Whether the detector decided by text: it gave a hold of its own and no probability."""
    return answer.decision is not None and answer.decision.p is None


def _ask_again(step: Step, hold: Holding, *, again: bool) -> None:
    text, query = step.state.transcript.text, step.state.queries + 1
    asked = replace(
        hold,
        query=query,
        asked_at=step.at,
        asked_text=text,
        answered_at=None,
        answer=None,
        again=again,
    )
    step.put(queries=query, hold=asked)
    step.do(AskDetector(query, text, hold.anchor, again=again))


def on_verdict(step: Step, event: Verdict) -> None:
    """The turn detector answered, or failed to."""
    hold = step.state.hold
    decision = None
    if not event.failed:
        decision = Decision(event.hold_ms, event.reason, event.p, event.again_ms)
    if hold is not None and hold.query == event.query and hold.answered_at is None:
        answer = Answer(hold.asked_text, decision, late=decision is None)
        step.put(hold=replace(hold, answered_at=step.at, answer=answer))
        try_commit(step)
    elif hold is None and step.state.stable_asked_at and event.query == step.state.queries:
        _judge_stable(step, decision)
    else:
        step.ignore()


def tend_hold(step: Step) -> None:
    turn, hold = step.config.turn, step.state.hold
    if hold is None:
        return
    if hold.answered_at is None and step.at - hold.asked_at >= samples(turn.detector_timeout_ms):
        hold = replace(hold, answered_at=step.at, answer=Answer(hold.asked_text, None, late=True))
        step.put(hold=hold)
    late = hold.awaiting_since is not None and (
        step.at - hold.awaiting_since >= samples(turn.final_timeout_ms)
    )
    if late:
        step.put(hold=replace(hold, awaiting_since=None, text_at=step.at))
        step.do(TellMetric("stt_final_timeout", 1.0))
    try_commit(step)


def stable(step: Step) -> None:
    """Path 2: the detector hears voice, the recogniser hears nothing new."""
    turn, state = step.config.turn, step.state
    if not step.config.continuous or state.user != "speaking" or has_floor(step):
        # A recogniser that answers only when asked has nothing new to say by itself.
        return
    still = step.at - state.transcript.changed_at
    asked = state.stable_asked_at
    due = samples(turn.stable_ms if asked < state.transcript.changed_at else turn.stable_again_ms)
    since = still if asked < state.transcript.changed_at else step.at - asked
    if since >= due:
        query = state.queries + 1
        step.put(queries=query, stable_asked_at=step.at)
        if step.config.detector:
            step.do(AskDetector(query, state.transcript.text, step.at, again=False))
        else:
            _judge_stable(step, None)


def _judge_stable(step: Step, decision: Decision | None) -> None:
    state = step.state
    if state.user != "speaking" or not state.transcript.pieces or has_floor(step):
        return
    answer = Answer(state.transcript.text, decision, late=decision is None)
    decided = _decide(step, answer, 0)
    if decided.hold_ms <= step.config.turn.stable_hold_ms:
        _commit(step, "stable", decided, step.at, None)


def sweep(step: Step) -> None:
    """Path 3: text that no boundary ended."""
    turn, state = step.config.turn, step.state
    if state.user != "silent" or has_floor(step) or state.muted:
        return
    if step.at - state.swept_at < samples(turn.sweep_ms):
        return
    step.put(swept_at=step.at)
    if step.at - state.transcript.changed_at >= samples(turn.sweep_still_ms):
        _commit(step, "sweep", Decision(turn.sweep_still_ms, "sweep"), step.at, None)


def _decide(step: Step, answer: Answer, waited: int) -> Decision:
    return hold_for(
        step.state.transcript.text,
        step.config.turn,
        answer,
        waited_ms=waited * 1000 // RATE,
        pauses=step.state.pauses,
    )


def try_commit(step: Step) -> None:
    """Commit the held turn if its time and its text have come."""
    state, hold = step.state, step.state.hold
    if hold is None or state.user != "holding" or hold.awaiting_since is not None:
        return
    if has_floor(step):
        if state.barge.stage == "idle":
            # The answer went on over it: a sign of listening, or no words at all (row 28).
            drop(step, "backchannel" if state.transcript.text else "no_words")
        return
    if not state.transcript.text:
        drop(step, "no_words")
        return
    if hold.forced:
        _commit(step, hold.forced, Decision(0, hold.forced), hold.anchor, hold)
        return
    if hold.answer is None:
        return
    waited = step.at - hold.anchor
    decided = _decide(step, hold.answer, waited)
    again = decided.ask_again_ms
    if waited >= samples(decided.hold_ms):
        _commit(step, decided.reason, decided, hold.anchor, hold)
    elif again is not None and not hold.again and waited >= samples(again):
        _ask_again(step, hold, again=True)


def _commit(step: Step, reason: str, hold: Decision, end: int, held: Holding | None) -> None:
    """All guards, then hand the turn over."""
    refusal = _refusal(step, end)
    if refusal is not None:
        drop(step, refusal)
        return
    state, speech = step.state, step.state.speech
    transcript = state.transcript
    turn = state.turns + 1
    finished = max(end, transcript.end or end)
    start = speech.turn_start if speech.turn_start is not None else transcript.start
    confirming = step.config.continuous and any(not piece.final for piece in transcript.pieces)
    step.do(
        TellTurn(
            "committed",
            reason,
            transcript.text,
            turn,
            hold_ms=hold.hold_ms,
            p=hold.p,
            start=start,
            end=end,
            timing=None if held is None else _timing(step, held, hold),
        )
    )
    step.put(turns=turn, committed=Committed(turn, transcript.text, finished, confirming))
    if confirming:
        step.do(FlushStt(finished))
    _close_turn(step, finished, "committed")
    start_reply(step, "speech", transcript.text, turn=turn, start=start, end=end)


def _timing(step: Step, held: Holding, hold: Decision) -> Timing:
    answered = held.answered_at if held.answered_at is not None else step.at
    due = max(answered, held.anchor + samples(hold.hold_ms))
    return Timing(held.anchor, held.known_at, min(due, step.at), held.text_at, step.at)


def _refusal(step: Step, end: int) -> str | None:
    """Why this text is no turn of the caller, or None (guards a and b of spec/voice 5.2)."""
    turn, speech = step.config.turn, step.state.speech
    fresh = samples(turn.fresh_ms)
    if step.state.committing is None and not turn.manual:
        voiced = end - speech.voiced_at <= fresh or step.at - speech.voiced_at <= fresh
        grew = step.at - step.state.transcript.changed_at <= fresh
        room = step.at - speech.room_at <= fresh
        if not voiced and not (grew and room):
            return "phantom"
        if speech.peak > 0:
            near, ours = judge(step.state.near, speech.peak, end, turn.near_field)
            step.put(near=near)
            if not ours:
                return "far_field"
    return None


def drop(step: Step, reason: str) -> None:
    """This was no turn: forget it, and say why (every drop is told)."""
    state = step.state
    end = state.transcript.end or (state.hold.anchor if state.hold is not None else step.at)
    step.do(TellTurn("dropped", reason, state.transcript.text))
    _close_turn(step, end, "dropped")


def _close_turn(step: Step, end: int, trigger: str) -> None:
    state = step.state
    if state.user == "holding":
        step.move_user(trigger)
    if state.committing is not None:
        step.do(Complete(state.committing))
    step.do(SettleStt(end))
    step.put(
        hold=None,
        committing=None,
        stable_asked_at=0,
        transcript=state.transcript.settle(end, step.at),
        quiet_since=step.at,
    )
    if step.state.user == "silent":
        speech = step.state.speech
        step.put(
            speech=Speech(
                voiced_at=speech.voiced_at,
                room_at=speech.room_at,
                reset_at=speech.reset_at,
                ended=speech.ended,
                words_at=speech.words_at,
            )
        )
