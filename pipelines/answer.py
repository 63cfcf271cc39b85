"""The agent's floor: starting, hearing of, withholding and cutting an answer.

Rules of the turn machine (state in, effects out), no I/O. Barge-in itself is decided by
media/turns/bargein; here its decisions become moves and effects.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from ..media.turns import bargein
from .state import Queued, Reply, Step, samples
from .vocabulary import (
    Acknowledge,
    Answered,
    AskStt,
    Complete,
    Cut,
    DuckVad,
    EndNarration,
    FlushStt,
    Gate,
    Narrated,
    Pause,
    Resume,
    Silenced,
    Sounded,
    Source,
    StartNarration,
    StartReply,
)

FLOOR = ("thinking", "speaking", "paused")
"""Agent floors during which a voice is a possible interruption."""


def has_floor(step: Step) -> bool:
    """Whether a voice now would interrupt an answer."""
    return step.state.agent in FLOOR


def is_unheard(step: Step) -> bool:
    """Whether nothing of the answer itself was heard yet: a voice without words only holds it
    back (field fault 3)."""
    reply = step.state.reply
    held_back = reply is not None and (reply.withheld or reply.aside)
    return held_back or step.state.agent == "thinking"


def start_reply(
    step: Step,
    source: Source,
    text: str,
    *,
    turn: int | None = None,
    start: int | None = None,
    end: int | None = None,
    command: int | None = None,
) -> None:
    """Ask the agent; whatever it was saying is over first."""
    if step.state.reply is not None:
        cut_reply(step, "superseded", tools=False)
    if step.state.agent == "narrating":
        end_narration(step)
    gen = step.state.gens + 1
    step.move_agent("reply")
    # Any request shows the agent's own news too: what it wanted to say by itself is in it.
    reply = Reply(gen, turn, command, step.at)
    step.put(gens=gen, reply=reply, barge=bargein.BargeIn(), woken=False)
    step.do(StartReply(gen, turn, source, text, start, end))
    if source != "speech":
        _wait_for_voice(step)


def _wait_for_voice(step: Step) -> None:
    """Nobody decided yet about what is being said: the answer waits for that (DESIGN 5.2)."""
    if step.state.user == "silent":
        return
    began = step.state.speech.turn_start
    step.speech(onset_at=step.at if began is None else began)
    if step.state.user == "holding":
        # The voice is over, its turn is not: that turn's decision frees the answer or ends it.
        _pause(step)
        return
    if step.state.user == "tentative":
        open_gate(step)
    feed_barge_in(step, bargein.Onset(step.at, step.at))


def cut_reply(step: Step, reason: str, *, tools: bool) -> None:
    """End the answer now: nothing more of it is played, its model request ends."""
    reply, agent = step.state.reply, step.state.agent
    if reply is None:
        return
    audible = agent in ("speaking", "paused")
    if agent == "narrating":
        # A narration spoken by one of the answer's own tools ends with it.
        end_narration(step)
    step.move_agent("cut")
    step.put(reply=None, barge=bargein.BargeIn())
    step.do(Cut(reply.gen, reason, tools, audible), DuckVad(False))
    if reply.command is not None:
        step.do(Complete(reply.command))


def on_sounded(step: Step, event: Sounded) -> None:
    """The person hears the answer."""
    reply, agent = step.state.reply, step.state.agent
    if reply is None or reply.gen != event.gen:
        step.ignore()
        return
    follows = reply.aside and not event.aside
    if reply.aside != event.aside:
        reply = replace(reply, aside=event.aside)
        step.put(reply=reply)
    if agent not in ("thinking", "narrating"):
        if not follows:
            step.ignore()
    elif agent == "narrating":
        # It follows the narration on the line before that is known to be over.
        step.put(reply=replace(reply, audible=True))
    elif reply.withheld:
        # It left just before the line fell silent.
        step.move_agent("sounded, withheld")
    else:
        step.move_agent("sounded")
        step.do(DuckVad(True))


def on_silenced(step: Step, event: Silenced) -> None:
    """What was given so far is heard; more may come."""
    reply, agent = step.state.reply, step.state.agent
    if reply is None or reply.gen != event.gen:
        step.ignore()
    elif agent == "narrating" and reply.audible:
        step.put(reply=replace(reply, audible=False))
    elif step.move_agent("silenced"):
        # Paused at its last sample: what comes next of it is held back.
        step.put(reply=replace(reply, withheld=agent == "paused", aside=False))
        step.do(DuckVad(False))


def on_answered(step: Step, event: Answered) -> bool:
    """The answer is over; False when it was over before."""
    reply = step.state.reply
    if reply is None or reply.gen != event.gen:
        step.ignore()
        return False
    if step.state.agent == "narrating":
        # Its tool is still speaking; the floor goes back to idle when that is heard.
        step.put(reply=None)
    else:
        if step.state.agent == "paused" or reply.withheld:
            step.do(Resume("ended", audible=False))
        step.move_agent("answered")
        step.put(reply=None)
    step.put(barge=bargein.BargeIn())
    step.do(DuckVad(False))
    if reply.command is not None:
        step.do(Complete(reply.command))
    return True


def acknowledge(step: Step) -> None:
    """Let somebody who waits for an answer hear that it is on its way, once. Not while a display
    slot asks: then the answer waits for the person."""
    state, reply = step.state, step.state.reply
    after = samples(step.config.turn.acknowledge_after_ms)
    if reply is None or reply.turn is None or reply.acknowledged or state.agent != "thinking":
        return
    if not after or step.at - reply.asked_at < after:
        return
    if reply.withheld or state.user != "silent" or state.slots or state.line != "attached":
        return
    step.put(reply=replace(reply, acknowledged=True))
    step.do(Acknowledge(reply.gen))


# ---- barge-in


def feed_barge_in(step: Step, fact: bargein.Fact) -> None:
    """Tell the barge-in policy a fact and carry out what it says."""
    if not has_floor(step):
        return
    state = step.state
    # Before it is audible an answer is only held back by a voice, and goes on if there were no
    # words: a cough after the question must not lose the answer (field fault 3).
    barge, effects = bargein.step(
        state.barge,
        fact,
        step.config.barge_in,
        protected=state.slots > 0,
        withheld=is_unheard(step),
    )
    step.put(barge=barge)
    for effect in effects:
        _carry_out(step, effect)


def _carry_out(step: Step, effect: bargein.Effect) -> None:
    match effect:
        case bargein.Pause():
            _pause(step)
        case bargein.Resume(reason):
            _resume(step, reason)
        case bargein.Cut(reason):
            cut_reply(step, reason, tools=reason == "stop_word" and step.state.slots == 0)
        case bargein.Ask(at):
            hold = step.state.hold
            if hold is None or hold.awaiting_since is None:
                step.do(AskStt(at))
        case _:
            assert_never(effect)


def _pause(step: Step) -> None:
    state = step.state
    if state.agent == "speaking":
        step.move_agent("pause")
        step.do(Pause(audible=True), DuckVad(False))
    elif state.agent == "thinking" and state.reply is not None and not state.reply.withheld:
        step.put(reply=replace(state.reply, withheld=True))
        step.do(Pause(audible=False))


def _resume(step: Step, reason: str) -> None:
    reply = step.state.reply
    if reply is not None and reply.withheld and step.state.hold is not None:
        # A turn waits for its decision, and nothing is said before it (DESIGN 5.2); it frees the
        # answer, or ends it.
        return
    free(step, reason)


def free(step: Step, reason: str) -> None:
    """The answer goes on, if it was paused or held back."""
    agent, reply = step.state.agent, step.state.reply
    if reply is None or not (agent == "paused" or reply.withheld):
        return
    audible = agent == "paused" and not reply.withheld
    step.put(reply=replace(reply, withheld=False))
    step.do(Resume(reason, audible))
    if agent == "paused":
        step.move_agent("resume")
        step.do(DuckVad(True))


# ---- narration and the agent's own turns


def end_narration(step: Step) -> None:
    """Stop the running narration; its future is done."""
    state = step.state
    if state.narration is None:
        return
    step.do(EndNarration(state.narration), Complete(state.narration))
    _leave_narration(step)


def on_narrated(step: Step, event: Narrated) -> None:
    """A narration was heard to its end, or failed."""
    if step.state.narration != event.command:
        step.ignore()
        return
    step.do(Complete(event.command))
    _leave_narration(step)


def _leave_narration(step: Step) -> None:
    reply = step.state.reply
    step.put(narration=None)
    if reply is None:
        step.move_agent("narrated")
    elif reply.audible:
        step.put(reply=replace(reply, audible=False))
        step.move_agent("narrated, reply audible")
        step.do(DuckVad(True))
    else:
        step.move_agent("narrated, reply open")
    _wait_for_voice(step)


def take_queued(step: Step) -> None:
    """Start what waits for a quiet floor: narrations first, then the agent's own turns."""
    state = step.state
    if not (state.queued or state.woken):
        return
    if state.line != "attached" or state.agent not in ("idle", "thinking"):
        return
    narration = next((item for item in state.queued if item.kind == "narrate"), None)
    if narration is not None:
        if _may_narrate(step):
            _unqueue(step, narration)
            hush_user(step)
            step.move_agent("narrate")
            reply = state.reply and replace(state.reply, acknowledged=True)
            step.put(narration=narration.command, reply=reply)
            step.do(StartNarration(narration.command))
        return
    if state.agent != "idle" or not _is_quiet(step):
        return
    if state.queued:
        own = state.queued[0]
        _unqueue(step, own)
        source: Source = "inject" if own.kind == "inject" else "respond"
        start_reply(step, source, own.text, command=own.command)
    elif step.at - state.quiet_since >= samples(step.config.turn.quiet_ms):
        start_reply(step, "wake", "")


