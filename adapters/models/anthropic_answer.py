"""Anthropic's Messages wire, inwards: stream events, or one whole message, to one answer.

An accumulator without I/O. Thinking is never text: it goes into reasoning_content, and with its
signature, unread, into provider_options, from where anthropic_wire.py hands it back.
Source: protocols/chat-models 3; `anthropic` types/raw_message_stream_event, types/content_block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.messages import Message, ToolCall
from ...core.usage import Usage
from .anthropic_wire import OPTIONS_KEY, THINKING
from .call_arguments import parsed_arguments
from .wire_names import WireNames

if TYPE_CHECKING:
    from anthropic.types import (
        ContentBlock,
        MessageDeltaUsage,
        RawContentBlockDelta,
        RawMessageStreamEvent,
    )
    from anthropic.types import Message as WireMessage
    from anthropic.types import Usage as WireUsage


@dataclass(slots=True)
class _Block:
    """One content block; which fields it uses depends on its kind."""

    kind: str
    text: str = ""
    signature: str = ""
    id: str = ""
    name: str = ""
    input: object = None

    @property
    def is_kept(self) -> bool:
        """Whether it is handed back with the turn."""
        if self.kind == "thinking":
            return bool(self.signature)
        return self.kind in ("text", "tool_use", "redacted_thinking")


class Answer:
    """An answer while it comes in. `complete` once the wire said that it is whole."""

    def __init__(self, names: WireNames, model: str) -> None:
        self._names = names
        self._model = model
        self._blocks: dict[int, _Block] = {}
        self._counts: dict[str, int] = {}
        self._stop: str | None = None
        self.complete = False

    def feed(self, event: RawMessageStreamEvent) -> str:
        """Take an event; the text it adds. Raises ValueError for what is no event of this wire."""
        try:
            return self._take(event)
        except (AttributeError, KeyError, TypeError) as error:
            # The SDK does not check what it decodes: fields may be None, or the event no object.
            raise ValueError(f"no event of this wire: {event!r}") from error

    def whole(self, message: WireMessage) -> None:
        """Take an answer that was not streamed. Raises ValueError as `feed` does."""
        try:
            for index, block in enumerate(message.content):
                self._start(index, block)
            self._count(message.usage)
            self._stop = message.stop_reason
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"no message of this wire: {message!r}") from error
        self.complete = self._stop is not None

    @property
    def refused(self) -> bool:
        """The provider stopped the answer for what it said; its calls are not run."""
        return self._stop == "refusal"

    @property
    def stop_reason(self) -> str | None:
        """In core's words, which are this wire's; a new word passes."""
        return "tool_use" if self.calls() else self._stop

    @property
    def usage(self) -> Usage:
        """This wire counts cached tokens apart; core's tokens_in holds all of them."""
        created = self._counts.get("cache_creation_input_tokens", 0)
        read = self._counts.get("cache_read_input_tokens", 0)
        fresh = self._counts.get("input_tokens", 0)
        return Usage(fresh + created + read, self._counts.get("output_tokens", 0), created, read)

    @property
    def text(self) -> str:
        return "".join(block.text for block in self._of("text"))

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, complete once the answer is."""
        if self.refused:
            return ()
        return tuple(
            ToolCall(self._names.ours(block.name), _arguments(block), block.id)
            for block in self._of("tool_use")
        )

    def message(self) -> Message:
        reasoning = "".join(block.text for block in self._of("thinking"))
        return Message(
            sender="agent",
            text=self.text,
            tool_calls=self.calls(),
            reasoning_content=reasoning or None,
            provider_options=self._options(),
        )

    def _of(self, kind: str) -> list[_Block]:
        return [block for _, block in sorted(self._blocks.items()) if block.kind == kind]

    def _options(self) -> Mapping[str, object] | None:
        """The order of the blocks, kept only where there is thinking to hand back.

        Thinking that was cut off before its signature came is not taken back by the wire.
        """
        blocks = [block for _, block in sorted(self._blocks.items()) if block.is_kept]
        if self.refused or not any(block.kind in THINKING for block in blocks):
            return None
        return {OPTIONS_KEY: {"model": self._model, "blocks": [_kept(block) for block in blocks]}}

    def _take(self, event: RawMessageStreamEvent) -> str:
        # By `type`: the SDK builds events it does not know as one of the classes it knows.
        match event.type:
            case "message_start":
                self._count(event.message.usage)
            case "content_block_start":
                return self._start(event.index, event.content_block)
            case "content_block_delta":
                return self._grow(self._blocks[event.index], event.delta)
            case "message_delta":
                self._stop = event.delta.stop_reason or self._stop
                self._count(event.usage)
            case "message_stop":
                self.complete = True
        return ""

    def _start(self, index: int, block: ContentBlock) -> str:
        """Open a block; kinds that only server tools make are left out."""
        match block.type:
            case "text":
                self._blocks[index] = _Block("text", block.text or "")
                return block.text or ""
            case "thinking":
                self._blocks[index] = _Block(
                    "thinking", block.thinking or "", block.signature or ""
                )
            case "redacted_thinking":
                self._blocks[index] = _Block("redacted_thinking", block.data)
            case "tool_use":
                self._blocks[index] = _Block(
                    "tool_use", id=block.id, name=block.name, input=block.input
                )
            case _:
                self._blocks[index] = _Block(block.type)
        return ""

    def _grow(self, block: _Block, delta: RawContentBlockDelta) -> str:
        match delta.type:
            case "text_delta":
                block.text += delta.text
                return delta.text if block.kind == "text" else ""
            case "thinking_delta":
                block.text += delta.thinking
            case "signature_delta":
                block.signature = delta.signature
            case "input_json_delta":
                block.text += delta.partial_json
        return ""

    def _count(self, usage: WireUsage | MessageDeltaUsage) -> None:
        """Counts are totals so far: later ones replace earlier ones, missing ones do not."""
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        ):
            value = getattr(usage, name, None)
            if isinstance(value, int):
                self._counts[name] = value


def _arguments(block: _Block) -> object:
    """The call's input: an object, or the raw text where it is none. Nothing means `{}`."""
    if block.text.strip():
        return parsed_arguments(block.text)
    return dict(block.input) if isinstance(block.input, Mapping) else {}


def _kept(block: _Block) -> Mapping[str, object]:
    match block.kind:
        case "thinking":
            return {"type": "thinking", "thinking": block.text, "signature": block.signature}
        case "redacted_thinking":
            return {"type": "redacted_thinking", "data": block.text}
        case "text":
            return {"type": "text", "text": block.text}
        case kind:
            return {"type": kind}
