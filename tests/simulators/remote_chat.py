"""A voxglove server's `POST /chat` as a far end that can be made to fail.

The real door is tested in tests/web and, through the model, in tests/adapters; this one says what
those never do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aiohttp import web

from .sse import Json, Refused, SseServer, Step, need, sse

KEY = "chat-key-of-24-characters"
BODY = {"systemPrompt", "messages", "tools", "max_tokens", "timeout_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted(Step):
    """Deltas and the end of an answer. `failure` is an error event in place of the end."""

    deltas: Sequence[str] = ()
    calls: Sequence[Json] = ()
    counts: Json | None = None
    stop: str | None = None
    failure: Json | None = None


class RemoteChatSimulator(SseServer[Scripted]):
    """Serves `script` in order at /chat."""

    path = "/chat"

    def is_streamed(self, request: web.Request, body: Json) -> bool:
        return True

    def error(self, status: int, message: str) -> Json:
        return {"code": "x", "message": message}

    def check(self, request: web.Request, body: Json) -> None:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused("no such key", 401)
        check_body(body)

    def frames(self, step: Scripted) -> Iterator[bytes]:
        for text in step.deltas:
            yield sse({"type": "text_delta", "text": text})
        if step.failure is not None:
            yield sse({"type": "error", **step.failure})
        elif step.ends_well:
            for call in step.calls:
                used = {"id": call["id"], "name": call["tool_name"], "input": call["input_args"]}
                yield sse({"type": "tool_use", **used})
            message = {"sender": "agent", "text": "".join(step.deltas)}
            calls: Json = {"tool_calls": list(step.calls)} if step.calls else {}
            end = {"message": message | calls, "stop_reason": step.stop, **(step.counts or {})}
            yield sse({"type": "done", **end})


def check_body(body: Json) -> None:
    """Raises Refused for what the door refuses in the shape of a request."""
    need(set(body) <= BODY, f"unknown fields {set(body) - BODY}")
    need(isinstance(body.get("systemPrompt"), str), "systemPrompt: a text")
    for name in ("messages", "tools"):
        need(isinstance(body.get(name), list), f"{name}: a list")
    shown = re.search(r'"render_data": (?!null)', json.dumps(body))
    need(shown is None, "render_data: for people, not for models")
