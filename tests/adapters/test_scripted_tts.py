"""The scripted voice: the shared suite, exactness, faults."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.tts_suite import SENTENCES, TtsRig, TtsSuite, deliver
from voxglove.adapters.errors import ConnectionFailed
from voxglove.adapters.tts.port import Alignment, Audio, Failed
from voxglove.adapters.tts.scripted import (
    ScriptedVoice,
    Timing,
    TtsFaults,
    render,
    word_sound,
)
from voxglove.media.errors import MediaValueError
from voxglove.media.format import AudioFormat
from voxglove.media.pcm import samples_of
from voxglove.media.virtual_loop import run_virtual


class TestScripted(TtsSuite):
    @pytest.fixture(
        params=[
            ScriptedVoice(),
            ScriptedVoice(timing=Timing(word_ms=200, chunks=(333, 1, 4_001))),
            ScriptedVoice(timing=Timing(open_ms=300, first_ms=150, chunk_ms=20)),
            ScriptedVoice(format=AudioFormat(24_000)),
        ],
        ids=["plain", "odd pieces", "slow", "24 kHz"],
    )
    def rig(self, request: pytest.FixtureRequest) -> TtsRig:
        return TtsRig(request.param)


async def test_the_sound_is_known_in_advance() -> None:
    out = await deliver(TtsRig(ScriptedVoice()))
    sound, spans = render(SENTENCES)
    assert np.array_equal(out.sound(), sound)
    assert out.alignments() == spans
    assert spans[1] == Alignment(5, 10, 4 * 960, 9 * 960)


async def test_a_word_can_be_told_from_its_sound() -> None:
    out = await deliver(TtsRig(ScriptedVoice()))
    span = out.alignments()[2]
    heard = out.sound()[span.sample_start : span.sample_end]
    assert np.array_equal(heard, word_sound("is", len(heard)))
    assert not np.array_equal(heard, word_sound("it", len(heard)))


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=6))
def test_pieces_never_change_the_sound(chunks: list[int]) -> None:
    voice = ScriptedVoice(timing=Timing(chunks=tuple(chunks)))
    out = run_virtual(deliver(TtsRig(voice)))
    assert np.array_equal(out.sound(), render(SENTENCES)[0])


async def test_voice_row_035_each_response_has_its_own_synthesiser() -> None:
    voice = ScriptedVoice()
    for _ in range(3):
        await deliver(TtsRig(voice))
    assert [made.flushes for made in voice.made] == [1, 1, 1]
    assert all(made.closed and made.texts == list(SENTENCES) for made in voice.made)


async def test_voice_row_038_breaking_off_after_sound_is_reported() -> None:
    voice = ScriptedVoice(faults={0: TtsFaults(fails_at=5_000)})
    out = await deliver(TtsRig(voice))
    assert isinstance(out.last(), Failed)
    assert len(out.sound()) == 5_000
    again = await deliver(TtsRig(voice))
    assert len(again.sound()) > 5_000, "the fault belongs to the first response only"


async def test_open_may_fail() -> None:
    voice = ScriptedVoice(faults={0: TtsFaults(open_fails=True)})()
    with pytest.raises(ConnectionFailed):
        await voice.open()


@pytest.mark.parametrize("faults", [TtsFaults(stalls_at=0), TtsFaults(never_done=True)])
async def test_a_stall_lasts_until_it_is_closed(faults: TtsFaults) -> None:
    voice = ScriptedVoice(faults={0: faults})()
    await voice.open()
    voice.send_text("Hello there.")
    voice.flush()
    got = 0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            async for event in voice.events():
                got += len(samples_of(event.pcm)) if isinstance(event, Audio) else 0
    assert got == (0 if faults.stalls_at == 0 else len(render(["Hello there."])[0]))
    await voice.aclose()


async def test_slow_voices_take_their_time() -> None:
    timing = Timing(open_ms=100, first_ms=200, chunk_ms=50, chunks=(1_600,))
    loop = asyncio.get_running_loop()
    started = loop.time()
    await deliver(TtsRig(ScriptedVoice(timing=timing)), ["abcde"])
    assert loop.time() - started == pytest.approx(0.1 + 0.2 + 3 * 0.05, abs=0.03)


def test_pieces_of_nothing_are_refused() -> None:
    with pytest.raises(MediaValueError, match="chunks"):
        Timing(chunks=(0,))
