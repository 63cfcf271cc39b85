"""The driver with a small codec over a real loopback server: openings, ends, order, silence.

Time is virtual: sockets on loopback answer before the clock moves, so the real limits are tested.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulators.realtime_script import Action, Fault, Point, Script
from tests.simulators.realtime_server import RunningServer, Wire, running
from tests.support.vloop import run_virtual
from voxglove.adapters.errors import (
    AdapterError,
    ConnectionFailed,
    CredentialsRejected,
    ProviderRefused,
    ProviderStalled,
)
from voxglove.adapters.socket import SocketConfig
from voxglove.media.errors import MediaValueError
from voxglove.realtime.commands import CutOutput, ProviderCommand, SendAudio, SendText
from voxglove.realtime.events import (
    Closed,
    Interrupted,
    ItemDone,
    Opened,
    ProviderProblem,
    RealtimeEvent,
    Resumable,
    Words,
)
from voxglove.realtime.port import Connection, Emit, Setup
from voxglove.realtime.providers.codec import Frame
from voxglove.realtime.providers.driver import DriverLimits, open_connection

KEY = "sk-0123456789"
SETUP = Setup(instructions="be brief")


# --- A provider of six messages, and its codec -----------------------------------------------


class SmallCodec:
    """What the driver needs to see of a codec: queued frames, events, due, an end in order."""

    def __init__(self, *, finishes: bool = True, fails_to_begin: bool = False) -> None:
        self.finishes = finishes
        self.fails_to_begin = fails_to_begin
        self.ends: list[tuple[int, str]] = []
        self._queued: list[Frame] = []
        self._items: list[str] = []
        self._due = False
        self._finished = False

    def begin(self, setup: Setup) -> None:
        if self.fails_to_begin:
            raise KeyError("no such voice")
        self._queue(type="setup", text=setup.instructions)

    def receive(self, frame: Frame) -> list[RealtimeEvent]:
        match json.loads(frame):
            case {"type": "opened"}:
                return [Opened("s-1"), Resumable("h-1")]
            case {"type": "word", "text": str(text)}:
                self._items.append(text)
                return [Words("assistant", text, text)]
            case {"type": "problem", "code": str(code)}:
                return [ProviderProblem(code, f"what {KEY} says")]
            case {"type": "due", "now": bool(now)}:
                self._due = now
            case {"type": "question"}:
                self._queue(type="answer")
            case {"type": "over", "code": str(code), "fatal": bool(fatal)}:
                return [ItemDone("last"), Closed(code, "as it said", fatal), ItemDone("after")]
            case {"type": "bye"}:
                self._finished = True
            case _:
                raise ValueError("no such message")
        return []

    def tell(self, command: ProviderCommand) -> list[RealtimeEvent]:
        match command:
            case SendAudio(pcm=pcm):
                self._queue(type="audio", audio=base64.b64encode(pcm).decode())
            case SendText(text=text, request_id=request_id):
                self._due = self._due or bool(request_id)
                self._queue(type="say", text=text)
            case CutOutput():
                self._queue(type="cut")
                return [Interrupted("cut")]
            case _:
                raise ValueError("no such command")
        return []

    def finish(self) -> bool:
        self._queue(type="finish")
        return self.finishes

    def closed(self, code: int, reason: str) -> list[RealtimeEvent]:
        self.ends.append((code, reason))
        done: list[RealtimeEvent] = [ItemDone(item) for item in self._items]
        return [*done, Closed(str(code), reason, clean=self._finished)]

    def take(self) -> list[Frame]:
        queued, self._queued = self._queued, []
        return queued

    @property
    def due(self) -> bool:
        return self._due

    @property
    def finished(self) -> bool:
        return self._finished

    def _queue(self, **message: str) -> None:
        self._queued.append(json.dumps(message))


async def small_provider(wire: Wire) -> None:
    """Opens, says what `say` tells it to say, and says goodbye when asked to."""
    async for frame in wire.messages():
        message = json.loads(frame)
        wire.received.append(message)
        match message["type"]:
            case "setup":
                await wire.at("setup")
                await wire.send({"type": "opened"})
                await wire.at("opened")
            case "say":
                await wire.at("text_taken")
                for answer in json.loads(message["text"]):
                    await wire.send(answer)
            case "finish":
                await wire.at("closing")
                await wire.send({"type": "bye"})


async def own_fault(wire: Wire, fault: Fault) -> None:
    """The provider's own error: it says so, and goes on until it closes."""
    if fault.error_code == "over":
        await wire.send({"type": "over", "code": fault.reason, "fatal": fault.code == 1})
    else:
        await wire.send({"type": "problem", "code": fault.error_code})
        await wire.close(fault.code, fault.reason)


