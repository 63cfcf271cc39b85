"""Where aiortc is made fit for voice: every name of its that we replace, in one place.

Stock aiortc adds 80 ms, stands still for 280 ms after one lost packet and never catches up
(aiortc issue 543). `install` replaces, once per process: the jitter buffer of audio receivers, the
Opus decoder, the Opus parameters that are negotiated, and in aioice the host addresses and how soon
a vanished peer is noticed. tests/adapters/transports_webrtc/test_seams.py fails when one moves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import aioice.ice
import aiortc.codecs
import aiortc.rtcrtpreceiver
from aiortc import RTCIceTransport
from aiortc.codecs.base import Decoder as AiortcDecoder
from aiortc.codecs.opus import OpusDecoder as StockOpusDecoder
from aiortc.jitterbuffer import JitterBuffer as StockJitterBuffer
from aiortc.jitterbuffer import JitterFrame
from aiortc.rtcrtpparameters import RTCRtpCodecCapability
from aiortc.rtp import RtpPacket
from av import AudioFrame
from av.frame import Frame

from ...media import opus
from ...media.format import PIPELINE
from ...media.jitter import RTP_RATE, JitterBuffer, Packet, Ready
from ...media.plc import Concealer, Piece

log = logging.getLogger(__name__)

OPUS_PARAMETERS: dict[str, int | str | None] = {"minptime": 10, "useinbandfec": 1}
"""A sender puts redundancy into its packets only when the receiver asks for it (RFC 7587, 6.1)."""

CONSENT_INTERVAL_S = 1
CONSENT_FAILURES = 6
"""A peer that answers none of six checks, half a second each, is gone: 9 s (aioice: 33 s)."""

TIME_BASE = Fraction(1, PIPELINE.rate)

LOOPBACK = "127.0.0.1"

_stock_host_addresses = aioice.ice.get_host_addresses
_hosts: ContextVar[tuple[str, ...]] = ContextVar("voxglove_ice_hosts", default=())
_loopback: ContextVar[bool] = ContextVar("voxglove_ice_loopback", default=False)
_streams: ContextVar[list[VoiceStream] | None] = ContextVar("voxglove_streams", default=None)


@dataclass(frozen=True, slots=True)
class VoiceReport:
    """One incoming stream since it began: packets, milliseconds of sound, and how late it is."""

    received: int
    lost: int
    late: int
    recovered_ms: float
    """Out of the redundancy of the next packet."""
    concealed_ms: float
    silent_ms: float
    jitter_ms: float
    """RFC 3550's."""
    delay_ms: float
    """How long the last packet took beyond the fastest of the last minute, our waiting included."""
    depth: int
    """Packets for which a missing one is awaited at present."""


class Run(JitterFrame):
    """Everything that one packet made playable. `data` is what a stock decoder would be given."""

    def __init__(self, stream: VoiceStream, ready: Sequence[Ready]) -> None:
        payloads = b"".join(item.packet.payload for item in ready)
        super().__init__(payloads, ready[0].packet.timestamp)
        self.stream = stream
        self.ready = ready


class VoiceStream:
    """One receiving stream; stands where aiortc has its jitter buffer.

    With a `deliver` everything happens at once on the loop: decoding costs less than handing a
    packet to a thread and a frame back. Without one it is aiortc's way: `add` runs on the loop,
    `decode` in its decoder thread, and the two share nothing that changes.
    """

    def __init__(self) -> None:
        self.jitter = JitterBuffer()
        self.concealer = Concealer(opus.Decoder())
        self.deliver: Callable[[Sequence[Piece]], None] | None = None
        """Takes the sound of the stream, in order. Set before the first packet."""
        self.on_packet: Callable[[float], None] | None = None
        """Told the loop's time of every packet that really came, before any injector."""
        self.through: Callable[[Callable[[], None]], None] | None = None
        """Carries packets to us later or never: the developer's injector, in use."""
        self._at = 0
        """Sample at which the decoded stream goes on."""

    def add(self, packet: RtpPacket) -> tuple[bool, JitterFrame | None]:
        """aiortc's contract: (ask for a key frame, what its thread is to decode now)."""
        heard = Packet(packet.sequence_number, packet.timestamp, packet.payload, packet.ssrc)
        if self.on_packet is not None:
            self.on_packet(asyncio.get_running_loop().time())
        if self.deliver is None:
            ready = self.jitter.add(heard, _rtp_now())
            return False, Run(self, ready) if ready else None
        if self.through is None:
            self._take(heard, self.deliver)
        else:
            self.through(partial(self._take, heard, self.deliver))
        return False, None

    def pieces(self, packet: Packet, now: int) -> list[Piece]:
        """The sound that `packet`, which arrived at RTP sample `now`, makes playable."""
        ready = self.jitter.add(packet, now)
        return [piece for item in ready for piece in self.concealer.feed(item)]

    def report(self) -> VoiceReport:
        """How the stream fares."""
        packets, samples = self.jitter.statistics, self.concealer.statistics
        return VoiceReport(
            received=packets.received,
            lost=packets.lost,
            late=packets.late,
            recovered_ms=PIPELINE.ms(samples.fec),
            concealed_ms=PIPELINE.ms(samples.concealed),
            silent_ms=PIPELINE.ms(samples.silence),
            jitter_ms=1000 * packets.jitter / RTP_RATE,
            delay_ms=1000 * self.jitter.delay / RTP_RATE,
            depth=self.jitter.depth,
        )

    def _take(self, packet: Packet, deliver: Callable[[Sequence[Piece]], None]) -> None:
        """Never raises: that would end aiortc's transport, and the line with it."""
        try:
            deliver(self.pieces(packet, _rtp_now()))
        except Exception:
            log.exception("a packet could not be decoded")

    def decode(self, ready: Sequence[Ready]) -> list[Frame]:
        """16 kHz mono frames. Silence that has to be kept shows as a step of `pts`."""
        frames: list[Frame] = []
        sound: list[Piece] = []
        for piece in (piece for item in ready for piece in self.concealer.feed(item)):
            if piece.kind == "silence":
                frames += self._frames(sound)
                sound = []
                self._at += piece.samples
            else:
                sound.append(piece)
        return frames + self._frames(sound)

    def _frames(self, sound: Sequence[Piece]) -> list[Frame]:
        samples = sum(piece.samples for piece in sound)
        if not samples:
            return []
        frame = AudioFrame(format="s16", layout="mono", samples=samples)
        frame.planes[0].update(b"".join(piece.pcm for piece in sound))
        frame.sample_rate = PIPELINE.rate
        frame.time_base = TIME_BASE
        frame.pts = self._at
        self._at += samples
        return [frame]


