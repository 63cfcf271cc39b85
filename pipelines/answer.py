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
    step.put(gens=gen, reply=Reply(gen, turn, command), barge=bargein.BargeIn())
    step.do(StartReply(gen, turn, source, text, start, end))
    speech = step.state.speech
    if step.state.user in ("tentative", "speaking") and turn is None and speech.start is not None:
        # Nobody decided about what is being said: the answer waits for that (DESIGN 5.2).
        feed_barge_in(step, bargein.Onset(step.at, speech.start))


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
    reply = step.state.reply
    if reply is None or reply.gen != event.gen or step.state.agent != "thinking":
        step.ignore()
        return
    step.move_agent("sounded")
    step.do(DuckVad(True))


def on_silenced(step: Step, event: Silenced) -> None:
    """What was given so far is heard; more may come."""
    reply = step.state.reply
    if reply is None or reply.gen != event.gen or step.state.agent != "speaking":
        step.ignore()
        return
    step.move_agent("silenced")
    step.do(DuckVad(False))


def on_answered(step: Step, event: Answered) -> None:
    """The answer is over."""
    reply = step.state.reply
    if reply is None or reply.gen != event.gen:
        step.ignore()
        return
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


# ---- barge-in


def feed_barge_in(step: Step, fact: bargein.Fact) -> None:
    """Tell the barge-in policy a fact and carry out what it says."""
    if not has_floor(step):
        return
    state = step.state
    # Before it is audible an answer is only held back by a voice, and goes on if there were no
    # words: a cough after the question must not lose the answer (field fault 3).
    protected = state.slots > 0 or state.agent == "thinking"
    barge, effects = bargein.step(state.barge, fact, step.config.barge_in, protected=protected)
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
            step.do(AskStt(at))
        case _:
            assert_never(effect)


def _pause(step: Step) -> None:
    state = step.state
    if state.agent == "speaking":
        step.move_agent("pause")
        step.do(Pause(audible=True), DuckVad(False))
    elif state.agent == "thinking" and state.reply is not None:
        step.put(reply=replace(state.reply, withheld=True))
        step.do(Pause(audible=False))


def _resume(step: Step, reason: str) -> None:
    state = step.state
    if state.agent == "paused":
        step.move_agent("resume")
        step.do(Resume(reason, audible=True), DuckVad(True))
    elif state.agent == "thinking" and state.reply is not None:
        step.put(reply=replace(state.reply, withheld=False))
        step.do(Resume(reason, audible=False))


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
    step.put(narration=None)
    step.move_agent("narrated, reply open" if step.state.reply is not None else "narrated")


def take_queued(step: Step) -> None:
    """Start what waits for a quiet floor: narrations first, then the agent's own turns."""
    state = step.state
    if state.line == "closed" or state.agent not in ("idle", "thinking"):
        return
    narration = next((item for item in state.queued if item.kind == "narrate"), None)
    if narration is not None and not (state.reply is not None and state.reply.withheld):
        _unqueue(step, narration)
        hush_user(step)
        step.move_agent("narrate")
        step.put(narration=narration.command)
        step.do(StartNarration(narration.command))
        return
    if state.agent != "idle" or state.user != "silent":
        return
    own = next((item for item in state.queued if item.kind != "narrate"), None)
    if own is not None:
        _unqueue(step, own)
        source: Source = "inject" if own.kind == "inject" else "respond"
        start_reply(step, source, own.text, command=own.command)
    elif state.woken and step.at - state.quiet_since >= samples(step.config.turn.quiet_ms):
        step.put(woken=False)
        start_reply(step, "wake", "")


def _unqueue(step: Step, item: Queued) -> None:
    step.put(queued=tuple(other for other in step.state.queued if other is not item))


def hush_user(step: Step) -> None:
    """The microphone closes under a speaking user: what was said so far is wanted as text."""
    state = step.state
    if state.user in ("tentative", "speaking") and state.speech.gate_open:
        step.do(FlushStt(step.at), Gate("close"))
    elif state.user == "tentative":
        step.do(Gate("cancel"))
    if state.user in ("tentative", "speaking"):
        step.move_user("hush")
    step.speech(start=None, gate_open=False)
