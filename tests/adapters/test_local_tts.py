"""Local voices: the shared suite on Piper and flite, sentence jobs, estimates, what is heard."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.tts_suite import TtsRig, TtsSuite, deliver
from tests.support.peers import require_peer
from tests.support.wer import wer
from voxglove.adapters.errors import ProviderRefused
from voxglove.adapters.stt.whisper_model import whisper_model
from voxglove.adapters.tts.flite import FliteVoice, flite_tts
from voxglove.adapters.tts.local import AHEAD, Clip, LocalTts, Voice, aligned, trimmed
from voxglove.adapters.tts.piper_onnx import PhraseCache, PiperVoice, piper_tts, piper_voice
from voxglove.adapters.tts.port import Audio, Done, Failed
from voxglove.media.errors import MediaValueError
from voxglove.media.format import PIPELINE, AudioFormat
from voxglove.media.inference import InferencePool, Jobs
from voxglove.media.models import ModelMissing, locate
from voxglove.media.resample import resample_all

SPOKEN = (
    "Your table for two is booked for tomorrow evening.",
    "I can help you with that right away.",
    "We are open from noon until ten in the evening.",
    "Please call me back later.",
)


@pytest.fixture
def pool() -> Iterator[InferencePool]:
    pool = InferencePool(2)
    yield pool
    pool.close()


@pytest.mark.local_speech
class TestPiper(TtsSuite):
    @pytest.fixture
    def rig(self, pool: InferencePool) -> TtsRig:
        jobs = Jobs(pool)
        return TtsRig(lambda: piper_tts(piper_voice(), jobs), jobs.tick)


class TestFlite(TtsSuite):
    @pytest.fixture
    def rig(self, pool: InferencePool) -> TtsRig:
        program = require_peer("flite")
        jobs = Jobs(pool)
        return TtsRig(lambda: flite_tts(FliteVoice(program=program), jobs), jobs.tick)


class Counted:
    """A voice of 100 ms beeps that counts its sentences and can be held or made to fail."""

    name = "counted"
    format = PIPELINE

    def __init__(self) -> None:
        self.made: list[str] = []
        self.go = threading.Event()
        self.go.set()

    def synthesise(self, text: str) -> Clip:
        self.go.wait(10)
        self.made.append(text)
        if "fail" in text:
            raise RuntimeError("no breath")
        return aligned(text, np.full(1_600, 5_000, np.int16))


async def test_sentences_are_made_no_further_ahead_than_needed(pool: InferencePool) -> None:
    voice = Counted()
    tts = LocalTts(voice, Jobs(pool, frame_clocked=False))
    for number in range(10):
        tts.send_text(f"Sentence {number}.")
    events = tts.events()
    await anext(events)
    await asyncio.sleep(0.1)
    assert len(voice.made) <= 1 + AHEAD
    await tts.aclose()
    await events.aclose()  # type: ignore[attr-defined]


async def test_the_first_sentence_has_the_pool_for_itself(pool: InferencePool) -> None:
    """Somebody waits for it in silence; the next ones are made while it sounds."""
    jobs = Jobs(pool)
    tts = LocalTts(Counted(), jobs)
    for number in range(3):
        tts.send_text(f"Sentence {number}.")
    assert jobs.statistics().submitted == 1
    events = tts.events()
    reading = asyncio.ensure_future(anext(events))
    for now in range(0, 9_600, 320):
        jobs.tick(now)
        await asyncio.sleep(0)
        if reading.done():
            break
    await reading
    assert jobs.statistics().submitted == 1 + AHEAD
    await tts.aclose()
    await events.aclose()  # type: ignore[attr-defined]


async def test_a_failed_sentence_is_reported_behind_those_before_it(pool: InferencePool) -> None:
    jobs = Jobs(pool)
    rig = TtsRig(lambda: LocalTts(Counted(), jobs), jobs.tick)
    out = await deliver(rig, ["One.", "Now fail.", "Three."])
    assert out.last() == Failed("ERR_TTS_FAILED", "counted failed: no breath")
    assert len(out.sound()) == 1_600


async def test_closing_does_not_wait_for_a_running_job(pool: InferencePool) -> None:
    voice = Counted()
    voice.go.clear()
    tts = LocalTts(voice, Jobs(pool))
    tts.send_text("One.")
    started = asyncio.get_running_loop().time()
    await tts.aclose()
    assert asyncio.get_running_loop().time() == started
    voice.go.set()


async def test_the_call_ending_its_jobs_ends_the_voice(pool: InferencePool) -> None:
    jobs = Jobs(pool)
    tts = LocalTts(Counted(), jobs)
    tts.send_text("One.")
    tts.flush()
    jobs.cancel()
    assert [event async for event in tts.events()] == []


@given(st.text(max_size=80), st.integers(0, 20_000))
def test_estimated_words_cover_the_sound_in_order(text: str, size: int) -> None:
    clip = aligned(text, np.full(size, 9_000, np.int16))
    at = 0
    for span in clip.words:
        assert at <= span.sample_start <= span.sample_end <= size
        assert not text[span.text_start : span.text_end].isspace()
        at = span.sample_end
    assert len(clip.words) == (len(text.split()) if size else 0)


def test_silence_in_front_is_cut_to_ten_milliseconds() -> None:
    sound = np.concatenate([np.zeros(2_000, np.int16), np.full(500, 9_000, np.int16)])
    assert len(trimmed(sound, PIPELINE)) == 160 + 500
    assert len(trimmed(sound[:2_000], PIPELINE)) == 0


def test_the_phrase_cache_drops_what_was_used_longest_ago() -> None:
    cache, clip = PhraseCache(5_000), Clip(np.zeros(1_000, np.int16), ())
    for text in ("a", "b"):
        cache.put(text, clip)
    assert cache.get("a") is clip
    cache.put("c", clip)
    assert cache.get("b") is None and cache.get("a") is clip
    assert cache.bytes == 4_000
    cache.put("x" * 100, clip)
    assert cache.get("x" * 100) is None


@pytest.mark.local_speech
def test_piper_is_bit_identical_without_its_cache() -> None:
    first, second = (PiperVoice(locate("piper-joe"), cache_bytes=0) for _ in range(2))
    for text in SPOKEN[:2]:
        assert np.array_equal(first.synthesise(text).samples, second.synthesise(text).samples)


@pytest.mark.local_speech
def test_piper_speaks_slower_when_told() -> None:
    normal, slow = piper_voice(), piper_voice(length=1.3)
    text = SPOKEN[0]
    ratio = len(slow.synthesise(text).samples) / len(normal.synthesise(text).samples)
    assert 1.05 < ratio < 1.45  # durations are rounded up to whole frames of the network


@pytest.mark.local_speech
@pytest.mark.parametrize("text", ["", "...", "☺", "日本語", "a", "Ünïcode naïve café", "<b>&amp;"])
def test_piper_survives_any_text(text: str) -> None:
    clip = piper_voice().synthesise(text)
    assert len(clip.samples) < 22_050 * 5


@pytest.mark.local_speech
@pytest.mark.parametrize("kind", ["piper", "flite"])
def test_what_is_spoken_is_understood(kind: str) -> None:
    voice: Voice = piper_voice() if kind == "piper" else FliteVoice(program=require_peer("flite"))
    heard = []
    for text in SPOKEN:
        sound = voice.synthesise(text).samples
        heard.append(whisper_model().transcribe(resample_all(sound, voice.format.rate, 16_000)))
    assert wer(" ".join(SPOKEN), " ".join(heard)).rate <= 0.12, heard


@pytest.mark.local_speech
def test_estimated_word_places_agree_with_what_is_heard() -> None:
    """Cut the sound where a word should end: the recogniser hears that word, not the one after."""
    text = "The train to Boston leaves at nine from platform four."
    clip = piper_voice().synthesise(text)
    words = text.split()
    for place in (3, 6):
        cut = clip.samples[: clip.words[place].sample_end]
        heard = whisper_model().transcribe(resample_all(cut, 22_050, 16_000)).split()
        assert abs(len(heard) - (place + 1)) <= 1, (words[: place + 1], heard)


@pytest.mark.parametrize("length", [0.4, 2.1])
def test_an_unusable_tempo_is_refused(length: float) -> None:
    with pytest.raises(MediaValueError, match="length"):
        PiperVoice(Path("voice.onnx"), length=length)


def test_a_voice_without_its_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="voice.onnx.json"):
        PiperVoice(tmp_path / "voice.onnx")


def test_flite_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ModelMissing, match="apt-get install flite"):
        FliteVoice()


def test_a_voice_that_flite_has_not_is_refused() -> None:
    with pytest.raises(MediaValueError, match="slt"):
        FliteVoice("robot", program="flite")


def test_a_failing_program_says_so() -> None:
    with pytest.raises(ProviderRefused, match="ended with 1"):
        FliteVoice(program="false").synthesise("Hello.")


async def test_formats_are_declared_before_a_word_is_spoken(pool: InferencePool) -> None:
    tts = LocalTts(Counted(), Jobs(pool))
    assert (tts.format, tts.name) == (AudioFormat(16_000), "counted")
    tts.flush()
    events = [event async for event in tts.events()]
    assert events == [Done()] and not any(isinstance(event, Audio) for event in events)
