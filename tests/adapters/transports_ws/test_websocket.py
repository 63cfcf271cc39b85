"""The WebSocket line without a network: conformance, and what only this carrier does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.adapters.transports_ws.conformance import CHECKS, Rig, numbered
from tests.adapters.transports_ws.peer import FakeSocket, Player
from voxglove.adapters.transports.websocket import (
    BAD_PEER,
    REPLACED,
    SLOW_CONSUMER,
    TOO_BIG,
    WebSocketLimits,
    WebSocketTransport,
)
from voxglove.adapters.transports.writer import WRITE_DEADLINE_S
from voxglove.media.errors import TransportClosed, TransportError, TransportStalled
from voxglove.media.frame import AudioFrame
from voxglove.media.transport import Data, Hangup, Played, Signal


class Open:
    """A transport in use: its writer runs, its stream is read into `got`, a player may listen."""

    def __init__(self, socket: FakeSocket, transport: WebSocketTransport) -> None:
        self.socket = socket
        self.transport = transport
        self.got: list[AudioFrame | Signal] = []
        self.failure: TransportError | None = None
        self.ended = False

    async def read(self) -> None:
        try:
            async for item in self.transport.receive():
                self.got.append(item)
        except TransportError as error:
            self.failure = error
        self.ended = True

    def frames(self) -> list[AudioFrame]:
        return [item for item in self.got if isinstance(item, AudioFrame)]

    def signals(self) -> list[Signal]:
        return [item for item in self.got if not isinstance(item, AudioFrame)]


@asynccontextmanager
async def opened(
    player: bool | None = None, limits: WebSocketLimits | None = None
) -> AsyncIterator[tuple[Open, Player]]:
    """`player`: None no player, True one that reports, False one that never does."""
    socket = FakeSocket()
    transport = WebSocketTransport(socket, limits=limits)
    line = Open(socket, transport)
    ear = Player(socket, acks=bool(player))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(transport.run()), group.create_task(line.read())]
        if player is not None:
            tasks.append(group.create_task(ear.run()))
        yield line, ear
        await transport.aclose("hangup")
        for task in tasks:
            task.cancel()


async def moment(reached: Callable[[], bool]) -> float:
    """When `reached` became true, on the loop's clock; TimeoutError after 5 s."""
    async with asyncio.timeout(5):
        while not reached():  # noqa: ASYNC110 - polled, because played() is a pure reading
            await asyncio.sleep(0.01)
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("acks", [True, False], ids=["acknowledging", "silent"])
async def test_it_conforms(check, acks: bool) -> None:  # type: ignore[no-untyped-def]
    async with opened(player=acks) as (line, ear):
        await check(Rig(line.transport, lambda: bytes(ear.sounded), slack_ms=60))


async def test_the_corrected_stop_is_said_once_with_the_clients_position() -> None:
    async with opened(player=True) as (line, ear):
        for frame in numbered(400, line.transport):
            await line.transport.send(frame)
        line.transport.clear()
        await asyncio.sleep(0.1)
        assert line.signals() == [Played(ear.pos, 0)]
        line.socket.say({"t": "cleared", "epoch": 0, "pos": 0})
        await asyncio.sleep(0.1)
        assert line.signals() == [Played(ear.pos, 0)], "once"
        assert line.transport.played() == ear.pos


async def test_old_sound_never_follows_a_clear() -> None:
    async with opened() as (line, _):
        for frame in numbered(200, line.transport):
            await line.transport.send(frame)
        line.transport.clear()
        await line.transport.send(numbered(20, line.transport, start=9_000)[0])
        await asyncio.sleep(0.01)
        after = [item for _, item in line.socket.log]
        clear = after.index({"t": "clear", "epoch": 0})
        assert after[clear + 1 :] == [numbered(20, line.transport, start=9_000)[0].pcm]


async def test_voice_row_071_a_client_that_never_acks_ends_speaking_at_most_500_ms_late() -> None:
    async with opened(player=False) as (line, ear):
        sent = 0
        for frame in numbered(1_000, line.transport):
            await line.transport.send(frame)
            sent += frame.samples
        done = await moment(lambda: line.transport.played() >= sent)
        silent = await moment(lambda: len(ear.sounded) >= 2 * sent)
        assert abs(silent - done) <= 0.5


async def test_voice_row_072_an_odd_frame_is_refused_whole_and_the_line_lives() -> None:
    async with opened() as (line, _):
        line.socket.say(b"\1\0" * 320)
        line.socket.say(b"\7" * 641)
        line.socket.say(b"")
        line.socket.say(b"\2\0" * 320)
        await asyncio.sleep(0.01)
        assert [frame.pcm[:2] for frame in line.frames()] == [b"\1\0", b"\2\0"]
        assert [frame.at for frame in line.frames()] == [0, 320], "no sample of it counts"
        errors = line.socket.of_kind("error")
        assert [(e["code"], e["field"]) for e in errors] == [("bad_frame", "pcm")] * 2
        assert not line.ended


async def test_twenty_bad_messages_are_answered_and_the_next_closes_4001() -> None:
    async with opened() as (line, _):
        for _ in range(20):
            line.socket.say("rubbish")
        await asyncio.sleep(0.01)
        assert line.socket.closed is None
        assert len(line.socket.of_kind("error")) == 20
        line.socket.say({"t": "nonsense"})
        await asyncio.sleep(0.01)
        assert line.socket.closed is not None and line.socket.closed[0] == BAD_PEER
        assert isinstance(line.failure, TransportClosed)


async def test_bad_messages_that_come_slowly_never_close() -> None:
    async with opened() as (line, _):
        for _ in range(60):
            line.socket.say("rubbish")
            await asyncio.sleep(0.6)
        assert line.socket.closed is None
        assert line.transport.bad_messages == 60


