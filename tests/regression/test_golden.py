"""Timelines of whole calls, kept: a change of behaviour shows as a diff of events.

`pytest tests/regression/test_golden.py --update-golden` rewrites them; read the diff before you
commit it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audio_fixtures.load import dialogue, fixture
from tests.regression.timelines import difference, golden
from voxglove.media.pcm import Samples
from voxglove.media.virtual_loop import run_virtual
from voxglove.web.build import Shared
from voxglove.web.wav_call import WavCall, hold

pytestmark = [pytest.mark.local_speech, pytest.mark.slow]

FOLDER = Path(__file__).with_name("golden")
NAMES = ("jfk", "goforward", "pause_600", "spelled_id", "cough", "two_speakers", "two_turns")


def audio_of(name: str) -> Samples:
    if name == "two_turns":
        return dialogue("ask_hours", "utterance", gap_ms=4_000, lead_ms=300).pcm
    return fixture(name).pcm


@pytest.mark.parametrize("name", NAMES)
def test_timeline(shared: Shared, name: str, update_golden: bool) -> None:
    order = WavCall(audio=audio_of(name), name=name, agent="demo", fast=True)
    got = golden(run_virtual(hold(shared, order)).lines())
    path = FOLDER / f"{name}.jsonl"
    if update_golden:
        FOLDER.mkdir(exist_ok=True)
        path.write_text("\n".join(got) + "\n", "utf-8", newline="\n")
    assert path.is_file(), f"{path.name} is missing: run with --update-golden"
    changed = difference(path.read_text("utf-8").splitlines(), got, name)
    assert not changed, f"{changed}\nRun with --update-golden if this is meant."
