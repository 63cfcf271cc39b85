"""Rates of false cuts and misses, with their intervals, against an agent that talks.

`make test` holds a spread sample of each class, `make soak` every variant. Both print the table.
Bounds stand where the rates are; the aim is 0 and 0.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.audio_fixtures.load import Variant, VariantClass, variants
from tests.regression.drive import Tell
from tests.regression.rates import SOUNDS, WORDS, Outcome, outcome, row, table
from voxglove.web.build import Shared

pytestmark = [pytest.mark.local_speech, pytest.mark.slow]

SAMPLE = 5
"""Every fifth variant: prime to the four onsets and three levels, so all of them occur."""

QUIET_ECHO_DB = -20
"""Echo at this level or below must never cut."""

MOST_WRONG = 0.05
"""Share of a class that may go wrong before a whole sweep fails."""


def held(shared: Shared, chosen: list[Variant]) -> list[Outcome]:
    """Two calls at a time: each waits for its own models most of the time."""
    with ThreadPoolExecutor(2, thread_name_prefix="voxglove-inference-rates") as threads:
        return list(threads.map(lambda variant: outcome(shared, variant), chosen))


def check(kind: VariantClass, outcomes: list[Outcome], tell: Tell, allowed: float) -> None:
    """Print the class's lines; fail when more than `allowed` of it went wrong."""
    wrong = [one for one in outcomes if (one.missed if kind in WORDS else one.false_cut)]
    title = f"{'misses' if kind in WORDS else 'false cuts'} on {kind}"
    if kind == "echo":
        quiet = [one for one in outcomes if one.variant.gain_db <= QUIET_ECHO_DB]
        loud = [one for one in outcomes if one.variant.gain_db > QUIET_ECHO_DB]
        tell(row(f"{title} > {QUIET_ECHO_DB} dB", len([o for o in loud if o.false_cut]), len(loud)))
        outcomes, wrong = quiet, [one for one in wrong if one in quiet]
        title = f"{title} <= {QUIET_ECHO_DB} dB"
    shown = table(title, outcomes, wrong)
    tell(shown)
    cuts = [one for one in outcomes if one.words_off is not None]
    far = [one for one in cuts if (one.words_off or 0) > 2]
    if cuts:
        tell(table(f"stored text off by > 2 words: {kind}", cuts, far))
    assert len(wrong) <= allowed * len(outcomes), shown
    assert not far, "\n".join(one.line() for one in far)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", [*SOUNDS, *WORDS])
def test_a_sample_of_each_class(shared: Shared, tell: Tell, kind: VariantClass) -> None:
    check(kind, held(shared, variants(kind)[::SAMPLE]), tell, allowed=0.0)


@pytest.mark.soak
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("kind", [*SOUNDS, *WORDS])
def test_every_variant(shared: Shared, tell: Tell, kind: VariantClass) -> None:
    check(kind, held(shared, variants(kind)), tell, allowed=MOST_WRONG)
