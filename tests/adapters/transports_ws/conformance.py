"""What every CallTransport must do, as checks over a transport and the ear of its far end.

For any carrier: give `check_all` a context that yields an attached transport whose `receive` is
being read, and a function that tells which bytes the far end has played. The checks run on the
virtual or the real clock alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import pytest

from voxglove.media.errors import TransportError
from voxglove.media.frame import AudioFrame
from voxglove.media.transport import HORIZON_MS, CallTransport


@dataclass(frozen=True)
class Rig:
    """A transport in use, what the far end has played, and how far a stop may be off."""

    transport: CallTransport
    heard: Callable[[], bytes]
    slack_ms: float = 0.0


Open = Callable[[], AbstractAsyncContextManager[Rig]]


def numbered(ms: int, transport: CallTransport, start: int = 1) -> list[AudioFrame]:
    """`ms` of frames whose samples count up, so that every sample is told from every other."""
    format = transport.info.output
    step = format.samples(20)
    samples = list(range(start, start + format.samples(ms)))
    return [
        AudioFrame(b"".join(n.to_bytes(2, "little") for n in samples[at : at + step]), format, at)
        for at in range(0, len(samples), step)
    ]


async def plays_all_in_order(rig: Rig) -> None:
    frames = numbered(600, rig.transport)
    for frame in frames:
        assert await rig.transport.send(frame)
    await asyncio.sleep(HORIZON_MS / 1000 + 0.5)
    assert rig.heard() == b"".join(frame.pcm for frame in frames)
    assert rig.transport.played() == sum(frame.samples for frame in frames)


async def never_runs_ahead_of_the_horizon(rig: Rig) -> None:
    format = rig.transport.info.output
    horizon = format.samples(HORIZON_MS)
    sent = 0
    for frame in numbered(1_000, rig.transport):
        await rig.transport.send(frame)
        sent += frame.samples
        ahead = sent - rig.transport.played()
        assert ahead <= horizon + frame.samples + format.samples(rig.slack_ms), ahead


async def played_is_monotone(rig: Rig) -> None:
    last = 0
    for frame in numbered(400, rig.transport):
        await rig.transport.send(frame)
        now = rig.transport.played()
        assert now >= last
        last = now


async def nothing_cleared_is_heard(rig: Rig) -> None:
    for frame in numbered(400, rig.transport):
        await rig.transport.send(frame)
    stop = rig.transport.clear()
    slack = rig.transport.info.output.samples(60 + rig.slack_ms)
    await asyncio.sleep(0.5)
    heard = len(rig.heard()) // 2
    assert abs(heard - stop) <= slack, f"stopped at {stop}, the far end heard {heard}"
    await rig.transport.send(numbered(20, rig.transport, start=20_000)[0])
    await asyncio.sleep(0.3)
    assert rig.heard()[2 * heard :] == numbered(20, rig.transport, start=20_000)[0].pcm


async def clear_frees_a_waiting_send(rig: Rig) -> None:
    frames = numbered(2_000, rig.transport)

    async def send_all() -> list[bool]:
        return [await rig.transport.send(frame) for frame in frames[:30]]

    async with asyncio.TaskGroup() as group:
        sending = group.create_task(send_all())
        await asyncio.sleep(0.1)
        assert not sending.done()
        rig.transport.clear()
    assert sending.result().count(False) == 1


async def a_cancelled_send_took_nothing(rig: Rig) -> None:
    frames = numbered(HORIZON_MS + 20, rig.transport)
    for frame in frames:
        await rig.transport.send(frame)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await rig.transport.send(frames[0])
    await asyncio.sleep(0.8)
    assert rig.heard() == b"".join(frame.pcm for frame in frames)


async def clear_is_legal_at_any_time(rig: Rig) -> None:
    assert rig.transport.clear() == 0
    assert rig.transport.clear() == 0
    await rig.transport.aclose("hangup")
    assert rig.transport.clear() == 0


async def send_after_the_end_raises(rig: Rig) -> None:
    await rig.transport.aclose("hangup")
    await rig.transport.aclose("hangup")
    with pytest.raises(TransportError):
        await rig.transport.send(numbered(20, rig.transport)[0])


CHECKS = (
    plays_all_in_order,
    never_runs_ahead_of_the_horizon,
    played_is_monotone,
    nothing_cleared_is_heard,
    clear_frees_a_waiting_send,
    a_cancelled_send_took_nothing,
    clear_is_legal_at_any_time,
    send_after_the_end_raises,
)
"""Parametrise a test over these."""
