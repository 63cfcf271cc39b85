"""An HTTP server that answers POSTs from a script, and fails in the ways real ones do.

What it says is a vendor's business: subclasses check requests and make the events. Each reply names
its own faults, so that a test reads as what went wrong.
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
Ending = Literal["clean", "drops", "hangs"]


FOR_EVER_S = 3_600
"""A reply that hangs ends when the client leaves: that cancels the request's handler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer on the wire.

    frames   SSE frames of a stream, already encoded
    whole    a JSON body in place of a stream
    body     any other body: empty, HTML, cut JSON
    status, headers   of the response
    ends     how the body ends: cleanly, by dropping the connection, or never
    silent   never even begins to answer: a half-open connection
    write_bytes  bytes per write of the stream; 1 splits every UTF-8 character
    keepalives   a comment line before every frame
    pause_s      loop time before the response begins
    """

    frames: Sequence[bytes] = ()
    whole: Json | None = None
    body: bytes | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    ends: Ending = "clean"
    silent: bool = False
    write_bytes: int = 0
    keepalives: bool = False
    pause_s: float = 0.0


def sse(value: object, event: str = "") -> bytes:
    """One frame; text beyond ASCII as it is, so that splitting bytes can split characters."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def error_reply(
    status: int, error: object, headers: Mapping[str, str] | None = None, **more: object
) -> Reply:
    """A refusal in the shape every vendor here uses."""
    return Reply(status=status, whole={"error": error, **more}, headers=headers or {})


class SseServer:
    """Serves replies on 127.0.0.1 until its `running()` block is left.

    bodies   the requests it took, in order; `refused` those of them it would not answer, and why
    closed   set when a client leaves before its reply has ended; `left_at` is the loop time
    streams  replies that are being written now
    headers, peers   of each request: what it was sent with, and over which connection
    """

    path = "/"
    prefix = ""

    def __init__(self) -> None:
        self.bodies: list[Json] = []
        self.refused: list[str] = []
        self.closed = asyncio.Event()
        self.left_at = 0.0
        self.streams = 0
        self.headers: list[dict[str, str]] = []
        self.peers: list[object] = []
        self.base_url = ""

    async def answer(self, request: web.Request, body: Json) -> Reply:
        """What to say to a request; subclasses check it first."""
        raise NotImplementedError

    def rest_of_script(self, count: int) -> None:
        """Go on with the last `count` replies."""
        raise NotImplementedError

    def refuse_key(self, request: web.Request) -> Reply | None:
        """A refusal when the request does not carry the right key."""
        raise NotImplementedError

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post(self.prefix + self.path, self._serve)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            self.base_url = f"http://{host}:{port}{self.prefix}"
            yield self
        finally:
            await runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.peers.append(request.transport.get_extra_info("peername"))
        refusal = self.refuse_key(request)
        if refusal is not None:
            return await self._send(request, refusal)
        body = await request.json()
        self.bodies.append(body)
        reply = await self.answer(request, body)
        self.streams += 1
        try:
            return await self._send(request, reply)
        except asyncio.CancelledError:  # the client has left
            self.left_at = asyncio.get_running_loop().time()
            self.closed.set()
            raise
        finally:
            self.streams -= 1

    async def _send(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        if reply.silent:
            await asyncio.sleep(FOR_EVER_S)
        if reply.pause_s:
            await asyncio.sleep(reply.pause_s)
        if reply.whole is not None:
            return web.json_response(reply.whole, status=reply.status, headers=reply.headers)
        if reply.body is not None:
            headers = {"Content-Type": "application/json", **reply.headers}
            return web.Response(body=reply.body, status=reply.status, headers=headers)
        return await self._stream(request, reply)

    async def _stream(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        headers = {"Content-Type": "text/event-stream; charset=utf-8", **reply.headers}
        response = web.StreamResponse(status=reply.status, headers=headers)
        await response.prepare(request)
        for frame in reply.frames:
            if reply.keepalives:
                frame = b": keepalive\n\n" + frame
            size = reply.write_bytes or len(frame)
            for at in range(0, len(frame), size):
                await response.write(frame[at : at + size])
                if reply.write_bytes:
                    await asyncio.sleep(0)
        if reply.ends == "hangs":
            await asyncio.sleep(FOR_EVER_S)
        if reply.ends == "drops":
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write_eof()
        return response
