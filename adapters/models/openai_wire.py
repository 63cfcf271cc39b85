"""OpenAI's chat completions wire: our request to its JSON, its chunks to one answer.

Pure functions and one accumulator; nothing here does I/O. The same wire is spoken by Ollama, vLLM,
llama.cpp and many services, which leave out, repeat or add fields: the accumulator takes what they
send. Source: protocols/chat-models 1; `openai` types/chat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from ...core.encoding import whole_text
from ...core.messages import ContentPart, Message, ToolCall, result_text
from ...core.model import ModelRequest, ToolSpec
from ...core.usage import Usage
from . import failures
from .call_arguments import arguments_text, parsed_arguments
from .media_parts import note
from .object_schema import object_schema
from .openai_config import ChatDialect, OpenAIConfig
from .openai_extras import ReasoningDetails, options, returned
from .openai_media import (
    Json,
    file_name,
    image_url,
    media_url,
    repaired,
    user_parts,
)
from .turns import BEGUN, agent_text
from .wire_names import WireNames, WordRule

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion, ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall
    from openai.types.chat.completion_create_params import (
        CompletionCreateParamsNonStreaming,
        CompletionCreateParamsStreaming,
    )

STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}

TOOL_NAMES = WordRule(letters="A-Za-z0-9_-", first="A-Za-z0-9_-", longest=64)
"""Of both wires of OpenAI."""

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Where compatible servers put what the model thought."""


def streamed_body(config: OpenAIConfig, request: ModelRequest) -> CompletionCreateParamsStreaming:
    """The request body of a streamed answer; `extra` is not in it."""
    body = _body(config, request)
    body |= {"stream": True, "stream_options": {"include_usage": True}}
    return cast("CompletionCreateParamsStreaming", body)


def whole_body(config: OpenAIConfig, request: ModelRequest) -> CompletionCreateParamsNonStreaming:
    """The request body of an answer in one piece."""
    return cast("CompletionCreateParamsNonStreaming", _body(config, request) | {"stream": False})


