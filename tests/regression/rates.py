"""How often a sound interrupts the agent, over the seeded variants of each class.

Owned by the tests of this folder. One variant is one whole call: a typed turn makes the agent talk,
the sound comes in while it does, and the timeline tells what became of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from tests.audio_fixtures.load import Variant, VariantClass
from tests.regression import drive
from tests.regression.agents import BEGIN, LONG_ANSWER
from tests.regression.drive import RATE, Held, Order
from tests.support.wer import normalise, wer
from voxglove.media import events as call
from voxglove.web.build import Shared

STARTS_AT = RATE * 3 // 2
"""Where a variant's onset counts from: the agent talks since about half a second."""

WORDS: tuple[VariantClass, ...] = ("stop", "wait", "no")
SOUNDS: tuple[VariantClass, ...] = ("cough", "keyboard", "mm_hm", "echo")

CUT_WITHIN_S = 1.5
"""How long after its end a word may take to cut."""

LONGEST_S = 9.0
"""An answer to a word must be under way by then."""

ECHO_S = 8.0
"""An echo call lasts that long: the agent leaks the whole time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one variant did. `cut_ms`: from the end of the event to the cut, None without one."""

    variant: Variant
    cut_ms: float | None
    reason: str
    text: str
    """What was committed as the caller's turn; empty when nothing was."""
    answered: bool
    words_off: int | None
    """Stored heard text against the recognised recording, in words; None without a cut."""
    paused_ms: float
    """How long the agent was silent for it, where it went on."""

    @property
    def false_cut(self) -> bool:
        """The agent was cut, or answered a sound that is nobody's word."""
        return self.cut_ms is not None or bool(self.text)

    @property
    def missed(self) -> bool:
        """A word that did not cut in time, or was not committed and answered."""
        in_time = self.cut_ms is not None and self.cut_ms <= 1000 * CUT_WITHIN_S
        return not (in_time and self.text and self.answered)

    def line(self) -> str:
        """For the table of what went wrong."""
        v = self.variant
        cut = "not cut" if self.cut_ms is None else f"cut {self.cut_ms:+.0f} ms ({self.reason})"
        echo = f" {v.gain_db} dB {v.delay_ms} ms {v.agent_line}" if v.kind == "echo" else ""
        how = f"x{v.speed:.2f} {v.snr_db} dB {v.voice} {v.background}{echo}"
        return f"{v.name:13} {how:34} {cut}; turn {self.text!r}; words off {self.words_off}"


def outcome(shared: Shared, variant: Variant) -> Outcome:
    """Hold the call of one variant."""
    span = variant.span(STARTS_AT)
    if variant.kind == "echo":
        audio = np.zeros(round(ECHO_S * RATE), np.int16)
        echo, over = variant.echo_path(), drive.after(len(audio))
    else:
        audio = variant.render(at=STARTS_AT, length=span.end + 2 * RATE)
        echo, over = None, _answered(span.end)
    order = Order(audio=audio, over=over, typed=BEGIN, echo=echo, name=variant.name)
    return _judged(shared, variant, drive.hold(shared, order))


def _answered(end: int) -> drive.Over:
    """The call ends 2 s after the event unless it cut, then once the answer to it sounds."""

    def over(at: int, result: Held) -> bool:
        if at < end + 2 * RATE:
            return False
        if not result.interruptions("cut") and not _pending(result):
            return True
        return _replies(result) > 0 or at >= end + LONGEST_S * RATE

    return over


def _pending(result: Held) -> bool:
    """A voice or a pause that nobody decided yet."""
    last = [e for _, e in result.events if isinstance(e, call.Interruption)]
    return bool(last) and last[-1].event == "paused"


def _replies(result: Held) -> int:
    """Answers to spoken turns that became audible."""
    sounds = [e for _, e in result.events if isinstance(e, call.Response) and e.event == "audio"]
    return len([e for e in sounds if (e.turn or 0) > 1])


def _judged(shared: Shared, variant: Variant, result: Held) -> Outcome:
    end = variant.span(STARTS_AT).end
    cuts = [(at, e) for at, e in result.interruptions("cut") if e.reason != "closed"]
    turns = [turn for _, turn in result.turns() if turn.reason != "typed"]
    return Outcome(
        variant=variant,
        cut_ms=(cuts[0][0] - end) * 1000 / RATE if cuts else None,
        reason=cuts[0][1].reason if cuts else "",
        text=" / ".join(turn.text for turn in turns),
        answered=_replies(result) > 0,
        words_off=_words_off(shared, result, cuts[0][0]) if cuts else None,
        paused_ms=_paused_ms(result),
    )


def _paused_ms(result: Held) -> float:
    pauses = [at for at, _ in result.interruptions("paused")]
    resumes = [at for at, _ in result.interruptions("resumed")]
    return sum(resumes[i] - at for i, at in enumerate(pauses[: len(resumes)])) * 1000 / RATE


def _words_off(shared: Shared, result: Held, cut: int) -> int:
    """Words between what is stored as heard and where the recording of the agent ends.

    The recogniser mishears words in the middle; what counts is how far it got. So the prefix of the
    answer that fits the recognised recording best is compared with the stored one.
    """
    stored = normalise(result.spoken()[0].heard or "")
    recorded = result.agent[: cut + RATE // 10]
    sounding = np.flatnonzero(np.abs(recorded) > 60)
    if not len(sounding):
        return len(stored)
    recognised = recognise(shared, recorded[: sounding[-1] + 1])
    return abs(len(stored) - best_prefix(LONG_ANSWER, recognised))


def recognise(shared: Shared, samples: np.ndarray[tuple[int, ...], np.dtype[np.int16]]) -> str:
    """Whisper's text of a recording of at most 30 s."""
    from voxglove.adapters.stt.whisper_model import whisper_model

    padding = np.zeros(RATE // 2, np.int16)
    return whisper_model().transcribe(np.concatenate([padding, samples, padding]))


def best_prefix(text: str, recognised: str) -> int:
    """Words of the prefix of `text` that has the fewest errors against `recognised`."""
    words, heard = normalise(text), " ".join(normalise(recognised))
    errors = [wer(" ".join(words[:n]), heard).errors for n in range(len(words) + 1)]
    return int(np.argmin(errors))


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % score interval of a rate (Wilson, 1927)."""
    if of == 0:
        return 0.0, 1.0
    z, rate = 1.96, hits / of
    middle = (rate + z * z / (2 * of)) / (1 + z * z / of)
    half = z * sqrt(rate * (1 - rate) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(0.0, middle - half), min(1.0, middle + half)


def row(name: str, hits: int, of: int) -> str:
    """One line of the table of rates."""
    low, high = wilson(hits, of)
    rate = hits / of if of else 0.0
    return f"{name:34} {hits:3}/{of:<3} {100 * rate:5.1f} %  [{100 * low:.1f}, {100 * high:.1f}]"


def table(name: str, outcomes: Sequence[Outcome], bad: Sequence[Outcome]) -> str:
    """The rate of `bad` among `outcomes`, then every bad one."""
    return "\n".join([row(name, len(bad), len(outcomes)), *(f"    {one.line()}" for one in bad)])
