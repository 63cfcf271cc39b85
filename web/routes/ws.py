"""GET /ws: one WebSocket of one call (CONTRACTS B). Admission and tokens come before the upgrade.

The handler owns the socket, its writer task and nothing else: the call outlives it.
"""

from __future__ import annotations

import asyncio
import logging
import socket as net
from collections.abc import AsyncIterator
from contextlib import suppress
from struct import Struct

from aiohttp import WSMsgType, web

from ...adapters.transports.websocket import CLOSE_S, WebSocketTransport
from ...adapters.transports.websocket_messages import MAX_MESSAGE_BYTES
from ..auth import TokenRefused
from ..calls import Refused
from ..server import SERVER, Server, problem, refuse_origin
from ..session import CallSession

log = logging.getLogger(__name__)

HEARTBEAT_S = 10.0
"""A peer silent for so long is pinged; one that then stays silent half as long is gone."""
SEND_BUFFER_BYTES = 32_768
"""Kernel and process buffers per socket, each: one second of sound, so that a client that does
not read is noticed in seconds, not after megabytes."""

TEXT, BINARY = 1, 2
_SHORT_HEAD, _LONG_HEAD = Struct("!BBH"), Struct("!BBQ")


async def get_ws(request: web.Request) -> web.StreamResponse:
    """Upgrade and carry the call. 401 token, 403 origin, 426 no upgrade, 503 + Retry-After."""
    server = request.app[SERVER]
    refused = refuse_origin(request, server)
    if refused is not None:
        return refused
    ws = web.WebSocketResponse(
        compress=False,
        max_msg_size=MAX_MESSAGE_BYTES + 1,
        autoping=False,
        timeout=CLOSE_S / 2,
        writer_limit=SEND_BUFFER_BYTES,
    )
    if not ws.can_prepare(request).ok:
        return problem(426, "no_upgrade", "open this address as a WebSocket")
    try:
        token = request.query.get("token", "")
        session, again = await server.registry.open(token, request.remote or "")
    except TokenRefused as error:
        return problem(401, "bad_token", str(error), field="token")
    except Refused as full:
        return problem(503, full.reason, str(full), retry_after_s=full.retry_after_s)
    except Exception:
        log.exception("call could not be built")
        return problem(500, "build_failed", "the call could not be set up; see the server's log")
    await ws.prepare(request)
    _bound_buffers(request)
    await _carry(AiohttpSocket(ws, request), session, again, server, request.remote or "")
    return ws


async def _carry(
    socket: AiohttpSocket, session: CallSession, token: str, server: Server, peer: str
) -> None:
    """Attach the socket to the call and write to it until either ends."""
    transport = WebSocketTransport(socket, peer=peer, beats=server.beats)
    server.metrics.count("sockets_total")
    server.open_sockets += 1
    try:
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(socket.beat(), name="ws heartbeat")
            writing = group.create_task(transport.run(), name="ws writer")
            writing.add_done_callback(lambda _: beating.cancel())
            await session.attach(transport, token)
    finally:
        session.detach(transport)
        server.open_sockets -= 1
        server.metrics.count("bad_messages_total", transport.bad_messages)
        server.metrics.count("input_dropped_samples_total", transport.dropped_samples)


def _bound_buffers(request: web.Request) -> None:
    transport = request.transport
    if transport is None:
        return
    transport.set_write_buffer_limits(high=SEND_BUFFER_BYTES)
    raw = transport.get_extra_info("socket")
    if raw is not None:
        with suppress(OSError):
            raw.setsockopt(net.SOL_SOCKET, net.SO_SNDBUF, SEND_BUFFER_BYTES)


class AiohttpSocket:
    """adapters.transports.websocket.Socket over an aiohttp response."""

    def __init__(self, ws: web.WebSocketResponse, request: web.Request) -> None:
        self._ws = ws
        self._request = request
        self._close_code: int | None = None
        self._heard = 0
        """Messages of any kind that came, pongs included."""

    @property
    def close_code(self) -> int | None:
        return self._close_code

    async def __aiter__(self) -> AsyncIterator[bytes | str]:
        while True:
            message = await self._ws.receive()
            self._heard += 1
            if message.type is WSMsgType.BINARY or message.type is WSMsgType.TEXT:
                yield message.data
            elif message.type is WSMsgType.PING:
                with suppress(ConnectionError):
                    await self._ws.pong(message.data)
            elif message.type is WSMsgType.PONG:
                continue
            elif message.type is WSMsgType.CLOSE:
                self._close_code = message.data
                return
            else:  # CLOSING, CLOSED, ERROR
                return

    @property
    def writable(self) -> bool:
        transport = self._request.transport
        return transport is None or transport.get_write_buffer_size() <= SEND_BUFFER_BYTES

    def write(self, data: bytes | str) -> None:
        """One whole unmasked frame (RFC 6455 section 5.2), past aiohttp's writer: that one is a
        coroutine of three layers, and 50 of its frames leave a second."""
        transport = self._request.transport
        if transport is None or transport.is_closing() or self._ws.closed:
            raise ConnectionResetError("the websocket is closed")
        if isinstance(data, bytes):
            transport.write(_head(BINARY, len(data)) + data)
        else:
            payload = data.encode()
            transport.write(_head(TEXT, len(payload)) + payload)

    async def drained(self) -> None:
        await self._request.writer.drain()

    async def close(self, code: int, reason: str) -> None:
        """Bounded: a peer that does not answer is cut off."""
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(CLOSE_S):
                await self._ws.close(code=code, message=reason.encode()[:120])
                return
        self._abort()

    async def beat(self) -> None:
        """Ping a silent peer until cancelled; cut off one that is gone (a half-open line).

        Our own and not aiohttp's: that one's timer is armed anew by the peer's close frame, and
        then holds the whole request for another period.
        """
        while True:
            heard = self._heard
            await asyncio.sleep(HEARTBEAT_S)
            if self._heard != heard:
                continue
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(HEARTBEAT_S / 2):
                    await self._ws.ping()
            await asyncio.sleep(HEARTBEAT_S / 2)
            if self._heard == heard:
                self._abort()
                return

    def _abort(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()


def _head(opcode: int, size: int) -> bytes:
    """Of a final frame that is neither masked nor compressed."""
    first = 0x80 | opcode
    if size < 126:
        return bytes((first, size))
    if size < 65_536:
        return _SHORT_HEAD.pack(first, 126, size)
    return _LONG_HEAD.pack(first, 127, size)
