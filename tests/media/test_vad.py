"""Voice activity: the frame machine by table, both detectors by sound, chunks by property."""

import threading
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxglove.media import wav
from voxglove.media.errors import MediaValueError
from voxglove.media.inference import onnx_session
from voxglove.media.models import locate
from voxglove.media.pcm import Samples
from voxglove.media.vad.energy import EnergyVad
from voxglove.media.vad.machine import VadConfig, VadMachine
from voxglove.media.vad.port import FRAME, Vad, VadEvent
from voxglove.media.vad.silero import SileroVad, load_vad

JFK = Path(__file__).parents[1] / "audio_fixtures" / "jfk.wav"
ENGINES = ["energy", "silero"]


@lru_cache(maxsize=1)
def jfk() -> Samples:
    return wav.read(JFK)


def detector(engine: str) -> Vad:
    return EnergyVad() if engine == "energy" else SileroVad(onnx_session(locate("silero-vad")))


def noise(count: int, rms: float, seed: int = 3) -> Samples:
    return (np.random.default_rng(seed).normal(0, rms * 32_768, count)).astype(np.int16)


def heard(vad: Vad, samples: Samples, chunk: int = 320, at: int = 0) -> list[VadEvent]:
    starts = range(0, len(samples), chunk)
    return [event for i in starts for event in vad.process(samples[i : i + chunk], at + i)]


