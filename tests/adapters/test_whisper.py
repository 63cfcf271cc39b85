"""Local whisper: the shared suite, its guards, its bookkeeping, and what it hears."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.stt_suite import SttRig, SttSuite, connected, plain
from tests.audio_fixtures.load import fixture, human_set, variants
from tests.support.wer import wer
from voxglove.adapters.stt.port import Final, Problem, SttEvent
from voxglove.adapters.stt.utterance import CUT_SEARCH, LONGEST, TAIL, Utterance
from voxglove.adapters.stt.whisper import WhisperStt
from voxglove.adapters.stt.whisper_model import (
    MARGIN,
    RATE,
    Hypothesis,
    WhisperModel,
    accepted,
    detokenise,
    one_cycle,
    sounding_part,
    token_cap,
    whisper_model,
)
from voxglove.media.errors import MediaValueError
from voxglove.media.format import PIPELINE
from voxglove.media.frame import AudioFrame
from voxglove.media.inference import InferencePool, Jobs
from voxglove.media.models import ModelMissing
from voxglove.media.pcm import Samples, pcm_of


@pytest.fixture
def pool() -> Iterator[InferencePool]:
    pool = InferencePool(2)
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def model() -> WhisperModel:
    found = whisper_model()
    found.warm()
    return found


@pytest.mark.local_speech
class TestWhisper(SttSuite):
    @pytest.fixture
    def rig(self, model: WhisperModel, pool: InferencePool) -> SttRig:
        jobs = Jobs(pool)
        first, second = fixture("half_1").pcm, fixture("half_2").pcm
        pause = np.zeros(12_800, np.int16)
        middle = (len(first) + 6_400) // 320 * 320
        return SttRig(
            WhisperStt(model, jobs),
            np.concatenate([first, pause, second]),
            middle,
            fixture("half_1").transcript,
            fixture("half_2").transcript,
            jobs.tick,
        )


class Recorded:
    """A model that answers with the length of what it was given, and can be made to wait."""

    def __init__(self) -> None:
        self.given: list[int] = []
        self.go = threading.Event()
        self.go.set()
        self.error: Exception | None = None

    def transcribe(self, samples: Samples) -> str:
        self.go.wait(10)
        self.given.append(len(samples))
        if self.error is not None:
            raise self.error
        return f"<{len(samples)}>" if samples.any() else ""


def rig_of(recorded: Recorded, pool: InferencePool, seconds: float = 4) -> SttRig:
    jobs = Jobs(pool)
    audio = np.full(round(seconds * 16_000), 500, np.int16)
    return SttRig(WhisperStt(recorded, jobs), audio, 32_000, "", "", jobs.tick)


async def test_asks_faster_than_the_model_are_still_answered(pool: InferencePool) -> None:
    rig = rig_of(Recorded(), pool)
    async with connected(rig):
        for until in range(3_200, 48_001, 3_200):
            await rig.hear(until)
            rig.stt.ask(until)
        await rig.wait()
    assert len(rig.partials()) >= 5
    assert rig.partials()[-1].end == 48_000
    assert [p.end for p in rig.partials()] == sorted(p.end for p in rig.partials())


async def test_a_failed_job_is_a_problem_and_a_blank_final(pool: InferencePool) -> None:
    recorded = Recorded()
    recorded.error = RuntimeError("out of memory")
    rig = rig_of(recorded, pool)
    async with connected(rig):
        await rig.hear(16_000)
        rig.stt.flush(16_000)
        await rig.wait()
        recorded.error = None
        rig.stt.flush(16_000)
        await rig.wait()
    problem, blank, text = rig.events
    assert isinstance(problem, Problem) and "out of memory" in problem.message
    assert not problem.fatal
    assert blank == Final("", 0, 16_000) and text == Final("<16000>", 0, 16_000)


async def test_closing_does_not_wait_for_a_running_job(pool: InferencePool) -> None:
    recorded = Recorded()
    recorded.go.clear()
    rig = rig_of(recorded, pool)
    async with connected(rig):
        await rig.hear(16_000)
        rig.stt.flush(16_000)
    recorded.go.set()
    await rig.wait()
    assert rig.events == []


async def test_an_hour_of_talk_is_cut_into_pieces_and_read_once(pool: InferencePool) -> None:
    recorded = Recorded()
    rig = rig_of(recorded, pool, seconds=70)
    async with connected(rig):
        await rig.hear(rig.end)
        rig.stt.ask(rig.end)
        await rig.wait()
        rig.stt.flush(rig.end)
        await rig.wait()
    lengths = [int(word.strip("<>")) for word in rig.finals()[0].text.split()]
    assert sum(lengths) == rig.end and len(lengths) == 3
    assert max(recorded.given) <= LONGEST + 320
    assert all(recorded.given.count(length) == lengths[:2].count(length) for length in lengths[:2])
    assert rig.finals()[0].start == 0


@given(st.lists(st.tuples(st.integers(0, 60_000), st.integers(1, 9_000)), max_size=60))
def test_an_utterance_never_loses_or_doubles_a_sample(steps: list[tuple[int, int]]) -> None:
    utterance, at, sent = Utterance(), 0, 0
    for gap, size in steps:
        at += gap if gap > 50_000 else 0
        utterance.add(at, np.full(size, 7, np.int16))
        at += size
        sent += size
    _, pieces = utterance.before(at)
    assert sum(int(np.count_nonzero(piece.samples)) for piece in pieces) == sent
    assert all(len(piece.samples) <= LONGEST + 9_000 for piece in pieces)
    utterance.settle(at)
    assert utterance.before(at) == (at, ())


def test_a_long_utterance_is_cut_where_it_is_quiet() -> None:
    utterance = Utterance()
    loud = np.full(LONGEST + 320, 3_000, np.int16)
    quiet = LONGEST - CUT_SEARCH // 2
    loud[quiet : quiet + 1_600] = 3
    piece = utterance.add(0, loud)
    assert piece is not None and quiet <= piece.end <= quiet + 1_600


def test_what_was_read_behind_the_end_is_settled_with_it() -> None:
    utterance = Utterance()
    utterance.add(0, np.full(16_000, 9, np.int16))
    utterance.before(12_000)
    utterance.settle(12_000)
    start, pieces = utterance.before(16_000)
    assert (start, len(pieces[0].samples)) == (12_000 + TAIL, 16_000 - 12_000 - TAIL)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("thank you thank you thank you thank", "thank you"),
        ("No, no, no.", "No,"),
        ("bye bye", "bye bye"),
        ("I said no no no and left", "I said no no no and left"),
        ("", ""),
    ],
)
def test_a_loop_is_one_cycle(text: str, kept: str) -> None:
    assert one_cycle(text) == kept


@pytest.mark.parametrize(
    ("text", "no_speech", "score", "kept"),
    [
        ("you", 0.99, -1.2, ""),
        ("Thank you for watching!", 0.4, -0.3, ""),
        ("Thank you for watching!", 0.02, -0.3, "Thank you for watching!"),
        ("I'm going to the bottom", 0.55, -2.1, ""),
        ("Ask not", 0.43, -2.2, "Ask not"),
        ("[BLANK_AUDIO]", 0.1, -0.2, ""),
        ("(sighs) Hello.", 0.1, -0.2, "Hello."),
        (". . . . .", 0.1, -0.2, ""),
        ("Stop.", 0.58, -1.9, "Stop."),
        ("stop", 0.85, -1.7, "stop"),
        ("stop", 0.95, -1.7, ""),
        ("Mm-hmm.", 0.87, -0.5, "Mm-hmm."),
        ("Book a table.", 0.05, -0.3, "Book a table."),
    ],
)
def test_only_what_was_spoken_is_accepted(
    text: str, no_speech: float, score: float, kept: str
) -> None:
    assert accepted(Hypothesis(text, no_speech, score, False)) == kept


def test_letters_spread_over_two_tokens_are_put_together() -> None:
    assert detokenise(["ĠcafÃ", "©", "<|endoftext|>"]) == "café"


def test_room_around_a_short_word_is_left_out() -> None:
    sound = np.random.default_rng(1).normal(size=10 * RATE) * 20
    sound[6 * RATE : 6 * RATE + 5_000] *= 200
    part = sounding_part(sound.astype(np.int16))
    assert 5_000 + 2 * MARGIN <= len(part) <= 5_000 + 2 * MARGIN + 6 * 320
    loud_room = np.maximum(sound, 500).astype(np.int16)
    assert len(sounding_part(loud_room)) == len(loud_room)


def test_quiet_words_are_not_taken_for_room() -> None:
    for item in human_set():
        assert len(sounding_part(item.pcm)) > 0.85 * len(item.pcm) - MARGIN, item.name


@pytest.mark.local_speech
def test_a_word_behind_a_long_answer_is_heard(model: WhisperModel) -> None:
    """The gate is open while the agent speaks: the caller's word ends seconds of crowd noise."""
    jfk = fixture("jfk").pcm
    assert plain(model.transcribe(jfk[35_840:70_656])) == "ask not"


