"""A local HTTP server that answers POSTs from a script, whole or as SSE, with faults.

Everything that can go wrong between two ends is here, once for all wires. A vendor's simulator says
what a request must be and what an answer looks like; its `Scripted` is a Step that adds what is
said.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, Literal, Self, TypeVar

from aiohttp import web

Json = dict[str, object]
Ending = Literal["whole", "early", "drop", "stall", "half_open"]
"""How a body ends: as the wire wants, cleanly but without the wire's last words, by a broken
connection, or never: `stall` behind what was said, `half_open` before the first byte of it."""

FOR_EVER_S = 3_600
"""A reply that hangs ends when the client leaves: that cancels the request's handler."""


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
class Step:
    """How one answer goes out, whatever it says.

    status, headers   of the response; a status other than 200 is a refusal
    ending    how the body ends
    split     bytes per write of a stream; 1 splits every character beyond ASCII
    noise     raw bytes in front of what is said
    garbage   raw bytes behind it, in place of the wire's last words
    body      anything in place of the whole body: nothing, HTML, cut JSON
    keepalives   a comment before every frame
    pause_s   before the answer begins
    error     the body of a refusal; empty: the vendor's usual words
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Ending = "whole"
    split: int = 0
    noise: bytes = b""
    garbage: bytes = b""
    body: bytes | None = None
    keepalives: bool = False
    pause_s: float = 0.0
    error: Json = field(default_factory=dict)

    @property
    def ends_well(self) -> bool:
        """Whether the wire's last words are said."""
        return self.ending == "whole" and not self.garbage


def sse(value: object, event: str = "", end: str = "\n") -> bytes:
    """One frame; text beyond ASCII as it is, so that splitting bytes can split characters."""
    head = f"event: {event}{end}" if event else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}{end}{end}".encode()


S = TypeVar("S", bound=Step)


class SseServer(Generic[S]):
    """Serves `script` in order on 127.0.0.1 until its `running()` block is left.

    bodies   the requests it took, in order; `refused` why it did not take others
    headers, peers   of each request: what it was sent with, and over which connection
    closed   set when a client leaves before its reply has ended; `left_at` is the loop time
    streams  replies that are being written now; `busiest` the most there were at once
    answers  answers by what is asked, in place of the script
    """

    path = "/{any:.*}"
    prefix = ""

    def __init__(self, *script: S) -> None:
        self._script = list(script)
        self.bodies: list[Json] = []
        self.refused: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.peers: list[object] = []
        self.closed = asyncio.Event()
        self.left_at = 0.0
        self.streams = 0
        self.busiest = 0
        self.answers: Callable[[Json], S] | None = None
        self.base_url = ""

    def check(self, request: web.Request, body: Json) -> None:
        """Raises Refused for what the vendor would refuse, a foreign key first."""
        raise NotImplementedError

    def error(self, status: int, message: str) -> Json:
        """An error body in the vendor's words."""
        raise NotImplementedError

    def frames(self, step: S) -> Iterable[bytes]:
        """A streamed answer."""
        raise NotImplementedError

    def whole(self, step: S) -> object:
        """The same answer in one piece."""
        raise NotImplementedError

    def refusal(self, step: S) -> object:
        """The body of a scripted refusal."""
        return step.error or self.error(step.status, "scripted")

    def is_streamed(self, request: web.Request, body: Json) -> bool:
        return body.get("stream") is True

    def next_step(self, body: Json) -> S:
        """What answers `body`."""
        if self.answers is not None:
            return self.answers(body)
        need(self._script, "the script is over")
        return self._script.pop(0)

    def rest_of_script(self, count: int) -> None:
        """Go on with the last `count` steps."""
        self._script = self._script[-count:]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        app = web.Application(client_max_size=64 * 2**20)
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
        self.headers.append(request.headers.copy())
        self.peers.append(request.transport.get_extra_info("peername"))
        self.streams += 1
        self.busiest = max(self.busiest, self.streams)
        try:
            return await self._answer(request)
        except Refused as refused:
            self.refused.append(str(refused))
            body = self.error(refused.status, str(refused))
            return web.json_response(body, status=refused.status)
        except asyncio.CancelledError:  # the client has left
            self.left_at = asyncio.get_running_loop().time()
            self.closed.set()
            raise
        finally:
            self.streams -= 1

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        self.check(request, body)
        self.bodies.append(body)
        step = self.next_step(body)
        if step.ending == "half_open":
            await asyncio.sleep(FOR_EVER_S)
        if step.pause_s:
            await asyncio.sleep(step.pause_s)
        if step.status != 200:
            return web.json_response(self.refusal(step), status=step.status, headers=step.headers)
        if step.body is not None:
            return web.Response(body=step.body, content_type="application/json")
        if self.is_streamed(request, body):
            return await _stream(request, step, self.frames(step))
        return await _whole(request, step, self.whole(step))


async def _whole(request: web.Request, step: Step, answer: object) -> web.StreamResponse:
    if step.ending == "stall":
        await asyncio.sleep(FOR_EVER_S)
    raw = step.garbage or json.dumps(answer).encode()
    if step.ending != "drop":
        return web.Response(body=raw, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(raw)
    await response.prepare(request)
    await response.write(raw[: len(raw) // 2])
    _drop(request)
    return response


async def _stream(request: web.Request, step: Step, frames: Iterable[bytes]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    for frame in (step.noise, *frames, step.garbage):
        if step.keepalives:
            frame = b": keepalive\n\n" + frame
        size = step.split or len(frame) or 1
        for at in range(0, len(frame), size):
            await response.write(frame[at : at + size])
            if step.split:
                await asyncio.sleep(0)
    if step.ending == "stall":
        await asyncio.sleep(FOR_EVER_S)
    if step.ending == "drop":
        _drop(request)
        return response
    await response.write_eof()
    return response


def _drop(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.close()
