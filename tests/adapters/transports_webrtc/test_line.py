"""The WebRTC line on the virtual clock, a pump in place of aiortc's sender."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import numpy as np
import pytest
from aiortc.mediastreams import MediaStreamError

from tests.adapters.transport_suite import TransportSuite, attached, play
from tests.adapters.transports_ws.conformance import CHECKS, Rig, numbered
from voxglove.adapters.transports.webrtc import WRITE_DEADLINE_S, WebRtcTransport
from voxglove.adapters.transports.webrtc_config import IceServer, WebRtcConfig
from voxglove.adapters.transports.webrtc_inbox import MAX_INPUT_MS, Inbox
from voxglove.adapters.transports.webrtc_sdp import is_mdns, usable_offer
from voxglove.adapters.transports.webrtc_track import OutgoingVoice, Playout
from voxglove.media.errors import MediaValueError, TransportClosed, TransportStalled
from voxglove.media.jitter import RTP_RATE
from voxglove.media.transport import Data, Gap


class Tape:
    """An encoder that keeps what it was given and encodes nothing."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.at: list[float] = []

    def encode(self, pcm: bytes) -> bytes:
        self.frames.append(pcm)
        self.at.append(asyncio.get_running_loop().time())
        return b"\x48"

    def sounded(self) -> bytes:
        """All but silence, which the tests never send."""
        pcm = np.frombuffer(b"".join(self.frames), np.int16)
        return bytes(pcm[pcm != 0].tobytes())


async def pump(track: OutgoingVoice) -> None:
    """aiortc's sender, without a network."""
    with suppress(MediaStreamError):
        while True:
            await track.recv()


class PumpedRig:
    def __init__(self, transport: WebRtcTransport) -> None:
        self.transport = transport

    def hang_up(self) -> None:
        self.transport._on_message('{"t": "hangup"}')


@asynccontextmanager
async def pumped(connected: bool = True) -> AsyncIterator[tuple[WebRtcTransport, Tape]]:
    tape = Tape()
    transport = WebRtcTransport(WebRtcConfig(connect_s=3600), encoder=tape)
    transport._connected = connected
    async with asyncio.TaskGroup() as group:
        group.create_task(pump(transport.track))
        yield transport, tape
        await transport.aclose("hangup")


class TestPort(TransportSuite):
    @pytest.fixture
    async def rig(self) -> AsyncIterator[PumpedRig]:
        transport = WebRtcTransport(encoder=Tape())
        transport._connected = True
        pulling = asyncio.create_task(pump(transport.track))
        yield PumpedRig(transport)
        await transport.aclose("the test is over")
        pulling.cancel()
        with suppress(asyncio.CancelledError):
            await pulling


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_it_conforms(check) -> None:  # type: ignore[no-untyped-def]
    async with pumped() as (transport, tape):
        await check(Rig(transport, tape.sounded))


async def test_frames_leave_every_20_ms_whatever_is_queued() -> None:
    async with pumped() as (transport, tape):
        for frame in numbered(200, transport):
            await transport.send(frame)
        await asyncio.sleep(0.5)
        gaps = np.diff(tape.at)
        assert np.allclose(gaps, 0.02, atol=1e-6)


async def test_after_a_stall_time_is_left_out_instead_of_a_burst() -> None:
    playout, tape = Playout(), Tape()
    track = OutgoingVoice(playout, tape)
    first = await track.recv()
    await asyncio.sleep(1.0)
    later = [await track.recv() for _ in range(5)]
    assert first.pts == 0 and later[0].pts == RTP_RATE, "RTP time is real time"
    assert track.skipped == 49
    assert np.allclose(np.diff(tape.at[2:]), 0.02, atol=1e-6), "one may follow at once, no more"
    assert [b.pts - a.pts for a, b in zip(later, later[1:], strict=False)] == [960] * 4  # type: ignore[operator]
    track.stop()
    with pytest.raises(MediaStreamError):
        await track.recv()


async def test_a_connected_peer_that_takes_nothing_has_stalled() -> None:
    transport = WebRtcTransport(encoder=Tape())
    transport._connected = True
    began = asyncio.get_running_loop().time()
    with pytest.raises(TransportStalled):
        await play(transport, 400)
    assert asyncio.get_running_loop().time() - began <= WRITE_DEADLINE_S + 0.1
    await transport.aclose("error")


async def test_before_the_connection_sound_only_waits() -> None:
    transport = WebRtcTransport(encoder=Tape())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3 * WRITE_DEADLINE_S):
            await play(transport, 400)
    assert transport.played() == 0 and transport.sent == 3_200
    await transport.aclose("hangup")


