"""One answer of `POST /chat` on its way out: model events become server-sent events.

Fed by the model's synchronous notifications, drained by the request that owns it. What waits is
bounded: a reader that takes nothing ends the answer rather than filling the memory.
"""

from __future__ import annotations

import asyncio

from ...core.encoding import json_bytes
from ...core.errors import ModelError
from ...core.events import ModelResponse, ModelResponseComplete, TextDelta, ToolUse
from ...core.messages import Message, ToolCall, encode_message
from ...core.model import ModelEvent, ModelResult

MAX_WAITING_BYTES = 4 * 1_048_576
"""What a slow reader may be behind."""


class ReaderTooSlow(Exception):
    """More waits to be sent than may."""


class ChatStream:
    """The events of one answer, in order. `put` is a model's `notify`."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._told: set[str] = set()
        """Ids of tool calls that were sent."""
        self._texts = False
        self._wake = asyncio.Event()
        self.finished = False
        """The last event is among what waits, or was taken."""

    def put(self, event: ModelEvent) -> None:
        """Raises ReaderTooSlow."""
        match event:
            case TextDelta():
                self._text(event.text)
            case ToolUse():
                self._call(ToolCall(event.name, event.input, event.id))
            case ModelResponse() | ModelResponseComplete():
                self._whole(event.text, event.tool_calls)

    def done(self, result: ModelResult) -> None:
        """The last event of an answer that came to its end."""
        message = joined(result.messages)
        self._whole(message.text, message.tool_calls)
        usage = result.usage
        counts = {name: getattr(usage, name) for name in type(usage).__dataclass_fields__}
        told = json_bytes({**counts, "stop_reason": result.stop_reason})
        self._send(
            b'{"type":"done","message":' + encode_message(message) + b"," + told[1:], last=True
        )

    def failed(self, error: ModelError) -> None:
        """The last event of one that did not."""
        told = {"code": error.code, "message": str(error), "retryable": error.retryable}
        if error.retry_after_s is not None:
            told["retry_after_s"] = error.retry_after_s
        self._send(json_bytes({"type": "error", **told}), last=True)

    def take(self) -> bytes:
        """What waits; empty when nothing does."""
        waiting, self._waiting, self._bytes = b"".join(self._waiting), [], 0
        self._wake.clear()
        return waiting

    async def wait(self) -> None:
        """Until something waits."""
        await self._wake.wait()

    def _whole(self, text: str, calls: tuple[ToolCall, ...]) -> None:
        """What a model that does not stream, or streams in part, has not told yet."""
        if text and not self._texts:
            self._text(text)
        for call in calls:
            self._call(call)

    def _text(self, text: str) -> None:
        if text:
            self._texts = True
            self._send(json_bytes({"type": "text_delta", "text": text}))

    def _call(self, call: ToolCall) -> None:
        if call.id in self._told:
            return
        self._told.add(call.id)
        told = {"id": call.id, "name": call.tool_name, "input": call.input_args}
        self._send(json_bytes({"type": "tool_use", **told}))

    def _send(self, data: bytes, *, last: bool = False) -> None:
        """JSON holds no line break, so that one `data:` line is one event."""
        if self.finished:
            return
        if self._bytes + len(data) > MAX_WAITING_BYTES and not last:
            raise ReaderTooSlow
        self.finished = last
        self._waiting.append(b"data: " + data + b"\n\n")
        self._bytes += len(data)
        self._wake.set()


def joined(messages: tuple[Message, ...]) -> Message:
    """One answer of what may be several messages."""
    if len(messages) == 1:
        return messages[0]
    texts = [message.text for message in messages if message.text]
    calls = tuple(call for message in messages for call in message.tool_calls)
    return Message(sender="agent", text="\n\n".join(texts), tool_calls=calls)