def _rtp_now() -> int:
    return round(asyncio.get_running_loop().time() * RTP_RATE)


class VoiceDecoder(AiortcDecoder):
    """Decodes runs by their stream. Never raises: that would silently end aiortc's thread."""

    def __init__(self) -> None:
        self._stock: AiortcDecoder | None = None

    def decode(self, encoded_frame: JitterFrame) -> list[Frame]:
        """See aiortc. A frame of a receiver made before `install` is left to the stock decoder."""
        try:
            if isinstance(encoded_frame, Run):
                return encoded_frame.stream.decode(encoded_frame.ready)
            self._stock = self._stock or StockOpusDecoder()
            return self._stock.decode(encoded_frame)
        except Exception:
            log.exception("a packet could not be decoded")
            return []


def voice_buffer(
    capacity: int, prefetch: int = 0, is_video: bool = False
) -> StockJitterBuffer | VoiceStream:
    """Stands for aiortc's `JitterBuffer` constructor: video keeps the stock one."""
    if is_video:
        return StockJitterBuffer(capacity, prefetch, is_video)
    stream = VoiceStream()
    streams = _streams.get()
    if streams is not None:
        streams.append(stream)
    return stream


def host_addresses(use_ipv4: bool, use_ipv6: bool) -> list[str]:
    """Stands for aioice's: the addresses asked for by `gathering_on`, else all but loopback."""
    if named := _hosts.get():
        return list(named)
    found = _stock_host_addresses(use_ipv4, use_ipv6)
    return [LOOPBACK, *found] if _loopback.get() and use_ipv4 else found


@contextmanager
def gathering_on(addresses: tuple[str, ...], *, loopback: bool = False) -> Iterator[None]:
    """ICE connections that gather within use these host addresses (empty: aioice's own choice,
    which leaves 127.0.0.1 out, unless `loopback`)."""
    named, local = _hosts.set(addresses), _loopback.set(loopback)
    try:
        yield
    finally:
        _loopback.reset(local)
        _hosts.reset(named)


@contextmanager
def collecting() -> Iterator[list[VoiceStream]]:
    """The voice streams of receivers that are made within, for their statistics."""
    streams: list[VoiceStream] = []
    token = _streams.set(streams)
    try:
        yield streams
    finally:
        _streams.reset(token)


SEAMS = (
    (aiortc.rtcrtpreceiver, "JitterBuffer", voice_buffer),
    (aiortc.codecs, "OpusDecoder", VoiceDecoder),
)
"""Module, the name it looks up whenever it makes one, and what we put there."""


def watch_datagrams(ice: RTCIceTransport, arrived: Callable[[float], None]) -> None:
    """Tell `arrived` the loop's time of every datagram that comes on the connected `ice`, whatever
    it holds."""
    for protocol in ice._connection._protocols:
        receive = protocol.datagram_received

        def heard(
            data: bytes | str,
            addr: tuple[Any, ...],
            receive: Callable[[bytes | str, tuple[Any, ...]], None] = receive,
        ) -> None:
            arrived(asyncio.get_running_loop().time())
            receive(data, addr)

        protocol.datagram_received = heard  # type: ignore[method-assign]


def opus_only() -> list[RTCRtpCodecCapability]:
    """The codecs that a line negotiates: every WebRTC peer has Opus (RFC 7874)."""
    codecs = aiortc.codecs.get_capabilities("audio").codecs
    return [codec for codec in codecs if codec.mimeType.lower() == "audio/opus"]


def install() -> None:
    """Put our parts in place. Idempotent; reaches every later peer connection of the process."""
    for module, name, ours in SEAMS:
        setattr(module, name, ours)
    aioice.ice.get_host_addresses = host_addresses
    aioice.ice.CONSENT_INTERVAL = CONSENT_INTERVAL_S
    aioice.ice.CONSENT_FAILURES = CONSENT_FAILURES
    for codec in aiortc.codecs.CODECS["audio"]:
        if codec.mimeType.lower() == "audio/opus":
            codec.parameters = dict(OPUS_PARAMETERS)
