"""libopus: it round-trips speech, its redundancy is worth having, and it refuses rubbish."""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from tests.support import audio
from voxglove.media import opus
from voxglove.media.errors import MediaValueError
from voxglove.media.jitter import JitterBuffer, Packet
from voxglove.media.plc import CodecError, Concealer

Sound = NDArray[np.float64]
FRAME = 320
LEAST_GAIN_DB = 4.0
"""What redundancy must gain over concealment alone at 5 and 10 % loss (measured: 10 dB)."""


@lru_cache
def speech() -> NDArray[np.int16]:
    path = Path(__file__).parents[1] / "audio_fixtures" / "jfk.wav"
    pcm, rate = soundfile.read(path, dtype="int16")
    assert rate == opus.RATE
    return np.asarray(pcm[: len(pcm) // FRAME * FRAME], np.int16)


def packets(**options: int | bool) -> list[bytes]:
    encoder = opus.Encoder(**options)  # type: ignore[arg-type]
    pcm = speech()
    return [encoder.encode(pcm[at : at + FRAME].tobytes()) for at in range(0, len(pcm), FRAME)]


def received(sent: list[bytes], loss: float, *, fec: bool = True) -> Sound:
    """What is heard when `loss` of `sent` never arrives."""
    rnd, buffer = random.Random(3), JitterBuffer()
    decoder = opus.Decoder()
    if not fec:
        decoder.fec = lambda payload, samples: decoder.conceal(samples)  # type: ignore[method-assign]
    concealer, pcm = Concealer(decoder), b""
    for n, payload in enumerate(sent):
        if 0 < n < len(sent) - 3 and rnd.random() < loss:
            continue
        for item in buffer.add(Packet(n, n * 960, payload), n * 960):
            pcm += b"".join(p.pcm or bytes(2 * p.samples) for p in concealer.feed(item))
    return np.frombuffer(pcm, np.int16).astype(np.float64)


def snr_db(clean: Sound, heard: Sound) -> float:
    assert len(clean) == len(heard)
    return float(
        10 * np.log10((clean @ clean) / max(1.0, float((clean - heard) @ (clean - heard))))
    )


def test_speech_survives_coding() -> None:
    match = audio.match(received(packets(), 0), speech())
    assert match.correlation >= 0.95
    assert 0 <= match.lag <= 120, "the look-ahead of Opus, 6.5 ms"


@pytest.mark.parametrize("loss", [0.05, 0.10])
def test_redundancy_beats_concealment_alone(loss: float, tell) -> None:  # type: ignore[no-untyped-def]
    sent = packets()
    clean = received(sent, 0)
    plain = snr_db(clean, received(sent, loss, fec=False))
    redundant = snr_db(clean, received(sent, loss))
    tell(f"opus, {loss:.0%} lost, 32 kbit/s: concealed {plain:.1f} dB, with FEC {redundant:.1f} dB")
    assert redundant >= plain + LEAST_GAIN_DB


def test_redundancy_is_sent_at_24_kbit_and_not_at_16() -> None:
    for bitrate, carries in ((24_000, True), (16_000, False)):
        sent = packets(bitrate=bitrate)
        clean = received(sent, 0)
        gain = snr_db(clean, received(sent, 0.05)) - snr_db(clean, received(sent, 0.05, fec=False))
        assert (gain > 1) is carries, f"{bitrate}: {gain:.1f} dB"


def test_packets_keep_to_the_bitrate() -> None:
    for bitrate in (24_000, 32_000):
        sent = packets(bitrate=bitrate)
        assert sum(map(len, sent)) * 8 * 50 / len(sent) <= 1.15 * bitrate


def test_dtx_sends_next_to_nothing_in_silence() -> None:
    encoder = opus.Encoder(dtx=True)
    sizes = [len(encoder.encode(bytes(640))) for _ in range(100)]
    assert sum(size <= 2 for size in sizes[30:]) >= 60


def test_concealment_fades_and_lasts_as_asked() -> None:
    decoder = opus.Decoder()
    for payload in packets()[:60]:
        decoder.decode(payload)
    tail = [np.frombuffer(decoder.conceal(FRAME), np.int16).astype(float) for _ in range(30)]
    assert all(len(part) == FRAME for part in tail)
    assert np.abs(tail[-1]).mean() < max(1.0, np.abs(tail[0]).mean())


@pytest.mark.parametrize("payload", [b"", b"\xff" * 40, bytes(range(200))])
def test_rubbish_is_refused_or_decoded_but_never_crashes(payload: bytes) -> None:
    decoder = opus.Decoder()
    try:
        assert len(decoder.decode(payload)) <= 2 * 16 * opus.MAX_PACKET_MS
    except CodecError:
        assert decoder.decode(packets()[0])


def test_random_payloads_never_crash() -> None:
    rnd, decoder = random.Random(4), opus.Decoder()
    for _ in range(500):
        payload = rnd.randbytes(rnd.randrange(1, 120))
        for call in (decoder.decode, lambda p: decoder.fec(p, FRAME)):
            try:
                call(payload)
            except CodecError as error:
                assert str(error)


@pytest.mark.parametrize("samples", [0, -1, 10**9])
def test_a_length_out_of_range_is_refused(samples: int) -> None:
    with pytest.raises(CodecError):
        opus.Decoder().conceal(samples)


@pytest.mark.parametrize(
    ("field", "options"),
    [("rate", {"rate": 44_100}), ("bitrate", {"bitrate": -5}), ("complexity", {"complexity": 11})],
)
def test_bad_options_are_named(field: str, options: dict[str, int]) -> None:
    with pytest.raises(MediaValueError, match=field):
        opus.Encoder(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, 639, 642, 4_000])
def test_a_frame_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(MediaValueError, match="pcm"):
        opus.Encoder().encode(bytes(size))


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    opus.library.cache_clear()
    monkeypatch.setattr(opus, "candidates", lambda: iter(("/nowhere/libopus.so",)))
    try:
        with pytest.raises(opus.OpusMissing, match=r"voxglove\[webrtc\].*nowhere"):
            opus.Decoder()
    finally:
        opus.library.cache_clear()


def test_the_wheels_own_copy_comes_first() -> None:
    assert "av.libs" in next(opus.candidates()) or ".dylibs" in next(opus.candidates())
    assert opus.version().startswith("libopus")
