"""A cut line takes no sound for heard; a peer that merely stops speaking goes on hearing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.adapters.transports_webrtc.peer import LineUnderTest, line
from voxglove.adapters.transports.webrtc_reach import CHECKED_S, SILENT_S, Reach
from voxglove.media.frame import AudioFrame

RATE = 16_000


def test_silence_of_a_voice_is_a_cut_until_another_sign_comes() -> None:
    reach = Reach()
    assert not reach.lost(100.0)  # it never spoke: its silence says nothing
    reach.sound(1.0)
    reach.sign(1.0)
    assert not reach.lost(1.0 + SILENT_S)
    assert reach.lost(1.01 + SILENT_S)
    reach.sign(2.0)
    assert not reach.lost(1.9 + CHECKED_S)  # it is there, and has no microphone any more
    assert reach.lost(2.1 + CHECKED_S)
    reach.sign(70.0)
    reach.sound(70.0)
    assert not reach.lost(70.1)


def test_a_sign_from_before_the_silence_proves_nothing() -> None:
    reach = Reach()
    reach.sound(1.0)
    reach.sign(1.2)
    assert reach.lost(2.0)
    reach.sound(2.1)
    assert not reach.lost(2.2)


@asynccontextmanager
async def speaking(voice: bool = True) -> AsyncIterator[LineUnderTest]:
    """A line over which the agent speaks without end."""

    async def speak(on: LineUnderTest) -> None:
        while True:
            await on.transport.send(AudioFrame(b"\x01\x02" * 320))

    async with line(speaks=voice) as on, asyncio.TaskGroup() as group:
        spoken = group.create_task(speak(on), name="agent")
        await asyncio.sleep(0.5)
        try:
            yield on
        finally:
            spoken.cancel()


@pytest.mark.real_loop
@pytest.mark.parametrize(("voice", "most_s"), [(True, SILENT_S), (False, CHECKED_S)])
async def test_what_leaves_on_a_cut_line_is_not_taken_for_heard(
    voice: bool, most_s: float, tell: Callable[[str], None]
) -> None:
    async with speaking(voice) as on:
        for transceiver in on.peer.pc.getTransceivers():
            for protocol in transceiver.receiver.transport.transport._connection._protocols:
                protocol.datagram_received = lambda *_: None  # type: ignore[method-assign]
                protocol.transport.sendto = lambda *_: None  # type: ignore[method-assign]
        cut = on.transport.played()
        await asyncio.sleep(3.0)
        counted = (on.transport.played() - cut) / RATE
        tell(f"after a cut {counted * 1000:.0f} ms more were taken for heard")
        assert counted <= most_s + 0.2


@pytest.mark.real_loop
async def test_a_peer_that_stops_sending_sound_goes_on_hearing() -> None:
    async with speaking() as on:
        (sender,) = on.peer.pc.getSenders()
        sender.replaceTrack(None)
        await asyncio.sleep(2.5)  # one connectivity check at the latest proves that it is there
        before = on.transport.played()
        await asyncio.sleep(0.5)
        assert on.transport.played() - before == pytest.approx(0.5 * RATE, abs=0.15 * RATE)
