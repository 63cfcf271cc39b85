"""The recorder: each sample at its place, no drift, readable whenever the process dies."""

import os
import signal
import subprocess
import sys
import threading
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.media.recorder import Recorder, RecordingFailed

RATE = 16_000


def tracks(path: Path) -> np.ndarray:
    """Both tracks, shape [samples, 2], as a standard reader sees them."""
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (2, 2, RATE)
        data = file.readframes(file.getnframes())
        assert len(data) == file.getnframes() * 4
    return np.frombuffer(data, "<i2").reshape(-1, 2)


def ramp(at: int, count: int) -> np.ndarray:
    """Samples that tell their own position, never zero."""
    return ((np.arange(at, at + count) % 30_000) + 1).astype(np.int16)


async def test_caller_is_left_agent_is_right_and_the_rest_is_silence(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "a.wav")
    recorder.caller(100, ramp(100, 50))
    recorder.agent(300, ramp(300, 20))
    await recorder.aclose(end=1_000)
    both = tracks(tmp_path / "a.wav")
    assert len(both) == 1_000
    assert np.flatnonzero(both[:, 0]).tolist() == list(range(100, 150))
    assert np.flatnonzero(both[:, 1]).tolist() == list(range(300, 320))
    await recorder.aclose()
    with pytest.raises(RecordingFailed, match="closed"):
        recorder.caller(0, ramp(0, 1))


@settings(max_examples=25)
@given(st.randoms(use_true_random=False), st.integers(0, 3 * RATE))
def test_writes_in_any_order_within_the_window_lie_at_their_place(
    tmp_path_factory: pytest.TempPathFactory, random: object, lag: int
) -> None:
    path = tmp_path_factory.mktemp("rec") / "a.wav"
    recorder = Recorder(path)
    length = 8 * RATE
    for at in range(0, length, 1_600):
        recorder.caller(at, ramp(at, 1_600))
        late = at - lag
        if late >= 0:
            recorder.agent(late, ramp(late, 1_600))
    recorder.close()
    both = tracks(path)
    assert np.array_equal(both[:, 0], ramp(0, length))
    heard = np.flatnonzero(both[:, 1])
    assert np.array_equal(both[heard, 1], ramp(0, length)[heard])
    assert recorder.statistics.late == recorder.statistics.lost == 0


def test_the_last_write_wins(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "a.wav")
    recorder.agent(0, ramp(0, 2 * RATE))
    recorder.agent(RATE, np.zeros(RATE, np.int16))
    recorder.close()
    both = tracks(tmp_path / "a.wav")
    assert np.flatnonzero(both[:, 1])[-1] == RATE - 1


def test_what_comes_behind_the_window_is_counted_not_written(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "a.wav", window_s=1)
    recorder.caller(0, ramp(0, 10 * RATE))
    recorder.agent(-50, ramp(0, 100))
    recorder.close()
    assert recorder.statistics.late == 100
    assert not tracks(tmp_path / "a.wav")[:, 1].any()


def test_voice_row_098_the_tracks_do_not_drift_over_an_hour(tmp_path: Path) -> None:
    """One click a minute on both tracks; the hour between is a hole in the file."""
    recorder = Recorder(tmp_path / "a.wav")
    clicks = [minute * 60 * RATE for minute in range(61)]
    for at in clicks:
        recorder.caller(at, ramp(at, 320))
        recorder.agent(at + 7, ramp(at, 320))
    recorder.close(end=3_600 * RATE + 1_000)
    both = tracks(tmp_path / "a.wav")
    assert len(both) == 3_600 * RATE + 1_000
    starts = [np.flatnonzero(np.diff((both[:, side] != 0).astype(np.int8)) == 1) for side in (0, 1)]
    assert (starts[0] + 1).tolist() == clicks[1:]
    assert (starts[1] + 1).tolist() == [at + 7 for at in clicks]


def test_memory_is_bounded_on_a_long_call(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "a.wav")
    held = recorder._held.nbytes
    for at in range(0, 60 * RATE, RATE):
        recorder.caller(at, ramp(at, RATE))
    assert recorder._held.nbytes == held <= 6 * RATE * 4
    assert len(recorder._jobs) <= 9
    recorder.close()


def test_a_killed_process_leaves_a_readable_file(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    code = f"""
import numpy as np, sys, time
from voxglove.media.recorder import Recorder
recorder = Recorder({str(path)!r})
for at in range(0, 10 * 16000 + 1600, 320):
    recorder.caller(at, np.full(320, 5, np.int16))
while recorder._jobs and not all(job.done() for job in recorder._jobs): pass
print("written", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    both = tracks(path)
    assert 9 * RATE <= len(both) <= 10 * RATE + 1_600
    assert (both[:, 0] == 5).all()


@pytest.mark.real_loop
async def test_a_stalled_disk_never_stalls_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(tmp_path / "a.wav", window_s=1)
    go = threading.Event()
    write = recorder._file.write

    def stalled(at: int, block: bytes, end: int) -> None:
        go.wait(10)
        write(at, block, end)

    monkeypatch.setattr(recorder._file, "write", stalled)
    for at in range(0, 30 * RATE, RATE):
        recorder.caller(at, ramp(at, RATE))
    assert len(recorder._jobs) <= 9
    lost = recorder.statistics.lost
    assert lost > 10 * RATE
    go.set()
    await recorder.aclose()
    both = tracks(tmp_path / "a.wav")
    assert len(both) == 30 * RATE
    assert np.count_nonzero(both[:, 0] == 0) == lost
    kept = np.flatnonzero(both[:, 0])
    assert np.array_equal(both[kept, 0], ramp(0, 30 * RATE)[kept])


async def test_faster_than_real_time_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a virtual loop the recorder waits for the disk, with time frozen."""
    recorder = Recorder(tmp_path / "a.wav", window_s=1)
    write = recorder._file.write
    pace = threading.Event()

    def slow(at: int, block: bytes, end: int) -> None:
        pace.wait(0.002)
        write(at, block, end)

    monkeypatch.setattr(recorder._file, "write", slow)
    for at in range(0, 60 * RATE, RATE):
        recorder.caller(at, ramp(at, RATE))
    await recorder.aclose()
    assert np.array_equal(tracks(tmp_path / "a.wav")[:, 0], ramp(0, 60 * RATE))
    assert recorder.statistics.lost == 0


async def test_a_failed_write_is_raised_at_the_end_and_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(tmp_path / "a.wav")

    def full(at: int, block: bytes, end: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(recorder._file, "write", full)
    for at in range(0, 20 * RATE, RATE):
        recorder.caller(at, ramp(at, RATE))
    with pytest.raises(RecordingFailed, match=r"a\.wav.*no space left"):
        await recorder.aclose()


def test_a_path_that_cannot_be_opened_and_a_bad_window_are_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingFailed, match="nowhere"):
        Recorder(tmp_path / "nowhere" / "a.wav")
    with pytest.raises(MediaValueError, match="window_s"):
        Recorder(tmp_path / "a.wav", window_s=0)
