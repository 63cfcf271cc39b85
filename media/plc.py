"""Packet loss concealment: what is heard in place of packets that never came.

Owned by one receiving stream, between its jitter buffer and its decoder. Decides, hole by hole:
the redundancy in the packet in hand (FEC, RFC 6716, 2.1.7), then the codec's own concealment, then
silence; so that time never shrinks. Pure over a decoder port; knows no RTP library and no clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from .errors import MediaError, MediaValueError
from .jitter import RTP_RATE, Ready

MAX_CONCEALED_FRAMES = 10
"""Beyond 200 ms a codec only hums."""

MAX_HOLE_S = 10.0
"""A timestamp that jumps further is a sender that counts anew; no hole of this length is filled."""

STEP_MS = 2.5
"""Opus conceals in multiples of this (opus_decode: frame_size)."""


class CodecError(MediaError):
    """The codec refused: bad packet, bad length."""

    code = "ERR_CODEC"


class Decoder(Protocol):
    """A voice decoder with memory. Everything is mono 16-bit PCM of `rate`; raises CodecError."""

    @property
    def rate(self) -> int: ...

    def decode(self, payload: bytes) -> bytes:
        """The sound of a packet, however long."""
        ...

    def conceal(self, samples: int) -> bytes:
        """`samples` that might have followed."""
        ...

    def fec(self, payload: bytes, samples: int) -> bytes:
        """The `samples` before `payload`, out of the redundancy it carries, else concealed."""
        ...


Kind = Literal["decoded", "fec", "concealed", "silence"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the stream. `pcm` is empty for silence, which lasts `samples` all the same."""

    kind: Kind
    pcm: bytes
    samples: int


@dataclass(slots=True)
class ConcealmentStatistics:
    """Samples by what they were made of, and packets that the decoder refused."""

    decoded: int = 0
    fec: int = 0
    concealed: int = 0
    silence: int = 0
    refused: int = 0


class Concealer:
    """Packets in order in, an unbroken stream out: as long as the timestamps say it was."""

    def __init__(self, decoder: Decoder, clock_rate: int = RTP_RATE) -> None:
        if clock_rate % decoder.rate:
            raise MediaValueError(
                "clock_rate", f"{clock_rate} Hz", f"use a multiple of the decoder's {decoder.rate}"
            )
        self.statistics = ConcealmentStatistics()
        self._decoder = decoder
        self._ticks = clock_rate // decoder.rate
        """RTP ticks of one sample."""
        self._step = round(decoder.rate * STEP_MS / 1000)
        self._frame = decoder.rate // 50
        """Samples of the packet before; a lost one is taken to be as long."""
        self._due: int | None = None
        """Timestamp at which the stream goes on; None before its first packet."""

    def feed(self, ready: Ready) -> list[Piece]:
        """The stream up to the end of `ready`. Never raises for what a packet holds.

        A packet without payload (padding) has no time: a hole before it is filled with the next.
        """
        if ready.restart:
            self._due = None
        if not ready.packet.payload:
            return []
        pieces = [*self._fill(ready), self._decoded(ready.packet.payload)]
        self._due = (ready.packet.timestamp + pieces[-1].samples * self._ticks) % (1 << 32)
        for piece in pieces:
            self._count(piece)
        return pieces

    def _fill(self, ready: Ready) -> Iterator[Piece]:
        """What goes before `ready`. Its last frame comes from the packet's redundancy."""
        hole = self._hole(ready.packet.timestamp)
        if hole <= 0:
            return
        if not ready.lost:  # the sender paused (DTX): nothing was there to be concealed
            yield Piece("silence", b"", hole)
            return
        redundant = min(hole, self._frame) if hole % self._step == 0 else 0
        concealed = min(hole - redundant, MAX_CONCEALED_FRAMES * self._frame)
        concealed -= concealed % self._step
        yield from self._concealed(concealed)
        if rest := hole - redundant - concealed:
            yield Piece("silence", b"", rest)
        if redundant:
            yield self._recovered(ready.packet.payload, redundant)

    def _hole(self, timestamp: int) -> int:
        """Samples missing before `timestamp`; 0 where the sender began to count anew."""
        if self._due is None:
            return 0
        ticks = (timestamp - self._due + (1 << 31)) % (1 << 32) - (1 << 31)
        hole = ticks // self._ticks
        return hole if 0 < hole <= MAX_HOLE_S * self._decoder.rate else 0

    def _concealed(self, samples: int) -> Iterator[Piece]:
        while samples > 0:
            part = min(samples, self._frame)
            try:
                pcm = self._decoder.conceal(part)
                yield Piece("concealed", pcm, len(pcm) // 2)
            except CodecError:
                yield Piece("silence", b"", part)
            samples -= part

    def _recovered(self, payload: bytes, samples: int) -> Piece:
        try:
            return Piece("fec", self._decoder.fec(payload, samples), samples)
        except CodecError:
            return Piece("silence", b"", samples)

    def _decoded(self, payload: bytes) -> Piece:
        """The packet's own sound; one that cannot be decoded counts as lost."""
        try:
            pcm = self._decoder.decode(payload)
        except CodecError:
            self.statistics.refused += 1
            return next(self._concealed(self._frame))
        self._frame = len(pcm) // 2 or self._frame
        return Piece("decoded", pcm, len(pcm) // 2)

    def _count(self, piece: Piece) -> None:
        counts = self.statistics
        match piece.kind:
            case "decoded":
                counts.decoded += piece.samples
            case "fec":
                counts.fec += piece.samples
            case "concealed":
                counts.concealed += piece.samples
            case "silence":
                counts.silence += piece.samples
