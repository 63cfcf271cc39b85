"""The audio fixtures are what they say: bytes, spans, levels, numbers (spec/voice.md 22b)."""

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.audio_fixtures import sounds
from tests.audio_fixtures.dsp import Pcm, mulaw_round_trip, noise, pcm16, resample, samples
from tests.audio_fixtures.echo import EchoPath
from tests.audio_fixtures.fixture import ROOT, toml_text, wav_path
from tests.audio_fixtures.load import (
    VARIANT_CLASSES,
    Fixture,
    Span,
    VariantClass,
    browser_wav,
    dialogue,
    fixture,
    human_set,
    names,
    phone,
    variants,
)
from tests.audio_fixtures.make import CLIPS, difference, synthesise
from tests.audio_fixtures.synth import Voice
from tests.support.audio import level_db, levels_db, match

COMMITTED = [*names("human"), *names("voice")]
MAX_BYTES = 12_000_000

RENDERS = {
    "cough": "8ec43419813596b4",
    "door_slam": "36ed1d1115f8bbda",
    "double_talk": "12e5422a31311c3a",
    "drift": "0cdf25f3e208ce34",
    "echo_only": "be59680cb4e3ac8a",
    "fan": "d678f59240caf7d8",
    "keyboard": "741a3dc635ddeecf",
    "mm_hm": "3208d2e4bd75da0c",
    "neighbour": "8aea7e96b17cf0ba",
    "pause_1000": "4fe19aa9f3a93d55",
    "pause_600": "b3df7bd4adb14037",
    "quiet_talker": "6b3930fdc1ee4bcb",
    "room_tone": "5e70a62979822dbc",
    "silence": "55873fecc61a79e8",
    "spelled_id": "b80bf4ed78fe351d",
    "stop_burst": "d6fb6abc4a430623",
    "two_speakers": "50c5315d1dc1e758",
    "utterance_1200": "4097a9f32da8d839",
}
VARIANT_RENDERS: dict[tuple[VariantClass, int], str] = {
    ("cough", 7): "607a0ad6fa5939f1",
    ("keyboard", 31): "5e4463df8e2bcc04",
    ("mm_hm", 12): "b23ab58c0d36d1d9",
    ("mm_hm", 14): "2f1f123409d91667",
    ("stop", 3): "423b8a69c90a4669",
    ("wait", 44): "27544c5f89fb3dd6",
    ("no", 59): "41b812c6512526e8",
    ("echo", 20): "a580e250ab814293",
}


def digest(pcm: Pcm) -> str:
    return hashlib.sha256(pcm.astype("<i2").tobytes()).hexdigest()[:16]


def energy_inside(item: Fixture, spans: tuple[Span, ...]) -> float:
    """Share of the sound's energy (without DC) that lies in the spans."""
    power = (item.pcm - float(np.mean(item.pcm))) ** 2
    return float(sum(power[span.start : span.end].sum() for span in spans) / power.sum())


# Committed files


@pytest.mark.parametrize("name", COMMITTED)
def test_committed_fixture_is_the_sound_its_toml_describes(name: str) -> None:
    item = fixture(name)
    path = wav_path(name)
    assert path is not None
    assert path.with_suffix(".toml").read_text(encoding="utf-8") == toml_text(item)
    assert item.transcript and item.meta.licence and item.meta.source
    assert not item.pcm.flags.writeable


@pytest.mark.parametrize("name", COMMITTED)
def test_spans_cover_the_speech_and_start_and_end_with_it(name: str) -> None:
    item = fixture(name)
    edges = [0, *(bound for span in item.spans for bound in span), item.pcm.size]
    assert edges == sorted(edges)
    assert energy_inside(item, item.spans) > 0.995
    speech = level_db(np.concatenate([item.pcm[s.start : s.end] for s in item.spans]))
    for span in item.spans:
        assert levels_db(item.pcm[span.start : span.start + 1600]).max() > speech - 26
        assert levels_db(item.pcm[span.end - 1600 : span.end]).max() > speech - 26


