"""The user's floor: voice and words in, holds and turns out.

Rules of the turn machine (state in, effects out), no I/O. When a turn ends is decided in `holds`.
"""

from __future__ import annotations

from dataclasses import replace

from ..media.turns import bargein
from ..media.turns.words import compare_final, fresh_text
from .answer import feed_barge_in, has_floor
from .commit import RATE
from .holds import begin_hold, final_came, stable, sweep, tend_hold, try_commit
from .state import Committed, Step, samples
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
    if speech.ended is not None:
        gap_ms = (event.position - speech.ended) * 1000 / RATE
        step.put(pauses=step.state.pauses.after(gap_ms))
    turn_start = event.position if speech.turn_start is None else speech.turn_start
    step.speech(start=event.position, turn_start=turn_start, voiced_at=event.at, words_at=None)
    if not step.config.gating:
        step.speech(gate_open=True)
    if has_floor(step):
        # The agent has the floor: the recogniser hears the interrupter from the first sample, a
        # 300 ms "stop" would otherwise never reach it (row 26).
        step.speech(onset_at=event.position)
        _open_gate(step, event.position)
        feed_barge_in(step, bargein.Onset(event.at, event.position))
    else:
        step.do(Gate("hold", event.position))


def _confirmed(step: Step, event: Voice) -> None:
    if not step.move_user("confirmed"):
        return
    if step.state.hold is not None:
        step.put(hold=None)
        text = step.state.transcript.text
        step.do(TellTurn("resumed", "speech", text))
    _open_gate(step, event.position)
    feed_barge_in(step, bargein.Confirmed(event.at))


def _misfire(step: Step, event: Voice) -> None:
    pending = step.state.hold is not None
    if not step.move_user("misfire, turn pending" if pending else "misfire"):
        return
    was_open = step.state.speech.gate_open
    if was_open:
        # It was given to the recogniser, so it is owed an answer: a short "no" is a misfire of
        # the detector and a word all the same (rows 17, 27).
        step.do(FlushStt(event.position), Gate("close"))
    else:
        step.do(Gate("cancel"))
    step.speech(start=None, gate_open=False, ended=event.position if was_open else None)
    if not pending:
        step.speech(turn_start=step.state.transcript.start)
    feed_barge_in(step, bargein.Misfire(event.at))


def _echo(step: Step, event: Voice) -> None:
    """It was the agent's own voice: as if it had never been heard, by anyone (field fault 24)."""
    pending = step.state.hold is not None
    tentative = "misfire, turn pending" if pending else "misfire"
    trigger = tentative if step.state.user == "tentative" else "echo"
    if not step.move_user(trigger):
        return
    step.do(Gate("close"), SettleStt(event.at))
    step.speech(start=None, gate_open=False, onset_at=None)
    step.put(transcript=step.state.transcript.settle(event.position, step.at))
    feed_barge_in(step, bargein.Misfire(event.at))


def _ended(step: Step, event: Voice) -> None:
    if not step.move_user("end"):
        return
    step.speech(start=None, ended=event.position)
    feed_barge_in(step, bargein.SpeechEnd(event.at, event.position))
    begin_hold(step, event.position)


def _open_gate(step: Step, start: int) -> None:
    if not step.state.speech.gate_open:
        step.speech(gate_open=True)
        step.do(Gate("open", start))


def on_words(step: Step, event: Words) -> None:
    """The recogniser reported text."""
    text = _not_committed(step, event)
    if text is None:
        return
    transcript = step.state.transcript
    start = min(max(event.start, transcript.settled), event.end)
    after = transcript.put(Piece(text, start, event.end, event.final), step.at)
    step.put(transcript=after)
    grew = after.changed_at == step.at and bool(text.strip())
    if grew:
        _note_unexplained(step)
    if event.final:
        final_came(step)
    _report(step, event, text)
    if grew and not has_floor(step):
        step.do(TellWords(after.text, after.start or start, event.end))
    try_commit(step)


def _not_committed(step: Step, event: Words) -> str | None:
    """What of a report is not of the turn already handed over; None when all of it is.

    Late text belongs to the turn in whose audio it was spoken (DESIGN 5.5): the final that a commit
    from a partial was waiting for confirms, extends or corrects that turn (row 66).
    """
    committed = step.state.committed
    if committed is None or event.start >= committed.end:
        return event.text
    belongs = event.end <= committed.end + samples(TAIL_MS)
    if not committed.confirming:
        return None if belongs else event.text
    rest = fresh_text(event.text, committed.text, confirming=True)
    if not belongs and (rest != event.text or not event.final):
        if event.final:
            step.put(committed=replace(committed, confirming=False))
        return rest
    if event.final:
        step.put(committed=replace(committed, confirming=False))
        _confirm(step, committed, event.text)
    return None


def _confirm(step: Step, committed: Committed, final: str) -> None:
    kind = compare_final(committed.text, final)
    if kind == "tail":
        step.do(TellMetric("stt_tail_extension", 1.0))
    elif kind == "correction" and final.strip():
        step.put(committed=replace(committed, text=final, confirming=False))
        step.do(TellTurn("corrected", "final", final, committed.turn))


TAIL_MS = 320


def _report(step: Step, event: Words, text: str) -> None:
    """Tell the barge-in policy, if these are words of a voice that began under the answer."""
    onset = step.state.speech.onset_at
    if not has_floor(step) or onset is None or event.end <= onset:
        return
    feed_barge_in(step, bargein.Report(text, event.end))
    if not has_floor(step) and step.state.user in ("silent", "holding") and text.strip():
        # Cut by the words of a voice that is already over: the turn they make is due (row 26).
        _hold_cut_words(step, event)


def _hold_cut_words(step: Step, event: Words) -> None:
    if step.state.user == "silent":
        step.move_user("words")
    if step.state.hold is None:
        begin_hold(step, step.state.speech.ended or event.end, final_known=event.final)


def _note_unexplained(step: Step) -> None:
    speech = step.state.speech
    if step.at - speech.voiced_at > samples(step.config.turn.fresh_ms) and speech.words_at is None:
        step.speech(words_at=step.at)


def on_tick(step: Step, event: Tick) -> None:
    """20 ms passed."""
    turn, speech = step.config.turn, step.state.speech
    changes: dict[str, object] = {}
    if event.prob >= turn.evidence_p:
        changes |= {"voiced_at": event.at, "words_at": None}
    if event.prob >= turn.room_p:
        changes["room_at"] = event.at
    if event.level > speech.peak and step.state.user != "silent":
        changes["peak"] = event.level
    if changes:
        step.speech(**changes)
    if step.state.user in ("tentative", "speaking"):
        step.put(quiet_since=step.at)
    if step.state.barge.stage != "idle":
        voiced = step.at if event.prob >= turn.voice_p else None
        feed_barge_in(step, bargein.Tick(step.at, voiced))
    _watch_deaf(step)
    if step.state.hold is not None:
        tend_hold(step)
    elif step.state.transcript.pieces:
        stable(step)
        sweep(step)


def _watch_deaf(step: Step) -> None:
    """New words but no voice for long: the detector is deaf (row 69)."""
    turn, speech = step.config.turn, step.state.speech
    if speech.words_at is None or step.at - speech.voiced_at < samples(turn.deaf_ms):
        return
    if step.at - speech.reset_at >= samples(turn.deaf_again_ms):
        step.speech(reset_at=step.at)
        step.do(ResetVad("deaf"))
