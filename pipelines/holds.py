"""When a user turn is over: holds, the four commit paths, and the guards before a commit.

Rules of the turn machine (state in, effects out), no I/O. The paths are: the hold after speech
ended; text that stands still while the detector still hears voice; the sweep of text that no
boundary ended; a final text that comes late (spec/voice 5.2). How long a hold lasts is `commit`'s.
"""

from __future__ import annotations

from dataclasses import replace

from ..media.events import RATE
from ..media.turns import bargein
from ..media.turns.nearfield import judge
from ..media.turns.words import same_words
from .answer import cut_reply, free, has_floor, is_unheard, open_gate, start_reply
from .attribution import TAIL_MS, commit_of
from .commit import Answer, hold_for
from .detectors.port import Decision
from .state import Holding, Speech, Step, samples
from .vocabulary import (
    AskDetector,
    AskStt,
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
    wanted = not final_known and (bool(forced) or not step.config.continuous or not text)
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
            awaiting_end=anchor,
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


def end_now(step: Step, forced: str) -> None:
    """The turn is over by command, whatever the detector hears: all that was said is wanted."""
    if step.state.user == "tentative":
        # Not confirmed, so the gate holds it; the person says that it was speech.
        open_gate(step)
    step.move_user("words" if step.state.user == "silent" else "over")
    step.speech(start=None, ended=step.at)
    begin_hold(step, step.at, forced=forced)


def final_came(step: Step, end: int) -> None:
    """A final for audio up to `end` came: is it the one the turn waits for?"""
    hold = step.state.hold
    if hold is None or hold.awaiting_since is None:
        return
    whole = end >= hold.awaiting_end - samples(TAIL_MS)
    if not whole and not (step.config.continuous and step.state.transcript.text):
        return
    hold = replace(hold, awaiting_since=None, text_at=step.at)
    step.put(hold=hold)
    ask_anew(step)


def ask_anew(step: Step) -> None:
    """The text grew while the turn is held: a detector that reads gets to read it."""
    hold = step.state.hold
    if hold is None or hold.forced or hold.answer is None or not _judged(hold.answer):
        return
    if not same_words(hold.asked_text, step.state.transcript.text):
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
        answer = Answer(hold.asked_text, decision, late=decision is None, again=hold.again)
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
        step.do(TellMetric("stt_final_timeout", 1.0))
        if not step.state.transcript.text and step.state.user == "holding":
            drop(step, "final_timeout")
            return
        step.put(hold=replace(hold, awaiting_since=None, text_at=step.at, owed=True))
    try_commit(step)


def _is_talk_held(step: Step) -> bool:
    """Whether the talk button is down: a pause ends no turn then, its release does."""
    return step.state.talk.down_at is not None


def ask_long_voice(step: Step) -> None:
    """A recogniser that speaks only when asked is asked about a voice that does not end."""
    turn, speech = step.config.turn, step.state.speech
    if step.config.continuous or turn.manual or speech.start is None or has_floor(step):
        return
    long = step.at - speech.start >= samples(turn.long_voice_ms)
    if long and step.at - speech.asked_at >= samples(turn.long_again_ms):
        open_gate(step)
        step.speech(asked_at=step.at)
        step.do(AskStt(step.at))


def stable(step: Step) -> None:
    """Path 2: the detector hears voice, the recogniser hears nothing new."""
    turn, state = step.config.turn, step.state
    if state.user != "speaking" or has_floor(step) or turn.manual or _is_talk_held(step):
        return
    changed_at, asked = state.transcript.changed_at, state.stable_asked_at
    still = step.at - changed_at
    if not step.config.continuous:
        # One that answers only when asked says nothing new by itself: what it has heard counts.
        still = state.speech.reported_to - state.speech.changed_to
    if still < samples(turn.stable_ms):
        return
    again = samples(turn.stable_again_ms) if step.config.detector else 0
    if asked >= changed_at and step.at - asked < again:
        return
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
    if _is_talk_held(step):
        return
    answer = Answer(state.transcript.text, decision, late=decision is None)
    decided, turn = _decide(step, answer, 0), step.config.turn
    still = step.at - state.transcript.changed_at
    if decided.hold_ms <= turn.stable_hold_ms or still >= samples(turn.stable_ms + decided.hold_ms):
        # What the recogniser has not come to yet is not of this turn.
        end = state.transcript.end
        _commit(step, "stable", decided, step.at if end is None else end, None)


def sweep(step: Step) -> None:
    """Path 3: text that no boundary ended."""
    turn, state = step.config.turn, step.state
    if state.user != "silent" or has_floor(step) or turn.manual or _is_talk_held(step):
        return
    if step.at - state.swept_at < samples(turn.sweep_ms):
        return
    step.put(swept_at=step.at)
    if step.at - state.transcript.changed_at >= samples(turn.sweep_still_ms):
        end = state.transcript.end
        decision = Decision(turn.sweep_still_ms, "sweep")
        _commit(step, "sweep", decision, step.at if end is None else end, None)


def _decide(step: Step, answer: Answer, waited: int) -> Decision:
    """The hold of the text as it is now; `waited`: the silence when the detector was asked."""
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
    text = state.transcript.text
    if has_floor(step) and not (text and _claims(step, hold)):
        if state.barge.stage == "idle" or is_unheard(step):
            # The answer went on over it: a sign of listening, or no words at all (row 28).
            drop(step, "backchannel" if text else "no_words")
        return
    if not text:
        drop(step, "no_words")
    elif hold.forced:
        _commit(step, hold.forced, Decision(0, hold.forced), hold.anchor, hold)
    elif hold.answer is not None and not _is_talk_held(step):
        _weigh(step, hold, hold.answer)


def _claims(step: Step, hold: Holding) -> bool:
    """Whether a held turn takes the floor whatever its words: the person said so, or it began
    before the answer was asked for and so is no reaction to it."""
    reply, start = step.state.reply, step.state.speech.turn_start
    began = hold.anchor if start is None else start
    return bool(hold.forced) or (reply is not None and began < reply.asked_at)


def _weigh(step: Step, hold: Holding, answer: Answer) -> None:
    waited = step.at - hold.anchor
    decided = _decide(step, answer, hold.asked_at - hold.anchor)
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
    if has_floor(step):
        cut_reply(step, "words", tools=False)
    state, transcript = step.state, step.state.transcript
    turn = state.turns + 1
    finished = max(end, transcript.end or end)
    start = _turn_start(step, end)
    timing = None if held is None else _timing(step, held, hold)
    step.do(
        TellTurn("committed", reason, transcript.text, turn, hold.hold_ms, hold.p, timing=timing)
    )
    owed = held is not None and held.owed
    began = start if transcript.start is None else transcript.start
    committed = commit_of(turn, transcript, began, finished, owed=owed)
    step.put(turns=turn, committed=committed)
    if committed.confirming and not owed:
        step.do(FlushStt(finished))
    _close_turn(step, finished, "committed")
    start_reply(step, "speech", transcript.text, turn=turn, start=start, end=end)


def _turn_start(step: Step, end: int) -> int:
    """Where the turn began: with its voice, else with its words, never before the turn before."""
    voice, text = step.state.speech.turn_start, step.state.transcript.start
    start = voice if voice is not None else text if text is not None else end
    before = step.state.committed
    return min(end, start if before is None else max(start, before.end))


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
    text, heard_to = state.transcript.text, state.transcript.end
    step.do(TellTurn("dropped", reason, text))
    if reason in UNHEARD and state.hold is not None:
        # Nobody heard a word of it; if words come after all they are a turn (field fault 12).
        step.put(lost=state.hold.awaiting_end)
        if reason != "final_timeout":
            step.do(SettleStt(state.hold.awaiting_end))
        _clear_turn(step, state.transcript.settled, "dropped")
    else:
        anchor = step.at if state.hold is None else state.hold.anchor
        _close_turn(step, anchor if heard_to is None else heard_to, "dropped")
    if step.state.user == "silent" and has_floor(step):
        # What paused the answer is decided; nothing else would let it go.
        step.put(barge=bargein.BargeIn())
        free(step, "backchannel" if text else "wordless")


def drop_unclaimed(step: Step) -> None:
    """Words reported while the agent spoke, of a voice that never interrupted it, are nobody's
    turn once it is done (spec/voice 5.2)."""
    state = step.state
    if state.user == "silent" and state.transcript.pieces:
        drop(step, "unclaimed")


UNHEARD = ("no_words", "final_timeout")


def _close_turn(step: Step, end: int, trigger: str) -> None:
    step.do(SettleStt(end))
    step.put(lost=None)
    _clear_turn(step, end, trigger)


def _clear_turn(step: Step, end: int, trigger: str) -> None:
    state = step.state
    if state.user == "holding":
        step.move_user(trigger)
    if state.committing is not None:
        step.do(Complete(state.committing))
    step.put(
        hold=None,
        committing=None,
        stable_asked_at=0,
        transcript=state.transcript.settle(end, step.at),
        quiet_since=step.at,
    )
    speech = step.state.speech
    if step.state.user == "silent":
        step.put(
            speech=Speech(
                voiced_at=speech.voiced_at,
                room_at=speech.room_at,
                reset_at=speech.reset_at,
                ended=speech.ended,
                words_at=speech.words_at,
                reported_to=speech.reported_to,
            )
        )
    else:
        # Still heard: what is said from here on is the next turn, and a reaction to the answer.
        step.speech(start=end, turn_start=end, onset_at=end, peak=0.0)
