"""A simulated network on a told clock: real Opus packets through loss and jitter into receivers.

`through_ours` feeds our VoiceStream, `through_call` the call's Intake behind it with its 20 ms look
at the clock, `through_stock` aiortc's own jitter buffer and decoder: all the same arrivals. No
socket, no loop, no real time. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from aiortc.codecs.opus import OpusDecoder as StockOpusDecoder
from aiortc.jitterbuffer import JitterBuffer as StockJitterBuffer
from aiortc.rtp import RtpPacket
from av import AudioFrame as AvFrame
from numpy.typing import NDArray

from tests.audio_fixtures.load import fixture
from tests.support.impaired import impaired
from voxglove.adapters.transports.webrtc_seams import VoiceStream
from voxglove.media import opus
from voxglove.media.format import PIPELINE
from voxglove.media.frame import AudioFrame
from voxglove.media.impair import Impairment
from voxglove.media.intake import Intake
from voxglove.media.jitter import RTP_RATE, Packet
from voxglove.media.plc import Decoder
from voxglove.media.resample import Resampler

RATE, FRAME, STEP_S = 16_000, 320, 0.02
TICKS = RTP_RATE // 50
FIRST_SEQUENCE, FIRST_TIMESTAMP = 65_400, (1 << 32) - 40 * TICKS
"""Both wrap within the first seconds of every run."""
HEAD_START = round(RTP_RATE * 3.7)
"""The receiver's clock at the first packet: nobody's clock begins at zero."""

Samples = NDArray[np.int16]
Arrivals = Sequence[tuple[float, Packet]]


def numbered(payloads: Sequence[bytes], step_s: float = STEP_S) -> list[tuple[float, Packet]]:
    """(when it was sent, packet), one every 20 ms."""
    return [
        (
            n * step_s,
            Packet(
                (FIRST_SEQUENCE + n) % 65_536, (FIRST_TIMESTAMP + n * TICKS) % (1 << 32), payload
            ),
        )
        for n, payload in enumerate(payloads)
    ]


@lru_cache
def spoken(clip: str, repeats: int = 1) -> tuple[tuple[float, Packet], ...]:
    """A clip's packets as a browser sends them: 32 kbit/s, FEC; half a second of room around it."""
    room = np.zeros(RATE // 2, np.int16)
    pcm = np.concatenate([room, np.tile(fixture(clip).pcm, repeats), room])
    encoder = opus.Encoder(complexity=5)
    frames = [pcm[at : at + FRAME].tobytes() for at in range(0, len(pcm) - FRAME + 1, FRAME)]
    return tuple(numbered([encoder.encode(frame) for frame in frames]))


def over(packets: Arrivals, what: Impairment, seed: int = 1) -> list[tuple[float, Packet]]:
    """The same packets as they arrive."""
    return impaired(packets, what, seed)


@dataclass
class Outcome:
    """What a receiver made of the arrivals. Lists have one entry per arrival that gave sound."""

    heard: Samples
    """As a reader gets it, one piece after the other."""
    placed: Samples
    """The same at the places the sender gave it; silence where nothing was."""
    at: list[float] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)
    """How far the end of what was heard so far lies behind what the sender has said by then."""
    waiting: list[int] = field(default_factory=list)
    """Packets that wait for a missing one, at each."""
    counts: str = ""
    recovered: int = 0
    concealed: int = 0
    """Frames."""

    @property
    def longest_wait_ms(self) -> float:
        """Between two deliveries."""
        return 1000 * float(np.diff(self.at).max())


def late_at(now: float, end: int) -> float:
    """Milliseconds that sample `end` of the stream lies behind the sender at `now`."""
    return 1000 * (now + STEP_S) - end * 1000 / RATE


def through_ours(arrivals: Arrivals) -> Outcome:
    """Our jitter buffer, FEC and concealment; flushed at the end."""
    stream, parts, got = VoiceStream(), list[bytes](), Outcome(*(np.zeros(0, np.int16),) * 2)
    end = 0
    for now, packet in arrivals:
        pieces = stream.pieces(packet, round(now * RTP_RATE) + HEAD_START)
        parts += [piece.pcm or bytes(2 * piece.samples) for piece in pieces]
        end += sum(piece.samples for piece in pieces)
        if pieces:
            got.at.append(now)
            got.late_ms.append(late_at(now, end))
            got.waiting.append(stream.jitter.held)
    for ready in stream.jitter.flush():
        parts += [p.pcm or bytes(2 * p.samples) for p in stream.concealer.feed(ready)]
    got.heard = got.placed = np.frombuffer(b"".join(parts), np.int16)
    packets, made = stream.jitter.statistics, stream.concealer.statistics
    got.recovered, got.concealed = made.fec // FRAME, (made.concealed + made.silence) // FRAME
    got.counts = f"{packets.lost} lost, {packets.late} late, depth up to {packets.max_depth}"
    return got


