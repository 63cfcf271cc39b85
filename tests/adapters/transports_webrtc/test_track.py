"""The outgoing track: silence is encoded once, and what follows sounds as it would have."""

from __future__ import annotations

import numpy as np

from tests.audio_fixtures.load import fixture
from tests.support.audio import match
from voxglove.adapters.transports.webrtc_track import SETTLED_FRAMES, OutgoingVoice, Playout
from voxglove.media.format import PIPELINE
from voxglove.media.opus import Decoder, Encoder
from voxglove.media.transport import HORIZON_MS

FRAME = 320


class Counting(Encoder):
    """Counts what it encodes."""

    def __init__(self) -> None:
        super().__init__(complexity=1)
        self.frames = 0

    def encode(self, pcm: bytes) -> bytes:
        self.frames += 1
        return super().encode(pcm)


async def packets(track: OutgoingVoice, playout: Playout, pcm: bytes) -> list[bytes]:
    """Everything that leaves while `pcm` is played."""
    out, step = [], 2 * PIPELINE.samples(HORIZON_MS)
    for at in range(0, len(pcm), step):
        playout.put(pcm[at : at + step])
        while playout.queued:
            out.append(bytes(await track.recv()))
    return out


async def test_silence_is_encoded_once_and_speech_after_it_is_whole() -> None:
    said = np.asarray(fixture("jfk").pcm)[: 2 * 16_000]
    pause = np.zeros(2 * 16_000, np.int16)
    whole = np.concatenate([said, pause, said]).tobytes()
    playout, encoder = Playout(), Counting()
    sent = await packets(OutgoingVoice(playout, encoder), playout, whole)
    assert len(sent) == 300
    assert encoder.frames <= 200 + SETTLED_FRAMES + 2
    decoder = Decoder()
    heard = np.frombuffer(b"".join(decoder.decode(one) for one in sent), np.int16)
    first, second = match(heard[: 2 * 16_000], said), match(heard[4 * 16_000 :], said)
    assert second.lag == first.lag and second.snr_db >= first.snr_db - 0.5
    assert np.abs(heard[2 * 16_000 + 8_000 : 4 * 16_000]).max() <= 2, "silence is silent"


async def test_a_packet_stands_where_its_frame_stands() -> None:
    playout, step = Playout(), 960
    track = OutgoingVoice(playout, Encoder(complexity=0))
    stamps = [(await track.recv()).pts for _ in range(5)]
    assert stamps == [n * step for n in range(5)]