def test_spans_that_are_wrong_are_noticed() -> None:
    item = fixture("goforward")
    late = tuple(Span(span.start + samples(400), span.end + samples(400)) for span in item.spans)
    assert energy_inside(item, late) < 0.9


def test_human_recordings_are_the_upstream_samples() -> None:
    for item in human_set(safe=False):
        path = wav_path(item.name)
        assert path is not None
        data = path.read_bytes()
        raw = item.meta.source.endswith(".raw")
        upstream = hashlib.sha256(data[44:] if raw else data).hexdigest()
        assert upstream == item.meta.source_sha256, item.name
        assert item.meta.kind == "human"


def test_the_human_set_is_complete_and_leaves_out_what_is_not_certain() -> None:
    assert (ROOT / "jfk.wav").is_file()
    assert len(human_set(safe=False)) == 13
    assert {item.name for item in human_set(safe=False)} - {item.name for item in human_set()} == {
        "numbers"
    }


def test_a_changed_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.audio_fixtures import fixture as module

    source = wav_path("goodbye")
    assert source is not None
    (tmp_path / "goodbye.toml").write_bytes(source.with_suffix(".toml").read_bytes())
    (tmp_path / "goodbye.wav").write_bytes(source.read_bytes()[:-2] + b"\x01\x01")
    monkeypatch.setattr(module, "wav_path", lambda name: tmp_path / f"{name}.wav")
    with pytest.raises(ValueError, match="sha256 differs"):
        module.committed.__wrapped__("goodbye")


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match="jfk"):
        fixture("nonesuch")


def test_committed_audio_stays_small() -> None:
    assert sum(path.stat().st_size for path in ROOT.rglob("*.wav")) < MAX_BYTES


# The generator


@pytest.mark.parametrize("name", names("scene"))
def test_scene_is_reproduced_bit_for_bit(name: str) -> None:
    assert digest(fixture(name).pcm) == RENDERS[name]


@pytest.mark.parametrize(("kind", "index"), VARIANT_RENDERS)
def test_variant_is_reproduced_bit_for_bit(kind: VariantClass, index: int) -> None:
    assert digest(variants(kind)[index].render()) == VARIANT_RENDERS[kind, index]


def test_every_clip_of_the_table_is_committed_and_no_other() -> None:
    assert set(names("voice")) == set(CLIPS)


@pytest.fixture(scope="module")
def voice() -> Voice:
    """Loaded before any one test, so that what the runtime keeps open is not that test's leak."""
    loaded = Voice()
    loaded.say("Yes.")
    return loaded


def test_the_voice_repeats_itself_and_the_committed_clips(voice: Voice) -> None:
    first, second = synthesise(voice, "goodbye"), synthesise(voice, "goodbye")
    assert np.array_equal(first.pcm, second.pcm)
    assert difference(first.pcm, fixture("goodbye").pcm) <= 64
    assert first.spans == fixture("goodbye").spans


# Variants


@pytest.mark.parametrize("kind", VARIANT_CLASSES)
def test_a_class_has_fifty_variants_spread_over_its_axes(kind: VariantClass) -> None:
    found = variants(kind)
    assert len(found) >= 50
    assert len({item.name for item in found}) == len(found)
    assert len({digest(item.render()) for item in found}) == len(found)
    assert set(Counter(item.snr_db for item in found)) == {20, 10, 5}
    assert len({item.onset_ms for item in found}) == 4
    assert {item.background for item in found} == {"room", "fan"}
    assert len({(item.snr_db, item.background) for item in found}) == 6
    if kind == "echo":
        assert {item.gain_db for item in found} == {-12, -20, -26, -32, -40}
        assert {item.delay_ms for item in found} == {60, 110, 180, 240, 300}
    else:
        assert len({item.speed for item in found}) == 5
        assert len({item.voice for item in found}) == 4


