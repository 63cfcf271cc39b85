"""The Line on carriers that are exact, guess, stall, vanish and come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.carriers import HandCarrier, gone
from voxglove.media.errors import LineClosed, MediaValueError, TransportError
from voxglove.media.events import RATE
from voxglove.media.format import AudioFormat
from voxglove.media.frame import AudioFrame
from voxglove.media.line import Line, Progress
from voxglove.media.resample import Resampler
from voxglove.media.segments import Heard
from voxglove.media.transport import CallTransport
from voxglove.media.virtual_loop import run_virtual

Sound = NDArray[np.int16]
OUTPUTS = (16_000, 24_000, 48_000, 8_000)


class Desk:
    """A Line, the carrier under it, and the input clock, moved together."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.at = 0
        self.lost: list[tuple[CallTransport, TransportError]] = []
        self.taped = np.zeros(RATE * 60, np.int16)
        self.progress: list[Progress] = []
        self.group = group
        self.line = Line(
            emit=lambda event: None,
            spawn=self._spawn,
            lost=self._lose,
            record=self._record,
        )
        self.carrier: HandCarrier | None = None

    def attach(self, carrier: HandCarrier) -> HandCarrier:
        self.carrier = carrier
        self.line.attach(carrier)
        return carrier

    async def tick(self, ticks: int = 1, *, samples: int | None = None) -> None:
        """20 ms: the person hears it, then the line is told the time."""
        for _ in range(ticks):
            await asyncio.sleep(0)  # who speaks gets its turn first
            if self.carrier is not None:
                rate = self.carrier.info.output.rate
                self.carrier.advance(rate // 50 if samples is None else samples)
            self.at += 320
            self.line.tick(self.at)
            self.progress += self.line.progress()
            await asyncio.sleep(0.02)

    def speak(
        self, segment: int, pcm: Sound, rate: int = RATE, *, chunk: int = 0, finish: bool = True
    ) -> asyncio.Task[None]:
        return self.group.create_task(self._speak(segment, pcm, rate, chunk, finish))

    async def _speak(self, segment: int, pcm: Sound, rate: int, chunk: int, finish: bool) -> None:
        step = chunk or rate // 50
        with suppress(LineClosed):
            for start in range(0, len(pcm), step):
                await self.line.play(segment, frame(pcm[start : start + step], rate))
            if finish:
                await self.line.finish(segment)

    def _spawn(self, coro: Coroutine[None, None, None]) -> object:
        return self.group.create_task(coro)

    def _lose(self, transport: CallTransport, error: TransportError) -> None:
        self.lost.append((transport, error))
        self.carrier = None
        self.line.detach()

    def _record(self, at: int, pcm: Sound) -> None:
        if at >= 0:
            self.taped[at : at + len(pcm)] = pcm


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    async with asyncio.TaskGroup() as group:
        made = Desk(group)
        try:
            yield made
        finally:
            made.line.close()


def frame(pcm: Sound, rate: int = RATE) -> AudioFrame:
    return AudioFrame(pcm.tobytes(), AudioFormat(rate))


def speech(seconds: float, rate: int = RATE, seed: int = 1) -> Sound:
    """Noise: no two places of it are alike, so a slip by one sample shows."""
    values = np.random.default_rng(seed).integers(-9_000, 9_000, round(seconds * rate))
    return values.astype(np.int16)


def converted(pcm: Sound, rate: int, out_rate: int) -> Sound:
    """What the line must send for one segment."""
    resampler = Resampler(rate, out_rate)
    return np.concatenate((resampler.feed(pcm), resampler.flush()))


def assert_same(heard: Sound, expected: Sound) -> None:
    assert len(heard) == len(expected)
    different = np.flatnonzero(heard != expected)
    assert not len(different), f"differs from sample {different[0]} on"


async def ignoring_line_closed(task: asyncio.Task[None]) -> None:
    try:
        await task
    except LineClosed:
        return


# ---- pause and resume


@pytest.mark.parametrize("out_rate", OUTPUTS)
async def test_voice_row_028_paused_anywhere_the_rest_is_bit_identical(out_rate: int) -> None:
    pcm = speech(0.6, 24_000)
    expected = converted(pcm, 24_000, out_rate)
    for position in range(31):
        async with desk() as d:
            carrier = d.attach(HandCarrier(out_rate))
            d.speak(1, pcm, 24_000)
            await asyncio.sleep(0)
            await d.tick(position)
            stopped = d.line.pause()
            heard_at_pause = len(carrier.heard)
            await d.tick(5)
            assert len(carrier.heard) == heard_at_pause, "sound during the pause"
            assert stopped == heard_at_pause * RATE // out_rate
            d.line.resume()
            await d.tick(40)
            assert_same(carrier.heard, expected)
            assert [(p.segment, p.event) for p in d.progress] == [(1, "started"), (1, "ended")]


STORM = st.lists(
    st.one_of(
        st.tuples(st.just("tick"), st.integers(0, 700)),
        st.tuples(st.sampled_from(["pause", "resume", "detach", "attach", "yield"]), st.just(0)),
    ),
    max_size=40,
)


async def _storm(ops: list[tuple[str, int]], out_rate: int, error: int | None) -> None:
    first, second = speech(0.3, seed=1), speech(0.25, 24_000, seed=2)
    expected = np.concatenate(
        (converted(first, RATE, out_rate), converted(second, 24_000, out_rate))
    )
    async with desk() as d:
        heard: list[Sound] = []
        carrier = d.attach(HandCarrier(out_rate, error=error))

        async def both() -> None:
            await d._speak(1, first, RATE, 777, True)
            await d._speak(2, second, 24_000, 0, True)

        d.group.create_task(both())
        last = [("attach", 0)] if error is None else []  # a lost carrier's guess stays a guess
        for op, amount in [*ops, *last, ("resume", 0)]:
            if op == "tick":
                await d.tick(samples=amount)
            elif op == "yield":
                await asyncio.sleep(0)
            elif op == "detach":
                d.line.detach()
            elif op == "attach":
                heard.append(carrier.heard)
                carrier = d.attach(HandCarrier(out_rate, error=error))
            elif op == "pause":
                before = carrier.clears
                d.line.pause()
                if error is not None and carrier.clears > before and d.line._carrier is not None:
                    word = carrier.correction()
                    d.line.correct(word.pos, word.epoch)
            else:
                d.line.resume()
        await d.tick(60)
        assert not d.line.unplayed
        assert_same(np.concatenate([*heard, carrier.heard]), expected)
        told = [(p.segment, p.event) for p in d.progress]
        assert told == [(1, "started"), (1, "ended"), (2, "started"), (2, "ended")]


@settings(max_examples=40)
@given(STORM, st.sampled_from(OUTPUTS))
def test_storm_of_pauses_and_lost_carriers_neither_skips_repeats_nor_reorders(
    ops: list[tuple[str, int]], out_rate: int
) -> None:
    run_virtual(_storm(ops, out_rate, None))


@settings(max_examples=40)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("tick"), st.integers(0, 700)),
            st.tuples(st.sampled_from(["pause", "resume", "yield"]), st.just(0)),
        ),
        max_size=40,
    ),
    st.integers(-900, 900),
)
def test_storm_on_a_guessing_carrier_that_corrects_itself_skips_nothing(
    ops: list[tuple[str, int]], error: int
) -> None:
    run_virtual(_storm(ops, RATE, error))


