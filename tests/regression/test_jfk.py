"""The first call of the issue, through the real command line: jfk.wav against an echo."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.audio_fixtures.fixture import FOLDERS
from tests.audio_fixtures.load import fixture
from tests.regression.drive import Tell
from tests.support.audio import levels_db, loud_ms
from tests.support.wer import wer
from voxglove.media.pcm import Samples

pytestmark = [pytest.mark.local_speech, pytest.mark.slow, pytest.mark.real_loop]

RATE = 16_000
OVERLAP_MS = 300


def test_the_command_line_holds_the_call(tmp_path: Path, tell: Tell) -> None:
    timeline, out = tmp_path / "t.jsonl", tmp_path / "o.wav"
    command = [
        *(str(Path(sys.executable).with_name("voxglove")), "call"),
        *("--wav", str(FOLDERS["human"].parent / "jfk.wav"), "--model", "scripted:echo"),
        *("--timeline", str(timeline), "--out", str(out)),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    tell(ran.stdout)
    assert ran.returncode == 0, ran.stderr
    lines = [json.loads(line) for line in timeline.read_text("utf-8").splitlines()]
    assert_understood(lines, tell)
    assert_latency_adds_up(lines)
    tracks, rate = soundfile.read(out, dtype="int16")
    assert rate == RATE
    assert_both_sides(tracks[:, 0], tracks[:, 1], tell)


def assert_understood(lines: list[dict[str, object]], tell: Tell) -> None:
    said = [line for line in lines if line["type"] == "transcript" and line["role"] == "user"]
    joined = " ".join(str(line["text"]) for line in said if not line["partial"])
    heard = wer(fixture("jfk").transcript, joined)
    tell(f"WER {heard.rate:.3f} {heard.differences()}")
    assert heard.rate <= 0.1, joined


def assert_latency_adds_up(lines: list[dict[str, object]]) -> None:
    rows = [line for line in lines if line.get("name") == "turn_latency"]
    assert rows
    for row in rows:
        parts = row["parts"]
        assert isinstance(parts, list) and isinstance(row["total_ms"], (int, float))
        assert abs(sum(part["ms"] for part in parts) - row["total_ms"]) <= 1


def assert_both_sides(caller: Samples, agent: Samples, tell: Tell) -> None:
    """The caller's samples are the recording, the agent is audible and never talks over him."""
    jfk = fixture("jfk")
    assert np.array_equal(caller[: jfk.pcm.size], jfk.pcm)
    assert loud_ms(agent) > 2_000
    loud = levels_db(agent) >= -50
    for span in jfk.spans:
        over = 10 * int(np.count_nonzero(loud[span.start // 160 : span.end // 160]))
        tell(f"caller {span.start / RATE:.2f}-{span.end / RATE:.2f} s: {over} ms of the agent")
        assert over <= OVERLAP_MS