@pytest.mark.parametrize("kind", VARIANT_CLASSES)
def test_a_variant_has_its_event_at_its_span_and_its_snr(kind: VariantClass) -> None:
    for item in variants(kind)[::13]:
        track, span = item.render(), item.span()
        bed = track[: span.start]
        assert span.start == samples(item.onset_ms)
        assert level_db(item.event()) - level_db(bed) == pytest.approx(item.snr_db, abs=1.5)
        assert match(track, item.event()).lag == span.start
        assert np.max(np.abs(track.astype(np.int32))) < 32_000


def test_a_variant_goes_over_what_the_caller_said_before() -> None:
    item, question = variants("cough")[0], fixture("ask_hours").pcm
    at = question.size + samples(700)
    track = item.render(at=at, over=question, length=at + samples(3000))
    assert track.size == at + samples(3000)
    assert match(track, question).lag == 0
    assert match(track[at:], item.event()).lag == item.span(at).start - at


def test_an_unknown_class_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="cough, keyboard"):
        variants("sneeze")  # type: ignore[arg-type]


def test_only_echo_has_an_echo_path() -> None:
    with pytest.raises(ValueError, match="only echo"):
        variants("no")[0].echo_path()


# Echo


@given(st.lists(st.integers(1, 900), min_size=1, max_size=12), st.sampled_from([60, 180, 300]))
@settings(max_examples=25, deadline=None)
def test_echo_does_not_depend_on_the_block_size(blocks: list[int], delay_ms: int) -> None:
    played = pcm16(noise(sum(blocks), 5))
    whole = EchoPath(delay_ms=delay_ms, gain_db=-12, seed=3).feed(played)
    path, at, parts = EchoPath(delay_ms=delay_ms, gain_db=-12, seed=3), 0, []
    for size in blocks:
        parts.append(path.feed(played[at : at + size]))
        at += size
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("gain_db", [-12, -20, -40])
def test_echo_has_its_delay_and_its_level(gain_db: int) -> None:
    played = pcm16(noise(32_000, 6))
    heard = EchoPath(delay_ms=110, gain_db=gain_db, seed=8).feed_all(played)
    assert int(np.flatnonzero(heard)[0]) in range(samples(110), samples(110) + 4)
    assert level_db(heard[8000:32_000]) - level_db(played) == pytest.approx(gain_db, abs=1.0)


# Scenes


@pytest.mark.parametrize(("name", "pause_ms"), [("pause_600", 600), ("pause_1000", 1000)])
def test_a_mid_sentence_pause_is_exact_and_silent(name: str, pause_ms: int) -> None:
    first, second = fixture(name).spans
    assert second.start - first.end == samples(pause_ms)
    inside = fixture(name).pcm[first.end + 800 : second.start - 800]
    assert levels_db(inside).max() < -50


def test_a_spelled_id_has_its_gaps() -> None:
    spans = fixture("spelled_id").spans
    assert len(spans) == 5
    assert {b.start - a.end for a, b in zip(spans, spans[1:], strict=False)} == {samples(700)}


@pytest.mark.parametrize(("name", "clip"), [("quiet_talker", "utterance"), ("neighbour", "half_2")])
def test_distant_talkers_are_down_by_what_they_say(name: str, clip: str) -> None:
    scene = fixture(name)
    span, near = scene.spans[0], fixture(clip)
    far = level_db(scene.pcm[span.start : span.end])
    close = level_db(near.pcm[near.spans[0].start : near.spans[0].end])
    assert far - close == pytest.approx(scene.meta.value("gain_db"), abs=0.7)


def test_double_talk_has_the_caller_six_db_over_the_leak() -> None:
    scene, quiet = fixture("double_talk"), fixture("echo_only")
    said = fixture("booking_change")
    found = match(scene.pcm, said.pcm)
    at = found.lag + said.spans[0].start
    assert at == scene.spans[0].start
    caller = found.gain * said.pcm.astype(np.float64)
    leak = scene.pcm[found.lag : found.lag + caller.size] - caller
    assert level_db(caller) - level_db(leak) == pytest.approx(6, abs=1.0)
    assert quiet.spans == ()