@pytest.mark.parametrize("error", [-700, -1, 0, 1, 700])
@pytest.mark.parametrize("resumed_first", [True, False])
async def test_correction_within_its_time_makes_a_resume_exact(
    error: int, resumed_first: bool
) -> None:
    pcm = speech(0.8)
    async with desk() as d:
        carrier = d.attach(HandCarrier(error=error))
        d.speak(1, pcm)
        await d.tick(10)
        d.line.pause()
        await d.tick(3)
        if resumed_first:
            d.line.resume()
            await d.tick(2)
            assert len(carrier.heard) == 3_200, "played from a guess while the truth may come"
        word = carrier.correction()
        d.line.correct(word.pos, word.epoch)
        d.line.resume()
        await d.tick(60)
        assert_same(carrier.heard, pcm)


@pytest.mark.parametrize("late", [True, False])
async def test_without_a_correction_in_time_the_guess_stands_and_sound_goes_on(late: bool) -> None:
    pcm = speech(0.8)
    async with desk() as d:
        carrier = d.attach(HandCarrier(error=-160))
        d.speak(1, pcm)
        await d.tick(10)
        d.line.pause()
        d.line.resume()
        await d.tick(14)
        assert len(carrier.heard) == 3_200
        await d.tick(2)
        assert len(carrier.heard) > 3_200, "300 ms after the stop nothing more is waited for"
        if late:
            word = carrier.correction()
            d.line.correct(word.pos, word.epoch)
        await d.tick(60)
        # The guess was 10 ms short: 10 ms are repeated, nothing is skipped.
        assert_same(carrier.heard, np.concatenate((pcm[:3_200], pcm[3_040:])))
        assert [(p.segment, p.event) for p in d.progress] == [(1, "started"), (1, "ended")]


