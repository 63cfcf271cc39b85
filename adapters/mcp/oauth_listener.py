"""The listener that a browser comes back to with an authorisation code.

It lives for one authorisation, listens on loopback only, answers every request with one small page
and closes it. A request whose `state` is not the one that went out changes nothing: anybody can
send one (core fault 22).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from typing import Self
from urllib.parse import parse_qs, urlsplit

from ...core.errors import UsageError
from ...core.mcp.port import McpError
from ...core.outside import one_line
from .oauth_wish import Answer

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_BYTES = 16_384
MOST_TOLD = 300


class CallbackListener:
    """Made by `listening`. `redirect_url` is what the authorisation server must be told."""

    def __init__(self, redirect_url: str, path: str) -> None:
        self.redirect_url = redirect_url
        self._path = path
        self._state: str | None = None
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._peers: set[asyncio.Transport] = set()

    @classmethod
    @asynccontextmanager
    async def listening(cls, port: int, redirect_url: str | None) -> AsyncIterator[Self]:
        """Listen on 127.0.0.1 until the end of the block.

        With a redirect_url its path counts, and its port where it is http to this machine; any
        other (a tunnel, TLS in front) must lead to `port`. Port 0 takes any that is free.
        Raises UsageError, and McpError when the port is taken.
        """
        parts = urlsplit(redirect_url or f"http://127.0.0.1:{port}/callback")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise UsageError("redirect_url: write http[s]://host[:port]/path, without a query")
        if redirect_url is not None and parts.scheme == "http" and parts.hostname in LOOPBACK:
            port = parts.port or 80
        loop = asyncio.get_running_loop()
        made: list[Self] = []
        try:
            server = await loop.create_server(lambda: _Callback(made[0]), "127.0.0.1", port)
        except OSError as error:
            raise McpError(f"port {port} cannot be listened on: {error.strerror}") from error
        bound = server.sockets[0].getsockname()[1]
        listener = cls(redirect_url or f"http://127.0.0.1:{bound}/callback", parts.path or "/")
        made.append(listener)
        try:
            yield listener
        finally:
            server.close()
            listener._drop()

    def expect(self, state: str) -> None:
        """The state that went out; until then nothing is let in."""
        self._state = state

    async def answer(self) -> Answer:
        """Wait for it. Raises McpError when the person or the server refused."""
        return await self._answer

    def _drop(self) -> None:
        self._answer.cancel()
        for peer in list(self._peers):
            peer.abort()

    def _came(self, target: str) -> tuple[int, str]:
        """The status and the words for one request."""
        parts = urlsplit(target)
        if parts.path != self._path:
            return 404, "There is nothing here."
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        state = query.get("state", "")
        if self._state is None or not secrets.compare_digest(state.encode(), self._state.encode()):
            return 400, "This answer does not belong to a question that was asked here."
        if self._answer.done():
            return 200, "This was done already. You can close this page."
        if "error" in query:
            told = one_line(f"{query['error']} {query.get('error_description', '')}")[:MOST_TOLD]
            self._answer.set_exception(McpError(f"the authorisation was refused: {told}"))
            # Nobody may be waiting any more, which is no error of its own.
            self._answer.exception()
            return 200, "The authorisation was refused. You can close this page."
        if not query.get("code"):
            return 400, "There is no code in this answer."
        self._answer.set_result(Answer(code=query["code"], state=state, issuer=query.get("iss")))
        return 200, "Authorised. You can close this page."


class _Callback(asyncio.Protocol):
    """One connection: reads the head of one request, answers, closes."""

    def __init__(self, listener: CallbackListener) -> None:
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport
            self._listener._peers.add(transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is not None:
            self._listener._peers.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._read += data
        if len(self._read) > MOST_BYTES:
            self._transport.abort()
        elif b"\r\n\r\n" in self._read:
            self._transport.write(self._page(self._read))
            self._transport.close()

    def _page(self, head: bytes) -> bytes:
        line = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        status, words = 400, "This is no request."
        if len(line) == 3 and line[0] == "GET":
            status, words = self._listener._came(line[1])
        body = f"<!doctype html><title>voxglove</title><p>{escape(words)}</p>".encode()
        return (
            f"HTTP/1.1 {status} {'OK' if status == 200 else 'Error'}\r\n"
            "Content-Type: text/html; charset=utf-8\r\nReferrer-Policy: no-referrer\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode() + body