async def test_no_connection_within_the_deadline_ends_the_line_with_its_cause() -> None:
    transport = WebRtcTransport(WebRtcConfig(connect_s=10), encoder=Tape())
    began = asyncio.get_running_loop().time()
    await transport.run()
    assert asyncio.get_running_loop().time() - began <= 10.1
    with pytest.raises(TransportClosed, match="no usable candidate came from the peer"):
        async for _ in transport.receive():
            pass
    with pytest.raises(TransportClosed, match="ICE"):
        await play(transport, 20)


async def test_messages_are_checked_like_those_of_the_websocket() -> None:
    async with pumped() as (transport, _), attached(transport) as reader:
        for message in (
            '{"t": "commit"}',
            "rubbish",
            b"\0\0",
            '{"t": "playback", "epoch": 0, "pos": 1}',
        ):
            transport._on_message(message)
        await asyncio.sleep(0.01)
        assert reader.signals() == [Data({"t": "commit"})]
        assert transport.bad_messages == 2


async def test_too_many_bad_messages_end_the_line() -> None:
    async with pumped() as (transport, _):
        for _ in range(21):
            transport._on_message("rubbish")
        with pytest.raises(TransportClosed, match="bad messages"):
            await play(transport, 20)


async def test_messages_that_nobody_ever_takes_stall_the_line() -> None:
    async with pumped() as (transport, _):
        for number in range(300):
            transport.post({"t": "metric", "name": "n", "value": number})
        with pytest.raises(TransportStalled):
            await play(transport, 20)


async def test_sound_that_waits_too_long_becomes_one_gap() -> None:
    inbox = Inbox()
    for _ in range(100):
        inbox.put(b"\1\0" * 320)
    inbox.close()
    items = []
    while (item := await inbox.get()) is not None:
        items.append(item)
    kept = MAX_INPUT_MS // 20
    assert items[0] == Gap((100 - kept) * 320) and len(items) == 1 + kept
    assert inbox.dropped == (100 - kept) * 320


def test_unresolvable_candidates_are_dropped_from_the_offer() -> None:
    local = "a=candidate:1 1 udp 2113937151 6fe2-4a.local 54321 typ host"
    real = "a=candidate:2 1 udp 2113937151 192.0.2.1 54321 typ host"
    known = "v=0\r\na=fingerprint:sha-256 00\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"
    sdp = usable_offer(f"{known}{local}\r\n{real}\r\n")
    assert real in sdp and ".local" not in sdp
    assert is_mdns(local.removeprefix("a=")) and not is_mdns(real.removeprefix("a="))


@pytest.mark.parametrize(
    "sdp",
    [
        "",
        "v=0",
        "m=video 9 X 96\r\n",
        "m=audio 9 X 96\r\n",
        "m=audio 9 X\r\n" * 40,
        "m=audio\r\n" + "x" * 70_000,
    ],
)
async def test_an_offer_that_cannot_be_used_is_named_and_ends_the_line(sdp: str) -> None:
    transport = WebRtcTransport(encoder=Tape())
    with pytest.raises(MediaValueError, match="sdp"):
        await transport.answer(sdp)
    await transport.aclose("error")


async def test_a_bad_candidate_is_named() -> None:
    transport = WebRtcTransport(encoder=Tape())
    with pytest.raises(MediaValueError, match="candidate"):
        await transport.add_candidate("candidate:rubbish", "0", 0)
    await transport.add_candidate("candidate:1 1 udp 1 ab.local 9 typ host", "0", 0)
    await transport.aclose("error")


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("bitrate", lambda: WebRtcConfig(bitrate=16_000)),
        ("connect_s", lambda: WebRtcConfig(connect_s=0)),
        ("url", lambda: IceServer(url="http://example.org")),
    ],
)
def test_bad_configuration_is_named(field: str, make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(MediaValueError, match=field):
        make()


def test_a_turn_secret_is_not_printed() -> None:
    server = IceServer(url="turn:192.0.2.1:3478", username="u", credential="s3cret")
    assert "s3cret" not in repr(WebRtcConfig(ice_servers=(server,)))


async def test_closing_is_bounded_when_the_connection_hangs() -> None:
    transport = WebRtcTransport(encoder=Tape())

    async def hang() -> None:
        await asyncio.sleep(3600)

    real, transport._pc.close = transport._pc.close, hang  # type: ignore[method-assign]
    began = asyncio.get_running_loop().time()
    await transport.aclose("hangup")
    assert asyncio.get_running_loop().time() - began <= 2
    await real()


async def test_a_cancelled_run_closes_the_line() -> None:
    transport = WebRtcTransport(encoder=Tape())
    async with asyncio.TaskGroup() as group:
        running = group.create_task(transport.run())
        await asyncio.sleep(0.1)
        running.cancel()
    assert transport._pc.connectionState == "closed"
    with pytest.raises(TransportClosed):
        await play(transport, 20)
