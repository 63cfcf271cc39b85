"""The names of aiortc and aioice that we replace: this file fails when one of them moves."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Sequence
from fractions import Fraction

import aioice.ice
import aiortc.codecs
import aiortc.codecs.opus
import aiortc.jitterbuffer
import aiortc.mediastreams
import aiortc.rtcrtpreceiver
import aiortc.rtcrtpsender
import pytest
from aiortc.codecs.base import Decoder
from aiortc.jitterbuffer import JitterFrame
from aiortc.rtp import RtpPacket
from av import AudioFrame

from voxglove.adapters.transports import webrtc_seams as seams
from voxglove.media.jitter import RTP_RATE, Packet
from voxglove.media.opus import Encoder
from voxglove.media.plc import Piece


@pytest.fixture(autouse=True)
def installed() -> None:
    seams.install()
    seams.install()


def source(of: object) -> str:
    return inspect.getsource(of)  # type: ignore[arg-type]


def test_the_audio_receiver_makes_its_jitter_buffer_by_our_name() -> None:
    made = source(aiortc.rtcrtpreceiver.RTCRtpReceiver.__init__)
    assert "JitterBuffer(capacity=16, prefetch=4)" in made
    assert "JitterBuffer(capacity=512, is_video=True)" in made
    assert vars(aiortc.rtcrtpreceiver)["JitterBuffer"] is seams.voice_buffer


def test_the_stock_buffer_still_has_the_signatures_we_stand_in_for() -> None:
    stock = aiortc.jitterbuffer.JitterBuffer
    assert list(inspect.signature(stock).parameters) == list(
        inspect.signature(seams.voice_buffer).parameters
    )
    assert list(inspect.signature(stock.add).parameters) == ["self", "packet"]
    handled = source(aiortc.rtcrtpreceiver.RTCRtpReceiver._handle_rtp_packet)
    assert "pli_flag, encoded_frame = self.__jitter_buffer.add(packet)" in handled
    assert "encoded_frame.timestamp = self.__timestamp_mapper.map(" in handled
    assert "self.__decoder_queue.put((codec, encoded_frame))" in handled


def test_video_keeps_the_stock_buffer() -> None:
    assert type(seams.voice_buffer(512, is_video=True)) is aiortc.jitterbuffer.JitterBuffer
    assert isinstance(seams.voice_buffer(16, 4), seams.VoiceStream)


def test_the_decoder_is_looked_up_when_it_is_needed_and_is_ours() -> None:
    assert "return OpusDecoder()" in source(aiortc.codecs.get_decoder)
    (opus,) = [c for c in aiortc.codecs.CODECS["audio"] if c.name.lower() == "opus"]
    assert isinstance(aiortc.codecs.get_decoder(opus), seams.VoiceDecoder)
    assert inspect.signature(Decoder.decode) == inspect.signature(
        aiortc.codecs.opus.OpusDecoder.decode
    )


def test_the_thread_gives_on_whatever_frames_the_decoder_returns() -> None:
    worker = source(aiortc.rtcrtpreceiver.decoder_worker)
    assert "frames = decoder.decode(encoded_frame)" in worker
    assert "output_q.put(frame)" in worker
    assert "except av.FFmpegError" in worker, "anything else would end the thread"


def test_the_sender_sends_encoded_packets_as_they_are() -> None:
    sends = source(aiortc.rtcrtpsender.RTCRtpSender._next_encoded_frame)
    assert "data = await self.__track.recv()" in sends
    assert "self.__encoder.pack(data)" in sends


def test_packets_in_rtps_own_clock_are_converted_by_nobody() -> None:
    packed = source(aiortc.codecs.opus.OpusEncoder.pack)
    assert "convert_timebase(packet.pts, packet.time_base, TIME_BASE)" in packed
    assert Fraction(1, RTP_RATE) == aiortc.codecs.opus.TIME_BASE
    assert "if from_base != to_base:" in source(aiortc.mediastreams.convert_timebase)


def test_the_way_out_is_one_name_of_the_ice_transport() -> None:
    """What the injector stands in for: everything leaves by it, encrypted and numbered."""
    assert "self._send = self._connection.send" in source(aiortc.RTCIceTransport.__init__)
    sends = source(aiortc.RTCDtlsTransport._send_rtp)
    assert "await self.transport._send(data)" in sends
    assert sends.index("protect(data)") < sends.index("transport._send(data)")
    assert list(inspect.signature(aioice.ice.Connection.send).parameters) == ["self", "data"]
    assert "self.transport.sendto(data, addr)" in source(aioice.ice.StunProtocol.send_data)


def test_a_stream_with_a_reader_leaves_the_decoder_thread_idle() -> None:
    handled = source(aiortc.rtcrtpreceiver.RTCRtpReceiver._handle_rtp_packet)
    assert "if encoded_frame is not None and self.__decoder_thread:" in handled
    ends = source(aiortc.rtcrtpreceiver.decoder_worker)
    assert "output_q.put(None)" in ends, "the thread still says when the track is over"


def test_redundancy_is_asked_for() -> None:
    (opus,) = [c for c in aiortc.codecs.CODECS["audio"] if c.name.lower() == "opus"]
    assert opus.parameters["useinbandfec"] == 1
    assert [c.parameters for c in seams.opus_only()] == [seams.OPUS_PARAMETERS]


def test_aioices_names_are_where_we_replace_them() -> None:
    ice = source(aioice.ice.Connection)
    assert "get_host_addresses(" in ice
    assert "CONSENT_INTERVAL * (" in ice and "failures >= CONSENT_FAILURES" in ice
    assert list(inspect.signature(seams._stock_host_addresses).parameters) == list(
        inspect.signature(seams.host_addresses).parameters
    )
    with seams.gathering_on(("127.0.0.1",)):
        assert aioice.ice.get_host_addresses(True, True) == ["127.0.0.1"]
    assert "127.0.0.1" not in aioice.ice.get_host_addresses(True, False)


def rtp(number: int, payload: bytes) -> RtpPacket:
    packet = RtpPacket(payload_type=96, sequence_number=number, timestamp=number * 960)
    packet.payload = payload
    return packet


async def test_everything_ready_leaves_together_and_a_hole_is_recovered() -> None:
    encoder, stream, decoder = Encoder(), seams.VoiceStream(), seams.VoiceDecoder()
    payloads = [encoder.encode(bytes(640)) for _ in range(6)]
    runs = [stream.add(rtp(n, payloads[n]))[1] for n in (0, 1, 3, 4, 5)]
    assert [run is None for run in runs] == [False, False, True, False, False]
    frames = [decoder.decode(run) for run in runs if run is not None]
    sizes = [[f.samples for f in got if isinstance(f, AudioFrame)] for got in frames]
    assert sizes == [[320], [320], [960], [320]], "one frame for the hole and both that waited"
    assert frames[2][0].pts == 640
    assert stream.concealer.statistics.fec == 320


async def test_a_pause_of_the_sender_shows_as_a_step_of_pts() -> None:
    encoder, stream, decoder = Encoder(), seams.VoiceStream(), seams.VoiceDecoder()
    pause = rtp(1, encoder.encode(bytes(640)))
    pause.timestamp = 21 * 960
    runs = [stream.add(rtp(0, encoder.encode(bytes(640))))[1], stream.add(pause)[1]]
    frames = [frame for run in runs if run is not None for frame in decoder.decode(run)]
    assert [frame.pts for frame in frames] == [0, 21 * 320]


async def test_decoding_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    stream, decoder = seams.VoiceStream(), seams.VoiceDecoder()
    for number, payload in enumerate((b"", b"\xff" * 50, b"\0", bytes(range(250)))):
        _, run = stream.add(rtp(number, payload))
        if run is not None:
            decoder.decode(run)
    broken = seams.Run(stream, stream.jitter.add(Packet(4, 4 * 960, b"x"), 0))
    broken.stream = None  # type: ignore[assignment]
    assert decoder.decode(broken) == []
    assert "could not be decoded" in caplog.text


async def test_a_reader_is_given_the_sound_on_the_loop_and_never_an_exception(
    caplog: pytest.LogCaptureFixture,
) -> None:
    encoder, stream, got = Encoder(), seams.VoiceStream(), list[str]()

    def deliver(pieces: Sequence[Piece]) -> None:
        got.extend(piece.kind for piece in pieces)
        if len(got) == 4:
            raise ValueError("the reader is broken")

    stream.deliver = deliver
    for number in (0, 1, 3, 4, 5):
        assert stream.add(rtp(number, encoder.encode(bytes(640)))) == (False, None)
    assert got == ["decoded", "decoded", "fec", "decoded", "decoded", "decoded"]
    assert stream.report().lost == 1 and stream.report().recovered_ms == 20
    for number, payload in enumerate((b"", b"\xff" * 50, b"\0"), start=6):
        stream.add(rtp(number, payload))
    assert stream.report().received == 8
    stream.concealer = None  # type: ignore[assignment]
    assert stream.add(rtp(9, b"x")) == (False, None)
    assert "could not be decoded" in caplog.text


def test_a_receiver_from_before_is_left_to_the_stock_decoder() -> None:
    decoder = seams.VoiceDecoder()
    decoded: list[object] = []

    def work() -> None:  # as aiortc does, in a thread
        decoded.extend(decoder.decode(JitterFrame(Encoder().encode(bytes(640)), 0)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(decoded) == 1