def run(probs: Iterable[float], *, ducked: bool = False) -> list[tuple[str, int, int]]:
    """(kind, deciding frame, dated frame) of each event; frames instead of samples."""
    machine = VadMachine()
    machine.duck(ducked)
    events = [e for i, prob in enumerate(probs) for e in machine.step(prob, i * FRAME)]
    return [(e.kind, e.at // FRAME, e.position // FRAME) for e in events]


@pytest.mark.parametrize(
    ("probs", "expected"),
    [
        ([0.9] * 2 + [0.1] * 20, []),
        ([0.1] * 4 + [0.9] * 3, [("start", 7, 4)]),
        ([0.9, 0.4, 0.4], [("start", 3, 0)]),
        ([0.9, 0.9, 0.1, 0.9, 0.9], []),
        ([0.4] * 50, []),
        ([0.9] * 7 + [0.0] * 6, [("start", 3, 0), ("misfire", 13, 7)]),
        ([0.9] * 8 + [0.0] * 6, [("start", 3, 0), ("confirmed", 8, 0), ("end", 14, 8)]),
        ([0.9] * 8 + [0.0] * 5 + [0.9] + [0.0] * 5, [("start", 3, 0), ("confirmed", 8, 0)]),
        (
            [0.9] * 8 + [0.4] * 9 + [0.0] * 6,
            [("start", 3, 0), ("confirmed", 8, 0), ("end", 23, 17)],
        ),
        (
            [0.9] * 8 + [0.0] * 3 + [0.4] * 9 + [0.0] * 3,
            [("start", 3, 0), ("confirmed", 8, 0), ("end", 23, 8)],
        ),
        (([0.9] * 8 + [0.0] * 6) * 2, [
            ("start", 3, 0), ("confirmed", 8, 0), ("end", 14, 8),
            ("start", 17, 14), ("confirmed", 22, 14), ("end", 28, 22),
        ]),
    ],
    ids=[
        "64 ms are no onset", "onset after 96 ms, dated to its first frame", "hysteresis holds",
        "a silent frame ends an onset", "between the thresholds nothing begins",
        "224 ms misfire", "256 ms are speech, dated back", "160 ms of silence do not end it",
        "hysteresis prolongs speech", "hysteresis does not take silence back", "twice",
    ],
)  # fmt: skip
def test_machine(probs: list[float], expected: list[tuple[str, int, int]]) -> None:
    assert run(probs) == expected


def test_voice_row_021_ducked_a_weak_voice_starts_and_a_door_slam_is_not_confirmed() -> None:
    assert run([0.35] * 30) == []
    assert run([0.35] * 3, ducked=True) == [("start", 3, 0)]
    slam = [0.35] * (750 // 32)
    assert run(slam + [0.0] * 6, ducked=True) == [("start", 3, 0), ("misfire", 29, 23)]
    assert ("confirmed", 24, 0) in run([0.35] * 24, ducked=True)
    assert ("confirmed", 8, 0) in run([0.6] * 8, ducked=True)


def test_ducking_back_keeps_the_utterance() -> None:
    machine = VadMachine()
    machine.duck(True)
    assert [e.kind for i in range(3) for e in machine.step(0.3, i * FRAME)] == ["start"]
    machine.duck(False)
    assert machine.voiced
    assert [e.kind for i in range(3, 9) for e in machine.step(0.3, i * FRAME)] == ["misfire"]


def test_config_is_checked() -> None:
    with pytest.raises(MediaValueError, match="negative"):
        VadConfig(positive=0.3)
    with pytest.raises(MediaValueError, match="silence_ms"):
        VadConfig(silence_ms=0)
    with pytest.raises(MediaValueError, match="threshold"):
        EnergyVad(threshold=0)
    with pytest.raises(MediaValueError, match="multiplier"):
        EnergyVad(multiplier=1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("chunk", [128, 320, 512, 777])
def test_voice_row_018_chunking_does_not_change_the_events(engine: str, chunk: int) -> None:
    audio = jfk()[: 16_000 * 4]
    expected = heard(detector(engine), audio, 1_000, at=4_321)
    assert {event.kind for event in expected} >= {"start", "confirmed", "end"}
    assert heard(detector(engine), audio, chunk, at=4_321) == expected


@settings(max_examples=20)
@given(st.lists(st.integers(0, 2_000), min_size=1, max_size=40))
def test_voice_row_018_any_chunks_give_the_same_events(sizes: list[int]) -> None:
    audio = jfk()[4_000 : 4_000 + sum(sizes)]
    whole, parts = EnergyVad(), EnergyVad()
    expected = whole.process(audio, 0)
    events, at = [], 0
    for size in sizes:
        events += parts.process(audio[at : at + size], at)
        at += size
    assert events == expected
    assert parts.prob == whole.prob


@pytest.mark.parametrize("engine", ENGINES)
def test_a_jump_in_position_drops_the_torn_frame(engine: str) -> None:
    vad = detector(engine)
    heard(vad, np.zeros(500, np.int16))
    events = heard(vad, jfk(), 320, at=100_000)
    assert events[0].position >= 100_000
    assert (events[0].position - 100_000) % FRAME == 0


@pytest.mark.parametrize("rms", [0.02, 0.05, 0.15])
def test_voice_row_019_steady_noise_is_learned_and_speech_still_heard(rms: float) -> None:
    vad = EnergyVad()
    audio = noise(16_000 * 12, rms)
    learned = 16_000 * 6
    heard(vad, audio[:learned])
    assert not vad.voiced
    assert heard(vad, audio[learned:], at=learned) == []
    voice = noise(16_000, min(0.5, 3 * rms), seed=9) + noise(16_000, rms, seed=4) // 4
    events = heard(vad, voice, at=len(audio))
    assert [event.kind for event in events] == ["start", "confirmed"]
    after = heard(vad, noise(16_000, rms, seed=5), at=len(audio) + len(voice))
    assert [event.kind for event in after] == ["end"]
    assert abs(after[0].position - len(audio) - len(voice)) <= 2 * FRAME


def test_a_loud_first_frame_does_not_deafen_the_energy_detector() -> None:
    vad = EnergyVad()
    events = heard(vad, noise(16_000, 0.2))
    assert [event.kind for event in events] == ["start", "confirmed"]
    assert events[0].position == 0
    assert [e.kind for e in heard(vad, np.zeros(8_000, np.int16), at=16_000)] == ["end"]
    assert [e.kind for e in heard(vad, noise(16_000, 0.2), at=24_000)][:1] == ["start"]


@pytest.mark.parametrize("engine", ENGINES)
def test_voice_row_020_reset_in_speech_emits_nothing_and_forgets(engine: str) -> None:
    vad, fresh = detector(engine), detector(engine)
    events = heard(vad, jfk()[: 16_000 * 2])
    assert vad.voiced and events
    vad.reset()
    assert not vad.voiced and vad.prob == 0.0
    quiet = np.zeros(16_000, np.int16)
    assert heard(vad, quiet, at=32_000) == []
    vad.reset()
    assert heard(vad, jfk()) == heard(fresh, jfk())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_real_speech_gives_paired_events_in_order(engine: str) -> None:
    vad = detector(engine)
    events = heard(vad, np.concatenate([jfk(), np.zeros(16_000, np.int16)]))
    kinds = [event.kind for event in events]
    assert kinds.count("confirmed") == kinds.count("end") >= 2
    assert all(a.at <= b.at for a, b in zip(events, events[1:], strict=False))
    assert all(event.position <= event.at for event in events)
    assert not vad.voiced


def test_silero_hears_speech_and_not_noise() -> None:
    vad = detector("silero")
    events = heard(vad, jfk())
    starts = [event.position for event in events if event.kind == "start"]
    assert starts[0] == pytest.approx(16_000 * 0.33, abs=1_600)
    assert heard(detector("silero"), noise(16_000 * 4, 0.05)) == []
    assert heard(detector("silero"), np.zeros(16_000 * 2, np.int16)) == []


def test_silero_calls_share_the_session_but_not_their_state() -> None:
    expected = heard(detector("silero"), jfk()[:32_000])
    found: dict[int, list[VadEvent]] = {}

    def call(number: int) -> None:
        found[number] = heard(detector("silero"), jfk()[:32_000])

    threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[n] for n in range(4)] == [expected] * 4


def test_a_missing_model_falls_back_to_energy_and_says_so(tmp_path: Path) -> None:
    assert load_vad().problem is None
    missing = load_vad(path=tmp_path / "none.onnx")
    assert isinstance(missing.vad, EnergyVad)
    assert missing.problem is not None and "none.onnx" in missing.problem
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    refused = load_vad(path=broken)
    assert isinstance(refused.vad, EnergyVad)
    assert refused.problem is not None and "broken.onnx" in refused.problem


@given(st.lists(st.sampled_from((0.05, 0.2, 0.4, 0.6, 0.95)), max_size=120), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_pause_is_where_the_end_would_be(probs: list[float], ducked: bool) -> None:
    """None outside confirmed speech and after a voiced frame; else the position of the end that
    comes if nothing is said any more, however long until then."""
    machine = VadMachine()
    machine.duck(ducked)
    confirmed = False
    for index, prob in enumerate(probs):
        before = machine.pause
        kinds = [event.kind for event in machine.step(prob, index * FRAME)]
        confirmed = (confirmed or "confirmed" in kinds) and "end" not in kinds
        pause = machine.pause
        assert pause is None or (confirmed and pause <= index * FRAME)
        if prob >= (0.3 if ducked else 0.5):
            assert pause is None
        if before is not None and pause is not None:
            assert pause == before
    pause = machine.pause
    if pause is not None:
        ends = [e for i in range(6) for e in machine.step(0.0, (len(probs) + i) * FRAME)]
        assert [(e.kind, e.position) for e in ends] == [("end", pause)]
        assert machine.pause is None