def word(text: str) -> dict[str, object]:
    return {"type": "word", "text": text}


def say(*messages: dict[str, object]) -> SendText:
    """A command that makes the small provider say these."""
    return SendText(json.dumps(messages))


# --- What a test holds -----------------------------------------------------------------------


@dataclass(slots=True)
class Rig:
    """A server, what was emitted and when, and how to connect to it."""

    server: RunningServer
    codec: SmallCodec = field(default_factory=SmallCodec)
    limits: DriverLimits = field(default_factory=DriverLimits)
    ping_s: float | None = None
    max_unsent_bytes: int = 4 * 1024 * 1024
    events: list[RealtimeEvent] = field(default_factory=list)
    emit: Emit | None = None

    async def open(self, group: asyncio.TaskGroup) -> Connection:
        config = SocketConfig(
            url=f"{self.server.origin}/v1?key={KEY}",
            ping_s=self.ping_s,
            max_unsent_bytes=self.max_unsent_bytes,
        )
        emit = self.emit or self.events.append
        return await open_connection(self.codec, config, SETUP, emit, group, self.limits)

    async def fails(self) -> AdapterError:
        """What opening raises; then nothing was emitted after it and nothing is left."""
        with pytest.raises(AdapterError) as caught:
            async with asyncio.TaskGroup() as group, asyncio.timeout(100):
                try:
                    await self.open(group)
                except AdapterError as error:
                    raised = error
                    left = [task.get_name() for task in asyncio.all_tasks()]
                    assert not any(name.startswith("realtime") for name in left)
            raise raised
        await asyncio.sleep(1)
        assert not any(isinstance(event, Closed) for event in self.events)
        return caught.value

    async def until(self, kind: type[RealtimeEvent], text: str = "") -> None:
        """Wait until such an event (of that item) was emitted."""
        async with asyncio.timeout(100):
            while not any(_is(event, kind, text) for event in self.events):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    @property
    def told(self) -> list[str]:
        """Types of what the provider got on its first connection."""
        return [str(message["type"]) for message in self.server.wires[0].received]


def _is(event: RealtimeEvent, kind: type[RealtimeEvent], text: str) -> bool:
    return isinstance(event, kind) and (not text or getattr(event, "item_id", "") == text)


@asynccontextmanager
async def rig(*faults: Fault) -> AsyncIterator[Rig]:
    async with running(Script(faults=list(faults)), small_provider, own_fault=own_fault) as server:
        yield Rig(server)
        assert server.faults == []


OPENED = [Opened("s-1"), Resumable("h-1")]


def assert_ended_once(events: list[RealtimeEvent]) -> None:
    """Exactly one Closed, and it is the last."""
    kinds = [type(event) for event in events]
    assert kinds.count(Closed) == 1, kinds
    assert kinds[-1] is Closed, kinds


# --- Opening ---------------------------------------------------------------------------------


async def test_it_is_open_when_opened_was_emitted() -> None:
    async with rig() as held, asyncio.TaskGroup() as group:
        connection = await held.open(group)
        assert held.events == OPENED
        assert held.server.wires[0].received == [{"type": "setup", "text": "be brief"}]
        await connection.close()


async def test_a_provider_that_never_opens_is_stalled_after_15_seconds() -> None:
    async with rig(Fault(point="setup", action="stall")) as held:
        begin = asyncio.get_running_loop().time()
        error = await held.fails()
        took = asyncio.get_running_loop().time() - begin
        wire = held.server.wires[0]
        assert wire.socket.close_code == 1006
    assert type(error) is ProviderStalled and error.code == "ERR_REALTIME_STALLED"
    assert took == pytest.approx(15 + 1, abs=0.1)
    assert held.events == [] and held.codec.ends == []


