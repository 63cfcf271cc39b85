"""OpenAI's Responses wire: our request to its JSON, its events to one answer.

Pure functions and one accumulator; nothing here does I/O. Nothing is stored at the provider: every
request carries the whole history, and reasoning goes back, encrypted, with the calls it led to.
Source: protocols/chat-models 2; `openai` types/responses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from ...core.encoding import whole_text
from ...core.errors import ModelError
from ...core.messages import ContentPart, Message, ToolCall, result_text
from ...core.model import ModelRequest, ToolSpec
from ...core.usage import Usage
from . import failures
from .call_arguments import arguments_text, parsed_arguments
from .media_parts import note
from .object_schema import object_schema
from .openai_config import OpenAIConfig
from .openai_media import (
    Json,
    file_name,
    image_url,
    media_url,
    repaired,
    user_parts,
)
from .openai_wire import TOOL_NAMES, cache_hints, call_ids
from .turns import BEGUN, agent_text
from .wire_names import WireNames

if TYPE_CHECKING:
    from openai.types.responses import (
        Response,
        ResponseOutputItem,
        ResponseOutputMessage,
        ResponseStreamEvent,
        ResponseUsage,
    )
    from openai.types.responses.response_create_params import (
        ResponseCreateParamsNonStreaming,
        ResponseCreateParamsStreaming,
    )

OPTIONS_KEY = "openai_responses"
"""Where a message keeps what only this adapter may send back."""

CALL_IDS = call_ids(64)
MIN_OUTPUT_TOKENS = 16
"""The wire refuses a smaller bound."""

STOP_REASONS = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
PARAGRAPH = "\n\n"
"""Between the texts of two messages of one answer, which would run into each other."""


def streamed_body(config: OpenAIConfig, request: ModelRequest) -> ResponseCreateParamsStreaming:
    """The request body of a streamed answer; `extra` is not in it."""
    return cast("ResponseCreateParamsStreaming", _body(config, request) | {"stream": True})


def whole_body(config: OpenAIConfig, request: ModelRequest) -> ResponseCreateParamsNonStreaming:
    """The request body of an answer in one piece."""
    return cast("ResponseCreateParamsNonStreaming", _body(config, request) | {"stream": False})


def _body(config: OpenAIConfig, request: ModelRequest) -> Json:
    longest = request.limits.max_tokens or config.max_tokens
    effort = config.reasoning_effort
    body: Json = {
        "model": config.model,
        "instructions": whole_text(request.system_prompt) or None,
        "input": [
            item for message in repaired(request.messages) for item in _items(message, config.model)
        ]
        or [{"type": "message", "role": "user", "content": BEGUN}],
        "store": False,
        "max_output_tokens": None if longest is None else max(longest, MIN_OUTPUT_TOKENS),
        "temperature": config.temperature,
        "reasoning": None if effort is None else {"effort": effort},
        "include": ["reasoning.encrypted_content"] if config.wants_encrypted_reasoning else None,
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["parallel_tool_calls"] = config.parallel_tool_calls
    body |= cache_hints(config, request)
    return {name: value for name, value in body.items() if value is not None}


def _tool(tool: ToolSpec) -> Json:
    """Flat, and never strict: that is this wire's default, and refuses most schemas."""
    return {
        "type": "function",
        "name": TOOL_NAMES.wire(tool.name),
        "description": whole_text(tool.description),
        "parameters": object_schema(tool.parameters),
        "strict": False,
    }


def _items(message: Message, model: str) -> Iterator[Json]:
    if message.tool_results:
        for result in message.tool_results:
            yield {
                "type": "function_call_output",
                "call_id": CALL_IDS.wire(result.call_id),
                "output": whole_text(result_text(result.result)),
            }
    elif message.sender == "agent":
        yield from _agent_items(message, model)
    elif message.content:
        parts = [_part(part) for part in user_parts(message)]
        yield {"type": "message", "role": "user", "content": parts}
    else:
        yield {"type": "message", "role": "user", "content": whole_text(message.text)}


def _agent_items(message: Message, model: str) -> Iterator[Json]:
    """What the agent said and called, in the order in which the model made it.

    Reasoning is handed back only with calls, and only to the model it came from; the text is what
    history holds of it now, which after an interruption is less than the model wrote.
    """
    text, calls = agent_text(message), list(message.tool_calls)
    thought: list[Json] = []  # goes only in front of what it led to: the wire wants both or none
    for kept in _kept(message, model):
        match kept.get("type"):
            case "reasoning" if calls:
                thought.append(dict(kept))
                continue
            case "message" if text:
                yield from (*thought, _said(text, kept.get("phase")))
                text = ""
            case "function_call" if calls:
                yield from (*thought, _call(calls.pop(0)))
        thought = []
    if text:
        yield _said(text, None)
    yield from (_call(call) for call in calls)


def _kept(message: Message, model: str) -> list[Mapping[str, object]]:
    """The outline of the model's own output, if this model made this message."""
    options = (message.provider_options or {}).get(OPTIONS_KEY)
    if not isinstance(options, Mapping) or options.get("model") != model:
        return []
    items = options.get("items")
    return [one for one in items if isinstance(one, Mapping)] if isinstance(items, list) else []


def _said(text: str, phase: object) -> Json:
    said: Json = {"type": "message", "role": "assistant", "content": text}
    return said | {"phase": phase} if isinstance(phase, str) else said


def _call(call: ToolCall) -> Json:
    return {
        "type": "function_call",
        "call_id": CALL_IDS.wire(call.id),
        "name": TOOL_NAMES.wire(call.tool_name),
        "arguments": arguments_text(call.input_args),
    }