def _body(config: OpenAIConfig, request: ModelRequest) -> Json:
    dialect = config.chat_dialect
    longest = request.limits.max_tokens or config.max_tokens
    body: Json = {
        "model": config.model,
        "messages": _messages(request, config.model, dialect),
        dialect.max_tokens_field: longest,
        "temperature": config.temperature,
        "reasoning_effort": config.reasoning_effort,
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["parallel_tool_calls"] = config.parallel_tool_calls
    if dialect.cache_hints:
        body |= cache_hints(config, request)
    return {name: value for name, value in body.items() if value is not None}


def cache_hints(config: OpenAIConfig, request: ModelRequest) -> Json:
    """What keeps requests with one prefix at one cache; nothing unless `cache` is set.

    The key is made of the parts that stand first and stay: prompt and tools.
    """
    if not config.cache:
        return {}
    prefix = "\n".join([request.system_prompt, *(tool.name for tool in request.tools)])
    digest = sha256(whole_text(prefix).encode()).hexdigest()[:32]
    hints: Json = {"prompt_cache_key": config.cache_key or f"voxglove-{digest}"}
    if config.cache == "1h":
        hints["prompt_cache_retention"] = "24h"
    return hints


def shown_names(request: ModelRequest) -> WireNames:
    """The tools a model may call: those offered, and those it sees in history."""
    called = (call.tool_name for message in request.messages for call in message.tool_calls)
    return WireNames(TOOL_NAMES, [*called, *(tool.name for tool in request.tools)])


@cache
def call_ids(longest: int) -> WordRule:
    """Ids may be of any letters (Kimi's own are like `functions.look:0`), only not too long."""
    return WordRule(letters=r"\x20-\x7e", first=r"\x20-\x7e", longest=longest)


def _messages(request: ModelRequest, model: str, dialect: ChatDialect) -> list[Json]:
    """The request's messages; results become one `tool` message per call."""
    out: list[Json] = []
    if request.system_prompt:
        out.append({"role": "system", "content": whole_text(request.system_prompt)})
    for message in repaired(request.messages):
        out.extend(_message(message, model, dialect))
    if all(message["role"] == "system" for message in out):
        out.append({"role": "user", "content": BEGUN})
    return out


def _tool(tool: ToolSpec) -> Json:
    function: Json = {
        "name": TOOL_NAMES.wire(tool.name),
        "description": whole_text(tool.description),
        "parameters": object_schema(tool.parameters),
    }
    return {"type": "function", "function": function}


def _message(message: Message, model: str, dialect: ChatDialect) -> Iterator[Json]:
    if message.tool_results:
        for result in message.tool_results:
            yield {
                "role": "tool",
                "tool_call_id": call_ids(dialect.call_id_chars).wire(result.call_id),
                "content": whole_text(result_text(result.result)),
            }
    elif message.sender == "agent":
        yield _agent_message(message, model, dialect)
    elif message.content:
        parts = [_part(part, dialect) for part in user_parts(message)]
        yield {"role": "user", "content": parts}
    else:
        yield {"role": "user", "content": whole_text(message.text)}


def _agent_message(message: Message, model: str, dialect: ChatDialect) -> Json:
    text = agent_text(message)
    if not message.tool_calls:
        return {"role": "assistant", "content": text}
    wire: Json = {
        "role": "assistant",
        "content": text or None,
        "tool_calls": [_call(call, model, dialect) for call in message.tool_calls],
    }
    details = returned(model, message, "reasoning_details") if dialect.returns_extras else None
    if details:
        wire["reasoning_details"] = details
    elif dialect.reasoning_field is not None and message.reasoning_content:
        wire[dialect.reasoning_field] = whole_text(message.reasoning_content)
    return wire


def _call(call: ToolCall, model: str, dialect: ChatDialect) -> Json:
    wire: Json = {
        "id": call_ids(dialect.call_id_chars).wire(call.id),
        "type": "function",
        "function": {
            "name": TOOL_NAMES.wire(call.tool_name),
            "arguments": arguments_text(call.input_args),
        },
    }
    extra = returned(model, call, "extra_content") if dialect.returns_extras else None
    return wire | {"extra_content": extra} if extra else wire


def _part(part: ContentPart, dialect: ChatDialect) -> Json:
    if part.type == "text":
        return {"type": "text", "text": whole_text(part.text or "")}
    if part.source is not None:
        url = image_url(part.source) if part.type == "image" else media_url(part.source)
        if url and (part.type == "image" or (part.type == "video" and dialect.reads_video)):
            return {"type": "image_url", "image_url": {"url": url}}
        if url and part.type == "document" and dialect.reads_files and url.startswith("data:"):
            return {"type": "file", "file": {"filename": file_name(part), "file_data": url}}
    return {"type": "text", "text": note(part)}


def usage_of(usage: CompletionUsage | None) -> Usage:
    """Token counts; zeros where the server reports none. Reasoning counts as output."""
    if usage is None:
        return Usage()
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        _count(details, "cache_write_tokens"),
        _count(details, "cached_tokens"),
    )


def _count(counts: object, name: str) -> int:
    """Servers leave counts out, and the SDK leaves the attribute out with them."""
    value = getattr(counts, name, None)
    return value if isinstance(value, int) else 0


@dataclass(slots=True)
class _CallDraft:
    id: str = ""
    name: str = ""
    arguments: str = ""
    extra: object = None


