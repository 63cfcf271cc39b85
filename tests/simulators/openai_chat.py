"""A strict chat completions server: answers from a script, refuses what OpenAI would refuse.

Driven by the official SDK through `OpenAIModel`. It checks what a real server checks and a sloppy
one does not: the key, known roles, results directly behind their calls, unique call ids.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

KEY = "sk-simulated-0123456789abcdef"

Json = dict[str, object]


def text_chunk(text: str) -> Json:
    return {"index": 0, "delta": {"content": text}, "finish_reason": None}


def call_chunk(index: int | None, id: str = "", name: str = "", arguments: str = "") -> Json:
    function: Json = {"arguments": arguments}
    if name:
        function["name"] = name
    fragment: Json = {"function": function}
    if id:
        fragment |= {"id": id, "type": "function"}
    if index is not None:
        fragment["index"] = index
    return {"index": 0, "delta": {"tool_calls": [fragment]}, "finish_reason": None}


def finish(reason: str) -> Json:
    return {"index": 0, "delta": {}, "finish_reason": reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """One answer: an error status, or chunks and how the stream ends."""

    choices: Sequence[Json] = ()
    usage: Json | None = None
    status: int = 200
    error: Json = field(default_factory=dict)
    stream_error: Json | None = None
    raw: str = ""
    breaks_off: bool = False
    hangs: bool = False
    whole: Json | None = None


class OpenAIChatSimulator:
    """Serves `script` in order. `bodies` are the requests it took, `closed` is set when a client
    leaves a hanging stream."""

    def __init__(self, *script: Scripted) -> None:
        self._script = list(script)
        self.bodies: list[Json] = []
        self.closed = asyncio.Event()
        self.base_url = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[OpenAIChatSimulator]:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._answer)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            self.base_url = f"http://{host}:{port}/v1"
            yield self
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return _error(401, {"message": "Incorrect API key provided", "type": "auth"})
        body = await request.json()
        self.bodies.append(body)
        wrong = problem(body)
        if wrong:
            return _error(400, {"message": wrong, "type": "invalid_request_error"})
        if not self._script:
            return _error(400, {"message": "the script is over", "type": "simulator"})
        step = self._script.pop(0)
        if step.status != 200:
            return _error(step.status, step.error)
        if step.whole is not None:
            return web.json_response(step.whole)
        return await self._stream(request, step)

    async def _stream(self, request: web.Request, step: Scripted) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": keepalive\n\n")
        for choice in step.choices:
            await response.write(_sse(_chunk([choice])))
        if step.hangs:
            try:
                await asyncio.sleep(3_600)
            finally:
                self.closed.set()
        if step.raw:
            await response.write(step.raw.encode())
        if step.stream_error is not None:
            await response.write(_sse({"error": step.stream_error}))
        if step.breaks_off:
            assert request.transport is not None
            request.transport.close()
            return response
        if step.usage is not None:
            await response.write(_sse(_chunk([]) | {"usage": step.usage}))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


def problem(body: Json) -> str:
    """What a real server would complain about; empty when the request is valid."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not body.get("model"):
        return "model and messages are required"
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        role = message.get("role")
        if role not in {"system", "developer", "user", "assistant", "tool"}:
            return f"messages[{place}].role {role!r} is unknown"
        if role == "tool":
            if message["tool_call_id"] not in open_calls:
                return f"messages[{place}] answers no open tool call"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return f"tool calls {open_calls} have no result"
        for call in message.get("tool_calls") or ():
            json.loads(call["function"]["arguments"])
            open_calls.append(call["id"])
        if message.get("content") is None and not message.get("tool_calls"):
            return f"messages[{place}].content is null"
    if body.get("stream") and body.get("stream_options") != {"include_usage": True}:
        return "stream_options.include_usage is missing"
    return f"tool calls {open_calls} have no result" if open_calls else ""


def _chunk(choices: list[Json]) -> Json:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": choices,
        "obfuscation": "x",
    }


def _sse(value: Json) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _error(status: int, error: Json) -> web.Response:
    return web.json_response({"error": error}, status=status)
