"""What every CallTransport must do: subclass `TransportSuite`, give it a rig, inherit the tests.

A rig is one attached line and its far end. Only the port's promises are tested here, with the
loop's clock as the only clock, so the same tests run on a virtual loop and on real carriers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import pytest

from voxglove.media.errors import MediaValueError, TransportClosed
from voxglove.media.format import AudioFormat
from voxglove.media.frame import AudioFrame, silence
from voxglove.media.transport import HORIZON_MS, CallTransport, Hangup, Signal


class Rig(Protocol):
    """A line under test and the hands of its peer."""

    @property
    def transport(self) -> CallTransport: ...

    def hang_up(self) -> None:
        """Let the peer end the call."""
        ...


class Reader:
    """Collects everything a transport yields. Its task belongs to `attached`'s group."""

    def __init__(self, transport: CallTransport) -> None:
        self.transport = transport
        self.items: list[AudioFrame | Signal] = []
        self.ended = asyncio.Event()

    async def run(self) -> None:
        try:
            async for item in self.transport.receive():
                self.items.append(item)
        finally:
            self.ended.set()

    def frames(self) -> list[AudioFrame]:
        return [item for item in self.items if isinstance(item, AudioFrame)]

    def signals(self) -> list[Signal]:
        return [item for item in self.items if not isinstance(item, AudioFrame)]


@asynccontextmanager
async def attached(transport: CallTransport) -> AsyncIterator[Reader]:
    """A line whose input is read; closed at the end."""
    reader = Reader(transport)
    async with asyncio.TaskGroup() as group:
        group.create_task(reader.run(), name="reader")
        try:
            yield reader
        finally:
            await transport.aclose("the test is over")


def frame_of(transport: CallTransport, ms: float, level: int = 1_000) -> AudioFrame:
    """A frame of constant samples in the transport's output format."""
    form = transport.info.output
    count = form.samples(ms) * form.channels
    return AudioFrame(level.to_bytes(2, "little", signed=True) * count, form)


async def play(transport: CallTransport, ms: float) -> int:
    """Send `ms` of sound in 20 ms frames; samples taken."""
    taken = 0
    for _ in range(round(ms / 20)):
        frame = frame_of(transport, 20)
        taken += frame.samples if await transport.send(frame) else 0
    return taken


async def played_out(transport: CallTransport, samples: int) -> None:
    """Wait until `samples` were played; fails after 5 s."""
    async with asyncio.timeout(5):
        while transport.played() < samples:  # noqa: ASYNC110 - the port has no event for it
            await asyncio.sleep(0.02)


class TransportSuite:
    """Invariants of media.transport.CallTransport."""

    slack_ms: float = 60
    """How far a carrier's own buffering may shift the horizon."""

    @pytest.fixture
    def rig(self) -> Rig:
        raise NotImplementedError("a subclass gives its rig")

    async def test_all_that_was_sent_is_played(self, rig: Rig) -> None:
        async with attached(rig.transport):
            sent = await play(rig.transport, 400)
            await played_out(rig.transport, sent)
            assert rig.transport.played() == sent

    async def test_position_is_monotone_and_never_ahead_of_what_was_sent(self, rig: Rig) -> None:
        async with attached(rig.transport):
            sent, last = 0, 0
            for step in range(40):
                sent += await play(rig.transport, 20)
                if step % 13 == 12:
                    sent = rig.transport.clear()
                now = rig.transport.played()
                assert last <= now <= sent
                last = now

    async def test_send_waits_beyond_the_horizon(self, rig: Rig) -> None:
        async with attached(rig.transport):
            loop = asyncio.get_running_loop()
            started = loop.time()
            sent = await play(rig.transport, 1_000)
            took_ms = (loop.time() - started) * 1000
            held_ms = rig.transport.info.output.ms(sent - rig.transport.played())
        assert took_ms >= 1_000 - HORIZON_MS - self.slack_ms
        assert held_ms <= HORIZON_MS + self.slack_ms

    async def test_clear_ends_a_waiting_send_and_its_frame_gets_no_position(self, rig: Rig) -> None:
        async with attached(rig.transport), asyncio.TaskGroup() as group:
            await play(rig.transport, HORIZON_MS)
            waiting = group.create_task(rig.transport.send(frame_of(rig.transport, HORIZON_MS)))
            await asyncio.sleep(0.001)
            assert not waiting.done(), "the frame fits: nothing to test"
            stopped = rig.transport.clear()
            assert await waiting is False
            await asyncio.sleep(0.3)
            # An estimate may have been corrected meanwhile; nothing more was played.
            moved = abs(rig.transport.played() - stopped)
            assert moved <= rig.transport.info.output.samples(self.slack_ms)

    async def test_later_frames_count_on_from_a_clear(self, rig: Rig) -> None:
        async with attached(rig.transport):
            await play(rig.transport, 300)
            stopped = rig.transport.clear()
            sent = await play(rig.transport, 100)
            await played_out(rig.transport, stopped + sent)
            assert rig.transport.played() == stopped + sent

    async def test_clearing_twice_changes_nothing(self, rig: Rig) -> None:
        async with attached(rig.transport):
            await play(rig.transport, 100)
            assert rig.transport.clear() == rig.transport.clear()

    async def test_a_cancelled_send_was_not_taken(self, rig: Rig) -> None:
        async with attached(rig.transport):
            sent = await play(rig.transport, HORIZON_MS)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await rig.transport.send(frame_of(rig.transport, HORIZON_MS))
            await asyncio.sleep(0.6)
            assert rig.transport.played() == sent

    async def test_close_is_idempotent_ends_input_and_refuses_output(self, rig: Rig) -> None:
        async with attached(rig.transport) as reader:
            await play(rig.transport, 100)
            await rig.transport.aclose("first")
            await rig.transport.aclose("again")
            async with asyncio.timeout(2):
                await reader.ended.wait()
            with pytest.raises(TransportClosed):
                await rig.transport.send(frame_of(rig.transport, 20))
            assert rig.transport.clear() >= 0

    async def test_close_ends_a_waiting_send(self, rig: Rig) -> None:
        async with attached(rig.transport), asyncio.TaskGroup() as group:
            await play(rig.transport, HORIZON_MS)
            waiting = group.create_task(self._refused(rig.transport))
            await asyncio.sleep(0.001)
            await rig.transport.aclose("gone")
            async with asyncio.timeout(1):
                await waiting

    async def test_the_peers_hang_up_is_the_last_word(self, rig: Rig) -> None:
        async with attached(rig.transport) as reader:
            await asyncio.sleep(0.05)
            rig.hang_up()
            async with asyncio.timeout(2):
                await reader.ended.wait()
            last = reader.items[-1]
            assert isinstance(last, Hangup) and last.by_remote

    async def test_a_frame_in_another_format_is_refused(self, rig: Rig) -> None:
        wrong = 8_000 if rig.transport.info.output.rate != 8_000 else 16_000
        async with attached(rig.transport):
            with pytest.raises(MediaValueError, match="frame"):
                await rig.transport.send(silence(160, AudioFormat(wrong)))

    @staticmethod
    async def _refused(transport: CallTransport) -> None:
        with pytest.raises(TransportClosed):
            await transport.send(frame_of(transport, HORIZON_MS))