# ---- cut


async def test_voice_row_022_after_a_cut_no_old_sample_is_played() -> None:
    for position in range(0, 48, 2):
        async with desk() as d:
            carrier = d.attach(HandCarrier())
            d.speak(1, speech(0.5))
            waiting = d.speak(2, speech(0.5, seed=2))
            await asyncio.sleep(0)
            await d.tick(position)
            cut = d.line.cut()
            heard = len(carrier.heard)
            assert carrier.unplayed == 0
            new = speech(0.3, seed=3)
            d.speak(3, new)
            await d.tick(30)
            assert waiting.done()
            assert_same(carrier.heard[heard:], new)
            ended = [p for p in d.progress if p.event == "ended" and p.segment < 3]
            assert sum(part.samples for part in cut.heard) == heard - 8_000 * len(ended)
            assert cut.settled.result() == cut.heard
            assert not any(part.estimated for part in cut.heard)


@pytest.mark.parametrize("state", ["horizon", "paused", "replaying", "detached", "never attached"])
async def test_cut_frees_whoever_waits_and_late_writes_vanish(state: str) -> None:
    async with desk() as d:
        carrier = HandCarrier()
        if state != "never attached":
            d.attach(carrier)
        sender = d.speak(1, speech(2))
        await d.tick(5)
        if state in ("paused", "replaying"):
            d.line.pause()
            await d.tick(2)
        if state == "replaying":
            d.line.resume()
            await asyncio.sleep(0)
        if state == "detached":
            d.line.detach()
            d.carrier = None
        assert not sender.done()
        cut = d.line.cut()
        heard = len(carrier.heard)
        await asyncio.sleep(0.001)
        assert sender.done() and sender.exception() is None
        await d.line.play(1, frame(speech(0.1)))
        await d.line.finish(1)
        await d.line.drain()
        assert [part.samples for part in await cut.settled] == [heard]
        after = d.attach(HandCarrier())
        await d.tick(10)
        assert after.unplayed == 0 and not len(after.heard)
        await d.line.play(2, frame(speech(0.02)))
        await d.tick(2)
        assert len(after.heard) == 320, "a new segment is free to play, also after a pause"


@pytest.mark.parametrize("error", [-400, -1, 0, 1, 400])
async def test_correction_of_a_cut_settles_heard_once(error: int) -> None:
    async with desk() as d:
        carrier = d.attach(HandCarrier(error=error))
        d.speak(1, speech(1))
        await d.tick(10)
        cut = d.line.cut()
        assert cut.heard == (Heard(1, 3_200 + error, 6_720, False, True),)
        assert not cut.settled.done()
        await d.tick(2)
        word = carrier.correction()
        d.line.correct(word.pos, word.epoch)
        (truth,) = cut.settled.result()
        assert (truth.samples, truth.estimated) == (3_200, False)
        d.line.correct(word.pos + 99, word.epoch)
        await d.tick(20)
        assert cut.settled.result() == (truth,)


