"""The developer's injector on a living line: it loses what it is asked to, and leaves no trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from aiortc.rtp import RtpPacket

from tests.adapters.transports_webrtc.peer import line
from voxglove.adapters.transports.webrtc_impair import Injector
from voxglove.adapters.transports.webrtc_seams import VoiceStream
from voxglove.media.errors import MediaValueError
from voxglove.media.impair import Impairment
from voxglove.media.opus import Encoder
from voxglove.media.plc import Piece

Tell = Callable[[str], None]


class Ice:
    """What the injector needs of an ICE transport: counts what it sends."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self._send = self.send

    async def send(self, data: bytes) -> None:
        self.sent.append(data)


def datagram(second: int, number: int = 0) -> bytes:
    return bytes([0x80, second]) + number.to_bytes(2, "big") + bytes(20)


RTP, RTCP, DTLS = partial(datagram, 96), datagram(200), bytes([22]) + bytes(30)


def voice() -> tuple[VoiceStream, list[int]]:
    stream, lengths = VoiceStream(), list[int]()

    def deliver(pieces: object) -> None:
        assert isinstance(pieces, list)
        lengths.append(sum(piece.samples for piece in pieces if isinstance(piece, Piece)))

    stream.deliver = deliver
    return stream, lengths


def rtp(number: int, payload: bytes) -> RtpPacket:
    return RtpPacket(sequence_number=number, timestamp=960 * number, ssrc=1, payload=payload)


async def test_up_loses_and_delays_before_the_jitter_buffer() -> None:
    stream, lengths = voice()
    injector, payload = Injector([stream], Ice()), Encoder().encode(bytes(640))  # type: ignore[arg-type]
    injector.set(Impairment(loss=0.2, burst=3, jitter_ms=60), down=False)
    for number in range(500):
        stream.add(rtp(number, payload))
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)
    assert injector.up is not None
    lost = injector.up.counts.lost
    assert 60 <= lost <= 140
    assert stream.jitter.statistics.received == 500 - lost
    # Sequence numbers stay the peer's: the holes are known, and filled.
    assert sum(lengths) >= (500 - 8) * 320
    injector.close()


async def test_down_harms_sound_alone_and_keeps_its_numbers() -> None:
    ice = Ice()
    injector = Injector([], ice)  # type: ignore[arg-type]
    injector.set(Impairment(loss=0.3, jitter_ms=80), down=True)
    for number in range(300):
        await ice._send(RTP(number))
        await ice._send(RTCP)
        await ice._send(DTLS)
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)
    sound = [int.from_bytes(data[2:4], "big") for data in ice.sent if data[1] == 96]
    assert ice.sent.count(RTCP) == ice.sent.count(DTLS) == 300
    assert 150 <= len(sound) <= 250 and len(set(sound)) == len(sound)
    assert sound != sorted(sound), "jitter beyond 20 ms lets packets overtake"
    injector.close()


async def test_off_there_is_nothing_in_the_way_and_nothing_pending() -> None:
    ice, (stream, lengths) = Ice(), voice()
    injector, before = Injector([stream], ice), ice._send  # type: ignore[arg-type]
    injector.set(Impairment(jitter_ms=300), down=True)
    assert ice._send != before and stream.through is not None
    for number in range(20):
        stream.add(rtp(number, Encoder().encode(bytes(640))))
        await ice._send(RTP(number))
    injector.set(Impairment(), down=True)
    assert ice._send == before and stream.through is None
    come = len(lengths), len(ice.sent)
    await asyncio.sleep(1)
    assert (len(lengths), len(ice.sent)) == come, "what was under way is gone"
    injector.close()
    injector.close()


@pytest.mark.real_loop
async def test_a_living_line_is_made_bad_both_ways_and_good_again(tell: Tell) -> None:
    async with line() as on:
        with pytest.raises(MediaValueError, match="jitter_ms"):
            on.transport.impair(jitter_ms=1_000)
        loud = (np.random.default_rng(1).normal(0, 3_000, 4 * 16_000)).astype(np.int16)
        on.peer.speech.put(loud.tobytes())
        (up,) = on.transport.streams
        on.transport.impair(loss=0.3, burst=2, jitter_ms=40, down=True)
        await asyncio.sleep(1.5)
        bad = up.report()
        on.transport.impair()
        await asyncio.sleep(0.3)
        settled, heard = up.report(), len(on.heard.samples())
        await asyncio.sleep(1)
        good = up.report()
    tell(f"a line at 30 % loss: {bad}")
    assert bad.lost >= 5 and bad.recovered_ms + bad.concealed_ms > 100
    assert good.lost == settled.lost, "nothing is lost once it is off"
    assert heard >= 16_000 and on.heard.failure is None
    down = np.concatenate(on.peer.heard)
    assert len(down) >= 16_000, "the page's own jitter buffer coped"
