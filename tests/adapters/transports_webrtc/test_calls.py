"""Two peers in one process on 127.0.0.1: real ICE, DTLS, SRTP and Opus, on the real clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.adapters.transports_webrtc.peer import (
    Lose,
    Peer,
    Samples,
    alignment,
    clarity,
    config,
    line,
)
from tests.support.brains import ScriptedBrain
from voxglove.adapters.transports import webrtc_seams as seams
from voxglove.adapters.transports.webrtc import WebRtcTransport
from voxglove.adapters.transports.webrtc_config import WebRtcConfig
from voxglove.media.call import Call
from voxglove.media.errors import MediaValueError, TransportClosed
from voxglove.media.frame import AudioFrame
from voxglove.media.line import Line
from voxglove.media.transport import CallInfo, Data, Gap, Hangup

pytestmark = pytest.mark.real_loop

RATE = 16_000

Tell = Callable[[str], None]


@lru_cache
def speech(seconds: float) -> Samples:
    path = Path(__file__).parents[2] / "audio_fixtures" / "jfk.wav"
    pcm, rate = soundfile.read(path, dtype="int16")
    assert rate == RATE
    return np.asarray(pcm[: round(seconds * RATE)], np.int16)


async def until(reached: Callable[[], bool], timeout_s: float = 5.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not reached():  # noqa: ASYNC110 - counters of the other side have no event
            await asyncio.sleep(0.01)


def frames(pcm: Samples) -> list[AudioFrame]:
    return [AudioFrame(pcm[at : at + 320].tobytes()) for at in range(0, len(pcm) - 319, 320)]


async def test_speech_and_messages_go_both_ways(tell: Tell) -> None:
    said = speech(2.5)
    async with line() as on:
        on.peer.speech.put(said.tobytes())
        on.peer.say({"t": "say", "text": "hello"})
        await on.transport.send_data({"t": "heard", "heard": "x"})
        for frame in frames(said):
            assert await on.transport.send(frame)
        await until(lambda: on.transport.played() >= len(said) // 320 * 320)
        await asyncio.sleep(0.2)
        sdp = on.peer.pc.remoteDescription.sdp
    assert "useinbandfec=1" in sdp and "PCMU" not in sdp and "G722" not in sdp
    up = clarity(said, on.heard.samples())
    down = clarity(said, np.concatenate(on.peer.heard))
    tell(f"webrtc on loopback: correlation up {up:.3f}, down {down:.3f}")
    assert up >= 0.95 and down >= 0.95
    told = on.heard.signals()
    messages = [item for item in told if isinstance(item, Data)]
    assert messages == [Data({"t": "say", "text": "hello"})]
    # Nothing but what a held-up sender left out is missing.
    missing = sum(item.samples for item in told if isinstance(item, Gap))
    assert missing <= 320 * on.peer.track.skipped
    assert on.peer.messages == [{"t": "heard", "heard": "x"}, {"t": "bye", "reason": "hangup"}]
    assert on.heard.failure is None


def at_random(rate: float) -> Lose:
    rnd = random.Random(7)
    return lambda n: n > 10 and rnd.random() < rate


def in_bursts(n: int) -> bool:
    """1, 2, 3, 4, 5 packets in a row, 20 received between."""
    return any(at <= n < at + k for k, at in zip(range(1, 6), range(30, 200, 25), strict=False))


MAY_SKIP = 3
"""Frames that a busy machine may leave out of four seconds before content is no longer judged."""

LOSSES: dict[str, Lose] = {
    **{f"{percent} %": at_random(percent / 100) for percent in (0, 10)},
    "bursts of 1-5": in_bursts,
}


async def lossy(lose: Lose) -> tuple[Samples, list[float], int, str]:
    """What was heard of the speech, when frames came, frames its sender left out, the counts."""
    said = speech(4)
    async with line(data=False, lose=lose) as on:
        on.peer.speech.put(said.tobytes())
        await asyncio.sleep(len(said) / RATE + 0.4)
        (stream,) = on.transport.streams
        counts, made = stream.jitter.statistics, stream.concealer.statistics
        assert stream.jitter.held <= 2
        text = f"{counts.lost} lost, {made.fec // 320} FEC, {made.concealed // 320} concealed"
    sounds = [at for item, at in zip(on.heard.items, on.heard.at, strict=True) if item]
    return on.heard.samples(), sounds, on.peer.track.skipped, text


@pytest.mark.slow
async def test_loss_costs_no_time_and_leaves_no_lag(tell: Tell) -> None:
    async with asyncio.TaskGroup() as group:
        runs = {name: group.create_task(lossy(lose)) for name, lose in LOSSES.items()}
    said = speech(4)
    first, last = said[: 2 * RATE], said[2 * RATE :]
    unhurried = max(np.diff(runs["0 %"].result()[1]))
    for name, run in runs.items():
        heard, at, skipped, counts = run.result()
        slip = alignment(last, heard)[0] - alignment(first, heard)[0] - 2 * RATE
        early, late = clarity(first, heard), clarity(last, heard)
        stall = max(np.diff(at))
        tell(
            f"webrtc, {name} lost in front of the jitter buffer: {counts};"
            f" correlation {early:.3f} then {late:.3f}; longest wait {stall * 1000:.0f} ms"
        )
        assert any(abs(slip - n * 320) <= 8 for n in range(skipped + 1)), f"{name}: time slipped"
        # A sender that was held up leaves time out, in the middle of words; what loss does to
        # words on a clock of its own is test_loss.py's matter.
        if skipped <= MAY_SKIP:
            assert min(early, late) >= (0.95 if name == "0 %" else 0.75), name
        assert len(heard) >= len(said) - 4 * 320, f"{name}: lag stayed"
        assert stall <= unhurried + 0.2, f"{name}: a stall"


async def test_a_cut_is_silent_on_the_wire_within_60_ms() -> None:
    loud = (8_000 * np.sin(np.arange(2 * RATE) * 2 * np.pi * 440 / RATE)).astype(np.int16)
    async with line() as on:
        for frame in frames(loud)[:25]:
            await on.transport.send(frame)
        await until(lambda: bool(on.peer.heard) and np.abs(on.peer.heard[-1]).max() > 4_000)
        stopped = on.transport.clear()
        before = len(on.peer.heard)
        await asyncio.sleep(0.4)
        after = np.concatenate(on.peer.heard[before:])
        assert on.transport.played() == stopped
    assert np.count_nonzero(np.abs(after.astype(int)) > 1_000) <= 0.06 * RATE


async def test_a_paused_track_is_filled_by_a_gap_of_its_length() -> None:
    async with line() as on:
        (sender,) = on.peer.pc.getSenders()
        await until(lambda: len(on.heard.items) > 5)
        track, loop = sender.track, asyncio.get_running_loop()
        began = loop.time()
        sender.replaceTrack(None)
        await asyncio.sleep(0.6)
        sender.replaceTrack(track)
        paused = loop.time() - began
        await until(lambda: any(isinstance(item, Gap) for item in on.heard.items))
        await asyncio.sleep(0.2)
        gaps = [item.samples for item in on.heard.signals() if isinstance(item, Gap)]
    assert sum(gaps) / RATE == pytest.approx(paused, abs=0.1)


async def test_the_peers_hang_up_is_a_hang_up() -> None:
    async with line() as on:
        on.peer.say({"t": "hangup"})
        async with asyncio.timeout(3):
            await on.heard.ended.wait()
        assert on.heard.items[-1] == Hangup(by_remote=True)


async def test_a_page_that_closes_is_a_lost_carrier_not_a_hang_up() -> None:
    async with line() as on:
        await on.peer.pc.close()
        async with asyncio.timeout(3):
            await on.heard.ended.wait()
        assert isinstance(on.heard.failure, TransportClosed)
        with pytest.raises(TransportClosed, match="peer closed"):
            await on.transport.send(AudioFrame(bytes(640)))
        assert on.transport.clear() == on.transport.played()


@pytest.fixture
def soon_gone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A vanished peer is noticed after two checks in place of six."""
    monkeypatch.setattr(seams, "CONSENT_INTERVAL_S", 0.05)
    monkeypatch.setattr(seams, "CONSENT_FAILURES", 2)
    yield
    monkeypatch.undo()
    seams.install()