async def test_uncorrected_cut_settles_at_300_ms_or_when_it_is_needed() -> None:
    for needed in (False, True):
        async with desk() as d:
            carrier = d.attach(HandCarrier(error=100))
            d.speak(1, speech(1))
            await d.tick(10)
            cut = d.line.cut()
            await asyncio.sleep(0.29)
            assert not cut.settled.done()
            if needed:
                d.line.settle()
            else:
                await asyncio.sleep(0.02)
            assert [h.samples for h in cut.settled.result()] == [3_300]
            assert cut.settled.result()[0].estimated
            word = carrier.correction()
            d.line.correct(word.pos, word.epoch)
            assert cut.settled.result()[0].samples == 3_300


async def test_cut_while_paused_shares_the_pauses_correction() -> None:
    for corrected_at in ("before the cut", "after the cut"):
        async with desk() as d:
            carrier = d.attach(HandCarrier(error=250))
            d.speak(1, speech(1))
            await d.tick(10)
            d.line.pause()
            word = carrier.correction()
            if corrected_at == "before the cut":
                d.line.correct(word.pos, word.epoch)
            cut, again = d.line.cut(), d.line.cut()
            d.line.correct(word.pos, word.epoch)
            (truth,) = cut.settled.result()
            assert (truth.samples, truth.estimated) == (3_200, False)
            assert again.settled.result() == ()


async def test_new_sound_after_a_cut_is_counted_right_when_the_cut_is_corrected() -> None:
    async with desk() as d:
        carrier = d.attach(HandCarrier(error=-300))
        d.speak(1, speech(1))
        await d.tick(10)
        d.line.cut()
        d.speak(2, speech(0.2, seed=2), finish=False)
        await d.tick(3)
        word = carrier.correction()
        d.line.correct(word.pos, word.epoch)
        await d.tick(1)
        second = d.line.heard(2)
        assert second is not None and second.samples == 4 * 320 - 300
        await d.tick(10)
        second = d.line.heard(2)
        assert second is not None and second.samples == 3_200
        assert not d.line.unplayed


async def test_optimistic_guess_is_cleared_although_it_claims_silence() -> None:
    async with desk() as d:
        carrier = d.attach(HandCarrier(error=5_000))
        await d.line.play(1, frame(speech(0.1)))
        await d.tick(1)
        assert not d.line.unplayed
        d.line.cut()
        assert carrier.unplayed == 0


async def test_tail_that_a_guess_had_ended_comes_back_with_the_correction() -> None:
    pcm = speech(0.1)
    async with desk() as d:
        carrier = d.attach(HandCarrier(error=5_000))
        d.speak(1, pcm)
        await d.tick(2)
        d.line.pause()
        word = carrier.correction()
        d.line.correct(word.pos, word.epoch)
        d.line.resume()
        await d.tick(10)
        assert_same(carrier.heard, pcm)


# ---- carriers that fail and change


@pytest.mark.parametrize("rates", [(16_000, 16_000), (16_000, 8_000), (8_000, 48_000)])
async def test_answer_goes_on_at_the_sample_on_another_carrier(rates: tuple[int, int]) -> None:
    pcm = (9_000 * np.sin(np.arange(24_000) / 24_000 * 2 * np.pi * 440)).astype(np.int16)
    before, after = rates
    async with desk() as d:
        first = d.attach(HandCarrier(before))
        d.speak(1, pcm, 24_000, chunk=1_111)
        await d.tick(13)
        d.line.detach()
        d.carrier = None
        await d.tick(5)
        heard = d.line.heard(1)
        assert heard is not None and heard.samples == pytest.approx(0.26 * 24_000, abs=73)
        second = d.attach(HandCarrier(after))
        await d.tick(2)
        heard = d.line.heard(1)
        assert heard is not None and heard.samples == pytest.approx(0.30 * 24_000, abs=200)
        await d.tick(60)
        seconds = len(first.heard) / before + len(second.heard) / after
        assert seconds == pytest.approx(1.0, abs=0.010)
        assert seconds >= 1.0, "sound was lost at the seam"
        assert [(p.segment, p.event) for p in d.progress] == [(1, "started"), (1, "ended")]
        jump = np.abs(np.diff(second.heard.astype(int)))
        steepest = 9_000 * 2 * np.pi * 440 / after
        assert np.count_nonzero(jump > 1.6 * steepest) <= after // 2_000, (
            "clicks beyond the one seam"
        )