def through_stock(arrivals: Arrivals, packets: int) -> Outcome:
    """aiortc's jitter buffer and decoder; `heard` is its frames in a row, as its readers get."""
    buffer, decoder = StockJitterBuffer(capacity=16, prefetch=4), StockOpusDecoder()
    mono, got = Resampler(48_000, RATE), Outcome(*(np.zeros(0, np.int16),) * 2)
    placed, parts = np.zeros(packets * FRAME, np.int16), list[Samples]()
    for now, packet in arrivals:
        rtp = RtpPacket(sequence_number=packet.sequence, timestamp=packet.timestamp)
        rtp._data = packet.payload  # type: ignore[attr-defined]
        _, frame = buffer.add(rtp)
        for decoded in decoder.decode(frame) if frame is not None else []:
            assert isinstance(decoded, AvFrame)
            stereo = decoded.to_ndarray().reshape(-1, 2).astype(np.int32)
            parts.append(mono.feed((stereo.sum(axis=1) // 2).astype(np.int16)))
            assert frame is not None
            number = (frame.timestamp - FIRST_TIMESTAMP) % (1 << 32) // TICKS
            place = placed[number * FRAME : (number + 1) * FRAME]
            place[:] = parts[-1][: len(place)]
            got.at.append(now)
            got.late_ms.append(late_at(now, (number + 1) * FRAME))
            got.waiting.append(0)
    got.heard, got.placed = np.concatenate(parts), placed
    return got


class Reader:
    """The call's reader: jitter buffer, concealment and intake on a told clock, looked at as the
    call does. `decoder` replaces Opus where the sound does not matter."""

    def __init__(self, decoder: Decoder | None = None, *, start: float = 0.0) -> None:
        self.stream = VoiceStream()
        if decoder is not None:
            self.stream.concealer._decoder = decoder
        self.intake = Intake(PIPELINE)
        self.intake.attach(PIPELINE.rate, gapless=False, now=start)
        self.frames: list[AudioFrame] = []
        self._wake = start + STEP_S

    def quiet_until(self, now: float) -> None:
        """Nothing arrives; holes are filled as they are noticed."""
        while (wake := max(self.intake.fill_due() or now, self._wake)) < now:
            self.frames += self.intake.fill(wake)
            self._wake = wake + STEP_S

    def take(self, packet: Packet, now: float) -> None:
        """A packet arrives."""
        self.quiet_until(now)
        for piece in self.stream.pieces(packet, round(now * RTP_RATE) + HEAD_START):
            if piece.pcm:
                self.frames += self.intake.take(AudioFrame(piece.pcm), now)
            else:
                self.frames += self.intake.gap(piece.samples, now)

    @property
    def heard(self) -> Samples:
        """The input timeline so far."""
        return np.concatenate([frame.array() for frame in self.frames])


def through_call(arrivals: Arrivals) -> tuple[Reader, list[float]]:
    """The reader after all `arrivals`, and how late its timeline was at each."""
    reader, late = Reader(), list[float]()
    for now, packet in arrivals:
        reader.take(packet, now)
        late.append(late_at(now, reader.intake.at))
    return reader, late


def segmental_snr(reference: Samples, heard: Samples) -> float:
    """Mean SNR in dB over the loud 20 ms frames of `reference`, each held within -10..35 dB."""
    count = min(len(reference), len(heard)) // FRAME
    a = reference[: count * FRAME].astype(np.float64).reshape(count, FRAME)
    b = heard[: count * FRAME].astype(np.float64).reshape(count, FRAME)
    power, noise = (a * a).mean(axis=1), ((a - b) ** 2).mean(axis=1)
    loud = power > 100.0**2
    snr = 10 * np.log10(np.maximum(power[loud], 1) / np.maximum(noise[loud], 1e-6))
    return float(np.clip(snr, -10, 35).mean())
