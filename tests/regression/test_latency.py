"""The latency runner works and its parts add up; how fast it is, `bench/latency.py` says.

Two utterances are measured here, in real time, and printed. Nothing is asked of the numbers: the
machine that runs the tests may be busy.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.audio_fixtures.load import fixture
from tests.regression.drive import Tell
from voxglove.web.build import Shared

pytestmark = [pytest.mark.local_speech, pytest.mark.slow, pytest.mark.real_loop]

FEW = ("ask_hours", "goforward")


def runner() -> ModuleType:
    """`bench/latency.py`, which is a script and no package."""
    path = Path(__file__).parents[2] / "bench" / "latency.py"
    spec = importlib.util.spec_from_file_location("bench_latency", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def test_voice_to_voice_is_measured_with_its_parts(shared: Shared, tell: Tell) -> None:
    bench = runner()
    found = [one for name in FEW if (one := await bench.measure(shared, fixture(name)))]
    tell("voice to voice, no key\n" + bench.report(found))
    assert [one.name for one in found] == list(FEW)
    for one in found:
        assert abs(sum(one.parts.values()) - one.total) <= 1
        assert abs(one.truth - one.total) <= 300, "the call's own clock is not the tracks' clock"
