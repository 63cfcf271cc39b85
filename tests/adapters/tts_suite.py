"""What every TextToSpeech must do: subclass, give a factory, inherit the tests.

Each test makes its own response. Only the port's promises are tested: order, whole samples,
alignment inside the audio, `Done` once, silence after `aclose`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest

from voxglove.adapters.tts.port import Alignment, Audio, Done, Failed, TextToSpeech, TtsEvent
from voxglove.media.pcm import Samples, samples_of

SENTENCES = ("Your table is booked. ", "Is there anything else?")


@dataclass
class TtsRig:
    """A voice under test; `tick` moves its jobs' clock, `now` is that clock."""

    make: Callable[[], TextToSpeech]
    tick: Callable[[int], None] = lambda at: None
    now: int = 0

    async def clock(self) -> None:
        """The call's clock, until cancelled."""
        while True:
            self.now += 320
            self.tick(self.now)
            await asyncio.sleep(0.02)


@dataclass
class Delivered:
    """Everything one response gave."""

    events: list[TtsEvent] = field(default_factory=list)

    def sound(self) -> Samples:
        pieces = [samples_of(e.pcm) for e in self.events if isinstance(e, Audio)]
        return np.concatenate([np.zeros(0, np.int16), *pieces])

    def alignments(self) -> list[Alignment]:
        return [event for event in self.events if isinstance(event, Alignment)]

    def last(self) -> TtsEvent | None:
        return self.events[-1] if self.events else None


async def deliver(
    rig: TtsRig, texts: Sequence[str] = SENTENCES, *, gap_s: float = 0, open_late: bool = False
) -> Delivered:
    """One whole response: `texts` with `gap_s` between them, flushed, read to its end."""
    voice, out = rig.make(), Delivered()

    async def read() -> None:
        async for event in voice.events():
            out.events.append(event)

    async with asyncio.TaskGroup() as group:
        clock = group.create_task(rig.clock(), name="clock")
        reader = group.create_task(read(), name="reader")
        if not open_late:
            await voice.open()
        for text in texts:
            voice.send_text(text)
            await asyncio.sleep(gap_s)
        voice.flush()
        if open_late:
            await voice.open()
        async with asyncio.timeout(60):
            await reader
        clock.cancel()
    await voice.aclose()
    return out


class TtsSuite:
    """Promises of adapters.tts.port.TextToSpeech."""

    @pytest.fixture
    def rig(self) -> TtsRig:
        raise NotImplementedError("a subclass gives its rig")

    async def test_all_text_becomes_sound_then_done(self, rig: TtsRig) -> None:
        out = await deliver(rig)
        assert out.events.count(Done()) == 1 and out.last() == Done()
        assert len(out.sound()) > rig.make().format.samples(1_000)
        assert np.abs(out.sound()).max() > 3_000, "nothing audible"
        assert all(e.format == rig.make().format for e in out.events if isinstance(e, Audio))

    async def test_every_word_is_aligned_in_order_within_the_sound(self, rig: TtsRig) -> None:
        out = await deliver(rig)
        text = "".join(SENTENCES)
        spans = out.alignments()
        assert [text[s.text_start : s.text_end] for s in spans] == text.split()
        for before, after in pairwise(spans):
            assert before.sample_start < before.sample_end <= after.sample_start
        assert spans[-1].sample_end <= len(out.sound())

    async def test_a_word_is_aligned_before_its_sound_is_over(self, rig: TtsRig) -> None:
        out, at = await deliver(rig), 0
        for event in out.events:
            if isinstance(event, Audio):
                at += len(samples_of(event.pcm))
            elif isinstance(event, Alignment):
                assert event.sample_end > at

    async def test_a_sentence_begins_where_the_one_before_ended(self, rig: TtsRig) -> None:
        alone = len((await deliver(rig, SENTENCES[:1])).sound())
        spans = (await deliver(rig)).alignments()
        first_of_second = spans[len(SENTENCES[0].split())]
        assert first_of_second.sample_start == alone

    async def test_voice_row_036_a_long_pause_between_texts_is_no_fault(self, rig: TtsRig) -> None:
        out = await deliver(rig, gap_s=25)
        assert out.last() == Done()
        assert not [event for event in out.events if isinstance(event, Failed)]

    async def test_voice_row_037_text_before_open_is_kept_in_order(self, rig: TtsRig) -> None:
        early, normal = await deliver(rig, open_late=True), await deliver(rig)
        assert np.array_equal(early.sound(), normal.sound())

    async def test_voice_row_039_a_short_reply_flushed_before_open_is_spoken(
        self, rig: TtsRig
    ) -> None:
        out = await deliver(rig, ["Sure."], open_late=True)
        assert len(out.sound()) and out.last() == Done()

    async def test_the_same_text_sounds_the_same_to_the_bit(self, rig: TtsRig) -> None:
        assert (await deliver(rig)).events == (await deliver(rig)).events

    async def test_text_without_words_is_silent(self, rig: TtsRig) -> None:
        out = await deliver(rig, ["", "  "])
        assert out.events == [Done()]

    async def test_nothing_comes_after_close(self, rig: TtsRig) -> None:
        voice, got = rig.make(), Delivered()

        async def read() -> None:
            async for event in voice.events():
                got.events.append(event)
                if isinstance(event, Audio):
                    await voice.aclose()

        async with asyncio.TaskGroup() as group:
            clock = group.create_task(rig.clock())
            await voice.open()
            for text in SENTENCES:
                voice.send_text(text)
            voice.flush()
            async with asyncio.timeout(60):
                await read()
            clock.cancel()
        assert isinstance(got.last(), Audio)
        await voice.aclose()
        voice.send_text("Too late.")

    async def test_close_ends_a_waiting_reader(self, rig: TtsRig) -> None:
        voice = rig.make()

        async def read() -> list[TtsEvent]:
            return [event async for event in voice.events()]

        await voice.open()
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            reader = group.create_task(read())
            await asyncio.sleep(0.1)
            await voice.aclose()
        assert reader.result() == []
