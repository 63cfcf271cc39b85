"""The socket half of the simulated realtime providers: one WebSocket server with faults.

A provider's simulator gives a `serve(wire)` coroutine per connection; everything that can go wrong
with a socket is here. Nothing here knows a provider's messages.
"""

from __future__ import annotations

import asyncio
import json
import ssl as tls
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from socket import SO_LINGER, SOL_SOCKET

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from tests.simulators.realtime_script import Fault, Point, Script

Json = dict[str, object]


class Gone(Exception):
    """This connection is over: the serving coroutine must return."""


@dataclass(slots=True)
class Wire:
    """One connection, as a provider's simulator sees it. `number` counts from 1."""

    socket: ServerConnection
    number: int
    script: Script
    own_fault: Callable[[Fault], Awaitable[None]]
    binary: bool = False
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    """Set: nothing goes out any more."""
    received: list[Json] = field(default_factory=list)
    sent: list[Json] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Path and query of the handshake."""
        return self.socket.request.path if self.socket.request is not None else ""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the handshake; names without case."""
        request = self.socket.request
        return {} if request is None else request.headers

    async def send(self, message: Json) -> None:
        """Send one JSON message, unless this side has fallen silent. Raises Gone."""
        if self.silent.is_set():
            return
        self.sent.append(message)
        text = json.dumps(message)
        try:
            await self.socket.send(text.encode() if self.binary else text)
        except ConnectionClosed as error:
            raise Gone from error

    async def messages(self) -> AsyncIterator[str | bytes]:
        """What the client sends, as it came. Ends when the connection does."""
        try:
            async for frame in self.socket:
                yield frame
        except ConnectionClosed:
            return

    async def close(self, code: int, reason: str = "") -> None:
        """Close with a code, unless this side has fallen silent. Raises Gone always."""
        if not self.silent.is_set():
            await self.socket.close(code, reason.encode()[:120].decode(errors="ignore"))
        await self.socket.wait_closed()
        raise Gone

    async def at(self, point: Point) -> None:
        """The session has come to `point`: a fault may strike. Raises Gone where it ends it."""
        fault = self.script.hit(point, self.number)
        if fault is not None:
            await self.strike(fault)

    async def strike(self, fault: Fault) -> None:
        """Let a fault happen. What is the provider's own (error, go_away) goes to its simulator."""
        match fault.action:
            case "drop":
                self.reset()
                raise Gone
            case "half_open":
                await self.half_open()
            case "stall":
                self.silent.set()
            case "close":
                await self.close(fault.code, fault.reason)
            case "delay":
                await asyncio.sleep(fault.seconds)
            case _:
                await self.own_fault(fault)

    async def half_open(self) -> None:
        """Read and write nothing any more while TCP stays open. Raises Gone when that ends."""
        self.silent.set()
        self.socket.transport.pause_reading()
        await self.socket.wait_closed()
        raise Gone

    def reset(self) -> None:
        """The peer sees a reset, no close frame."""
        reset(self.socket)


def reset(socket: ServerConnection) -> None:
    """End a connection as a crash does: RST instead of FIN, no close frame."""
    raw = socket.transport.get_extra_info("socket")
    if raw is not None and raw.fileno() >= 0:  # -1: it is closed
        raw.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    socket.transport.abort()


Serve = Callable[[Wire], Awaitable[None]]
Refuse = Callable[[Request], "tuple[int, str] | None"]


@dataclass(slots=True)
class RunningServer:
    """An address, every connection so far, and what went wrong inside the simulator itself: a test
    asserts that `faults` is empty."""

    port: int
    script: Script
    secure: bool = False
    wires: list[Wire] = field(default_factory=list)
    faults: list[BaseException] = field(default_factory=list)
    _sockets: set[ServerConnection] = field(default_factory=set)
    _serving: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def origin(self) -> str:
        """`ws://127.0.0.1:PORT`."""
        return f"{'wss' if self.secure else 'ws'}://127.0.0.1:{self.port}"

    @property
    def http(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return self.origin.replace("ws", "http", 1)

    def note(self, socket: ServerConnection) -> None:
        """A client came; its handshake is not answered yet."""
        self._sockets.add(socket)

    async def run_one(self, wire: Wire, serve_one: Serve) -> None:
        """Let a provider's simulator serve a connection; what it raises is kept in `faults`."""
        own = asyncio.current_task()
        if own is not None:
            self._serving.add(own)
            own.add_done_callback(self._serving.discard)
        try:
            await serve_one(wire)
        except Gone:
            return
        except Exception as error:
            self.faults.append(error)
            raise
        finally:
            if wire.silent.is_set():
                # To return would be to close: a word.
                await wire.socket.wait_closed()

    def end(self) -> None:
        """Reset every connection and cancel what serves them."""
        for socket in self._sockets:
            reset(socket)
        for task in self._serving:
            task.cancel()


@asynccontextmanager
async def running(
    script: Script,
    serve_one: Serve,
    *,
    own_fault: Callable[[Wire, Fault], Awaitable[None]],
    refuse: Refuse = lambda request: None,
    subprotocols: tuple[str, ...] = (),
    binary: bool = False,
    ssl: tls.SSLContext | None = None,
    port: int = 0,
) -> AsyncIterator[RunningServer]:
    """Serve on loopback until the block ends; connections then are reset and what serves them is
    cancelled.

    `refuse` looks at a handshake and gives the HTTP status and body of a refusal. Of the faults at
    `connect`, half_open and stall leave the handshake without an answer, delay answers late, and
    what needs an open connection is a drop.
    """
    running_server = RunningServer(0, script, ssl is not None)

    async def one(socket: ServerConnection) -> None:
        async def strike(fault: Fault) -> None:
            await own_fault(wire, fault)

        wire = Wire(socket, len(running_server.wires) + 1, script, strike, binary)
        running_server.wires.append(wire)
        await running_server.run_one(wire, serve_one)

    async def check(socket: ServerConnection, request: Request) -> Response | None:
        running_server.note(socket)
        fault = script.hit("connect", len(running_server.wires) + 1)
        refused = refuse(request)
        if fault is not None:
            refused = await _strike_handshake(socket, fault) or refused
        return None if refused is None else socket.respond(HTTPStatus(refused[0]), refused[1])

    async with serve(
        one,
        "127.0.0.1",
        port,
        process_request=check,
        select_subprotocol=lambda socket, offered: next(
            (one for one in offered if one in subprotocols), None
        ),
        max_size=None,
        # The library alone never stops reading, nor begins again: a simulator that is slow still
        # answers pings, and a half-open one never does.
        max_queue=None,
        open_timeout=None,
        ping_interval=None,
        compression=None,
        ssl=ssl,
        close_timeout=0.5,
    ) as server:
        running_server.port = next(iter(server.sockets)).getsockname()[1]
        try:
            yield running_server
        finally:
            running_server.end()


async def _strike_handshake(socket: ServerConnection, fault: Fault) -> tuple[int, str] | None:
    """A fault before there is a connection: the refusal to answer with, if it is one."""
    match fault.action:
        case "refuse":
            return fault.code, fault.reason or fault.error_code
        case "delay":
            await asyncio.sleep(fault.seconds)
        case "half_open" | "stall":
            socket.transport.pause_reading()
            await socket.wait_closed()
        case _:
            reset(socket)
            await socket.wait_closed()
    return None
