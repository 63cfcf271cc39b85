"""A recording gives the same call at any speed (DESIGN 6), whenever nothing came late."""

from __future__ import annotations

import asyncio

import pytest

from tests.audio_fixtures.load import fixture
from tests.regression.drive import Tell
from tests.regression.timelines import difference, plain
from voxglove.media.virtual_loop import run_virtual
from voxglove.web.build import Shared
from voxglove.web.wav_call import WavCall, WavResult, hold

pytestmark = [pytest.mark.local_speech, pytest.mark.slow, pytest.mark.real_loop]

FIXTURES = ("cards_001", "goforward", "something", "librivox_0930", "pause_600")
COSTS = (1.0, 2.0, 4.0)


def order(name: str, costs: float, *, fast: bool) -> WavCall:
    audio = fixture(name).pcm
    return WavCall(audio=audio, name=name, agent="demo", fast=fast, cost_factor=costs)


def in_real_time(shared: Shared, names: list[str], costs: float) -> dict[str, WavResult]:
    """Two at once: more would wait for each other's models and be late."""

    async def together(pair: list[str]) -> list[WavResult]:
        calls = (hold(shared, order(name, costs, fast=False)) for name in pair)
        return list(await asyncio.gather(*calls))

    pairs = [names[at : at + 2] for at in range(0, len(names), 2)]
    results = [result for pair in pairs for result in asyncio.run(together(pair))]
    return dict(zip(names, results, strict=True))


def test_fast_and_real_time_give_the_same_timeline(shared: Shared, tell: Tell) -> None:
    left = list(FIXTURES)
    for costs in COSTS:
        real = in_real_time(shared, left, costs)
        for name, result in real.items():
            fast = run_virtual(hold(shared, order(name, costs, fast=True)))
            tell(f"{name}: costs x{costs:g}, late {result.late} in real time, {fast.late} fast")
            if result.late or fast.late:
                continue
            changed = difference(plain(fast.lines()), plain(result.lines()), name)
            assert not changed, changed
            left.remove(name)
        if not left:
            return
    if len(left) == len(FIXTURES):
        pytest.skip("this machine was late on every fixture, even at four times the costs")
    tell("never without a late result: " + ", ".join(left))