async def test_a_peer_that_vanishes_is_noticed(soon_gone: None) -> None:
    async with line() as on:
        for transceiver in on.peer.pc.getTransceivers():
            ice = transceiver.receiver.transport.transport._connection
            for protocol in ice._protocols:
                protocol.datagram_received = lambda *_: None  # type: ignore[method-assign]
        async with asyncio.timeout(5):
            await on.heard.ended.wait()
        assert "stopped answering" in str(on.heard.failure)


async def test_a_page_without_a_microphone_may_listen_and_type() -> None:
    said = speech(1)
    async with line(speaks=False) as on:
        on.peer.say({"t": "say", "text": "hello"})
        for frame in frames(said):
            await on.transport.send(frame)
        await until(lambda: on.transport.played() >= len(said) // 320 * 320)
        await asyncio.sleep(0.2)
        assert on.heard.items == [Data({"t": "say", "text": "hello"})]
        assert clarity(said, np.concatenate(on.peer.heard)) >= 0.95
        await on.peer.pc.close()
        async with asyncio.timeout(3):
            await on.heard.ended.wait()
        assert isinstance(on.heard.failure, TransportClosed)


async def test_an_ice_failure_is_told_with_its_cause() -> None:
    transport, peer = WebRtcTransport(config(connect_s=0.5)), Peer()
    await transport.answer(await peer.offer())
    await transport.run()
    with pytest.raises(TransportClosed, match=r"ICE: no pair .*1 host; theirs: 1 host.*TURN"):
        async for _ in transport.receive():
            pass
    await peer.pc.close()


async def test_a_renegotiation_does_not_end_the_line() -> None:
    async with line() as on:
        await on.peer.accept(await on.transport.answer(await on.peer.offer()))
        count = len(on.heard.items)
        await until(lambda: len(on.heard.items) > count + 10)
        assert on.transport.connected


async def test_loopback_is_offered_only_when_it_was_asked_for() -> None:
    peer = Peer()
    offer = await peer.offer()
    for hosts, wanted in ((("127.0.0.1",), True), ((), False)):
        transport = WebRtcTransport(WebRtcConfig(host_addresses=hosts))
        answer = await transport.answer(offer)
        assert (" 127.0.0.1 " in answer.split("a=candidate", 1)[-1]) is wanted
        await transport.aclose("hangup")
    await peer.pc.close()


async def test_malformed_offers_and_candidates_break_nothing() -> None:
    peer, rnd, refused = Peer(), random.Random(5), 0
    offer = await peer.offer()
    lines = offer.splitlines()
    for _ in range(60):
        broken = list(lines)
        for _ in range(rnd.randint(1, 4)):
            at = rnd.randrange(len(broken))
            match rnd.randrange(4):
                case 0:
                    del broken[at]
                case 1:
                    broken[at] = broken[at][: rnd.randrange(len(broken[at]) + 1)]
                case 2:
                    broken[at] = broken[at].replace("1", "\u2603")
                case _:
                    broken.insert(at, broken[rnd.randrange(len(broken))])
        transport = WebRtcTransport(config())
        try:
            await transport.answer("\r\n".join(broken) + "\r\n")
            await transport.add_candidate(rnd.choice(("candidate:" + "x" * 50, "a=", "1 2 3")), "0")
        except MediaValueError as error:
            assert error.field in ("sdp", "candidate")
            refused += 1
        await transport.aclose("error")
    await peer.pc.close()
    assert refused >= 20


async def connected(call: Call, group: asyncio.TaskGroup) -> tuple[WebRtcTransport, Peer]:
    """A page's connection as a door makes it: answer, run beside the call, attach."""
    transport, peer = WebRtcTransport(config()), Peer()
    group.create_task(transport.run())
    answer = await transport.answer(await peer.offer())
    assert call.attach(transport) is None
    await peer.accept(answer)
    await until(lambda: transport.connected)
    group.create_task(peer.listen())
    return transport, peer


async def test_a_call_outlives_its_page_and_goes_on_over_the_next_one() -> None:
    said, tune = speech(1.5), speech(6)

    async def talk(line: Line) -> None:
        for frame in frames(tune):
            await line.play(1, frame)
        await line.drain()

    brain = ScriptedBrain(talk)
    call = Call(brain, CallInfo(call_id="c1", line="webrtc"))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(call.run())
        _, first = await connected(call, group)
        first.speech.put(said.tobytes())
        await asyncio.sleep(2)
        await first.pc.close()
        await asyncio.sleep(0.3)
        _, second = await connected(call, group)
        second.speech.put(said.tobytes())
        await asyncio.sleep(2)
        second.say({"t": "hangup"})
        async with asyncio.timeout(5):
            assert await running == "remote_hangup"
        await second.pc.close()
    heard = np.frombuffer(brain.heard_pcm, np.int16)
    half = len(heard) // 2
    assert clarity(said, heard[:half]) >= 0.9
    assert clarity(said, heard[half:]) >= 0.9
    before, after = (np.concatenate(peer.heard) for peer in (first, second))
    begun, resumed = tune[:RATE], tune[3 * RATE : round(3.5 * RATE)]
    assert clarity(begun, before) >= 0.9, "the answer began on the first page"
    assert clarity(resumed, after) >= 0.9, "and went on where it stood, on the second"
