"""The user's floor: voice and words in, holds and turns out.

Rules of the turn machine (state in, effects out), no I/O. When a turn ends is decided in `holds`,
whose words they are in `attribution`.
"""

from __future__ import annotations

from dataclasses import replace

from ..media.events import RATE
from ..media.turns import bargein
from .answer import feed_barge_in, has_floor, open_gate
from .attribution import TAIL_MS, attribute
from .holds import (
    ask_anew,
    ask_long_voice,
    begin_hold,
    drop,
    final_came,
    stable,
    sweep,
    tend_hold,
    try_commit,
)
from .state import Step, samples
from .transcript import Piece
from .vocabulary import (
    FlushStt,
    Gate,
    ResetVad,
    SettleStt,
    TellMetric,
    TellTurn,
    TellWords,
    Tick,
    Voice,
    Words,
)


def on_voice(step: Step, event: Voice) -> None:
    """The detector decided something."""
    match event.kind:
        case "start":
            _onset(step, event)
        case "confirmed":
            _confirmed(step, event)
        case "misfire":
            _misfire(step, event)
        case "end":
            _ended(step, event)
        case "echo":
            _echo(step, event)


def _onset(step: Step, event: Voice) -> None:
    if not step.move_user("start"):
        return
    speech = step.state.speech
    turn_start = event.position if speech.turn_start is None else speech.turn_start
    step.speech(
        start=event.position,
        turn_start=turn_start,
        onset_at=None,
        voiced_at=event.at,
        words_at=None,
        gate_open=not step.config.gated,
    )
    if has_floor(step):
        # The agent has the floor: the recogniser hears the interrupter from the first sample, a
        # 300 ms "stop" would otherwise never reach it (row 26).
        step.speech(onset_at=event.position)
        open_gate(step)
        feed_barge_in(step, bargein.Onset(event.at, event.position))
    else:
        step.do(Gate("hold", event.position))


def _confirmed(step: Step, event: Voice) -> None:
    if not step.move_user("confirmed"):
        return
    hold = step.state.hold
    if hold is not None:
        # A pause is one inside a turn: how long the caller listened to an answer says nothing.
        gap_ms = (event.position - hold.anchor) * 1000 / RATE
        step.put(hold=None, pauses=step.state.pauses.after(gap_ms))
        text = step.state.transcript.text
        step.do(TellTurn("resumed", "speech", text))
    open_gate(step)
    feed_barge_in(step, bargein.Confirmed(event.at))


def _misfire(step: Step, event: Voice) -> None:
    hold = step.state.hold
    if not step.move_user("misfire" if hold is None else "misfire, turn pending"):
        return
    if step.state.speech.gate_open:
        # It was given to the recogniser, so it is owed an answer: a short "no" is a misfire of
        # the detector and a word all the same (rows 17, 27). A turn that waits, waits for it too.
        step.do(FlushStt(event.position), Gate("close"))
        step.speech(ended=event.position)
        if hold is not None:
            step.put(hold=replace(hold, awaiting_since=step.at, awaiting_end=event.position))
    else:
        step.do(Gate("cancel"))
    step.speech(start=None, gate_open=False)
    if hold is None:
        step.speech(turn_start=step.state.transcript.start)
    feed_barge_in(step, bargein.Misfire(event.at))


def _echo(step: Step, event: Voice) -> None:
    """It was the agent's own voice: as if it had never been heard, by anyone (field fault 24)."""
    trigger = "echo"
    if step.state.user == "tentative":
        trigger = "misfire" if step.state.hold is None else "misfire, turn pending"
    start = step.state.speech.start
    if not step.move_user(trigger):
        return
    step.do(Gate("close"))
    transcript = step.state.transcript.forget(event.at if start is None else start)
    if step.state.hold is None:
        # Otherwise the recogniser still owes the words of the turn that waits.
        step.do(SettleStt(event.at))
        transcript = replace(transcript, settled=max(transcript.settled, event.at))
    step.put(transcript=transcript)
    step.speech(start=None, turn_start=transcript.start, gate_open=False, onset_at=None)
    feed_barge_in(step, bargein.Misfire(event.at))


def _ended(step: Step, event: Voice) -> None:
    if not step.move_user("end"):
        return
    state = step.state
    step.speech(start=None, ended=event.position)
    if event.position <= state.transcript.settled and not state.transcript.pieces:
        # Its turn was decided while it was still heard.
        step.move_user("hush")
        step.do(Gate("close"))
        step.speech(gate_open=False, turn_start=None)
    else:
        begin_hold(step, event.position)
    feed_barge_in(step, bargein.SpeechEnd(event.at, event.position))


# ---- words