@pytest.mark.parametrize(
    ("fault", "kind", "code", "said"),
    [
        (
            Fault(point="setup", action="error", error_code="over", reason="handle"),
            ProviderRefused,
            "ERR_REALTIME_HANDLE",
            "handle: as it said",
        ),
        (
            Fault(point="setup", action="error", error_code="over", reason="bad_model", code=1),
            ProviderRefused,
            "ERR_REALTIME_REFUSED",
            "bad_model: as it said",
        ),
        (
            Fault(
                point="setup", action="error", error_code="over", reason="Invalid_API_Key", code=1
            ),
            CredentialsRejected,
            "ERR_REALTIME_AUTH",
            "Invalid_API_Key: as it said",
        ),
        (
            Fault(point="setup", action="error", error_code="over", reason="server_error"),
            ConnectionFailed,
            "ERR_REALTIME_CONNECTION",
            "server_error: as it said",
        ),
        (
            Fault(point="setup", action="error", error_code="invalid_api_key", code=1008),
            CredentialsRejected,
            "ERR_REALTIME_AUTH",
            "1008: what … says",
        ),
        (
            Fault(point="setup", action="error", error_code="x", code=4000, reason=f"not {KEY}"),
            ConnectionFailed,
            "ERR_REALTIME_CONNECTION",
            "4000: not …: what … says",
        ),
        (
            Fault(point="setup", action="close", code=1013, reason="later"),
            ConnectionFailed,
            "ERR_REALTIME_CONNECTION",
            "1013: later",
        ),
        (
            Fault(point="setup", action="drop"),
            ConnectionFailed,
            "ERR_REALTIME_CONNECTION",
            "1006: ",
        ),
        (
            Fault(point="connect", action="refuse", code=401, reason="who?"),
            CredentialsRejected,
            "ERR_REALTIME_AUTH",
            "HTTP 401: who?",
        ),
        (
            Fault(point="connect", action="refuse", code=503),
            ConnectionFailed,
            "ERR_REALTIME_CONNECTION",
            "HTTP 503",
        ),
        (
            Fault(point="connect", action="stall"),
            ProviderStalled,
            "ERR_REALTIME_STALLED",
            "no connection within 10 s",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
async def test_an_end_before_opened_is_the_error_it_means(
    fault: Fault, kind: type[AdapterError], code: str, said: str
) -> None:
    async with rig(fault) as held:
        error = await held.fails()
        assert type(error) is kind and error.code == code
        host = held.server.origin.removeprefix("ws://")
        assert str(error).startswith(f"{host}: {said}")
        assert error.retryable is (kind in (ConnectionFailed, ProviderStalled))


async def test_a_codec_that_cannot_begin_leaves_no_socket() -> None:
    async with rig() as held:
        held.codec = SmallCodec(fails_to_begin=True)
        async with asyncio.TaskGroup() as group:
            with pytest.raises(KeyError):
                await held.open(group)
        await held.server.wires[0].socket.wait_closed()
        assert held.events == []


async def test_a_cancelled_opening_leaves_nothing_and_emits_nothing() -> None:
    async with rig(Fault(point="setup", action="stall")) as held:
        async with asyncio.TaskGroup() as group:
            opening = group.create_task(held.open(group))
            await asyncio.sleep(1)
            opening.cancel()
        await held.server.wires[0].socket.wait_closed()
        assert opening.cancelled()
        assert held.events == [] and held.codec.ends == []


async def test_a_delay_within_the_deadline_is_waited_for() -> None:
    async with (
        rig(Fault(point="setup", action="delay", seconds=14.0)) as held,
        asyncio.TaskGroup() as group,
    ):
        connection = await held.open(group)
        assert held.events == OPENED
        await connection.close()


# --- Frames and events -----------------------------------------------------------------------


async def test_frames_and_events_keep_their_order() -> None:
    async with rig() as held, asyncio.TaskGroup() as group:
        connection = await held.open(group)
        connection.tell(SendAudio(b"\0\0"))
        connection.tell(say(word("a"), {"type": "question"}, word("b")))
        connection.tell(CutOutput())
        assert held.events == [*OPENED, Interrupted("cut")]
        await held.until(Words, "b")
        await asyncio.sleep(0.1)
        assert held.told == ["setup", "audio", "say", "cut", "answer"]
        await connection.close()
    assert held.events == [
        *OPENED,
        Interrupted("cut"),
        Words("assistant", "a", "a"),
        Words("assistant", "b", "b"),
        ItemDone("a"),
        ItemDone("b"),
        Closed("1000", clean=True),
    ]


async def test_what_an_event_makes_us_tell_comes_behind_the_events_already_there() -> None:
    async with rig() as held, asyncio.TaskGroup() as group:
        connections: list[Connection] = []

        def emit(event: RealtimeEvent) -> None:
            held.events.append(event)
            if isinstance(event, ItemDone) and event.item_id == "a":
                connections[0].tell(CutOutput())

        held.emit = emit
        connections.append(await held.open(group))
        connections[0].tell(say(word("a"), word("b")))
        await held.until(Words, "b")
        await connections[0].close()
    ends = [event for event in held.events if not isinstance(event, Words)]
    # The cut was told while the last events were being given: nothing comes after Closed.
    assert ends == [*OPENED, ItemDone("a"), ItemDone("b"), Closed("1000", clean=True)]


async def test_emit_is_never_called_from_inside_itself() -> None:
    async with rig() as held, asyncio.TaskGroup() as group:
        connections: list[Connection] = []
        inside: list[int] = []

        def emit(event: RealtimeEvent) -> None:
            held.events.append(event)
            if isinstance(event, Interrupted) and not inside:
                connections[0].tell(CutOutput())
                inside.append(len(held.events))

        held.emit = emit
        connections.append(await held.open(group))
        connections[0].tell(CutOutput())
        assert inside == [3]
        assert held.events == [*OPENED, Interrupted("cut"), Interrupted("cut")]
        await connections[0].close()


async def test_a_listener_that_raises_does_not_end_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with rig() as held, asyncio.TaskGroup() as group:

        def emit(event: RealtimeEvent) -> None:
            held.events.append(event)
            raise RuntimeError("a bug of the listener")

        held.emit = emit
        connection = await held.open(group)
        connection.tell(say(word("a")))
        await held.until(Words, "a")
        await connection.close()
    assert_ended_once(held.events)
    assert caplog.text.count("whoever listens to a provider failed on an event") == 5


async def test_a_codec_that_raises_is_told_as_one_problem_and_the_frame_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with rig() as held, asyncio.TaskGroup() as group:
        connection = await held.open(group)
        connection.tell(say({"type": "nonsense"}, word("a")))
        await held.until(Words, "a")
        await connection.close()
    problem = ProviderProblem("codec", "ValueError in our own codec")
    assert held.events == [
        *OPENED,
        problem,
        Words("assistant", "a", "a"),
        ItemDone("a"),
        Closed("1000", clean=True),
    ]
    assert "a codec failed" in caplog.text


async def test_a_command_that_the_codec_fails_on_is_told_as_a_problem() -> None:
    async with rig() as held, asyncio.TaskGroup() as group:
        connection = await held.open(group)
        connection.tell(say())
        connection.tell("no command")  # type: ignore[arg-type]
        assert held.events[-1] == ProviderProblem("codec", "ValueError in our own codec")
        await connection.close()


async def test_a_codec_that_fails_on_the_end_still_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(self: SmallCodec, code: int, reason: str) -> list[RealtimeEvent]:
        raise ValueError("a bug of the codec")

    monkeypatch.setattr(SmallCodec, "closed", broken)
    async with rig(Fault(point="text_taken", action="close", code=1011, reason="oh")) as held:
        async with asyncio.TaskGroup() as group:
            connection = await held.open(group)
            connection.tell(say())
        assert held.events == [*OPENED, Closed("1011", "oh")]


# --- Ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code", "reason"),
    [
        (Fault(point="text_taken", action="drop", nth=2), 1006, "reset"),
        (Fault(point="text_taken", action="close", nth=2, code=1011, reason="deadline"), 1011, ""),
        (Fault(point="text_taken", action="close", nth=2, code=4000, reason="x"), 4000, "x"),
    ],
    ids=["reset", "1011", "4000"],
)
async def test_an_end_by_the_peer_closes_what_was_open_then_says_closed(
    fault: Fault, code: int, reason: str
) -> None:
    async with rig(fault) as held:
        async with asyncio.TaskGroup() as group:
            connection = await held.open(group)
            connection.tell(say(word("a")))
            await held.until(Words, "a")
            connection.tell(say())
        # The group has ended by itself: the connection's task has.
        assert held.events[-2] == ItemDone("a")
        assert_ended_once(held.events)
        assert held.codec.ends[0][0] == code and reason in held.codec.ends[0][1]
        connection.tell(CutOutput())
        await connection.close()
        assert_ended_once(held.events)
        assert len(held.codec.ends) == 1


async def test_a_codec_that_says_closed_by_itself_ends_the_connection() -> None:
    async with rig() as held:
        async with asyncio.TaskGroup() as group:
            connection = await held.open(group)
            connection.tell(say({"type": "over", "code": "expired", "fatal": False}, word("late")))
        assert held.events == [*OPENED, ItemDone("last"), Closed("expired", "as it said")]
        await held.server.wires[0].socket.wait_closed()
        assert held.server.wires[0].socket.close_code == 1000
        await connection.close()
        assert held.codec.ends == []


async def test_closing_waits_for_the_last_word() -> None:
    async with (
        rig(Fault(point="closing", action="delay", seconds=1.5)) as held,
        asyncio.TaskGroup() as group,
    ):
        connection = await held.open(group)
        begin = asyncio.get_running_loop().time()
        await connection.close()
        assert asyncio.get_running_loop().time() - begin == pytest.approx(1.5, abs=0.1)
        assert held.told[-1] == "finish"
        assert held.events == [*OPENED, Closed("1000", clean=True)]
        await connection.close()
        connection.tell(say())
    assert held.told[-1] == "finish"
    assert_ended_once(held.events)


@pytest.mark.parametrize("finish_s", [2.0, 10.0])
async def test_closing_does_not_wait_for_ever(finish_s: float) -> None:
    async with rig(Fault(point="closing", action="stall")) as held, asyncio.TaskGroup() as group:
        held.limits = DriverLimits(finish_s=finish_s)
        connection = await held.open(group)
        begin = asyncio.get_running_loop().time()
        await connection.close()
        assert asyncio.get_running_loop().time() - begin == pytest.approx(finish_s, abs=0.1)
    assert held.events == [*OPENED, Closed("1000", clean=False)]


async def test_closing_towards_a_half_open_peer_is_bounded() -> None:
    async with rig(Fault(point="closing", action="half_open")) as held:
        async with asyncio.TaskGroup() as group:
            connection = await held.open(group)
            begin = asyncio.get_running_loop().time()
            await connection.close()
            assert asyncio.get_running_loop().time() - begin <= 2.0 + 2.0 + 0.1
        assert held.events == [*OPENED, Closed("1000", clean=False)]


async def test_a_codec_that_needs_no_last_word_is_not_waited_for() -> None:
    async with rig(Fault(point="closing", action="stall")) as held, asyncio.TaskGroup() as group:
        held.codec = SmallCodec(finishes=False)
        connection = await held.open(group)
        begin = asyncio.get_running_loop().time()
        await connection.close()
        assert asyncio.get_running_loop().time() == begin
    assert_ended_once(held.events)


async def test_a_cancelled_close_has_closed_and_said_so() -> None:
    async with rig(Fault(point="closing", action="stall")) as held:
        async with asyncio.TaskGroup() as group:
            connection = await held.open(group)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await connection.close()
            assert held.events == [*OPENED, Closed("1006", "closed")]
            begin = asyncio.get_running_loop().time()
            await connection.close()
            assert asyncio.get_running_loop().time() == begin
        await held.server.wires[0].socket.wait_closed()
    assert_ended_once(held.events)


async def test_closing_twice_at_once_is_one_close() -> None:
    async with rig() as held, asyncio.TaskGroup() as group:
        connection = await held.open(group)
        await asyncio.gather(connection.close(), connection.close(), connection.close())
        assert held.told.count("finish") == 1
    assert_ended_once(held.events)


async def test_a_peer_that_closes_while_we_finish_is_the_end() -> None:
    async with rig(Fault(point="closing", action="close", code=1001, reason="going")) as held:
        async with asyncio.TaskGroup() as group:
            connection = await held.open(group)
            begin = asyncio.get_running_loop().time()
            await connection.close()
            assert asyncio.get_running_loop().time() - begin < 0.5
        assert held.events == [*OPENED, Closed("1001", "going")]


async def test_a_cancelled_group_ends_the_connection_like_a_broken_socket() -> None:
    async with rig() as held:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1), asyncio.TaskGroup() as group:
                await held.open(group)
                await asyncio.sleep(100)
        assert held.events == [*OPENED, Closed("1006", "its task ended")]
        await held.server.wires[0].socket.wait_closed()


async def test_a_group_cancelled_before_its_task_began_fails_the_opening() -> None:
    async with rig() as held:
        group, dying = asyncio.TaskGroup(), asyncio.Event()

        async def own_the_group() -> None:
            async with group:
                dying.set()
                await asyncio.sleep(100)

        async with asyncio.TaskGroup() as outer:
            owner = outer.create_task(own_the_group())
            await dying.wait()

            def begin(setup: Setup) -> None:
                owner.cancel()

            held.codec.begin = begin  # type: ignore[method-assign]
            with pytest.raises(ConnectionFailed):
                await held.open(group)
        assert held.events == []
        await held.server.wires[0].socket.wait_closed()


async def test_a_peer_that_takes_nothing_is_given_up() -> None:
    async with rig(Fault(point="opened", action="half_open")) as held:
        held.max_unsent_bytes = 100_000
        async with asyncio.TaskGroup() as group:
            connection = await held.open(group)
            for _ in range(200):
                connection.tell(SendAudio(bytes(300_000)))
                await asyncio.sleep(0)
        assert_ended_once(held.events)
        assert held.codec.ends[0][0] == 4002


# --- Silence ---------------------------------------------------------------------------------


async def test_half_open_is_noticed_within_ten_seconds(tell: Callable[[str], None]) -> None:
    """Invariant 8, where the provider answers pings."""
    async with rig(Fault(point="text_taken", action="half_open")) as held:
        held.ping_s, held.limits = 4.0, DriverLimits(due_s=None)
        async with asyncio.TaskGroup() as group:
            connection = await held.open(group)
            # It answers pings for a while, then dies right after the answer to one.
            await asyncio.sleep(12.001)
            begin = asyncio.get_running_loop().time()
            connection.tell(say())
        took = asyncio.get_running_loop().time() - begin
        assert held.events == [*OPENED, Closed("1006", "no pong within 5 s")]
    assert 8.9 <= took <= 10.0
    tell(f"half-open peer that answers pings: noticed {took:.2f} s after its last byte (limit 10)")


async def test_a_stalled_peer_that_answers_pings_is_kept() -> None:
    async with (
        rig(Fault(point="text_taken", action="stall")) as held,
        asyncio.TaskGroup() as group,
    ):
        held.ping_s, held.limits = 4.0, DriverLimits(due_s=None)
        connection = await held.open(group)
        connection.tell(say())
        await asyncio.sleep(300)
        assert held.events == OPENED
        await connection.close()


async def test_without_pings_silence_ends_it_after_idle_s(tell: Callable[[str], None]) -> None:
    """Invariant 8, where pongs may take 30 s."""
    async with rig(Fault(point="text_taken", action="half_open", nth=2)) as held:
        held.limits = DriverLimits(idle_s=35.0)
        async with asyncio.TaskGroup() as group:
            connection = await held.open(group)
            await asyncio.sleep(30)
            connection.tell(say(word("a")))
            begin = asyncio.get_running_loop().time()
            await asyncio.sleep(30)
            connection.tell(say())
        took = asyncio.get_running_loop().time() - begin
        assert held.events[-1] == Closed("1006", "no message came for 35.0 s")
        assert_ended_once(held.events)
    assert took == pytest.approx(35, abs=0.1)
    tell(f"half-open peer without pings: noticed {took:.2f} s after its last message (limit 35)")


async def test_while_an_answer_is_due_silence_ends_it_after_due_s(
    tell: Callable[[str], None],
) -> None:
    async with rig() as held:
        held.limits = DriverLimits(idle_s=35.0, due_s=10.0)
        async with asyncio.TaskGroup() as group:
            connection = await held.open(group)
            connection.tell(say({"type": "due", "now": True}))
            await asyncio.sleep(8)
            connection.tell(say(word("a")))
            begin = asyncio.get_running_loop().time()
        took = asyncio.get_running_loop().time() - begin
        assert held.events[-1] == Closed("1006", "an answer was due and no message came for 10.0 s")
    assert took == pytest.approx(10, abs=0.1)
    tell(f"half-open peer with an answer due: noticed after {took:.2f} s (limit 10)")


async def test_an_answer_that_is_due_after_a_long_silence_has_its_whole_time() -> None:
    async with (
        rig(Fault(point="text_taken", action="delay", seconds=9.0)) as held,
        asyncio.TaskGroup() as group,
    ):
        held.limits = DriverLimits(due_s=10.0)
        connection = await held.open(group)
        await asyncio.sleep(60)
        connection.tell(SendText(json.dumps([{"type": "due", "now": False}]), request_id="r"))
        await asyncio.sleep(60)
        assert held.events == OPENED
        await connection.close()


# --- Whatever happens ------------------------------------------------------------------------

ACTIONS: tuple[Action, ...] = ("drop", "half_open", "stall", "close", "error", "delay")
POINTS: tuple[Point, ...] = ("connect", "setup", "opened", "text_taken", "closing")


@settings(max_examples=60)
@given(
    st.sampled_from(ACTIONS),
    st.sampled_from(POINTS),
    st.sampled_from([0.0, 0.5, 1.0, 20.0, 60.0]),
    st.sampled_from([None, 0.0, 1.0]),
    st.booleans(),
)
def test_every_story_has_one_end(
    action: Action, point: Point, close_at: float, cancel_after: float | None, over: bool
) -> None:
    fault = Fault(point=point, action=action, error_code="over" if over else "x", reason="bad")

    async def story() -> None:
        async with rig(fault) as held:
            held.ping_s, held.limits = 4.0, DriverLimits(idle_s=35.0)
            async with asyncio.timeout(200), asyncio.TaskGroup() as group:
                try:
                    connection = await held.open(group)
                except AdapterError:
                    assert not any(isinstance(event, Opened | Closed) for event in held.events)
                    return
                connection.tell(say(word("a")))
                await asyncio.sleep(close_at)
                closing = group.create_task(connection.close())
                if cancel_after is not None:
                    await asyncio.sleep(cancel_after)
                    closing.cancel()
            assert held.events[:2] == OPENED
            assert_ended_once(held.events)

    run_virtual(story())


# --- Cost ------------------------------------------------------------------------------------


@pytest.mark.real_loop
async def test_telling_a_frame_of_sound_costs_less_than_100_us(
    tell: Callable[[str], None],
) -> None:
    async with rig() as held, asyncio.TaskGroup() as group:
        connection = await held.open(group)
        frame, took = SendAudio(bytes(960)), []
        for _ in range(600):
            begin = time.perf_counter()
            connection.tell(frame)
            took.append(time.perf_counter() - begin)
            await asyncio.sleep(0)
        await connection.close()
    took.sort()
    median = took[len(took) // 2]
    assert median < 100e-6
    tell(
        f"tell(SendAudio) of 20 ms, codec and socket write included: median {median * 1e6:.0f} us,"
        f" p95 {took[len(took) * 95 // 100] * 1e6:.0f} us (limit 100)"
    )


# --- Values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["open_s", "finish_s", "idle_s", "due_s"])
def test_limits_that_cannot_work_name_their_field(field: str) -> None:
    with pytest.raises(MediaValueError) as caught:
        DriverLimits(**{field: 0.0})
    assert caught.value.field == field


async def test_no_key_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="voxglove")
    async with rig(Fault(point="opened", action="close", reason=KEY)) as held:
        async with asyncio.TaskGroup() as group:
            await held.open(group)
        assert held.events[-1] == Closed("1011", "…")
    assert KEY not in caplog.text
