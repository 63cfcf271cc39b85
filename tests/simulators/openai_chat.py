"""A strict chat completions server: answers from a script, refuses what OpenAI would refuse.

It checks what a real server checks and a sloppy one does not: the key, unknown fields, roles,
names, sizes, results directly behind their calls. `compatible` makes it one of the servers that
take a bit more (reasoning handed back, videos, `max_tokens`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from aiohttp import web

from . import openai_schema as schema
from .sse import Json, Refused, SseServer, Step, need, sse

KEY = "sk-simulated-0123456789abcdef"
S = TypeVar("S", bound=Step)

BODY = {
    "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options",
    "max_completion_tokens", "temperature", "reasoning_effort", "prompt_cache_key",
    "prompt_cache_retention", "store",
}  # fmt: skip
MESSAGE = {
    "system": {"role", "content"},
    "developer": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "refusal"},
    "tool": {"role", "content", "tool_call_id"},
}
VIDEOS = {"video/mp4", "video/webm"}
MAX_CALL_ID = 40
COMPATIBLE_MAX_CALL_ID = 100
COMPATIBLE_BODY = {"max_tokens", "reasoning_split"}
COMPATIBLE_MESSAGE = {"reasoning_content", "reasoning", "reasoning_details"}


def text_chunk(text: str) -> Json:
    return delta({"content": text})


def refusal_chunk(text: str) -> Json:
    return delta({"refusal": text})


def call_chunk(index: int | None, id: str = "", name: str = "", arguments: str = "") -> Json:
    function: Json = {"arguments": arguments}
    if name:
        function["name"] = name
    fragment: Json = {"function": function}
    if id:
        fragment |= {"id": id, "type": "function"}
    if index is not None:
        fragment["index"] = index
    return delta({"tool_calls": [fragment]})


def delta(fields: Json) -> Json:
    return {"index": 0, "delta": fields, "finish_reason": None}


def finish(reason: str) -> Json:
    return {"index": 0, "delta": {}, "finish_reason": reason}


def completion(message: Json, reason: str = "stop", usage: Json | None = None) -> Json:
    """A whole answer of one choice."""
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", **message}}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    return {**head, "choices": [choice], **({"usage": usage} if usage else {})}


def whole_call(id: str, name: str, arguments: str) -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted(Step):
    """One answer: an error status, a whole body, or chunks and how the stream ends."""

    choices: Sequence[Json] = ()
    usage: Json | None = None
    stream_error: object = None
    whole: Json | None = None
    keepalives: bool = True

    def chunks(self) -> list[Json]:
        """What is sent that must be a chunk of the wire."""
        chunks = [chunk([choice]) for choice in self.choices]
        return [*chunks, chunk([]) | {"usage": self.usage}] if self.usage else chunks


def chunk(choices: list[Json]) -> Json:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": choices,
        "obfuscation": "x",
    }


class OpenAISimulator(SseServer[S]):
    """What both of OpenAI's servers do: the key, and errors in OpenAI's words."""

    prefix = "/v1"

    def __init__(self, *script: S, key: str = KEY) -> None:
        super().__init__(*script)
        self._key = key

    def problem(self, body: Json) -> str:
        """What a real server would complain about; empty when the request is valid."""
        raise NotImplementedError

    def check(self, request: web.Request, body: Json) -> None:
        if request.headers.get("Authorization") != f"Bearer {self._key}":
            raise Refused("Incorrect API key provided", 401)
        wrong = self.problem(body)
        need(not wrong, wrong)

    def error(self, status: int, message: str) -> Json:
        kind = "auth" if status == 401 else "invalid_request_error"
        return {"error": {"message": message, "type": kind}}

    def refusal(self, step: S) -> object:
        return {"error": step.error} if step.error else super().refusal(step)


class OpenAIChatSimulator(OpenAISimulator[Scripted]):
    """Serves `script` in order; see SseServer for what it keeps."""

    path = "/chat/completions"

    def __init__(self, *script: Scripted, compatible: bool = False, key: str = KEY) -> None:
        super().__init__(*script, key=key)
        self._compatible = compatible

    def problem(self, body: Json) -> str:
        return problem(body, compatible=self._compatible)

    def whole(self, step: Scripted) -> object:
        return step.whole

    def frames(self, step: Scripted) -> Iterator[bytes]:
        yield from map(sse, step.chunks())
        if step.stream_error is not None:
            yield sse({"error": step.stream_error})
        if step.ends_well:
            yield b"data: [DONE]\n\n"


def problem(body: Json, *, compatible: bool = False) -> str:
    """What a real server would complain about; empty when the request is valid."""
    return next(_problems(body, compatible), "")


def _problems(body: Json, compatible: bool) -> Iterator[str]:
    yield from schema.unknown("body", body, BODY | (COMPATIBLE_BODY if compatible else set()))
    yield from schema.plain_values(body)
    yield from schema.count(body, "max_completion_tokens", 1)
    yield from schema.count(body, "max_tokens", 1)
    if body.get("reasoning_effort") not in (None, *schema.EFFORTS):
        yield "reasoning_effort is unknown"
    if body.get("stream") and body.get("stream_options") != {"include_usage": True}:
        yield "stream_options.include_usage is missing"
    if "stream_options" in body and not body.get("stream"):
        yield "stream_options is only allowed when stream is enabled"
    yield from _tools(body.get("tools"))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages is empty"
        return
    for place, message in enumerate(messages):
        yield from _message(f"messages[{place}]", message, compatible)
    yield from _order(messages)


def _tools(tools: object) -> Iterator[str]:
    if tools is None:
        return
    if not isinstance(tools, list) or not tools:
        yield "tools is an empty list"
        return
    for place, tool in enumerate(tools):
        yield from schema.unknown(f"tools[{place}]", tool, {"type", "function"})
        known = {"name", "description", "parameters", "strict"}
        yield from schema.unknown(f"tools[{place}].function", tool.get("function"), known)
        yield from schema.function(f"tools[{place}].function", tool["function"])
    yield from schema.tool_names([tool["function"]["name"] for tool in tools])


def _message(where: str, message: Json, compatible: bool) -> Iterator[str]:
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or role not in MESSAGE:
        yield f"{where}.role {role!r} is unknown"
        return
    more = COMPATIBLE_MESSAGE if compatible and role == "assistant" else set()
    yield from schema.unknown(where, message, MESSAGE[role] | more)
    calls = message.get("tool_calls")
    if content is None and (role != "assistant" or not calls):
        yield f"{where}.content is null"
    if isinstance(content, list):
        if role != "user" or not content:
            yield f"{where}.content: no parts here"
        for part in content:
            yield from _part(f"{where}.content", part, compatible)
    elif content is not None and not isinstance(content, str):
        yield f"{where}.content is neither text nor parts"
    if calls is not None:
        longest = COMPATIBLE_MAX_CALL_ID if compatible else MAX_CALL_ID
        more = {"extra_content"} if compatible else set()
        yield from _calls(where, calls, longest, more)


def _part(where: str, part: Json, compatible: bool) -> Iterator[str]:
    match part:
        case {"type": "text", "text": str()}:
            yield from schema.unknown(where, part, {"type", "text"})
        case {"type": "image_url", "image_url": {"url": url}}:
            yield from schema.unknown(where, part, {"type", "image_url"})
            kinds = schema.IMAGES | (VIDEOS if compatible else set())
            yield from schema.media(where, url, kinds)
        case {"type": "file", "file": {"filename": str(), "file_data": data}}:
            if compatible:
                yield f"{where}: files are not supported"
            yield from schema.unknown(where, part, {"type", "file"})
            yield from schema.media(where, data, None)
        case _:
            yield f"{where}: part {part.get('type')!r} is unknown or broken"


def _calls(where: str, calls: object, longest: int, more: set[str]) -> Iterator[str]:
    if not isinstance(calls, list) or not calls:
        yield f"{where}.tool_calls is empty"
        return
    for call in calls:
        yield from schema.unknown(where, call, {"id", "type", "function"} | more)
        if call.get("type") != "function":
            yield f"{where}: a call's type is function"
        if not isinstance(call.get("id"), str) or not 0 < len(call["id"]) <= longest:
            yield f"{where}: call id {call.get('id')!r} has not 1 to {longest} characters"
        yield from schema.unknown(where, call.get("function"), {"name", "arguments"})
        name = call["function"].get("name")
        if not isinstance(name, str) or not schema.NAME.fullmatch(name):
            yield f"{where}: call name {name!r} does not match"
        yield from schema.arguments(where, call["function"].get("arguments"))


def _order(messages: list[Json]) -> Iterator[str]:
    """Results stand directly behind their calls, one each; a system message only in front."""
    open_calls: list[object] = []
    for place, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                yield f"messages[{place}] answers no open tool call"
                return
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            yield f"tool calls {open_calls} have no result"
        if role in ("system", "developer") and place:
            yield f"messages[{place}]: system messages stand first"
        calls = message.get("tool_calls")
        open_calls += [call["id"] for call in calls] if isinstance(calls, list) else []
        if len(set(open_calls)) < len(open_calls):
            yield f"messages[{place}] has one call id twice"
    if open_calls:
        yield f"tool calls {open_calls} have no result"