def test_the_utterance_and_the_bursts_have_their_lengths() -> None:
    (span,) = fixture("utterance_1200").spans
    assert (span.end - span.start) / 16 == pytest.approx(1200, abs=20)
    for name, ms in [("door_slam", 120), ("cough", 180), ("stop_burst", 300)]:
        assert fixture(name).meta.value("length_ms") == ms
    with pytest.raises(KeyError, match="length_ms"):
        fixture("cough").meta.value("ppm")


def test_a_drifting_clock_is_two_hundred_ppm_fast() -> None:
    base, fast = fixture("jfk").pcm, fixture("drift").pcm
    assert fast.size == pytest.approx(base.size * 1.0002, abs=1)
    last = fixture("jfk").spans[-1]
    late = match(fast[last.start :], base[last.start : last.end]).lag
    assert late == pytest.approx((last.start + last.end) / 2 * 0.0002, abs=3)


def test_a_second_speaker_has_another_voice() -> None:
    scene = fixture("two_speakers")
    first, second = scene.spans
    assert second.start - first.end == pytest.approx(samples(300), abs=2)
    own = match(scene.pcm[second.start : second.end], fixture("ask_hours").pcm)
    assert abs(own.correlation) < 0.5


def test_dialogue_joins_clips_with_their_spans() -> None:
    talk = dialogue("booking_2", "goodbye", gap_ms=500, lead_ms=200)
    assert talk.transcript == "My name is Anna Smith. Goodbye."
    offset = 3200 + fixture("booking_2").pcm.size + 8000
    assert talk.spans[-1].start == offset + fixture("goodbye").spans[0].start
    assert match(talk.pcm, fixture("goodbye").pcm).lag == offset


# Other rates


def test_the_phone_form_is_mu_law_at_eight_kilohertz() -> None:
    line = phone(fixture("jfk"))
    assert (line.rate, line.pcm.size) == (8000, 88_000)
    assert np.array_equal(mulaw_round_trip(line.pcm), line.pcm)
    assert len(np.unique(mulaw_round_trip(np.arange(-32768, 32768).astype(np.int16)))) == 255
    assert energy_inside(line, line.spans) > 0.99
    with pytest.raises(ValueError, match="rate 8000"):
        phone(line)


def test_the_browser_form_begins_with_a_second_of_silence(tmp_path: Path) -> None:
    import soundfile as sf

    written = browser_wav(fixture("booking_2"), tmp_path / "mic.wav", tail_ms=250)
    data, rate = sf.read(tmp_path / "mic.wav", dtype="int16")
    assert rate == written.rate == 48_000
    assert np.array_equal(data, written.pcm)
    assert not np.any(data[:48_000]) and not np.any(data[-12_000:])
    assert energy_inside(written, written.spans) > 0.995


@pytest.mark.parametrize(("up", "down"), [(1, 2), (3, 1), (10, 11), (5001, 5000)])
def test_the_fixtures_own_resampler_keeps_a_tone_clean(up: int, down: int) -> None:
    t = np.arange(16_000)
    tone = pcm16(10_000 * np.sin(2 * np.pi * 440 * t / 16_000))
    out = resample(tone, up, down)
    want = 10_000 * np.sin(2 * np.pi * 440 * np.arange(out.size) * down / up / 16_000)
    inner = slice(400, out.size - 400)
    error = float(np.sqrt(np.mean((out[inner] - want[inner]) ** 2)))
    assert 20 * np.log10(7071 / error) > 60


def test_sounds_of_two_seeds_differ() -> None:
    for make in (sounds.cough, sounds.keyboard, sounds.hummed_mm_hm, sounds.door_slam):
        assert digest(make(1)) != digest(make(2))
