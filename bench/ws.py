"""A WebSocket client of as little as a load generator needs (RFC 6455, no extensions).

One `asyncio.Protocol` per connection: frames that are sent were masked beforehand, what comes is
stamped on arrival and handed on whole. Owned by the call that opened it. Never fragments, never
compresses, and does not verify what a test of a server would: that is not its business.
"""

from __future__ import annotations

import asyncio
import base64
import os
import struct
from collections.abc import Callable
from time import perf_counter

import numpy as np

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MASK = b"\x5a\xc3\x17\x9e"
"""One for all frames: masking protects proxies, and there is none on loopback."""


def frame(opcode: int, payload: bytes) -> bytes:
    """A whole masked client frame."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
    elif size < 65_536:
        head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
    key = np.frombuffer((MASK * (size // 4 + 1))[:size], np.uint8)
    return head + MASK + (np.frombuffer(payload, np.uint8) ^ key).tobytes()


class Refused(Exception):
    """The server did not upgrade; the message is its status line."""


Received = Callable[[int, bytes, float], None]
"""Opcode, payload, time of arrival."""


class Connection(asyncio.Protocol):
    """One connection. `received` gets every message but pings, which are answered here."""

    def __init__(self, received: Received) -> None:
        self.closed = asyncio.get_running_loop().create_future()
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._received = received
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(Refused("the connection broke"))
        if not self.closed.done():
            self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        now = perf_counter()
        self._buffer += data
        if not self.opened.done() and not self._upgraded():
            return
        self._split(now)

    def send(self, whole: bytes) -> None:
        """Write a frame made by `frame`. Nothing after the end."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(whole)

    async def close(self, within_s: float = 2.0) -> None:
        """A normal end (1000)."""
        self.send(frame(CLOSE, struct.pack("!H", 1000)))
        await asyncio.wait((self.closed,), timeout=within_s)
        if self._transport is not None:
            self._transport.abort()

    def _upgraded(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        status = bytes(self._buffer[: self._buffer.find(b"\r\n")])
        if b" 101 " in status:
            self.opened.set_result(None)
        else:
            self.opened.set_exception(Refused(status.decode("latin-1")))
        del self._buffer[: end + 4]
        return True

    def _split(self, now: float) -> None:
        buffer, at = self._buffer, 0
        while len(buffer) - at >= 2:
            size, head = buffer[at + 1] & 0x7F, 2
            if size == 126:
                if len(buffer) - at < 4:
                    break
                size, head = int.from_bytes(buffer[at + 2 : at + 4], "big"), 4
            elif size == 127:
                if len(buffer) - at < 10:
                    break
                size, head = int.from_bytes(buffer[at + 2 : at + 10], "big"), 10
            if len(buffer) - at < head + size:
                break
            payload = bytes(buffer[at + head : at + head + size])
            self._message(buffer[at] & 0x0F, payload, now)
            at += head + size
        del buffer[:at]

    def _message(self, opcode: int, payload: bytes, now: float) -> None:
        if opcode == PING:
            self.send(frame(PONG, payload))
        elif opcode == CLOSE:
            self.send(frame(CLOSE, payload[:2]))
        elif opcode != PONG:
            self._received(opcode, payload, now)


async def connect(port: int, path: str, received: Received) -> Connection:
    """Open `ws://127.0.0.1:port{path}`. Raises Refused, or OSError when nobody listens."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(received), "127.0.0.1", port)
    key = base64.b64encode(os.urandom(16)).decode()
    request = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    connection.send(request.encode())
    async with asyncio.timeout(10):
        await connection.opened
    return connection


async def http(port: int, method: str, path: str) -> tuple[int, bytes]:
    """One request; (status, body). Reads to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: 0\r\n\r\n".encode())
        async with asyncio.timeout(20):
            answer = await reader.read()
    finally:
        writer.close()
    top, _, body = answer.partition(b"\r\n\r\n")
    return int(top.split(b" ", 2)[1]), body
