"""OpenAI's chat completions wire: our messages to its JSON, its chunks to one answer.

Pure functions and one accumulator; nothing here does I/O. The same wire is spoken by Ollama, vLLM
and llama.cpp, which leave out or repeat fields: the accumulator takes what they send.
Source: protocols/chat-models 1; `openai` types/chat/chat_completion_chunk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from ...core.messages import ContentPart, Message, ToolCall, result_text
from ...core.model import ModelRequest, ToolSpec
from ...core.usage import Usage
from ...core.view import merge_user_messages

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import (
        ChatCompletionChunk,
        ChatCompletionMessageParam,
        ChatCompletionToolParam,
    )
    from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


def wire_messages(request: ModelRequest) -> list[ChatCompletionMessageParam]:
    """The request's messages; results become one `tool` message per call."""
    out: list[dict[str, object]] = []
    if request.system_prompt:
        out.append({"role": "system", "content": request.system_prompt})
    for message in merge_user_messages(request.messages):
        out.extend(_wire_message(message))
    return cast("list[ChatCompletionMessageParam]", out)


def wire_tools(tools: Sequence[ToolSpec]) -> list[ChatCompletionToolParam]:
    """Tools in the nested form of chat completions."""
    out = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in tools
    ]
    return cast("list[ChatCompletionToolParam]", out)


def usage_of(usage: CompletionUsage | None) -> Usage:
    """Token counts; zeros where the server reports none."""
    if usage is None:
        return Usage()
    details = usage.prompt_tokens_details
    cached = details.cached_tokens if details is not None else None
    return Usage(usage.prompt_tokens, usage.completion_tokens, 0, cached or 0)


def parsed_arguments(raw: str) -> object:
    """A call's arguments as a dict, or the raw string when it is no JSON object."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw)
    except ValueError:
        return raw
    return value if isinstance(value, dict) else raw


@dataclass(slots=True)
class _CallDraft:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Answer:
    """A streamed answer while it comes in."""

    text: str = ""
    reasoning: str = ""
    usage: Usage = field(default_factory=Usage)
    finish: str | None = None
    _calls: list[_CallDraft] = field(default_factory=list)
    _places: dict[int, int] = field(default_factory=dict)

    def feed(self, chunk: ChatCompletionChunk) -> str:
        """Take a chunk; the text it adds. A chunk without choices carries the usage."""
        if chunk.usage is not None:
            self.usage = usage_of(chunk.usage)
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        self.finish = choice.finish_reason or self.finish
        delta = choice.delta
        self.reasoning += _extra_text(delta)
        for fragment in delta.tool_calls or ():
            self._take(fragment)
        text = (delta.content or "") + (delta.refusal or "")
        self.text += text
        return text

    @property
    def has_output(self) -> bool:
        """Whether the model said or called anything."""
        return bool(self.text or self._calls)

    @property
    def stop_reason(self) -> str | None:
        """In core's words; a server's own word passes."""
        if self._calls:
            return "tool_use"
        return None if self.finish is None else STOP_REASONS.get(self.finish, self.finish)

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, complete once the stream has ended."""
        return tuple(
            ToolCall(call.name, parsed_arguments(call.arguments), call.id) for call in self._calls
        )

    def message(self) -> Message:
        return Message(
            sender="agent",
            text=self.text,
            tool_calls=self.calls(),
            reasoning_content=self.reasoning or None,
        )

    def _take(self, fragment: ChoiceDeltaToolCall) -> None:
        """Fragments belong together by index; a second id under one index is another call."""
        # Ollama sends every call whole under index 0, some servers send no index at all.
        index = fragment.index if fragment.index is not None else len(self._calls) - 1
        place = self._places.get(index)
        if place is None or (fragment.id and self._calls[place].id not in ("", fragment.id)):
            place = self._places[index] = len(self._calls)
            self._calls.append(_CallDraft())
        call = self._calls[place]
        call.id = fragment.id or call.id
        if fragment.function is not None:
            call.name = call.name or fragment.function.name or ""
            call.arguments += fragment.function.arguments or ""


def _wire_message(message: Message) -> Iterator[dict[str, object]]:
    if message.tool_results:
        for result in message.tool_results:
            content = result_text(result.result)
            yield {"role": "tool", "tool_call_id": result.call_id, "content": content}
    elif message.sender == "agent":
        wire: dict[str, object] = {"role": "assistant", "content": message.text or None}
        if message.tool_calls:
            wire["tool_calls"] = [_wire_call(call) for call in message.tool_calls]
        elif not message.text:
            wire["content"] = ""
        yield wire
    else:
        yield {"role": "user", "content": _user_content(message)}


def _wire_call(call: ToolCall) -> dict[str, object]:
    raw = call.input_args
    arguments = raw if isinstance(raw, str) else json.dumps(raw, default=str)
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.tool_name, "arguments": arguments},
    }


def _user_content(message: Message) -> str | list[dict[str, object]]:
    if not message.content:
        return message.text
    parts = [_wire_part(part) for part in message.content]
    if message.text and not any(part.type == "text" for part in message.content):
        parts.insert(0, {"type": "text", "text": message.text})
    return parts


def _wire_part(part: ContentPart) -> dict[str, object]:
    """Images as URLs; what this wire has no place for is named, so that the model knows of it."""
    source = part.source
    if part.type == "image" and source is not None:
        inline = f"data:{source.media_type};base64,{source.data}"
        url = source.url if source.type == "url" else inline
        return {"type": "image_url", "image_url": {"url": url}}
    if part.type == "text":
        return {"type": "text", "text": part.text or ""}
    return {"type": "text", "text": f"[{part.type} {part.name or ''} cannot be shown here]"}


def _extra_text(delta: ChoiceDelta) -> str:
    """Reasoning text, which compatible servers send in fields of their own."""
    extra = delta.model_extra or {}
    found = extra.get("reasoning_content") or extra.get("reasoning")
    return found if isinstance(found, str) else ""