def test_the_token_cap_goes_with_the_length() -> None:
    assert [token_cap(seconds) for seconds in (0, 1, 10, 30)] == [12, 20, 92, 224]


def test_a_folder_that_is_no_model_is_named(tmp_path: pytest.TempPathFactory) -> None:
    with pytest.raises(ModelMissing, match="model.bin"):
        WhisperModel(tmp_path)  # type: ignore[arg-type]


@pytest.mark.local_speech
def test_human_recordings_are_understood(model: WhisperModel) -> None:
    heard = [(item.transcript, model.transcribe(item.pcm)) for item in human_set()]
    assert len(heard) >= 8
    for expected, text in heard:
        assert plain(text), expected
    rate = wer(" ".join(e for e, _ in heard), " ".join(t for _, t in heard))
    assert rate.rate <= 0.08, heard


@pytest.mark.local_speech
@pytest.mark.parametrize("level", [0, 3, 100, 3_000])
def test_silence_and_noise_are_blank(model: WhisperModel, level: int) -> None:
    noise = np.random.default_rng(level).normal(size=40_000) * level
    assert model.transcribe(noise.astype(np.int16)) == ""


@pytest.mark.local_speech
@pytest.mark.parametrize("kind", ["cough", "keyboard"])
def test_noises_are_no_words(model: WhisperModel, kind: str) -> None:
    found = {v.name: model.transcribe(v.render()) for v in variants(kind)[::15]}  # type: ignore[arg-type]
    assert not {name: text for name, text in found.items() if text}


