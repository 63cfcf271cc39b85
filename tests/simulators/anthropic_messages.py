"""A strict Messages server: answers from a script, refuses what Anthropic would refuse.

Driven by the official SDK, through `AnthropicModel` and directly. It remembers the thinking it gave
with each call and wants it back unchanged; what a request may say stands in anthropic_rules.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from aiohttp import web

from tests.simulators.anthropic_rules import THINKING, VERSIONS, check_body
from tests.simulators.sse_server import Ending, Json, Refused, Reply, SseServer, need

KEY = "sk-ant-simulated-0123456789abcdef"
USAGE: Json = {"input_tokens": 25, "output_tokens": 1}
NAMES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


def text(*deltas: str) -> Json:
    """A text block that streams as `deltas`."""
    return {"type": "text", "deltas": deltas}


def thinking(said: str, signature: str) -> Json:
    return {"type": "thinking", "thinking": said, "signature": signature}


def redacted(data: str) -> Json:
    return {"type": "redacted_thinking", "data": data}


def call(id: str, name: str, *fragments: str) -> Json:
    """A call whose arguments stream as `fragments`; none: no input at all."""
    return {"type": "tool_use", "id": id, "name": name, "deltas": fragments}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """One answer, or an error status, or an error in the middle of a stream.

    usage      of message_start, over the default; `final` of message_delta
    garbage    raw bytes behind the blocks
    """

    blocks: Sequence[Json] = ()
    stop: str = ""
    usage: Json = field(default_factory=dict)
    final: Json = field(default_factory=lambda: {"output_tokens": 9})
    status: int = 200
    error: Json = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    stream_error: str = ""
    garbage: bytes = b""
    ending: Ending = "whole"
    split: int = 0

    @property
    def stop_reason(self) -> str:
        calls = any(block["type"] == "tool_use" for block in self.blocks)
        return self.stop or ("tool_use" if calls else "end_turn")


class AnthropicSimulator(SseServer):
    """Serves `script` in order at /v1/messages."""

    route = "/v1/messages"

    def __init__(self, *script: Scripted) -> None:
        super().__init__()
        self._script = list(script)
        self._thought: dict[str, list[Json]] = {}
        self.headers: list[Mapping[str, str]] = []
        self.sent: list[Json] = []
        """Every event and every whole message, as it went out."""

    def streams(self, request: web.Request, body: Json) -> bool:
        return body.get("stream") is True

    def error(self, status: int, message: str) -> object:
        name = NAMES.get(status, "api_error")
        return {"type": "error", "error": {"type": name, "message": message}}

    def check(self, request: web.Request, body: Json) -> None:
        """The headers, the body, and the thinking of every call that was made here."""
        key = request.headers.get("x-api-key")
        bearer = request.headers.get("Authorization", "")
        if key is None and not bearer.startswith("Bearer "):
            raise Refused("x-api-key header is required", 401)
        if (key or bearer.removeprefix("Bearer ")) != KEY:
            raise Refused("invalid x-api-key", 401)
        version = request.headers.get("anthropic-version", "")
        need(version in VERSIONS, f"anthropic-version: {version!r} is not a valid version")
        self.headers.append(dict(request.headers))
        check_body(body, version)
        messages = body["messages"]
        assert isinstance(messages, list)
        for message in messages:
            if message["role"] == "assistant" and isinstance(message["content"], list):
                self._check_thought(message["content"])

    def _check_thought(self, blocks: Sequence[Json]) -> None:
        ids = [str(block["id"]) for block in blocks if block["type"] == "tool_use"]
        mine = [known for id in ids if (known := self._thought.get(id)) is not None]
        back = [block for block in blocks if block["type"] in THINKING]
        given = [one for known in self._thought.values() for one in known]
        need(all(one in given for one in back), "thinking blocks cannot be modified")
        if mine:
            need(back == mine[0], "thinking blocks of this turn are missing or not in order")

    def answer(self, body: Json, *, streams: bool) -> Reply:
        need(self._script, "the script is over")
        step = self._script.pop(0)
        if step.status != 200:
            whole = step.error or self.error(step.status, "scripted")
            return Reply(whole=whole, status=step.status, headers=step.headers)
        thought = [block for block in step.blocks if block["type"] in THINKING]
        for block in step.blocks:
            if block["type"] == "tool_use":
                self._thought[str(block["id"])] = thought
        if not any(block["type"] == "tool_use" for block in step.blocks):
            self._thought[f"turn {len(self.bodies)}"] = thought
        if not streams:
            message = _message(step.usage | step.final) | {
                "content": [_whole(block) for block in step.blocks],
                "stop_reason": step.stop_reason,
            }
            self.sent.append(message)
            return Reply(whole=step.garbage or message, ending=step.ending)
        events = list(_events(step))
        self.sent += [event for event in events if event["type"] not in ("ping", "error")]
        pieces = [_sse(event) for event in events]
        if step.garbage:
            pieces.append(step.garbage)
        return Reply(pieces=pieces, ending=step.ending, split=step.split)


def _message(usage: Json) -> Json:
    """A message as it opens."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE | usage,
    }


def _whole(block: Json) -> Json:
    deltas = block.get("deltas", ())
    assert isinstance(deltas, tuple)
    match block["type"]:
        case "text":
            return {"type": "text", "text": "".join(deltas)}
        case "tool_use":
            raw = "".join(deltas)
            plain = {key: value for key, value in block.items() if key != "deltas"}
            return plain | {"input": json.loads(raw) if raw else {}}
    return block


def _events(step: Scripted) -> Iterator[Json]:
    yield {"type": "message_start", "message": _message(step.usage)}
    yield {"type": "ping"}
    for index, block in enumerate(step.blocks):
        yield from _block_events(index, block)
    if step.stream_error:
        yield {"type": "error", "error": {"type": step.stream_error, "message": "scripted"}}
        return
    if step.ending != "whole" or step.garbage:
        return
    delta = {"stop_reason": step.stop_reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": step.final}
    yield {"type": "message_stop"}


def _block_events(index: int, block: Json) -> Iterator[Json]:
    start, deltas = _opened(block)
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _opened(block: Json) -> tuple[Json, list[Json]]:
    """The block as it opens, and what is added to it."""
    deltas = block.get("deltas", ())
    assert isinstance(deltas, tuple)
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}, [
                {"type": "text_delta", "text": delta} for delta in deltas
            ]
        case "thinking":
            said = str(block["thinking"])
            half = len(said) // 2
            return {"type": "thinking", "thinking": "", "signature": ""}, [
                {"type": "thinking_delta", "thinking": said[:half]},
                {"type": "thinking_delta", "thinking": said[half:]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "tool_use":
            head = {key: value for key, value in block.items() if key != "deltas"} | {"input": {}}
            # The first fragment of a real stream is empty.
            return head, [
                {"type": "input_json_delta", "partial_json": delta} for delta in ("", *deltas)
            ]
    return block, []


def _sse(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
