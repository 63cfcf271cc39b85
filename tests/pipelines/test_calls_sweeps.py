"""Barge-in and false interruptions on whole calls, swept over a reply in steps of 50 ms.

Ground truth is the sound alone (tests/support/hearing): which words, and which samples of them,
the caller heard. A word counts as heard when at least half of its sound was played; an
answer cut inside the second half of its last word was heard whole, and is not `interrupted`.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.audio import Span, assert_resumed_exactly
from tests.support.calls import RATE, CallScript, Held, Says, hold_call
from tests.support.hearing import heard_samples, heard_words
from tests.support.invariants import check_all
from voxglove.adapters.transports.fixture import Estimate
from voxglove.adapters.tts.scripted import render
from voxglove.core.view import INTERRUPTED, NOTHING_HEARD
from voxglove.media import events

REPLY = "alpha bravo charlie delta echo foxtrot."
WORDS = REPLY.split()
STARTS = 1.22
"""The reply sounds about here: speech ends at .9, its detection and its text take .3 s."""
ENDS = STARTS + 0.3 * len(WORDS)
GRID = [round(STARTS - 0.4 + 0.05 * step, 2) for step in range(44)]
"""Onsets from before the answer to after its end."""


def call(at: float, length: float, text: str, **script: object) -> CallScript:
    """A question answered by `REPLY`, and something said at `at`."""
    return CallScript(
        caller=[Says(0.3, 0.9, "Hello?"), Says(at, at + length, text)],
        model=[REPLY, "sure kilo."],
        seconds=max(at + 2.0, ENDS + 1.5),
        **script,  # type: ignore[arg-type]
    )


def first_cut(held: Held) -> events.Response | None:
    """The first response that was cut, if it was the first."""
    told = [one for one in held.of(events.Response) if one.gen == 1]
    return next((one for one in told if one.event == "cut"), None)


def heard_of_reply(held: Held) -> list[str]:
    """The words of the first reply that sounded."""
    samples = heard_samples(held.pieces(), 0)
    voice = held.voices[0]
    spoken = voice.texts and "".join(voice.texts).split()[:1] == WORDS[:1]
    return heard_words(voice, held.script.tts_timing, samples) if spoken else []


@pytest.mark.parametrize(
    ("grid", "continuous"), [(GRID, False), (GRID[1::2], True)], ids=["gated", "continuous"]
)
async def test_voice_row_032_history_is_exact_wherever_the_caller_barges_in(
    grid: list[float], continuous: bool
) -> None:
    cuts, late = 0, []
    for at in grid:
        held = await hold_call(call(at, 0.6, "can you change that?", continuous=continuous))
        check_all(held)
        cut = first_cut(held)
        if cut is None:
            continue
        cuts += 1
        answer, truth = held.history[1], heard_of_reply(held)
        assert (answer.heard or "").split() == truth, (at, held.told())
        assert answer.interrupted == (truth != WORDS), (at, answer)
        assert cut.heard == answer.heard
        if truth:
            decided = held.when(events.Interruption, event="paused")
            late.append(max(p.at + p.end - p.start for p in held.pieces() if not p.response))
            late[-1] -= decided
    assert cuts >= 0.7 * len(grid), cuts
    assert max(late) <= 60 * RATE // 1000, max(late)  # voice row 22


async def test_voice_row_033_the_next_request_shows_what_was_heard_and_nothing_else() -> None:
    views: set[str] = set()
    asked = "can you change that?"
    for at in GRID[::4]:
        held = await hold_call(call(at, 0.6, asked))
        if first_cut(held) is None:
            continue
        view = [message.text for message in held.model.requests[-1].messages]
        heard = (held.history[1].heard or "").strip()
        if heard == REPLY:
            assert view == ["Hello?", REPLY, asked], at
        elif heard:
            assert view == ["Hello?", f"{heard} {INTERRUPTED}", asked], at
        else:
            assert view == ["Hello?", f"{NOTHING_HEARD}\n{asked}"], at
        views.add(heard)
    assert "" in views and len(views) > 4, views


@pytest.mark.parametrize(
    "estimate",
    [
        Estimate(error=1_600, corrected_after_ms=100),
        Estimate(error=-1_600, corrected_after_ms=100),
        Estimate(error=2_400, corrected_after_ms=None),
        Estimate(error=-2_400, corrected_after_ms=None),
    ],
    ids=["ahead", "behind", "ahead, never corrected", "behind, never corrected"],
)
async def test_an_estimated_clock_is_off_by_two_words_at_most_and_says_so(
    estimate: Estimate,
) -> None:
    worst, cuts = 0, 0
    for at in GRID[6::4]:
        held = await hold_call(call(at, 0.6, "can you change that?", estimate=estimate))
        check_all(held, word_tolerance=2, exact=False)
        if first_cut(held) is None:
            continue
        cuts += 1
        answer, truth = held.history[1], heard_of_reply(held)
        worst = max(worst, abs(len((answer.heard or "").split()) - len(truth)))
        if estimate.corrected_after_ms is None and truth:
            assert answer.estimated, (at, held.told())
    assert cuts > 5
    assert worst <= (1 if estimate.corrected_after_ms is not None else 2), worst


# ---- false interruptions


def with_pause_removed(held: Held) -> None:
    """Bit for bit the reply, but for the pauses (invariant 3)."""
    sound = held.sound()
    reference, _ = render(held.voices[0].texts, held.script.tts_timing)
    found = held.pieces()
    ours = [piece for piece in found if piece.response == 0]
    joined = np.concatenate([sound[p.at : p.at + p.end - p.start] for p in ours])
    assert np.array_equal(joined, reference), held.told()


@pytest.mark.parametrize(
    ("text", "length", "continuous"),
    [
        ("", 0.18, False),
        ("", 0.18, True),
        ("mm-hm", 0.4, False),
        ("mm-hm", 0.4, True),
    ],
    ids=["cough gated", "cough continuous", "mm-hm gated", "mm-hm continuous"],
)
async def test_voice_row_028_a_false_interruption_resumes_bit_identically(
    text: str, length: float, continuous: bool
) -> None:
    resumed = 0
    grid = GRID[1::2] if continuous else GRID
    for at in grid:
        held = await hold_call(call(at, length, text, continuous=continuous))
        check_all(held)
        resumed += any(e.event == "resumed" for e in held.of(events.Interruption))
        if held.turns[0] != "Hello?":
            assert at < STARTS, (at, held.told())  # it was said within the question
            continue
        assert held.answers[0].heard == REPLY, (at, held.told())
        if STARTS < at < ENDS - 0.2:
            assert held.turns == ["Hello?"], (at, held.told())
        with_pause_removed(held)
    assert resumed > 0.6 * len(grid), resumed


async def test_a_pause_is_silent_and_the_whole_recording_is_the_reply_without_it() -> None:
    held = await hold_call(call(2.1, 0.18, ""))
    first, second = held.pieces()
    sound = held.sound()[first.at :]
    reference, _ = render(held.voices[0].texts, held.script.tts_timing)
    pause = Span(first.end, second.at - first.at)
    assert_resumed_exactly(sound, reference, pause)
