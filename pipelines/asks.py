"""Commands and the line: what people, clients and the call itself ask of the turn machine.

Rules of the turn machine, like `answer` and `endpoint`; no I/O. A command is complete when its
effect is over, and every command completes once, whatever happens in between.
"""

from __future__ import annotations

from dataclasses import replace

from ..media.turns import bargein
from .answer import (
    cut_reply,
    end_narration,
    feed_barge_in,
    has_floor,
    hush_user,
    start_reply,
)
from .holds import begin_hold, drop, drop_unclaimed, end_now, try_commit
from .state import Queued, Step, TalkButton, samples
from .vocabulary import (
    AddContext,
    AnswerClient,
    Asked,
    Complete,
    LineMoved,
    Microphone,
    Muted,
    SettleStt,
    Slots,
    Talk,
    TellTurn,
    Woken,
)


def on_asked(step: Step, event: Asked) -> None:
    """A command came."""
    if step.state.line == "closed":
        step.do(Complete(event.command))
        return
    match event.kind:
        case "say":
            _say(step, event)
        case "respond" | "narrate" | "inject":
            item = Queued(event.command, event.kind, event.text)
            step.put(queued=(*step.state.queued, item))
        case "context":
            step.do(AddContext(event.text), Complete(event.command))
        case "interrupt":
            interrupt(step, "command")
            step.do(Complete(event.command))
        case "commit":
            _commit_now(step, event.command)
        case "barge_in":
            _client_barge_in(step, event)


def _say(step: Step, event: Asked) -> None:
    """Typed text is a user turn at once, the same path as an utterance (row 73)."""
    if not event.text.strip():
        step.do(Complete(event.command))
        return
    _take_floor(step)
    turn = step.state.turns + 1
    step.put(turns=turn)
    step.do(TellTurn("committed", "typed", event.text, turn))
    start_reply(step, "typed", event.text, turn=turn, command=event.command)


def interrupt(step: Step, reason: str) -> None:
    """Everything the agent does on this call stops, abortable tools too (DESIGN 5.6)."""
    end_narration(step)
    waiting = [item for item in step.state.queued if item.kind == "narrate"]
    step.put(queued=tuple(item for item in step.state.queued if item.kind != "narrate"))
    step.do(*(Complete(item.command) for item in waiting))
    if step.state.reply is not None:
        cut_reply(step, reason, tools=True)
        drop_unclaimed(step)


def _take_floor(step: Step) -> None:
    """The person takes the floor by hand: the answer ends, and so do words nobody claimed."""
    if has_floor(step):
        cut_reply(step, "command", tools=False)
        drop_unclaimed(step)


def _commit_now(step: Step, command: int) -> None:
    """The user's turn is over now: what was said is wanted, and then it is a turn."""
    state = step.state
    if state.committing is not None:
        step.do(Complete(state.committing))
    spoken = state.user in ("speaking", "tentative") or state.hold is not None
    # Without a detector nobody knows whether something was said: the recogniser does (row 57).
    spoken = spoken or (step.config.turn.manual and not state.muted)
    if not spoken and not state.transcript.pieces:
        step.put(committing=None)
        step.do(Complete(command))
        return
    step.put(committing=command)
    if has_floor(step):
        cut_reply(step, "command", tools=False)
    if state.hold is None or state.user == "tentative":
        # Where the detector still hears voice, its own end finds the turn gone and is ignored.
        end_now(step, "commit")
    else:
        step.put(hold=replace(state.hold, forced="commit"))
    try_commit(step)


def _client_barge_in(step: Step, event: Asked) -> None:
    """A client paused by itself: cut, or tell it to go on when nothing is audible (row 29)."""
    audible = step.state.agent in ("speaking", "paused")
    if audible:
        cut_reply(step, "command", tools=False)
    step.do(AnswerClient(resume=not audible), Complete(event.command))


# ---- microphone


def on_muted(step: Step, event: Muted) -> None:
    """The microphone was closed or opened."""
    _microphone(step, not event.on)
    step.do(Complete(event.command))


def _microphone(step: Step, on: bool) -> None:
    if step.state.muted != on:
        return
    if not on:
        _end_speech(step)
    _set_microphone(step, on)