def _part(part: ContentPart) -> Json:
    if part.type == "text":
        return {"type": "input_text", "text": whole_text(part.text or "")}
    if part.source is not None and part.type in ("image", "document"):
        url = image_url(part.source) if part.type == "image" else media_url(part.source)
        if url and part.type == "image":
            return {"type": "input_image", "detail": "auto", "image_url": url}
        if url and url.startswith("data:"):
            return {"type": "input_file", "filename": file_name(part), "file_data": url}
        if url:
            return {"type": "input_file", "file_url": url}
    return {"type": "input_text", "text": note(part)}


def usage_of(usage: ResponseUsage | None) -> Usage:
    """Token counts; zeros where the server reports none. Reasoning counts as output."""
    details = getattr(usage, "input_tokens_details", None)
    counts = (
        (usage, "input_tokens"),
        (usage, "output_tokens"),
        (details, "cache_write_tokens"),
        (details, "cached_tokens"),
    )
    found = (getattr(owner, name, None) for owner, name in counts)
    return Usage(*(value if isinstance(value, int) else 0 for value in found))


class ResponseAnswer:
    """An answer while it comes in.

    An item counts when it is done; `ended` is set by the terminal event, and only then is the
    answer whole.
    """

    def __init__(self, name: str, model: str, names: WireNames) -> None:
        self._name = name
        self._model = model
        self._names = names
        self.text = ""
        self.refused = False
        self.ended: Response | None = None
        self._said_by: str | None = None
        self._streamed = False
        self._any_item = False
        self._reasoning: list[str] = []
        self._calls: list[ToolCall] = []
        self._kept: list[Json] = []

    def feed(self, event: ResponseStreamEvent) -> str:
        """Take an event; the text it adds. Events of other kinds pass.

        Raises ModelError where the event says that the answer failed, ValueError for JSON that is
        no event.
        """
        with failures.reading(event):
            match event.type:
                case "response.output_text.delta":
                    return self._stream(event.item_id, event.delta)
                case "response.refusal.delta":
                    self.refused = True
                    return self._stream(event.item_id, event.delta)
                case "response.output_item.done":
                    return self._take(event.item)
                case "response.completed" | "response.incomplete":
                    return self.take_whole(event.response)
                case "response.failed":
                    raise self._failed(event.response)
                case "error":
                    raise failures.named_error(f"{self._name}: {event.message}", event.code)
                case _:
                    return ""

    def take_whole(self, response: Response) -> str:
        """Take a finished response; the text that was not streamed. Raises as `feed`."""
        with failures.reading(response):
            if response.status == "failed" or response.error is not None:
                raise self._failed(response)
            # It repeats every item; some servers send the items here only.
            items = () if self._any_item else response.output
            text = "".join([self._take(item) for item in items])
            self.ended = response
            return text

    @property
    def usage(self) -> Usage:
        return Usage() if self.ended is None else usage_of(self.ended.usage)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, complete once the answer has ended."""
        return tuple(self._calls)

    @property
    def stop_reason(self) -> str | None:
        """In core's words; a server's own word passes."""
        if self._calls:
            return "tool_use"
        if self.refused:
            return "refusal"
        if self.ended is not None and self.ended.status == "incomplete":
            details = self.ended.incomplete_details
            reason = details.reason if details is not None else None
            return STOP_REASONS.get(reason or "", reason)
        return "end_turn"

    def message(self) -> Message:
        """The finished answer, with what has to go back to the model beside it."""
        kept = [one for one in self._kept if self._calls or one["type"] != "reasoning"]
        needed = any(one["type"] == "reasoning" or "phase" in one for one in kept)
        options = {OPTIONS_KEY: {"model": self._model, "items": kept}} if needed else None
        return Message(
            sender="agent",
            text=self.text,
            tool_calls=self.calls,
            reasoning_content="\n".join(self._reasoning) or None,
            provider_options=options,
        )

    def _stream(self, item_id: str, delta: str) -> str:
        self._streamed = True
        return self._say(item_id, delta)

    def _say(self, item_id: str, text: str) -> str:
        if text and self.text and item_id != self._said_by:
            text = PARAGRAPH + text
        self._said_by = item_id
        self.text += text
        return text

    def _take(self, item: ResponseOutputItem) -> str:
        """A finished item; the text it adds."""
        self._any_item = True
        match item.type:
            case "message":
                return self._take_message(item)
            case "function_call":
                self._kept.append({"type": "function_call"})
                arguments = parsed_arguments(item.arguments)
                self._calls.append(ToolCall(self._names.ours(item.name), arguments, item.call_id))
            case "reasoning":
                self._reasoning += [part.text for part in item.summary or () if part.text]
                self._keep_reasoning(item.to_dict(mode="json"))
        return ""

    def _take_message(self, item: ResponseOutputMessage) -> str:
        phase = getattr(item, "phase", None)
        self._kept.append({"type": "message"} | ({"phase": phase} if phase else {}))
        if self._streamed:
            return ""
        self.refused = self.refused or any(part.type == "refusal" for part in item.content)
        texts = (part.text if part.type == "output_text" else part.refusal for part in item.content)
        return self._say(item.id, "".join(texts))

    def _keep_reasoning(self, item: Mapping[str, object]) -> None:
        """As it came, for the way back. Without its encrypted content the provider, which stores
        nothing, could not read it."""
        if item.get("encrypted_content"):
            fields = ("type", "id", "summary", "content", "encrypted_content")
            self._kept.append({name: item[name] for name in fields if item.get(name) is not None})

    def _failed(self, response: Response) -> ModelError:
        error = response.error
        if error is None:
            return failures.named_error(f"{self._name}: the response failed without a reason")
        return failures.named_error(f"{self._name}: {error.message}", error.code)
