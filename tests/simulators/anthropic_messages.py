"""A strict Messages server: answers from a script, refuses what Anthropic would refuse.

Driven by the official SDK, through `AnthropicModel` and directly. It remembers the thinking it gave
with each call and wants it back unchanged; what a request may say stands in anthropic_rules.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from aiohttp import web

from tests.simulators.anthropic_rules import THINKING, VERSIONS, check_body
from tests.simulators.sse import Json, Refused, SseServer, Step, need, sse

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
class Scripted(Step):
    """One answer, or an error status, or an error in the middle of a stream.

    usage      of message_start, over the default; `final` of message_delta
    """

    blocks: Sequence[Json] = ()
    stop: str = ""
    usage: Json = field(default_factory=dict)
    final: Json = field(default_factory=lambda: {"output_tokens": 9})
    stream_error: str = ""

    @property
    def stop_reason(self) -> str:
        calls = any(block["type"] == "tool_use" for block in self.blocks)
        return self.stop or ("tool_use" if calls else "end_turn")


class AnthropicSimulator(SseServer[Scripted]):
    """Serves `script` in order at /v1/messages."""

    path = "/v1/messages"

    def __init__(self, *script: Scripted) -> None:
        super().__init__(*script)
        self._thought: dict[str, list[list[Json]]] = {}
        self.sent: list[Json] = []
        """Every event and every whole message, as it went out."""

    def error(self, status: int, message: str) -> Json:
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
        check_body(body, version)
        messages = body["messages"]
        assert isinstance(messages, list)
        for message in messages:
            if message["role"] == "assistant" and isinstance(message["content"], list):
                self._check_thought(message["content"])

    def _check_thought(self, blocks: Sequence[Json]) -> None:
        ids = [str(block["id"]) for block in blocks if block["type"] == "tool_use"]
        mine = [known for id in ids for known in self._thought.get(id, ())]
        back = [block for block in blocks if block["type"] in THINKING]
        given = [one for turns in self._thought.values() for known in turns for one in known]
        need(all(one in given for one in back), "thinking blocks cannot be modified")
        if mine:
            need(back in mine, "thinking blocks of this turn are missing or not in order")

    def next_step(self, body: Json) -> Scripted:
        step = super().next_step(body)
        thought = [block for block in step.blocks if block["type"] in THINKING]
        for block in step.blocks:
            if block["type"] == "tool_use":
                self._thought.setdefault(str(block["id"]), []).append(thought)
        if not any(block["type"] == "tool_use" for block in step.blocks):
            self._thought[f"turn {len(self.bodies)}"] = [thought]
        return step

    def whole(self, step: Scripted) -> object:
        message = _message(step.usage | step.final) | {
            "content": [_whole(block) for block in step.blocks],
            "stop_reason": step.stop_reason,
        }
        self.sent.append(message)
        return message

    def frames(self, step: Scripted) -> Iterator[bytes]:
        for event in _events(step):
            if event["type"] not in ("ping", "error"):
                self.sent.append(event)
            yield sse(event, str(event["type"]))


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
    if not step.ends_well:
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