def on_words(step: Step, event: Words) -> None:
    """The recogniser reported text. Nobody hears the future: a span ends now at the latest."""
    if event.end > step.at or event.start > event.end:
        end = min(event.end, step.at)
        event = replace(event, start=min(event.start, end), end=end)
    step.speech(reported_to=max(step.state.speech.reported_to, event.end))
    text = attribute(step, event)
    grew = False
    if text is not None:
        transcript = step.state.transcript
        start = min(max(event.start, transcript.settled), event.end)
        after = transcript.put(Piece(text, start, event.end, event.final), step.at)
        step.put(transcript=after)
        grew = after.changed_at == step.at and bool(text.strip())
    if grew:
        step.speech(changed_to=event.end)
        _note_unexplained(step)
    if event.final:
        final_came(step, event.end)
    if text is not None:
        _report(step, event, text)
        _reopen(step, event, text)
    if grew:
        ask_anew(step)
        _tell_words(step, event)
    try_commit(step)


def _tell_words(step: Step, event: Words) -> None:
    transcript = step.state.transcript
    if transcript.start is not None and not has_floor(step):
        # While the agent speaks nobody knows yet whether these are a turn (row 11).
        step.do(TellWords(transcript.text, transcript.start, event.end))


def _report(step: Step, event: Words, text: str) -> None:
    """Tell the barge-in policy, if these are words of a voice that began under the answer."""
    if not has_floor(step) or not _interrupts(step, event):
        return
    feed_barge_in(step, bargein.Report(text, event.end))
    over = step.state.user == "silent" and bool(text.strip())
    if over and not has_floor(step):
        # Cut by the words of a voice that is already over: the turn they make is due (row 26).
        _hold_late_words(step, event)
    elif over and event.final and step.state.barge.stage == "idle":
        drop(step, "backchannel")


def _interrupts(step: Step, event: Words) -> bool:
    onset, lost = step.state.speech.onset_at, step.state.lost
    return (onset is not None and event.end > onset) or (lost is not None and event.start < lost)


def _reopen(step: Step, event: Words, text: str) -> None:
    """A final that comes after its turn was given up: the caller is answered all the same."""
    state = step.state
    if state.lost is None or event.start >= state.lost or not event.final or not text.strip():
        return
    if state.user == "silent" and not has_floor(step):
        _hold_late_words(step, event)


def _hold_late_words(step: Step, event: Words) -> None:
    step.move_user("words")
    ended = step.state.speech.ended
    known = ended is not None and event.start < ended <= step.at
    anchor = ended if known and ended is not None else min(event.end, step.at)
    begin_hold(step, anchor, final_known=event.final)
    hold, lost = step.state.hold, step.state.lost
    if hold is not None and lost is not None and event.end < lost - samples(TAIL_MS):
        # The recogniser is behind: the rest of that turn is still on its way.
        step.put(hold=replace(hold, awaiting_since=step.at, awaiting_end=lost))


def _note_unexplained(step: Step) -> None:
    speech = step.state.speech
    if step.at - speech.voiced_at > samples(step.config.turn.fresh_ms) and speech.words_at is None:
        step.speech(words_at=step.at)


# ---- time


def on_tick(step: Step, event: Tick) -> None:
    """20 ms passed."""
    _note_level(step, event)
    state = step.state
    if state.user in ("tentative", "speaking"):
        _watch_voice(step)
    if step.state.barge.stage != "idle":
        voiced = step.at if event.prob >= step.config.turn.voice_p else None
        feed_barge_in(step, bargein.Tick(step.at, voiced))
    if step.state.speech.words_at is not None:
        _watch_deaf(step)
    if step.state.hold is not None:
        tend_hold(step)
    elif step.state.transcript.pieces:
        stable(step)
        sweep(step)


def _note_level(step: Step, event: Tick) -> None:
    turn, user = step.config.turn, step.state.user
    voiced = event.prob >= turn.evidence_p
    louder = user != "silent" and event.level > step.state.speech.peak
    if not voiced and not louder and event.prob < turn.room_p:
        return
    speech = step.state.speech
    step.put(
        speech=speech._replace(
            voiced_at=event.at if voiced else speech.voiced_at,
            words_at=None if voiced else speech.words_at,
            room_at=event.at if event.prob >= turn.room_p else speech.room_at,
            peak=event.level if louder else speech.peak,
        )
    )


def _watch_voice(step: Step) -> None:
    """A voice that lasts and lasts: asked about; one that nobody hears any more: over."""
    turn, state = step.config.turn, step.state
    ask_long_voice(step)
    if turn.manual or step.at - state.speech.voiced_at < samples(turn.lost_voice_ms):
        return
    step.do(TellMetric("vad_lost_end", 1.0))
    kind = _misfire if state.user == "tentative" else _ended
    kind(step, Voice(step.at, "end", max(0, min(state.speech.voiced_at, step.at))))


def _watch_deaf(step: Step) -> None:
    """New words but no voice for long: the detector is deaf (row 69)."""
    turn, speech = step.config.turn, step.state.speech
    if step.at - speech.voiced_at < samples(turn.deaf_ms):
        return
    if step.at - speech.reset_at >= samples(turn.deaf_again_ms):
        step.speech(reset_at=step.at, words_at=None)
        step.do(ResetVad("deaf"))