@pytest.mark.local_speech
def test_more_than_the_model_can_take_is_refused(model: WhisperModel) -> None:
    with pytest.raises(MediaValueError, match="30 s"):
        model.transcribe(np.zeros(31 * 16_000, np.int16))


@pytest.mark.local_speech
def test_the_same_audio_gives_the_same_text_in_two_threads(model: WhisperModel) -> None:
    pcm = fixture("jfk").pcm[:64_000]
    with_threads = InferencePool(2)
    jobs = [with_threads.submit(model.transcribe, pcm) for _ in range(4)]
    texts = {job.result() for job in jobs}
    with_threads.close()
    assert len(texts) == 1


@pytest.mark.local_speech
async def test_a_gated_pause_inside_a_sentence_is_one_text(
    model: WhisperModel, pool: InferencePool
) -> None:
    jobs = Jobs(pool, frame_clocked=False)
    recogniser = WhisperStt(model, jobs)
    events: list[SttEvent] = []
    await recogniser.connect(events.append)
    first, second = fixture("half_1").pcm, fixture("half_2").pcm
    recogniser.send_audio(AudioFrame(pcm_of(first), PIPELINE, 0))
    pause = len(first) + 16_000
    recogniser.send_audio(AudioFrame(pcm_of(second), PIPELINE, pause))
    end = pause + len(second)
    recogniser.flush(end)
    while not events:
        await step(jobs)
    await recogniser.aclose()
    (final,) = events
    assert isinstance(final, Final) and (final.start, final.end) == (0, end)
    expected = "I would like to book a table for two people tomorrow evening."
    assert wer(expected, final.text).rate <= 0.1, final.text


async def step(jobs: Jobs) -> None:
    """One turn of the loop; the virtual clock stands while a job runs."""
    jobs.tick(0)
    await asyncio.sleep(0.02)