async def test_failing_send_detaches_and_its_frame_is_not_lost() -> None:
    pcm = speech(0.5)
    for failure in (gone(), OSError("reset by peer")):
        async with desk() as d:
            first = d.attach(HandCarrier())
            sender = d.speak(1, pcm)
            await d.tick(5)
            first.fails = failure
            await d.tick(3)
            assert [transport for transport, _ in d.lost] == [first]
            assert not sender.done()
            second = d.attach(HandCarrier())
            await d.tick(40)
            assert_same(np.concatenate((first.heard, second.heard)), pcm)


async def test_cancelled_play_leaves_no_hole_in_the_ledger() -> None:
    pcm = speech(0.6)
    async with desk() as d:
        carrier = d.attach(HandCarrier())
        sender = d.speak(1, pcm)
        await d.tick(2)
        sender.cancel()
        await d.tick(30)
        assert not d.line.unplayed
        await d.line.drain()
        taken = len(carrier.heard)
        assert taken > 3_200 and taken % 320 == 0
        assert_same(carrier.heard, pcm[:taken])
        d.speak(1, pcm[taken:])
        await d.tick(40)
        assert_same(carrier.heard, pcm)
        assert d.progress[-1].event == "ended"


async def test_carrier_that_is_not_mono_is_refused() -> None:
    async with desk() as d:
        with pytest.raises(MediaValueError, match="mono"):
            d.line.attach(HandCarrier(channels=2))
        with pytest.raises(MediaValueError, match="mono"):
            await d.line.play(1, AudioFrame(bytes(8), AudioFormat(16_000, 2)))


# ---- order, waiting, the end


async def test_any_chunk_size_plays_smoothly() -> None:
    pcm = speech(0.7, 22_050)
    for chunk in (1, 37, 480, 5_000, 15_435):
        async with desk() as d:
            carrier = d.attach(HandCarrier())
            d.speak(1, pcm if chunk > 1 else pcm[:600], 22_050, chunk=chunk)
            await d.tick(50)
            assert_same(carrier.heard, converted(pcm if chunk > 1 else pcm[:600], 22_050, RATE))


async def test_frames_keep_the_order_of_their_play_calls() -> None:
    first, second = speech(0.5, seed=1), speech(0.5, seed=2)
    async with desk() as d:
        carrier = d.attach(HandCarrier())
        d.speak(1, first, chunk=len(first))
        d.speak(2, second, chunk=len(second))
        await d.tick(60)
        assert_same(carrier.heard, np.concatenate((first, second)))


async def test_drain_waits_for_the_last_sample_heard_also_through_a_pause() -> None:
    async with desk() as d:
        carrier = d.attach(HandCarrier())
        await d.line.play(1, frame(speech(0.1)))
        drained = d.group.create_task(d.line.drain())
        await d.tick(2)
        d.line.pause()
        await d.tick(10)
        assert not drained.done()
        d.line.resume()
        await d.tick(2)
        assert not drained.done() and len(carrier.heard) < 1_600
        await d.tick(2)
        assert drained.done() and len(carrier.heard) == 1_600


async def test_end_of_the_call_frees_whoever_waits() -> None:
    async with desk() as d:
        d.attach(HandCarrier())
        await d.line.play(1, frame(speech(0.1)))
        d.line.pause()
        waiters = [
            d.group.create_task(ignoring_line_closed(asyncio.ensure_future(step)))
            for step in (d.line.play(1, frame(speech(0.1))), d.line.finish(1), d.line.drain())
        ]
        await asyncio.sleep(0.001)
        d.line.close()
        await asyncio.wait(waiters, timeout=1)
        for late in (d.line.play(1, frame(speech(0.1))), d.line.finish(1), d.line.drain()):
            with pytest.raises(LineClosed):
                await late


