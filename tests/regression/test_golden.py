"""Timelines of whole calls, kept: a change of behaviour shows as a diff of events.

`pytest tests/regression/test_golden.py --update-golden` rewrites them; read the diff before you
commit it. Processors round the models' sums differently: where they do (`PROBE` tells), positions
may move and a word may change, so the same turns with nearly the same words are asked for instead.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.audio_fixtures.load import dialogue, fixture
from tests.regression.timelines import difference, golden, said
from tests.support.wer import wer
from voxglove.adapters.stt.whisper_model import SHORT_WINDOW_S, whisper_model
from voxglove.adapters.tts.piper_onnx import piper_voice
from voxglove.media.pcm import Samples
from voxglove.media.virtual_loop import run_virtual
from voxglove.web.build import Shared
from voxglove.web.wav_call import WavCall, hold

pytestmark = [pytest.mark.local_speech, pytest.mark.slow]

FOLDER = Path(__file__).with_name("golden")
NAMES = ("jfk", "goforward", "pause_600", "spelled_id", "cough", "two_speakers", "two_turns")


PROBE = FOLDER / "probe.txt"
"""What the models said, to the last bit, where the timelines were written."""

OTHER_PROCESSOR_WER = 0.2


def probe() -> str:
    """A hash over the raw results of both large models on this processor."""
    heard = whisper_model().hypothesis(fixture("goforward").pcm, SHORT_WINDOW_S)
    spoken = piper_voice().synthesise("Ready when you are.").samples
    return hashlib.sha256(spoken.tobytes() + repr(heard).encode()).hexdigest()


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
        PROBE.write_text(probe() + "\n", "utf-8")
    assert path.is_file(), f"{path.name} is missing: run with --update-golden"
    kept = path.read_text("utf-8").splitlines()
    if PROBE.read_text("utf-8").strip() != probe():
        before, now = said(kept), said(got)
        assert len(before) == len(now), f"{name}: {before} became {now}"
        assert wer(" ".join(before), " ".join(now)).rate <= OTHER_PROCESSOR_WER, now
        return
    changed = difference(kept, got, name)
    assert not changed, f"{changed}\nRun with --update-golden if this is meant."