async def test_a_flood_of_good_messages_is_refused_like_bad_ones() -> None:
    async with opened() as (line, _):
        for _ in range(200):
            line.socket.say({"t": "commit"})
        await asyncio.sleep(0.01)
        assert len(line.signals()) == 100
        assert line.socket.closed is not None and line.socket.closed[0] == BAD_PEER


@pytest.mark.parametrize("message", [b"\0" * 65_538, '"' + "x" * 65_536 + '"'])
async def test_too_big_a_message_closes_1009(message: bytes | str) -> None:
    async with opened() as (line, _):
        line.socket.say(message)
        await asyncio.sleep(0.01)
        assert line.socket.closed is not None and line.socket.closed[0] == TOO_BIG


async def test_sound_faster_than_time_is_dropped_and_counted() -> None:
    async with opened(limits=WebSocketLimits(input_burst_s=1.0)) as (line, _):
        for _ in range(100):
            line.socket.say(bytes(640))
        await asyncio.sleep(0.01)
        assert len(line.frames()) == 50
        assert line.transport.dropped_samples == 50 * 320
        await asyncio.sleep(1)
        line.socket.say(bytes(640))
        await asyncio.sleep(0.01)
        assert len(line.frames()) == 51


async def test_a_client_that_does_not_read_is_closed_4002() -> None:
    async with opened() as (line, _):
        line.socket.stuck = True
        frames = numbered(3_000, line.transport)
        began = asyncio.get_running_loop().time()
        with pytest.raises(TransportStalled):
            for frame in frames * 4:
                await line.transport.send(frame)
        took = asyncio.get_running_loop().time() - began
        assert took <= WRITE_DEADLINE_S + 1
        await asyncio.sleep(1)
        assert line.socket.closed is not None and line.socket.closed[0] == SLOW_CONSUMER
        assert isinstance(line.failure, TransportStalled)


async def test_messages_that_pile_up_close_4002() -> None:
    async with opened() as (line, _):
        line.socket.stuck = True
        for number in range(300):
            line.transport.post({"t": "metric", "name": "n", "value": number})
        await asyncio.sleep(WRITE_DEADLINE_S + 1)
        assert line.socket.closed is not None and line.socket.closed[0] == SLOW_CONSUMER


async def test_a_client_whose_player_stands_still_stalls_the_line() -> None:
    async with opened() as (line, _):

        async def stand_still() -> None:
            while True:
                line.socket.say({"t": "playback", "epoch": 0, "pos": 100})
                await asyncio.sleep(0.1)

        async with asyncio.TaskGroup() as group:
            standing = group.create_task(stand_still())
            with pytest.raises(TransportStalled):
                for frame in numbered(2_000, line.transport):
                    await line.transport.send(frame)
            standing.cancel()


@pytest.mark.parametrize(("code", "hangs_up"), [(1000, True), (1001, False), (None, False)])
async def test_only_a_normal_close_hangs_up(code: int | None, hangs_up: bool) -> None:
    async with opened() as (line, _):
        line.socket.end(code)
        await asyncio.sleep(0.01)
        assert line.ended
        assert (line.signals() == [Hangup(by_remote=True, code="closed")]) is hangs_up
        assert (line.failure is None) is hangs_up


async def test_a_hangup_message_hangs_up() -> None:
    async with opened() as (line, _):
        line.socket.say({"t": "hangup"})
        await asyncio.sleep(0.01)
        assert line.signals() == [Hangup(by_remote=True)]


async def test_other_messages_come_out_as_data_in_order_with_the_sound() -> None:
    async with opened() as (line, _):
        line.socket.say({"t": "ptt", "down": True})
        line.socket.say(b"\1\0" * 320)
        line.socket.say({"t": "ptt", "down": False})
        await asyncio.sleep(0.01)
        assert [type(item) for item in line.got] == [Data, AudioFrame, Data]


async def test_a_position_of_the_future_is_refused() -> None:
    async with opened() as (line, _):
        line.socket.say({"t": "playback", "epoch": 1, "pos": 0})
        line.socket.say({"t": "cleared", "epoch": 0, "pos": 0})
        await asyncio.sleep(0.01)
        assert [e["field"] for e in line.socket.of_kind("error")] == ["epoch", "epoch"]
        assert line.signals() == []


@pytest.mark.parametrize(
    ("reason", "code"),
    [("hangup", 1000), ("replaced", REPLACED), ("drain", 1001), ("error", 1011), ("linger", 1000)],
)
async def test_the_end_says_bye_and_closes_with_its_code(reason: str, code: int) -> None:
    async with opened() as (line, _):
        line.transport.post({"t": "state", "state": "listening"})
        await line.transport.aclose(reason)
        assert line.socket.texts[-1] == {"t": "bye", "reason": reason}
        assert line.socket.kinds() == ["state", "bye"], "what was queued comes first"
        assert line.socket.closed == (code, reason)


async def test_nothing_is_sent_after_the_end() -> None:
    async with opened() as (line, _):
        await line.transport.aclose("hangup")
        line.transport.post({"t": "state", "state": "listening"})
        line.transport.clear()
        await asyncio.sleep(0.1)
        assert line.socket.kinds()[-1] == "bye"


async def test_a_broken_connection_under_a_write_ends_the_line() -> None:
    async with opened() as (line, _):
        line.socket.closed = (1006, "gone")
        line.transport.post({"t": "state", "state": "listening"})
        await asyncio.sleep(0.01)
        with pytest.raises(TransportClosed):
            await line.transport.send(numbered(20, line.transport)[0])
