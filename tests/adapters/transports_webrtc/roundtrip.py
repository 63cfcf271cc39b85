"""Two aiortc peers for measurements: a side that echoes or talks, and a caller that listens.

Each side exists twice: ours (the transport, our track) and stock aiortc as its own examples use it.
Shared by test_roundtrip.py and bench/webrtc.py, which puts the sides into separate processes.
A side is made inside `stock_names()` or not, and keeps what it was made with.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import aioice.ice
import aiortc.codecs
import aiortc.rtcrtpreceiver
import numpy as np
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.jitterbuffer import JitterBuffer as StockJitterBuffer
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame as AvFrame
from av import AudioResampler
from numpy.typing import NDArray

from voxglove.adapters.transports import webrtc_seams as seams
from voxglove.adapters.transports.webrtc import WebRtcTransport
from voxglove.adapters.transports.webrtc_config import WebRtcConfig
from voxglove.adapters.transports.webrtc_track import Encoder, OutgoingVoice, Playout
from voxglove.media import opus
from voxglove.media.errors import TransportError
from voxglove.media.frame import AudioFrame

RATE, FRAME = 16_000, 320
LOOPBACK = ("127.0.0.1",)
Kind = Literal["ours", "stock"]
Samples = NDArray[np.int16]
Pull = Callable[[], bytes]
"""The next 20 ms of 16 kHz mono."""
Hear = Callable[[Samples], None]

BURST_EVERY, BURST_FRAMES = 50, 5
LOUD = 1_500.0
"""RMS of a frame that belongs to a burst."""
ECHO_QUEUE_MS = 60


@contextmanager
def stock_names() -> Iterator[None]:
    """Peers made within are stock aiortc, but for the one host address a test may use."""
    module, name = aiortc.rtcrtpreceiver, "JitterBuffer"
    ours = vars(module)[name]
    hosts = aioice.ice.get_host_addresses
    setattr(module, name, StockJitterBuffer)
    aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: list(LOOPBACK)
    try:
        yield
    finally:
        setattr(module, name, ours)
        aioice.ice.get_host_addresses = hosts


class StockVoice(MediaStreamTrack):
    """A track of PCM frames, paced as aiortc's examples do; the stock encoder does the rest."""

    kind = "audio"

    def __init__(self, pull: Pull) -> None:
        super().__init__()
        self._pull = pull
        self._start: float | None = None
        self._frames = 0

    async def recv(self) -> AvFrame:
        loop = asyncio.get_running_loop()
        self._start = loop.time() if self._start is None else self._start
        await asyncio.sleep(max(0, self._start + self._frames * 0.02 - loop.time()))
        frame = AvFrame(format="s16", layout="mono", samples=FRAME)
        frame.planes[0].update(self._pull())
        frame.sample_rate, frame.time_base = RATE, Fraction(1, RATE)
        frame.pts = self._frames * FRAME
        self._frames += 1
        return frame


