"""Whose words are these? Reports of the recogniser, attributed to turns by their audio span.

Rules of the turn machine (state in, effects out), no I/O. Late text belongs to the turn in whose
audio it was spoken (DESIGN 5.5): it confirms, extends or corrects that turn (row 66), and only what
was said after it is new. Compares words, never characters.
"""

from __future__ import annotations

from dataclasses import replace

from ..media.turns.words import after_prefix, compare_final, same_words, split_words, words
from .state import Committed, Step, samples
from .transcript import Transcript
from .vocabulary import TellMetric, TellTurn, Words

EDGE_MS = 100
"""Spans of neighbouring words may overlap by this much."""

TAIL_MS = 320
"""A report that ends this little after a turn is still about that turn: recognisers read a tail."""


def commit_of(turn: int, transcript: Transcript, start: int, end: int, *, owed: bool) -> Committed:
    """What is remembered of a committed turn: the recogniser has its partials still to confirm,
    or all of it when it `owed` a final that was not waited for any longer."""
    sure = [piece for piece in transcript.pieces if piece.final]
    unsure = [piece for piece in transcript.pieces if owed or not piece.final]
    heard_to = end if transcript.end is None else min(transcript.end, end)
    committed = Committed(turn, transcript.text, start, end, heard_to)
    if not unsure:
        return committed
    first = unsure[0].start
    head = " ".join(piece.text.strip() for piece in sure if piece.start < first)
    tail = " ".join(piece.text.strip() for piece in transcript.pieces if piece.start >= first)
    return replace(committed, confirming=True, open_from=first, sure=head, unsure=tail)


def attribute(step: Step, event: Words) -> str | None:
    """What of a report is not of a turn already decided; None when all of it is."""
    committed = step.state.committed
    if committed is not None and event.start < committed.end:
        return _of_committed(step, event, committed)
    if event.end <= step.state.transcript.settled:
        if event.final and event.text.strip():
            step.do(TellTurn("dropped", "settled", event.text))
        return None
    return event.text


def _of_committed(step: Step, event: Words, committed: Committed) -> str | None:
    ends_with_it = event.end <= committed.end + samples(TAIL_MS)
    first = committed.open_from if committed.confirming else committed.start
    later = 2 * event.start >= first + committed.end
    if later and not ends_with_it:
        # A new utterance whose span the recogniser dates a little early.
        return event.text
    if ends_with_it and event.start >= committed.heard_to - samples(EDGE_MS):
        if event.final and event.text.strip():
            _extend(step, event, committed)
        return None
    if not committed.confirming:
        return None if ends_with_it else _rest(event.text, committed.text)[1]
    if not ends_with_it:
        return _confirmed_and_more(step, event, committed)
    whole = event.end >= committed.end - samples(TAIL_MS)
    if event.final and (whole or len(words(event.text)) > len(words(committed.unsure))):
        _confirm(step, committed, event.text, more=not whole)
    return None


def _extend(step: Step, event: Words, committed: Committed) -> None:
    """Its own words, reported only now: they were spoken in it, so they go into it."""
    text = f"{committed.text} {event.text}".strip()
    _tell_difference(step, committed, committed.text, text, text)
    step.put(committed=replace(committed, text=text, sure=text, unsure="", heard_to=event.end))


def _tell_difference(step: Step, committed: Committed, sent: str, final: str, text: str) -> bool:
    """Whether the turn's text is corrected to `text`, because `final` differs from `sent`."""
    kind = compare_final(sent, final)
    if kind == "tail":
        step.do(TellMetric("stt_tail_extension", 1.0))
    if kind != "correction" or not final.strip() or same_words(text, committed.text):
        return False
    step.do(TellTurn("corrected", "final", text, committed.turn))
    return True


def _confirmed_and_more(step: Step, event: Words, committed: Committed) -> str:
    """A report of the turn and what was said after it."""
    head, rest = _rest(event.text, committed.unsure)
    if event.final:
        _confirm(step, committed, head)
    return rest


def _rest(text: str, sent: str) -> tuple[str, str]:
    """`text` as what was sent and what is new. Reworded, it is split by the number of words."""
    rest = after_prefix(text, sent)
    if rest != text or not words(sent):
        return sent, rest
    return split_words(text, len(words(sent)))


def _confirm(step: Step, committed: Committed, final: str, *, more: bool = False) -> None:
    """`more`: this final was about the beginning of it, another is still to come."""
    done = replace(committed, confirming=more)
    text = f"{committed.sure} {final}".strip()
    if _tell_difference(step, committed, committed.unsure, final, text):
        done = replace(done, text=text, unsure=final)
    step.put(committed=done)
