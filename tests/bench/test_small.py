"""The whole bench in small: one call to voxglove's own doors, in a process of its own.

Nothing is asserted about speed, which is what the bench is for: only that it measures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from bench import rounds
from bench.processes import Place, systems
from bench.recording import alignment
from bench.rounds import Round, Setting
from bench.table import table

pytestmark = [pytest.mark.real_loop, pytest.mark.slow]

OURS = systems()["voxglove"]
ANYWHERE = Place(None)
SHORT = Setting(seconds=2.0, tone_ms=500, sentences=2, stt_ms=20, model_ms=20, tts_ms=20)


@pytest.fixture(autouse=True)
def same_cores() -> Iterator[None]:
    """The bench may pin itself; a test must not stay pinned."""
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


def numbers(found: Round, key: str) -> list[float]:
    values = found.values[key]
    assert isinstance(values, list)
    return values


async def test_a_conversation_gives_every_number_of_its_rows() -> None:
    found = await rounds.talk(OURS, ANYWHERE, 1, SHORT, seed=3)
    assert found.failures == []
    assert numbers(found, "response_ms") and min(numbers(found, "response_ms")) > 100
    assert found.values["calls"] == 1
    assert isinstance(cpu := found.values["cpu_per_call_pct"], float) and cpu > 0
    text = table([found])
    for name in ("CPU per call", "turn overhead", "memory per call", "pacing"):
        assert name in text or not found.valid


async def test_an_echo_comes_back_complete() -> None:
    found = await rounds.echo(OURS, ANYWHERE, 1, Setting(seconds=1.0), seed=3)
    assert found.failures == []
    assert found.values["lost"] == 0
    marks = found.values["marks"]
    assert isinstance(marks, int) and marks >= 8


async def test_a_recording_is_compared_with_its_labels() -> None:
    found = await alignment(OURS, ANYWHERE, SHORT, seed=3, stalls_ms=(300,))
    assert found.failures == []
    assert found.values["marks"] == found.values["expected"] == 2
    assert len(numbers(found, "channels_ms")) == 1