@dataclass(slots=True)
class Answer:
    """An answer of `model` while it comes in. `names` leads back to our tools' names."""

    model: str
    names: WireNames
    text: str = ""
    reasoning: str = ""
    usage: Usage = field(default_factory=Usage)
    finish: str | None = None
    refused: bool = False
    _calls: list[_CallDraft] = field(default_factory=list)
    _places: dict[int, int] = field(default_factory=dict)
    _details: ReasoningDetails = field(default_factory=ReasoningDetails)

    def feed(self, chunk: ChatCompletionChunk) -> str:
        """Take a chunk; the text it adds. A chunk without choices carries the usage.

        Raises ValueError for JSON that is no chunk.
        """
        with failures.reading(chunk):
            _ = chunk.model_extra  # a bare number or list passes the SDK as it is
            usage = getattr(chunk, "usage", None)
            if usage is not None:
                self.usage = usage_of(usage)
            # Missing or null in the usage chunk of some servers.
            choices = getattr(chunk, "choices", None)
            if not choices:
                return ""
            self.finish = getattr(choices[0], "finish_reason", None) or self.finish
            delta = getattr(choices[0], "delta", None)
            return "" if delta is None else self._take(delta)

    def take_whole(self, completion: ChatCompletion) -> bool:
        """Take an answer that came in one piece; False when it has no choice. Raises ValueError."""
        with failures.reading(completion):
            self.usage = usage_of(completion.usage)
            if not completion.choices:
                return False
            choice = completion.choices[0]
            self.finish, message = choice.finish_reason, choice.message
            self.refused = bool(message.refusal)
            self.reasoning = _reasoning(message.model_extra)
            self._details.take(message.model_extra)
            self.text = (message.content or "") + (message.refusal or "")
            self._calls = [
                _CallDraft(
                    call.id,
                    call.function.name,
                    _as_text(call.function.arguments),
                    _extra_content(call.model_extra),
                )
                for call in message.tool_calls or ()
                if call.type == "function"
            ]
            return True

    @property
    def stop_reason(self) -> str | None:
        """In core's words; a server's own word passes."""
        if self._calls:
            return "tool_use"
        if self.refused:
            return "refusal"
        return None if self.finish is None else STOP_REASONS.get(self.finish, self.finish)

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, complete once the stream has ended."""
        return tuple(
            ToolCall(
                self.names.ours(call.name),
                parsed_arguments(call.arguments),
                call.id,
                options(self.model, "extra_content", call.extra),
            )
            for call in self._calls
        )

    def message(self) -> Message:
        return Message(
            sender="agent",
            text=self.text,
            tool_calls=self.calls(),
            reasoning_content=self.reasoning or None,
            provider_options=options(
                self.model, "reasoning_details", self._calls and self._details.kept()
            ),
        )

    def _take(self, delta: ChoiceDelta) -> str:
        self.reasoning += _reasoning(delta.model_extra)
        self._details.take(delta.model_extra)
        for fragment in delta.tool_calls or ():
            self._take_call(fragment)
        self.refused = self.refused or bool(delta.refusal)
        text = (delta.content or "") + (delta.refusal or "")
        self.text += text
        return text

    def _take_call(self, fragment: ChoiceDeltaToolCall) -> None:
        """Put a fragment to its call: by index where it has one, else to the last."""
        index = getattr(fragment, "index", None)
        last = len(self._calls) - 1
        place = last if index is None else self._places.get(index, -1)
        if place < 0 or _begins_another(self._calls[place], fragment):
            place = len(self._calls)
            self._calls.append(_CallDraft())
        if index is not None:
            self._places[index] = place
        call = self._calls[place]
        call.id = fragment.id or call.id
        call.extra = _extra_content(fragment.model_extra) or call.extra
        if fragment.function is not None:
            call.name = call.name or fragment.function.name or ""
            call.arguments += _as_text(fragment.function.arguments)


def _begins_another(call: _CallDraft, fragment: ChoiceDeltaToolCall) -> bool:
    """Whether a fragment at the place of `call` is another call: Ollama sends every call whole
    under index 0, and some servers do so without ids."""
    if fragment.id and call.id:
        return fragment.id != call.id
    function = fragment.function
    if function is None or not function.name or not function.arguments or not call.arguments:
        return False
    return isinstance(parsed_arguments(call.arguments), dict)


def _as_text(arguments: object) -> str:
    """Fragments are text; a few servers send the whole object at once."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return arguments_text(arguments)


def _extra_content(extra: dict[str, object] | None) -> object:
    return (extra or {}).get("extra_content")


def _reasoning(extra: dict[str, object] | None) -> str:
    found = (extra or {}).get
    texts: Sequence[object] = [found(name) for name in REASONING_FIELDS]
    return next((text for text in texts if isinstance(text, str) and text), "")
