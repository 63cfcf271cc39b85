"""The simulated providers' socket half: each fault is what it says, seen from a plain client.

Some of it runs on the real clock: what a peer does while nothing happens is only seen by waiting.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus

from tests.simulators.realtime_script import Action, Fault, Script
from tests.simulators.realtime_server import RunningServer, Wire, running

pytestmark = pytest.mark.real_loop


async def parrot(wire: Wire) -> None:
    """Says every message again; `text_taken` before each."""
    await wire.at("opened")
    async for frame in wire.messages():
        wire.received.append(json.loads(frame))
        await wire.at("text_taken")
        await wire.send(wire.received[-1])


@asynccontextmanager
async def server_with(*faults: Fault, binary: bool = False) -> AsyncIterator[RunningServer]:
    async def own(wire: Wire, fault: Fault) -> None:
        await wire.send({"error": fault.error_code})

    script = Script(faults=list(faults))
    async with running(script, parrot, own_fault=own, binary=binary) as server:
        yield server


@asynccontextmanager
async def client_of(server: RunningServer, path: str = "/") -> AsyncIterator[ClientConnection]:
    options = {"ping_interval": None, "close_timeout": 0.2, "open_timeout": 5}
    socket = await connect(server.origin + path, **options)  # type: ignore[arg-type]
    try:
        yield socket
    finally:
        socket.transport.abort()
        await socket.wait_closed()


async def ask(socket: ClientConnection, number: int) -> object:
    """What the parrot says to a number; TimeoutError if nothing."""
    await socket.send(json.dumps({"n": number}))
    async with asyncio.timeout(0.1):
        return json.loads(await socket.recv())


async def pinged(socket: ClientConnection) -> bool:
    """Whether a ping is answered."""
    pong = await socket.ping()
    try:
        async with asyncio.timeout(0.1):
            await asyncio.shield(pong)
    except TimeoutError:
        return False
    return True


async def ended(socket: ClientConnection) -> ConnectionClosed:
    """How the connection ends, within a second."""
    with pytest.raises(ConnectionClosed) as caught:
        async with asyncio.timeout(1):
            while True:
                await socket.recv()
    return caught.value


async def test_it_serves_and_remembers() -> None:
    async with server_with() as server, client_of(server, "/v1?model=m") as socket:
        assert await ask(socket, 1) == {"n": 1}
        assert await pinged(socket)
        (wire,) = server.wires
        assert (wire.number, wire.path) == (1, "/v1?model=m")
        assert wire.headers["host"] == server.origin.removeprefix("ws://")
        assert wire.received == wire.sent == [{"n": 1}]


async def test_binary_servers_say_json_in_binary_frames() -> None:
    async with server_with(binary=True) as server, client_of(server) as socket:
        await socket.send(json.dumps({"n": 1}))
        assert await socket.recv() == b'{"n": 1}'


async def test_drop_is_a_reset_without_a_close_frame() -> None:
    fault = Fault(point="text_taken", action="drop", nth=2)
    async with server_with(fault) as server, client_of(server) as socket:
        assert await ask(socket, 1) == {"n": 1}
        await socket.send(json.dumps({"n": 2}))
        error = await ended(socket)
    assert error.rcvd is None
    assert isinstance(error.__cause__, ConnectionResetError)


async def test_half_open_reads_nothing_and_answers_no_ping() -> None:
    fault = Fault(point="text_taken", action="half_open", nth=2)
    async with server_with(fault) as server, client_of(server) as socket:
        assert await ask(socket, 1) == {"n": 1}
        with pytest.raises(TimeoutError):
            await ask(socket, 2)
        assert not await pinged(socket)
        # Not read either: what is sent from now on stays in the kernel.
        await socket.send(json.dumps({"n": 3}))
        await asyncio.sleep(0.05)
        assert [message["n"] for message in server.wires[0].received] == [1, 2]
        assert not server.wires[0].socket.transport.is_reading()
        # TCP is still open, and our close frame is not answered.
        async with asyncio.timeout(1):
            await socket.close()
        assert socket.close_code == 1006


async def test_half_open_stays_so_when_its_reader_has_caught_up() -> None:
    fault = Fault(point="text_taken", action="half_open", nth=3)
    async with server_with(fault) as server, client_of(server) as socket:
        for number in range(200):
            await socket.send(json.dumps({"n": number}))
        async with asyncio.timeout(1):
            assert [json.loads(await socket.recv()) for _ in range(2)] == [{"n": 0}, {"n": 1}]
        assert not await pinged(socket)
        assert len(server.wires[0].received) == 3


async def test_stall_answers_pings_and_says_nothing() -> None:
    fault = Fault(point="text_taken", action="stall", nth=2)
    async with server_with(fault) as server, client_of(server) as socket:
        assert await ask(socket, 1) == {"n": 1}
        for number in range(2, 40):
            await socket.send(json.dumps({"n": number}))
        assert await pinged(socket)
        with pytest.raises(TimeoutError):
            await ask(socket, 40)
        assert [message["n"] for message in server.wires[0].received] == list(range(1, 41))
        assert server.wires[0].sent == [{"n": 1}]


@pytest.mark.parametrize("closes", [True, False])
async def test_a_stalled_simulator_that_ends_says_no_close_frame(closes: bool) -> None:
    async def hasty(wire: Wire) -> None:
        await wire.strike(Fault(point="opened", action="stall"))
        if closes:
            await wire.close(1000)

    async def own(wire: Wire, fault: Fault) -> None:
        raise AssertionError("no fault of its own here")

    async with running(Script(), hasty, own_fault=own) as server, client_of(server) as socket:
        assert await pinged(socket)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await socket.recv()


async def test_a_delay_answers_late_and_pings_at_once() -> None:
    fault = Fault(point="text_taken", action="delay", seconds=0.2)
    async with server_with(fault) as server, client_of(server) as socket:
        for number in range(40):
            await socket.send(json.dumps({"n": number}))
        await asyncio.sleep(0.02)  # or the ping is read together with what it must overtake
        assert await pinged(socket)
        assert server.wires[0].sent == []
        async with asyncio.timeout(1):
            assert json.loads(await socket.recv()) == {"n": 0}


async def test_close_has_code_and_reason() -> None:
    fault = Fault(point="text_taken", action="close", code=4010, reason="ж" * 80)
    async with server_with(fault) as server, client_of(server) as socket:
        await socket.send("{}")
        error = await ended(socket)
    assert error.rcvd is not None
    assert (error.rcvd.code, error.rcvd.reason) == (4010, "ж" * 60)


@pytest.mark.parametrize("action", ["error", "go_away"])
async def test_the_providers_own_faults_are_its_own(action: Action) -> None:
    fault = Fault(point="opened", action=action, error_code="session_expired")
    async with server_with(fault) as server, client_of(server) as socket:
        assert json.loads(await socket.recv()) == {"error": "session_expired"}


async def test_refuse_answers_the_handshake_once() -> None:
    fault = Fault(point="connect", action="refuse", code=429, reason="slow down")
    async with server_with(fault) as server:
        with pytest.raises(InvalidStatus) as caught:
            async with client_of(server):
                pass
        assert caught.value.response.status_code == 429
        assert bytes(caught.value.response.body or b"") == b"slow down"
        async with client_of(server) as socket:
            assert await ask(socket, 1) == {"n": 1}
        assert [wire.number for wire in server.wires] == [1]


async def test_a_provider_refuses_by_what_the_handshake_says() -> None:
    async def own(wire: Wire, fault: Fault) -> None:
        raise AssertionError("no fault of its own here")

    async with running(
        Script(),
        parrot,
        own_fault=own,
        refuse=lambda request: None if "key=" in request.path else (401, "no key"),
    ) as server:
        with pytest.raises(InvalidStatus):
            async with client_of(server):
                pass
        async with client_of(server, "/?key=k") as socket:
            assert await ask(socket, 1) == {"n": 1}


@pytest.mark.parametrize("action", ["half_open", "stall"])
async def test_a_stalled_handshake_gets_no_answer(action: Action) -> None:
    async with server_with(Fault(point="connect", action=action)) as server:
        with pytest.raises(TimeoutError):
            await connect(server.origin, open_timeout=0.1)
        assert server.wires == []
        async with client_of(server) as socket:
            assert await ask(socket, 1) == {"n": 1}


@pytest.mark.parametrize("action", ["drop", "close"])
async def test_a_dropped_handshake_is_a_broken_connection(action: Action) -> None:
    async with server_with(Fault(point="connect", action=action)) as server:
        with pytest.raises((OSError, EOFError, InvalidMessage)) as caught:
            await connect(server.origin, open_timeout=1)
        assert not isinstance(caught.value, TimeoutError | InvalidStatus)


async def test_a_fault_strikes_its_connection_and_its_time_once() -> None:
    faults = [
        Fault(point="text_taken", action="drop", nth=2, connection=2),
        Fault(point="text_taken", action="close", nth=5, connection=0, code=4001),
    ]
    async with server_with(*faults) as server:
        async with client_of(server) as first:
            assert [await ask(first, number) for number in (1, 2)] == [{"n": 1}, {"n": 2}]
            async with client_of(server) as second:
                assert await ask(second, 3) == {"n": 3}
                await second.send("{}")
                assert (await ended(second)).rcvd is None
            await first.send("{}")
            error = await ended(first)
            assert error.rcvd is not None and error.rcvd.code == 4001
        async with client_of(server) as third:
            assert [await ask(third, number) for number in range(8)][-1] == {"n": 7}


async def test_what_goes_wrong_inside_a_simulator_is_kept() -> None:
    async def broken(wire: Wire) -> None:
        raise LookupError("a bug of the simulator")

    async def own(wire: Wire, fault: Fault) -> None:
        raise AssertionError("no fault of its own here")

    async with running(Script(), broken, own_fault=own) as server, client_of(server) as socket:
        error = await ended(socket)
        assert error.rcvd is not None and error.rcvd.code == 1011
        assert [str(fault) for fault in server.faults] == ["a bug of the simulator"]


async def test_the_end_of_the_server_is_a_reset_and_waits_for_nobody() -> None:
    async def sleepy(wire: Wire) -> None:
        await asyncio.sleep(3600)

    async def own(wire: Wire, fault: Fault) -> None:
        raise AssertionError("no fault of its own here")

    async with asyncio.timeout(1):
        async with running(Script(), sleepy, own_fault=own) as server:
            socket = await connect(server.origin, ping_interval=None)
        error = await ended(socket)
        assert error.rcvd is None
