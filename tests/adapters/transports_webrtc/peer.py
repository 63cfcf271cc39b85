"""The far end of a WebRTC line in the same process: what a browser does, with aiortc.

It offers audio and a data channel on 127.0.0.1, speaks samples it is given, keeps what it hears,
and can lose packets in front of either side's jitter buffer. Real sockets, real clock.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import numpy as np
from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame as AvFrame
from numpy.typing import NDArray

from voxglove.adapters.transports import webrtc_seams as seams
from voxglove.adapters.transports.webrtc import WebRtcTransport
from voxglove.adapters.transports.webrtc_config import WebRtcConfig
from voxglove.adapters.transports.webrtc_track import OutgoingVoice, Playout
from voxglove.media import opus
from voxglove.media.errors import TransportError
from voxglove.media.frame import AudioFrame
from voxglove.media.transport import Gap, Signal

Samples = NDArray[np.int16]
Lose = Callable[[int], bool]
"""Says whether the n-th packet is lost."""

LOOPBACK = ("127.0.0.1",)


class Speech(Playout):
    """A queue without a horizon: the peer's whole speech at once."""

    def fits(self, samples: int) -> bool:
        return True


@dataclass
class Heard:
    """What came out of a transport, and when on the loop's clock."""

    items: list[AudioFrame | Signal] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    failure: TransportError | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self, transport: WebRtcTransport) -> None:
        loop = asyncio.get_running_loop()
        try:
            async for item in transport.receive():
                self.items.append(item)
                self.at.append(loop.time())
        except TransportError as error:
            self.failure = error
        self.ended.set()

    def signals(self) -> list[Signal]:
        return [item for item in self.items if not isinstance(item, AudioFrame)]

    def samples(self) -> Samples:
        """Sound with its gaps as zeros: the stream as long as it lasted."""
        parts = [
            item.array() if isinstance(item, AudioFrame) else np.zeros(item.samples, np.int16)
            for item in self.items
            if isinstance(item, AudioFrame | Gap)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.int16)


class Peer:
    """A page without a browser."""

    def __init__(
        self, *, data: bool = True, speaks: bool = True, ice: RTCConfiguration | None = None
    ) -> None:
        self.speech = Speech()
        self.messages: list[dict[str, object]] = []
        self.heard: list[Samples] = []
        self.pc = RTCPeerConnection(ice or RTCConfiguration([]))
        self.track = OutgoingVoice(self.speech, opus.Encoder(complexity=1))
        if speaks:
            self.pc.addTrack(self.track)
        else:
            self.pc.addTransceiver("audio", direction="recvonly")
        self.channel: RTCDataChannel | None = None
        self.opened = asyncio.Event()
        self._remote: MediaStreamTrack | None = None
        self.pc.add_listener("track", self._on_track)
        if data:
            self.channel = self.pc.createDataChannel("voxglove")
            self.channel.add_listener("message", self._on_message)
            self.channel.add_listener("open", self.opened.set)

    async def offer(self) -> str:
        with seams.gathering_on(LOOPBACK):
            await self.pc.setLocalDescription(await self.pc.createOffer())
        return self.pc.localDescription.sdp

    async def accept(self, answer: str) -> None:
        await self.pc.setRemoteDescription(RTCSessionDescription(answer, "answer"))

    def say(self, message: dict[str, object] | str | bytes) -> None:
        assert self.channel is not None
        text = json.dumps(message) if isinstance(message, dict) else message
        self.channel.send(text)

    async def listen(self) -> None:
        """Keep what is heard, until the line ends."""
        assert self._remote is not None
        with suppress(MediaStreamError):
            while True:
                frame = await self._remote.recv()
                assert isinstance(frame, AvFrame)
                pcm = bytes(frame.planes[0])[: 2 * frame.samples]
                self.heard.append(np.frombuffer(pcm, np.int16))

    def _on_track(self, track: MediaStreamTrack) -> None:
        self._remote = track

    def _on_message(self, message: str) -> None:
        self.messages.append(json.loads(message))


@dataclass
class LineUnderTest:
    """A connected line, its reader, and its peer."""

    transport: WebRtcTransport
    heard: Heard
    peer: Peer


def config(connect_s: float = 10.0) -> WebRtcConfig:
    return WebRtcConfig(host_addresses=LOOPBACK, connect_s=connect_s)


@asynccontextmanager
async def line(
    *, data: bool = True, speaks: bool = True, lose: Lose | None = None
) -> AsyncIterator[LineUnderTest]:
    """A call's line on loopback; `lose` strikes in front of the line's jitter buffer."""
    transport, heard = WebRtcTransport(config()), Heard()
    if lose is not None:
        drop(transport, lose)
    peer = Peer(data=data, speaks=speaks)
    async with asyncio.TaskGroup() as group:
        group.create_task(transport.run(), name="line")
        group.create_task(heard.read(transport), name="reader")
        try:
            await peer.accept(await transport.answer(await peer.offer()))
            async with asyncio.timeout(5):
                if data:
                    await peer.opened.wait()
                while not transport.connected:  # noqa: ASYNC110 - the transport has no event
                    await asyncio.sleep(0.01)
            group.create_task(peer.listen(), name="peer")
            yield LineUnderTest(transport, heard, peer)
        finally:
            await transport.aclose("hangup")
            await peer.pc.close()


def drop(transport: WebRtcTransport, lose: Lose) -> None:
    """Lose packets on their way into the transport's jitter buffer."""
    (stream,) = transport.streams
    real, count = stream.add, 0

    def add(packet):  # type: ignore[no-untyped-def]
        nonlocal count
        count += 1
        return (False, None) if lose(count - 1) else real(packet)

    stream.add = add  # type: ignore[method-assign]


def alignment(source: Samples, heard: Samples) -> tuple[int, float]:
    """Where `source` lies in `heard`, in samples, and how well it correlates there."""
    a, b = source.astype(np.float64), heard.astype(np.float64)
    size = 1 << (len(a) + len(b)).bit_length()
    cross = np.fft.irfft(np.fft.rfft(b, size) * np.conj(np.fft.rfft(a, size)), size)
    at = int(np.argmax(cross[: max(1, len(b))]))
    part = b[at : at + len(a)]
    a = a[: len(part)]
    return at, float(a @ part / max(1e-9, float(np.sqrt((a @ a) * (part @ part)))))


def clarity(source: Samples, heard: Samples) -> float:
    """How well half-second windows of `source` are found in `heard`: the median correlation.

    A busy machine may put a pause between two windows; it never makes a window unclear.
    """
    windows = [source[at : at + 8_000] for at in range(0, len(source) - 7_999, 8_000)]
    loud = [w for w in windows if np.sqrt((w.astype(np.float64) ** 2).mean()) > 500]
    return float(np.median([alignment(window, heard)[1] for window in loud]))