async def test_progress_tells_the_output_sample_of_start_and_end() -> None:
    async with desk() as d:
        d.attach(HandCarrier(8_000))
        await d.line.play(1, frame(speech(0.05), RATE))
        await d.line.finish(1)
        await d.line.play(2, frame(speech(0.05), RATE))
        await d.line.finish(2)
        await d.tick(10)
        length = 800 + 2 * 24  # 8 kHz: 400 samples and 3 ms of tail
        assert d.progress == [
            Progress(1, "started", 0),
            Progress(1, "ended", length),
            Progress(2, "started", length),
            Progress(2, "ended", 2 * length),
        ]


async def test_segment_without_sound_ends_too() -> None:
    async with desk() as d:
        d.attach(HandCarrier())
        await d.line.play(1, frame(np.zeros(0, np.int16)))
        await d.line.finish(1)
        await d.tick(1)
        assert [p.event for p in d.progress] == ["started", "ended"]


async def test_voice_row_071_line_ends_a_segment_by_the_estimate_when_no_ack_comes() -> None:
    async with desk() as d:
        d.attach(HandCarrier(error=-4_000))
        d.speak(1, speech(0.5))
        await d.tick(26)
        assert d.progress[-1].event == "ended"
        await d.line.drain()


# ---- the far end


@pytest.mark.parametrize("out_rate", OUTPUTS)
async def test_reference_and_recording_lie_where_the_sound_was_heard(out_rate: int) -> None:
    seconds = np.arange(RATE) / RATE
    tone = (9_000 * np.sin(2 * np.pi * (300 + 1_000 * seconds) * seconds)).astype(np.int16)
    async with desk() as d:
        d.attach(HandCarrier(out_rate))
        await d.tick(10)
        d.speak(1, tone[:8_000])
        await asyncio.sleep(0)
        await d.tick(15)
        reference = d.line.reference(d.at - 4_800, 4_800)
        await d.tick(20)
        start = 10 * 320
        late = 96 if out_rate != RATE else 0  # both directions of resampling, 3 ms each
        expected = np.zeros(RATE, np.int16)
        expected[start : start + 8_000] = tone[:8_000]
        body = slice(start + 400, start + 7_500)
        best = min(
            range(-200, 200),
            key=lambda lag: float(
                np.abs(d.taped[body].astype(int) - np.roll(expected, lag)[body]).sum()
            ),
        )
        assert 0 <= best <= late, f"recording is {best} samples off"
        assert_same(reference[:4_600], d.taped[d.at - 20 * 320 - 4_800 :][:4_600])
        assert not d.taped[: start - 1].any()
        if out_rate == RATE:
            assert_same(d.taped[:RATE], expected)


async def test_recording_stays_one_piece_when_the_clock_jitters() -> None:
    pcm = speech(0.5)
    async with desk() as d:
        d.attach(HandCarrier())
        d.speak(1, pcm)
        await asyncio.sleep(0)
        for n in range(60):
            await d.tick(samples=(310, 330, 300, 340, 320)[n % 5])
        start = int(np.flatnonzero(d.taped)[0])
        assert_same(d.taped[start : start + len(pcm)], pcm)
        assert abs(start) <= 10


async def test_sound_heard_between_tick_and_stop_is_recorded() -> None:
    pcm = speech(0.5)
    async with desk() as d:
        carrier = d.attach(HandCarrier())
        d.speak(1, pcm)
        await d.tick(5)
        carrier.advance(150)
        d.line.cut()
        await d.tick(3)
        taped = d.taped[np.flatnonzero(d.taped)[0] :][: 5 * 320 + 150]
        assert_same(taped, pcm[: 5 * 320 + 150])
