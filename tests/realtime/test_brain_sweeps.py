"""Barge-in and false interruptions on the realtime brain, swept over an answer in steps of 50 ms.

The recording alone says what was heard (`brain_calls`). A word counts as heard from its middle on.
"""

from __future__ import annotations

import pytest

from tests.realtime.brain_calls import ABLE_16, DEAF_16, RATE, REPLY, WORD, Rung, Says, hold
from voxglove.adapters.transports.fixture import Estimate
from voxglove.media import events as call
from voxglove.realtime.port import Capabilities
from voxglove.realtime.scripted import ScriptedAdapter

QUESTION = Says(0.3, 0.9, "hello there")
STARTS, ENDS = 1.44, 1.44 + 8 * 0.24
GRID = [round(STARTS + 0.05 * step, 2) for step in range(42)]
"""Onsets from the first sample of the answer to after its end."""
SILENCE = 60 * RATE // 1000


def check(rung: Rung, *, tolerance: int = 1) -> bool:
    """The invariants of one call whose first answer may have been cut; whether it was."""
    heard = rung.heard(REPLY)
    answer = next(one for one in rung.answers if one.text.strip() == REPLY)
    truth = (heard + WORD // 2) // WORD
    assert answer.playback == "settled", rung.told()
    assert abs(len((answer.heard or "").split()) - truth) <= tolerance, (truth, rung.told())
    assert answer.interrupted == bool((answer.unheard or "").strip()), answer
    started = [gen for event, gen in rung.responses if event == "started"]
    over = [gen for event, gen in rung.responses if event in ("ended", "cut")]
    assert started == over, rung.told()
    last = max((one.stop for one in rung.pieces() if one.text == REPLY), default=0)
    decided = [
        at
        for at, event in rung.events
        if isinstance(event, call.Interruption) and event.event in ("paused", "cut")
    ]
    cut = ("cut", 1) in rung.responses
    if cut and decided:
        assert last <= decided[0] + SILENCE, rung.told()
    return cut


@pytest.mark.parametrize(
    ("able", "grid"), [(ABLE_16, GRID), (DEAF_16, GRID[1::3])], ids=["may cancel", "may not"]
)
async def test_history_is_exact_wherever_the_caller_barges_in(
    able: Capabilities, grid: list[float]
) -> None:
    cuts = 0
    for at in grid:
        adapter = ScriptedAdapter(capabilities=able)
        said = Says(at, at + 0.6, "change that please")
        rung = await hold([QUESTION, said], adapter=adapter, seconds=at + 2.0)
        cuts += check(rung)
        assert any(one.text == "ok kilo" for one in rung.pieces()), rung.told()
    assert cuts >= 0.8 * len(grid), cuts


@pytest.mark.parametrize(
    "estimate",
    [
        Estimate(error=1_600, corrected_after_ms=100),
        Estimate(error=-1_600, corrected_after_ms=None),
    ],
    ids=["ahead, corrected", "behind, never corrected"],
)
async def test_an_estimated_clock_is_off_by_two_words_at_most(estimate: Estimate) -> None:
    cuts = 0
    for at in [*GRID[4::5], 3.25]:
        said = Says(at, at + 0.6, "change that please")
        rung = await hold([QUESTION, said], seconds=at + 2.0, estimate=estimate)
        cuts += check(rung, tolerance=2)
    assert cuts >= 6, cuts


async def test_a_cough_resumes_bit_identically_wherever_it_comes() -> None:
    resumed = 0
    for at in GRID[::2]:
        cough = Says(at, at + 0.18, noticed=False)
        rung = await hold([QUESTION, cough], seconds=4.2)
        told = [event.event for event in rung.of(call.Interruption)]
        resumed += told == ["paused", "resumed"]
        assert not told or told == ["paused", "resumed"], rung.told()
        assert rung.heard(REPLY) == 8 * WORD, rung.told()
        assert [event for event, _ in rung.responses] == ["started", "audio", "ended"]
    assert resumed >= 15, resumed


@pytest.mark.parametrize("at", [3.2, 3.22, 3.24, 3.26, 3.28, 3.3])
async def test_a_voice_at_the_end_of_an_answer_does_not_hold_back_the_next_one(at: float) -> None:
    """The line is paused with nothing left to play, and the provider makes nothing of the voice."""
    voice = Says(at, at + 1.0, noticed=False)
    rung = await hold([QUESTION, voice, Says(4.9, 5.4, "again")], seconds=7.0)
    assert rung.heard("ok kilo") == 2 * WORD, rung.told()


async def test_an_answer_that_was_heard_to_its_last_sample_is_stored_as_heard() -> None:
    """The cut comes in the frame in which the answer ends, before its end was told."""
    rung = await hold([QUESTION, Says(3.35, 3.9, "change that please")], seconds=5.5)
    assert rung.heard(REPLY) == 8 * WORD
    assert rung.answers[0].heard == REPLY and not rung.answers[0].interrupted, rung.told()
    ends = [one for one in rung.of(call.Response) if one.event in ("ended", "cut")]
    assert (ends[0].heard or ends[0].text) == REPLY