def _set_microphone(step: Step, on: bool) -> None:
    step.put(muted=not on)
    step.do(Microphone(on))


def _end_speech(step: Step) -> None:
    """Closing the microphone ends what is being said."""
    if step.state.user == "speaking" and step.state.speech.gate_open:
        step.move_user("end")
        step.speech(start=None, ended=step.at)
        begin_hold(step, step.at)
        feed_barge_in(step, bargein.SpeechEnd(step.at, step.at))
    else:
        hush_user(step)


def on_talk(step: Step, event: Talk) -> None:
    """The talk button (rows 56-58): hot from the press, a click toggles mute, a hold commits."""
    step.do(Complete(event.command))
    talk = step.state.talk
    if event.down:
        _talk_down(step, talk)
    elif talk.down_at is not None:
        _talk_up(step, talk, talk.down_at)
    else:
        step.ignore()


def _talk_down(step: Step, talk: TalkButton) -> None:
    if talk.down_at is not None:
        step.ignore()
        return
    _take_floor(step)
    # A press while an early release still waits to commit goes on with the same recording.
    was_muted = talk.was_muted if talk.commit_at is not None else step.state.muted
    step.put(talk=TalkButton(step.at, None, was_muted))
    _microphone(step, True)
    if step.config.turn.manual and step.state.user in ("silent", "holding"):
        # No detector listens, so the button says that somebody speaks. A turn still waiting for
        # its text waits on, and goes with what is said now.
        step.move_user("talk")
        began = step.state.speech.turn_start
        turn_start = step.at if began is None else began
        step.speech(start=step.at, turn_start=turn_start, gate_open=True)


def _talk_up(step: Step, talk: TalkButton, down_at: int) -> None:
    turn = step.config.turn
    held_at = down_at + samples(turn.talk_click_ms)
    if step.at < held_at:
        step.put(talk=TalkButton(was_muted=talk.was_muted))
        if turn.manual:
            _discard(step)
        _microphone(step, talk.was_muted)
        return
    due = max(step.at, held_at + samples(turn.talk_minimum_ms))
    step.put(talk=replace(talk, down_at=None, commit_at=due))
    tend_talk(step)


def tend_talk(step: Step) -> None:
    """Commit an early release once the minimum recording is over."""
    talk = step.state.talk
    if talk.commit_at is None or step.at < talk.commit_at:
        return
    step.put(talk=TalkButton(was_muted=talk.was_muted))
    end_now(step, "talk")
    # A detector that listens goes on after it, where it was listening before.
    _set_microphone(step, not (talk.was_muted or step.config.turn.manual))


def _discard(step: Step) -> None:
    """A click was no speech: what the recogniser got meanwhile is nobody's turn."""
    step.speech(start=None, gate_open=False)
    if step.state.hold is not None:
        step.move_user("over")
        return
    if step.state.user == "speaking":
        step.move_user("hush")
    step.speech(turn_start=None)
    if step.state.transcript.text:
        drop(step, "click")
    step.do(SettleStt(step.at))
    step.put(transcript=step.state.transcript.settle(step.at, step.at))


# ---- line, slots, wakes


def on_line(step: Step, event: LineMoved) -> None:
    """The carrier came or went."""
    if not step.move_line(event.state):
        return
    talk = step.state.talk
    if event.state == "detached" and talk.down_at is not None:
        _talk_up(step, talk, talk.down_at)  # nobody is there to release it
    if event.state == "closed":
        interrupt(step, "closed")
        hush_user(step)
        if step.state.hold is not None or step.state.transcript.pieces:
            drop(step, "closed")
        waiting = step.state.queued
        step.put(queued=(), woken=False)
        step.do(*(Complete(item.command) for item in waiting))


def on_slots(step: Step, event: Slots) -> None:
    """Display slots wait for the person, or no longer do (row 24)."""
    step.put(slots=max(0, event.pending))


def on_woken(step: Step, event: Woken) -> None:
    """The agent wants to speak by itself: at the next quiet moment; a user turn wins."""
    step.put(woken=step.state.line != "closed")
