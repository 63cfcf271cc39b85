"""The wire of `POST /chat`: what is asked as JSON, and server-sent events as they come in.

Pure: bytes in, values out. An event may be cut anywhere, inside a character too; nothing is decoded
before its line is whole. Comments, other fields and unknown event types are skipped (WHATWG HTML,
9.2 "Server-sent events").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from ...core.encoding import json_bytes
from ...core.errors import ModelError
from ...core.messages import decode_message, encode_message
from ...core.model import ModelRequest, ModelResult
from ...core.usage import Usage
from .failures import PROTOCOL

MAX_EVENT_BYTES = 16 * 1_048_576
"""An event that does not end is a broken server."""


def request_body(request: ModelRequest) -> bytes:
    """`{systemPrompt, messages, tools, max_tokens?, timeout_s?}`."""
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in request.tools
    ]
    rest: dict[str, object] = {"systemPrompt": request.system_prompt, "tools": tools}
    limits = request.limits
    if limits.max_tokens is not None:
        rest["max_tokens"] = limits.max_tokens
    if limits.timeout_s is not None:
        rest["timeout_s"] = max(1, round(limits.timeout_s))
    messages = b",".join(encode_message(message) for message in request.messages)
    return b'{"messages":[' + messages + b"]," + json_bytes(rest)[1:]


class EventReader:
    """Turns pieces of a stream into the JSON objects of its events."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False

    def feed(self, piece: bytes) -> Iterator[Mapping[str, object]]:
        """The events that `piece` completes. Raises ModelError for what is no event."""
        for raw in piece.splitlines(keepends=True):
            if self._after_cr and raw == b"\n":
                self._after_cr = False
                continue  # the second half of CR LF that was cut between the two
            self._after_cr = raw.endswith(b"\r")
            self._line += raw
            self._size += len(raw)
            if self._size > MAX_EVENT_BYTES:
                raise ModelError("the stream holds an event without an end", code=PROTOCOL)
            if not raw.endswith((b"\n", b"\r")):
                return
            line, self._line = bytes(self._line).rstrip(b"\r\n"), bytearray()
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line:
                yield from self._dispatch()

    def _dispatch(self) -> Iterator[Mapping[str, object]]:
        data, self._data, self._size = b"\n".join(self._data), [], 0
        if not data:
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ModelError("an event of the stream is no JSON", code=PROTOCOL) from error
        if isinstance(event, dict):
            yield event


def answered(event: Mapping[str, object]) -> ModelResult:
    """What a `done` event says. Raises ModelError."""
    try:
        message = decode_message(json.dumps(event["message"]))
        counts = {name: int(str(event.get(name) or 0)) for name in Usage.__dataclass_fields__}
    except (KeyError, ValueError) as error:
        raise ModelError("the end of the answer cannot be read", code=PROTOCOL) from error
    stop = event.get("stop_reason")
    return ModelResult(
        messages=(message,),
        usage=Usage(**counts),
        stop_reason=stop if isinstance(stop, str) else None,
    )


def failure(event: Mapping[str, object], name: str) -> ModelError:
    """The error of an `error` event, as the server's model reported it."""
    wait_s = event.get("retry_after_s")
    return ModelError(
        f"{name}: {event.get('message') or 'the model failed'}",
        code=str(event.get("code") or "ERR_MODEL"),
        retryable=event.get("retryable") is True,
        retry_after_s=float(wait_s) if isinstance(wait_s, int | float) else None,
    )
