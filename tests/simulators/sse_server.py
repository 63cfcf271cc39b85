"""A local HTTP server that answers from a script, whole or as server-sent events, with faults.

What the vendors' simulators share: serving, splitting what is written, breaking off, stalling, and
seeing that a client has gone. What a request may say and what an answer looks like is theirs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal, Self

from aiohttp import web

Json = dict[str, object]
Ending = Literal["whole", "early", "drop", "stall", "half_open"]
"""How a stream ends: as the wire wants, without its last event, by a broken connection, or never:
`stall` after the scripted events, `half_open` before the first byte of a body."""


class Refused(Exception):
    """The server does not take this request; str() says why, as a real one would."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def need(holds: object, message: str) -> None:
    """Refuse the request unless `holds`."""
    if not holds:
        raise Refused(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Bytes of an answer and how they go out.

    pieces   written one after the other; with `split`, in pieces of so many bytes
    whole    a JSON answer in place of a stream
    """

    pieces: Sequence[bytes] = ()
    whole: object = None
    ending: Ending = "whole"
    split: int = 0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class SseServer:
    """Subclasses say what a request may be (`check`) and what answers it (`answer`).

    `bodies` are the requests it took; `closed` is set when a client leaves a stream that hangs.
    """

    route = "/{path:.*}"

    def __init__(self) -> None:
        self.bodies: list[Json] = []
        self.refusals: list[str] = []
        self.closed = asyncio.Event()
        self.base_url = ""
        self.peers: set[object] = set()
        """The client's end of every connection that was used."""

    def check(self, request: web.Request, body: Json) -> None:
        """Raises Refused."""
        raise NotImplementedError

    def answer(self, body: Json, *, streams: bool) -> Reply:
        """The next step of the script."""
        raise NotImplementedError

    def streams(self, request: web.Request, body: Json) -> bool:
        raise NotImplementedError

    def error(self, status: int, message: str) -> object:
        """An error body in the vendor's words."""
        raise NotImplementedError

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post(self.route, self._serve)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            self.base_url = f"http://{host}:{port}"
            yield self
        finally:
            await runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        body: Json = await request.json()
        try:
            self.check(request, body)
            self.bodies.append(body)
            streams = self.streams(request, body)
            reply = self.answer(body, streams=streams)
        except Refused as refused:
            self.refusals.append(str(refused))
            return web.json_response(
                self.error(refused.status, str(refused)), status=refused.status
            )
        if reply.status != 200:
            return web.json_response(reply.whole, status=reply.status, headers=reply.headers)
        if reply.ending == "half_open":
            await self._hang()
        if not streams:
            return await self._whole(request, reply)
        return await self._stream(request, reply)

    async def _whole(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        if reply.ending == "stall":
            await self._hang()
        raw = reply.whole if isinstance(reply.whole, bytes) else json.dumps(reply.whole).encode()
        if reply.ending != "drop":
            return web.Response(body=raw, content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = len(raw)
        await response.prepare(request)
        await response.write(raw[: len(raw) // 2])
        _drop(request)
        return response

    async def _stream(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in _split(reply):
            await response.write(piece)
            if reply.split:
                await asyncio.sleep(0)
        if reply.ending == "stall":
            await self._hang()
        if reply.ending == "drop":
            _drop(request)
            return response
        await response.write_eof()
        return response

    async def _hang(self) -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            self.closed.set()


def _split(reply: Reply) -> Sequence[bytes]:
    if not reply.split:
        return reply.pieces
    raw = b"".join(reply.pieces)
    return [raw[at : at + reply.split] for at in range(0, len(raw), reply.split)]


def _drop(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.close()