class Echo:
    """PCM in, the same PCM out, with a bounded queue (an unbounded one only measures itself)."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def hear(self, pcm: Samples) -> None:
        self._waiting += pcm.tobytes()
        del self._waiting[: max(0, len(self._waiting) - 2 * RATE * ECHO_QUEUE_MS // 1000)]

    def pull(self) -> bytes:
        taken = bytes(self._waiting[: 2 * FRAME])
        del self._waiting[: 2 * FRAME]
        return taken.ljust(2 * FRAME, b"\0")


class Talk:
    """Speech without end; whatever is heard is counted."""

    def __init__(self, speech: Samples) -> None:
        self._frames = [speech[at : at + FRAME].tobytes() for at in range(0, len(speech), FRAME)]
        self._at = 0
        self.heard = 0

    def hear(self, pcm: Samples) -> None:
        self.heard += len(pcm)

    def pull(self) -> bytes:
        self._at += 1
        return self._frames[self._at % len(self._frames)].ljust(2 * FRAME, b"\0")


@dataclass
class Bursts:
    """100 ms of sound every second; when each left, and when its echo came."""

    left: list[float] = field(default_factory=list)
    trips_ms: list[float] = field(default_factory=list)
    _frames: int = 0

    def pull(self) -> bytes:
        now, place = asyncio.get_running_loop().time(), self._frames % BURST_EVERY
        self._frames += 1
        if place >= BURST_FRAMES:
            return bytes(2 * FRAME)
        if place == 0:
            self.left.append(now)
        t = np.arange(FRAME) + place * FRAME
        return bytes((9_000 * np.sin(2 * np.pi * 700 / RATE * t)).astype(np.int16))

    def hear(self, pcm: Samples) -> None:
        if not self.left or len(self.trips_ms) >= len(self.left):
            return
        for at in range(0, len(pcm), FRAME):
            part = pcm[at : at + FRAME].astype(np.float64)
            if np.sqrt((part * part).mean()) > LOUD:
                trip = asyncio.get_running_loop().time() - self.left[-1]
                # An echo that never came must not shift all that follow.
                lost = len(self.left) - 1 - len(self.trips_ms)
                self.trips_ms += [float("nan")] * lost + [1000 * trip]
                return

    def quantile(self, share: float) -> float:
        """Of the trips measured, without the first two: ICE and codecs are settling."""
        return float(np.nanquantile(self.trips_ms[2:], share))


async def listen(track: MediaStreamTrack, hear: Hear) -> None:
    """Give on what `track` brings, as 16 kHz mono, until it ends."""
    mono = AudioResampler(format="s16", layout="mono", rate=RATE)
    with suppress(MediaStreamError):
        while True:
            frame = await track.recv()
            assert isinstance(frame, AvFrame)
            same = frame.sample_rate == RATE and frame.layout.nb_channels == 1
            for part in [frame] if same else mono.resample(frame):
                hear(np.frombuffer(bytes(part.planes[0])[: 2 * part.samples], np.int16))


@asynccontextmanager
async def caller(
    kind: Kind, pull: Pull, hear: Hear, encoder: Encoder | None = None
) -> AsyncIterator[Caller]:
    """The offering side: `kind` decides which track, jitter buffer and codec it has; `encoder`
    replaces the one of ours."""
    if kind == "stock":
        with stock_names():
            one = Caller(RTCPeerConnection(RTCConfiguration([])), StockVoice(pull))
            await one.prepare()
    else:
        seams.install()
        with seams.gathering_on(LOOPBACK):
            track = OutgoingVoice(Pulled(pull), encoder or opus.Encoder(complexity=1))
            one = Caller(RTCPeerConnection(RTCConfiguration([])), track)
            await one.prepare()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(one.read(hear), name="caller")
            yield one
            await one.pc.close()
    finally:
        await one.pc.close()


class Pulled(Playout):
    """A queue that is never empty: each pull asks for the next 20 ms."""

    def __init__(self, pull: Pull) -> None:
        super().__init__()
        self._next = pull

    def pull(self, samples: int) -> bytes:
        return self._next()


class Caller:
    """A peer connection that offers one audio section."""

    def __init__(self, pc: RTCPeerConnection, track: MediaStreamTrack) -> None:
        self.pc = pc
        self._tracks: asyncio.Queue[MediaStreamTrack] = asyncio.Queue(1)
        pc.addTrack(track)
        pc.add_listener("track", self._tracks.put_nowait)

    async def prepare(self) -> None:
        await self.pc.setLocalDescription(await self.pc.createOffer())

    @property
    def offer(self) -> str:
        return self.pc.localDescription.sdp

    async def accept(self, answer: str) -> None:
        await self.pc.setRemoteDescription(RTCSessionDescription(answer, "answer"))

    async def read(self, hear: Hear) -> None:
        await listen(await self._tracks.get(), hear)


class OurSide:
    """The answering side as a call has it: the whole transport, PCM at its port."""

    def __init__(self, complexity: int | None = None) -> None:
        config = WebRtcConfig(host_addresses=LOOPBACK)
        encoder = None if complexity is None else opus.Encoder(complexity=complexity)
        self.transport = WebRtcTransport(config, encoder=encoder)

    async def answer(self, offer: str) -> str:
        return await self.transport.answer(offer)

    async def run(self, app: Echo | Talk) -> None:
        """Until the line ends."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.transport.run(), name="line")
            group.create_task(self._read(app), name="reader")
            if isinstance(app, Talk):
                group.create_task(self._talk(app), name="talker")

    async def aclose(self) -> None:
        await self.transport.aclose("hangup")

    async def _read(self, app: Echo | Talk) -> None:
        line = self.transport
        with suppress(TransportError):
            async for item in line.receive():
                if not isinstance(item, AudioFrame):
                    continue
                app.hear(item.array())
                if isinstance(app, Echo) and line.sent - line.played() < 16 * ECHO_QUEUE_MS:
                    await line.send(item)

    async def _talk(self, app: Talk) -> None:
        with suppress(TransportError):
            while True:
                await self.transport.send(AudioFrame(app.pull()))


class StockSide:
    """The answering side over aiortc as it comes."""

    def __init__(self) -> None:
        self._tracks: asyncio.Queue[MediaStreamTrack] = asyncio.Queue(1)
        self._pc: RTCPeerConnection | None = None
        self._app: Echo | Talk | None = None

    async def answer(self, offer: str) -> str:
        with stock_names():
            pc = self._pc = RTCPeerConnection(RTCConfiguration([]))
            pc.add_listener("track", self._tracks.put_nowait)
            pc.addTrack(StockVoice(self._pull))
            await pc.setRemoteDescription(RTCSessionDescription(offer, "offer"))
            await pc.setLocalDescription(await pc.createAnswer())
        return pc.localDescription.sdp

    async def run(self, app: Echo | Talk) -> None:
        self._app = app
        await listen(await self._tracks.get(), app.hear)

    async def aclose(self) -> None:
        if self._pc is not None:
            await self._pc.close()

    def _pull(self) -> bytes:
        return self._app.pull() if self._app else bytes(2 * FRAME)


def side(kind: Kind) -> OurSide | StockSide:
    """An answering side of this kind."""
    return OurSide() if kind == "ours" else StockSide()