def _may_narrate(step: Step) -> bool:
    """Whether nothing undecided is being said. Under an answer a narration is one of its tools'
    and waits only for a voice: what held that answer back is then decided."""
    state = step.state
    if state.agent == "idle":
        return _is_quiet(step)
    held_back = state.reply is not None and state.reply.withheld
    return not held_back and (state.user in ("silent", "holding") or _is_noise(step))


def _is_quiet(step: Step) -> bool:
    """Whether the floor is free: no voice, no turn undecided, no button down."""
    state = step.state
    if state.talk.down_at is not None or state.talk.commit_at is not None:
        return False
    if state.transcript.pieces:
        return False
    return state.user == "silent" or _is_noise(step)


def _is_noise(step: Step) -> bool:
    """Whether what the detector takes for a voice has had no words for so long that it holds
    nothing up any more: nobody waits for ever in a loud room."""
    state, turn = step.state, step.config.turn
    start = state.speech.start
    if state.user != "speaking" or start is None or turn.manual or state.transcript.pieces:
        return False
    return step.at - start >= samples(turn.long_voice_ms)


def _unqueue(step: Step, item: Queued) -> None:
    step.put(queued=tuple(other for other in step.state.queued if other is not item))


def hush_user(step: Step) -> None:
    """The microphone closes under a speaking user: what was said so far is wanted as text."""
    state = step.state
    if state.user not in ("tentative", "speaking"):
        return
    if state.speech.gate_open:
        step.do(FlushStt(step.at), Gate("close"))
        step.speech(ended=step.at)
    else:
        step.do(Gate("cancel"))
    step.move_user("hush")
    step.speech(start=None, gate_open=False)
    feed_barge_in(step, bargein.Misfire(step.at))


def open_gate(step: Step) -> None:
    """The recogniser gets the utterance from its first sample on."""
    if not step.state.speech.gate_open:
        step.speech(gate_open=True)
        step.do(Gate("open", step.state.speech.start))
