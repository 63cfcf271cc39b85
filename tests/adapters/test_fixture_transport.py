"""The fixture line: the shared suite on every clock it offers, then what only it can do."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.transport_suite import TransportSuite, attached, frame_of, play, played_out
from voxglove.adapters.transports.fixture import Estimate, FixtureTransport
from voxglove.media.errors import MediaValueError, TransportError, TransportStalled
from voxglove.media.format import AudioFormat
from voxglove.media.frame import AudioFrame, silence
from voxglove.media.pcm import Samples
from voxglove.media.transport import Data, Hangup, Played, Signal
from voxglove.media.virtual_loop import run_virtual


def speech(samples: int) -> Samples:
    """Samples that name their own place."""
    return (np.arange(samples) % 30_000).astype(np.int16)


class FixtureRig:
    def __init__(self, transport: FixtureTransport) -> None:
        self.transport = transport

    def hang_up(self) -> None:
        self.transport.hang_up()


class TestExactClock(TransportSuite):
    @pytest.fixture(params=[8_000, 16_000, 22_050, 24_000, 48_000])
    def rig(self, request: pytest.FixtureRequest) -> FixtureRig:
        return FixtureRig(FixtureTransport(speech(16_000), output=AudioFormat(request.param)))


class TestEstimatedClock(TransportSuite):
    slack_ms = 200  # the largest error below

    @pytest.fixture(params=[-3_200, -100, 100, 3_200])
    def rig(self, request: pytest.FixtureRequest) -> FixtureRig:
        return FixtureRig(FixtureTransport(speech(16_000), estimate=Estimate(error=request.param)))


async def test_input_keeps_its_places_and_is_followed_by_silence() -> None:
    audio = speech(1_000)
    async with attached(FixtureTransport(audio)) as reader:
        await asyncio.sleep(0.099)
        frames = reader.frames()
    assert [frame.at for frame in frames] == [0, 320, 640, 960, 1_280]
    heard = np.concatenate([frame.array() for frame in frames])
    assert np.array_equal(heard[:1_000], audio) and not heard[1_000:].any()


async def test_ticks_stay_on_the_clock_however_slow_the_reader() -> None:
    transport = FixtureTransport(speech(0))
    loop = asyncio.get_running_loop()
    started, at = loop.time(), []
    async for item in transport.receive():
        assert isinstance(item, AudioFrame)
        at.append((item.at, round((loop.time() - started) * 1000)))
        await asyncio.sleep(0.05 if item.at == 0 else 0)
        if item.at == 1_600:
            await transport.aclose("done")
    assert at == [(0, 0), (320, 50), (640, 50), (960, 60), (1_280, 80), (1_600, 100)]


@given(st.lists(st.integers(1, 1_500), min_size=1, max_size=5))
def test_odd_pieces_lose_nothing_and_come_no_sooner_than_they_were_said(chunks: list[int]) -> None:
    audio = speech(3_000)

    async def run() -> tuple[list[AudioFrame], list[float]]:
        transport, arrived = FixtureTransport(audio, chunks=chunks), []
        frames = []
        async for item in transport.receive():
            assert isinstance(item, AudioFrame)
            frames.append(item)
            arrived.append(asyncio.get_running_loop().time())
            if item.end >= 3_000:
                await transport.aclose("done")
        return frames, arrived

    frames, arrived = run_virtual(run())
    assert np.array_equal(np.concatenate([f.array() for f in frames])[:3_000], audio)
    for before, after in zip(frames, frames[1:], strict=False):
        assert before.end == after.at
    for frame, when in zip(frames, arrived, strict=True):
        assert when >= (frame.end / 320 - 1) * 0.02 - 1e-6


async def test_what_the_peer_heard_lies_on_the_input_clock() -> None:
    transport = FixtureTransport(speech(16_000))
    async with attached(transport):
        await asyncio.sleep(0.05)  # ticks 0, 1, 2 are over: sound begins at tick 3
        await play(transport, 60)
        await played_out(transport, 960)
    heard = transport.heard()
    assert not heard[: 3 * 320].any()
    assert (heard[3 * 320 : 6 * 320] == 1_000).all()


async def test_cleared_sound_is_never_heard() -> None:
    transport = FixtureTransport(speech(16_000))
    async with attached(transport):
        await play(transport, 200)
        await asyncio.sleep(0.059)  # ticks 0, 1 and 2
        stopped = transport.clear()
        await asyncio.sleep(0.3)
    assert stopped == 3 * 320
    assert np.count_nonzero(transport.heard()) == stopped


async def test_signals_come_before_the_audio_at_their_place() -> None:
    signals: list[tuple[int, Signal]] = [(330, Data({"t": "x"})), (640, Data({"t": "y"}))]
    async with attached(FixtureTransport(speech(2_000), signals=signals)) as reader:
        await asyncio.sleep(0.05)
        kinds = [getattr(item, "at", item) for item in reader.items]
    assert kinds == [0, 320, Data({"t": "x"}), Data({"t": "y"}), 640]


async def test_the_caller_hangs_up_after_the_audio() -> None:
    transport = FixtureTransport(speech(1_600), hangup_after_s=0.1)
    async with attached(transport) as reader:
        await reader.ended.wait()
        assert asyncio.get_running_loop().time() == pytest.approx(0.2, abs=0.001)
    assert transport.input_done.is_set() and transport.input_end == 1_600
    assert reader.items[-1] == Hangup()


async def test_data_goes_both_ways() -> None:
    transport = FixtureTransport(speech(0))
    async with attached(transport) as reader:
        transport.push_data({"t": "say", "text": "hello"})
        transport.push_data({"t": "commit"})
        await transport.send_data({"t": "heard"})
        await asyncio.sleep(0.05)
    assert reader.signals() == [Data({"t": "say", "text": "hello"}), Data({"t": "commit"})]
    assert transport.messages == [{"t": "heard"}]


async def test_a_peer_that_takes_nothing_is_noticed_and_can_come_back() -> None:
    transport = FixtureTransport(speech(0), write_deadline_s=1)
    async with attached(transport):
        await play(transport, 100)
        transport.stall()
        started = asyncio.get_running_loop().time()
        with pytest.raises(TransportStalled, match="1 s"):
            await play(transport, 400)
        assert asyncio.get_running_loop().time() - started == pytest.approx(1, abs=0.05)
        transport.stall(False)
        assert await transport.send(frame_of(transport, 20))


async def test_a_slow_but_moving_peer_is_not_stalled() -> None:
    transport = FixtureTransport(speech(0), write_deadline_s=0.1)
    async with attached(transport):
        assert await play(transport, 2_000) == 32_000


async def test_the_carrier_breaks_where_it_was_told() -> None:
    transport = FixtureTransport(speech(16_000))
    transport.fail_at(1_000)
    frames = []
    with pytest.raises(TransportError, match="1000"):
        async for item in transport.receive():
            frames.append(item)
    assert len(frames) == 3
    assert transport.clear() == 0


@pytest.mark.parametrize("error", [-100, 640])
async def test_an_estimated_stop_is_corrected_once(error: int) -> None:
    transport = FixtureTransport(speech(0), estimate=Estimate(error=error, corrected_after_ms=100))
    async with attached(transport) as reader:
        await play(transport, 200)
        await asyncio.sleep(0.059)  # ticks 0, 1 and 2
        stopped = transport.clear()
        await asyncio.sleep(0.5)
    assert stopped == 960 + error
    assert reader.signals() == [Played(pos=960, epoch=0)]


async def test_a_correction_may_never_come() -> None:
    transport = FixtureTransport(speech(0), estimate=Estimate(error=9, corrected_after_ms=None))
    async with attached(transport) as reader:
        await play(transport, 200)
        transport.clear()
        await asyncio.sleep(2)
    assert reader.signals() == []


async def test_frames_at_their_places_leave_holes_open() -> None:
    frames = [silence(320, at=0), silence(320, at=1_600)]
    transport = FixtureTransport(frames)
    assert not transport.info.gapless
    async with attached(transport) as reader:
        await asyncio.sleep(0.099)
        assert [frame.at for frame in reader.frames()] == [0]
        await asyncio.sleep(0.02)
        assert [frame.at for frame in reader.frames()] == [0, 1_600]


def test_audio_in_another_shape_is_refused() -> None:
    with pytest.raises(MediaValueError, match="audio"):
        FixtureTransport(np.zeros((2, 100), np.int16))
