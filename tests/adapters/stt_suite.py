"""What every SpeechToText that answers `flush` must do: subclass, give a rig, inherit the tests.

A rig plays a recording of two parts with a pause between them into one recogniser, on the call's
clock, and knows roughly what is said in each part.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import jiwer
import pytest

from voxglove.adapters.stt.port import Final, Partial, SpeechToText, SttEvent
from voxglove.media.format import PIPELINE
from voxglove.media.frame import AudioFrame
from voxglove.media.pcm import Samples, pcm_of

FRAME = 320
ANSWER_MS = 1_000
"""In call time: an answer that has not come by then is not coming."""

WER = 0.15


@dataclass
class SttRig:
    """One recogniser and its recording: `first` is said before sample `middle`, `second` after."""

    stt: SpeechToText
    audio: Samples
    middle: int
    first: str
    second: str
    tick: Callable[[int], None] = lambda at: None
    events: list[SttEvent] = field(default_factory=list)
    now: int = 0

    @property
    def whole(self) -> str:
        return f"{self.first} {self.second}"

    @property
    def end(self) -> int:
        return len(self.audio)

    async def hear(self, until: int, *, skip: int = 0) -> None:
        """Let the call go on to sample `until`; the first `skip` samples of it are gated off."""
        gated = self.now + skip
        while self.now < until:
            piece = self.audio[self.now : self.now + FRAME]
            if self.now >= gated and len(piece):
                self.stt.send_audio(AudioFrame(pcm_of(piece), PIPELINE, self.now))
            await self._frame()

    async def wait(self, ms: float = ANSWER_MS) -> None:
        """Let the call go on with the gate closed."""
        for _ in range(round(ms / 20)):
            await self._frame()

    def finals(self) -> list[Final]:
        return [event for event in self.events if isinstance(event, Final)]

    def partials(self) -> list[Partial]:
        return [event for event in self.events if isinstance(event, Partial)]

    async def _frame(self) -> None:
        self.now += FRAME
        self.tick(self.now)
        await asyncio.sleep(0.02)


@asynccontextmanager
async def connected(rig: SttRig) -> AsyncIterator[SttRig]:
    await rig.stt.connect(rig.events.append)
    try:
        yield rig
    finally:
        await rig.stt.aclose()


def assert_says(event: Final | Partial, expected: str) -> None:
    """The words of `event`, without case and punctuation, but for `WER`."""
    error = jiwer.wer(plain(expected), plain(event.text) or "-")
    assert error <= WER, f"{event.text!r} is {error:.2f} from {expected!r}"


def plain(text: str) -> str:
    """Words as they are compared: lower case, letters, digits and apostrophes only."""
    return " ".join(re.findall(r"[\w']+", text.lower()))


class SttSuite:
    """Promises of adapters.stt.port.SpeechToText, for recognisers that are not continuous."""

    @pytest.fixture
    def rig(self) -> SttRig:
        raise NotImplementedError("a subclass gives its rig")

    async def test_a_flush_is_answered_by_one_final_of_its_span(self, rig: SttRig) -> None:
        async with connected(rig):
            await rig.hear(rig.end)
            rig.stt.flush(rig.end)
            await rig.wait()
        (final,) = rig.events
        assert isinstance(final, Final)
        assert_says(final, rig.whole)
        assert 0 <= final.start < final.end == rig.end

    async def test_nothing_heard_is_answered_blank(self, rig: SttRig) -> None:
        async with connected(rig):
            rig.stt.flush(5_000)
            await rig.wait()
        assert rig.events == [Final("", 5_000, 5_000)]

    async def test_answers_never_come_inside_the_call_that_asks(self, rig: SttRig) -> None:
        async with connected(rig):
            rig.stt.flush(0)
            rig.stt.ask(0)
            assert rig.events == []

    async def test_an_ask_is_answered_by_a_partial_up_to_its_sample(self, rig: SttRig) -> None:
        async with connected(rig):
            await rig.hear(rig.middle)
            rig.stt.ask(rig.middle)
            await rig.wait()
        (partial,) = rig.events
        assert isinstance(partial, Partial) and partial.end == rig.middle
        assert_says(partial, rig.first)

    async def test_the_newest_ask_is_answered(self, rig: SttRig) -> None:
        async with connected(rig):
            await rig.hear(rig.middle)
            for end in range(rig.middle - 3 * FRAME, rig.middle + 1, FRAME):
                rig.stt.ask(end)
            await rig.wait()
        assert rig.partials()[-1].end == rig.middle
        assert len(rig.partials()) <= 2

    async def test_a_flush_overtakes_an_ask(self, rig: SttRig) -> None:
        async with connected(rig):
            await rig.hear(rig.middle)
            rig.stt.ask(rig.middle)
            rig.stt.flush(rig.middle)
            await rig.wait()
        assert [type(event) for event in rig.events] == [Final]

    async def test_a_pause_inside_a_sentence_gives_one_text(self, rig: SttRig) -> None:
        async with connected(rig):
            await rig.hear(rig.middle)
            rig.stt.flush(rig.middle)
            await rig.wait(200)  # the turn goes on before the answer is used
            await rig.hear(rig.end)
            rig.stt.flush(rig.end)
            await rig.wait()
        assert_says(rig.finals()[-1], rig.whole)
        assert rig.finals()[-1].start == rig.finals()[0].start

    async def test_settled_audio_is_not_reported_again(self, rig: SttRig) -> None:
        async with connected(rig):
            await rig.hear(rig.middle)
            rig.stt.flush(rig.middle)
            rig.stt.settle(rig.middle)
            await rig.hear(rig.end)
            rig.stt.flush(rig.end)
            await rig.wait()
        first, second = rig.finals()
        assert_says(first, rig.first)
        assert_says(second, rig.second)
        assert first.end <= second.start

    async def test_every_flush_is_answered_in_order(self, rig: SttRig) -> None:
        ends = (rig.middle - 2 * FRAME, rig.middle - FRAME, rig.middle)
        async with connected(rig):
            await rig.hear(rig.middle)
            for end in ends:
                rig.stt.flush(end)
            await rig.wait(3 * ANSWER_MS)
        assert [final.end for final in rig.finals()] == list(ends)

    async def test_gated_audio_keeps_its_place(self, rig: SttRig) -> None:
        async with connected(rig):
            await rig.hear(rig.end, skip=rig.middle)
            rig.stt.flush(rig.end)
            await rig.wait()
        (final,) = rig.finals()
        assert final.start == rig.middle
        assert_says(final, rig.second)

    async def test_voice_row_048_it_can_be_connected_again(self, rig: SttRig) -> None:
        async with connected(rig):
            await rig.hear(rig.middle)
            rig.stt.flush(rig.middle)
        await rig.stt.aclose()
        await rig.wait()
        assert rig.events == [], "a closed recogniser spoke"
        async with connected(rig):
            rig.stt.flush(rig.now)
            await rig.wait()
        assert len(rig.finals()) == 1
