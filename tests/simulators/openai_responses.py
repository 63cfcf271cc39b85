"""A strict Responses server: answers from a script, refuses what OpenAI would refuse.

It keeps nothing between requests, as with `store: false`, except what it must know to be strict:
which reasoning it handed out and which calls that led to. A call may come back only behind its
reasoning, and reasoning only as it was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import openai_schema as schema
from .openai_chat import OpenAISimulator
from .sse import Json, Step, sse

BODY = {
    "model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "stream",
    "store", "include", "reasoning", "max_output_tokens", "temperature", "prompt_cache_key",
    "prompt_cache_retention", "text",
}  # fmt: skip
ITEM = {
    "message": {"type", "role", "content", "phase"},
    "function_call": {"type", "call_id", "name", "arguments"},
    "function_call_output": {"type", "call_id", "output"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content"},
}
PHASES = {"commentary", "final_answer"}
MAX_CALL_ID = 64
LEAST_OUTPUT_TOKENS = 16
ENCRYPTED = "reasoning.encrypted_content"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item of an answer: its done form, and the pieces in which it is streamed."""

    done: Json
    pieces: tuple[str, ...] = ()
    refusal: bool = False


def say(*pieces: str, phase: str | None = None, id: str = "msg_1") -> Item:
    part: Json = {"type": "output_text", "text": "".join(pieces), "annotations": []}
    return Item(done=_message(id, part, phase), pieces=pieces)


def refuse(*pieces: str, id: str = "msg_1") -> Item:
    part: Json = {"type": "refusal", "refusal": "".join(pieces)}
    return Item(done=_message(id, part, None), pieces=pieces, refusal=True)


def call(call_id: str, name: str, *pieces: str, status: str = "completed") -> Item:
    done: Json = {"type": "function_call", "id": f"fc_of_{call_id}", "call_id": call_id}
    done |= {"name": name, "arguments": "".join(pieces), "status": status}
    return Item(done=done, pieces=pieces)


def think(encrypted: str | None, summary: str = "", id: str = "rs_1") -> Item:
    parts = [{"type": "summary_text", "text": summary}] if summary else []
    done: Json = {"type": "reasoning", "id": id, "summary": parts, "status": None}
    return Item(done=done | ({"encrypted_content": encrypted} if encrypted else {}))


def _message(id: str, part: Json, phase: str | None) -> Json:
    done: Json = {"type": "message", "id": id, "role": "assistant", "status": "completed"}
    return done | {"content": [part]} | ({"phase": phase} if phase else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted(Step):
    """One answer.

    incomplete  the reason it ends early; `failure` the error it fails with; `error_event` a top
                level error in place of the terminal event
    only_at_end no item events: everything is in the terminal event
    """

    items: Sequence[Item] = ()
    usage: Json | None = None
    incomplete: str | None = None
    failure: Json | None = None
    error_event: Json | None = None
    only_at_end: bool = False
    keepalives: bool = True

    def response(self, status: str | None = None) -> Json:
        """The response object: empty while it is in progress."""
        done = "failed" if self.failure else "incomplete" if self.incomplete else "completed"
        ended = status is None
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1.0,
            "model": "m",
            "status": status or done,
            "output": [item.done for item in self.items] if ended else [],
            "error": self.failure if ended else None,
            "incomplete_details": {"reason": self.incomplete}
            if self.incomplete and ended
            else None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": self.usage if ended else None,
        }

    def events(self) -> list[Json]:
        """The whole stream, numbered."""
        events: list[Json] = [
            {"type": "response.created", "response": self.response("in_progress")},
            {"type": "response.in_progress", "response": self.response("in_progress")},
        ]
        for index, item in enumerate(() if self.only_at_end else self.items):
            events += [event | {"output_index": index} for event in _item_events(item)]
        if self.error_event is not None:
            events.append({"type": "error", "param": None, "code": None, **self.error_event})
        elif self.ends_well:
            response = self.response()
            events.append({"type": f"response.{response['status']}", "response": response})
        return [event | {"sequence_number": number} for number, event in enumerate(events)]


def _item_events(item: Item) -> Iterator[Json]:
    kind, item_id = item.done["type"], item.done["id"]
    begun = {**item.done, "status": "in_progress"}
    if kind == "message":
        begun["content"] = []
    if kind == "function_call":
        begun["arguments"] = ""
    yield {"type": "response.output_item.added", "item": begun}
    at: Json = {"item_id": item_id}
    if kind == "function_call":
        head = "response.function_call_arguments"
        for piece in item.pieces:
            yield {"type": f"{head}.delta", "delta": piece, **at}
        arguments = item.done["arguments"]
        yield {"type": f"{head}.done", "arguments": arguments, "name": item.done["name"], **at}
    elif kind == "message":
        yield from _message_events(item, at | {"content_index": 0})
    yield {"type": "response.output_item.done", "item": item.done}


def _message_events(item: Item, at: Json) -> Iterator[Json]:
    content = item.done["content"]
    assert isinstance(content, list)
    name, head = ("refusal", "refusal") if item.refusal else ("text", "output_text")
    more: Json = {} if item.refusal else {"logprobs": []}
    part = content[0]
    yield {"type": "response.content_part.added", "part": part | {name: ""}, **at}
    for piece in item.pieces:
        yield {"type": f"response.{head}.delta", "delta": piece, **more, **at}
    yield {"type": f"response.{head}.done", name: part[name], **more, **at}
    yield {"type": "response.content_part.done", "part": part, **at}


class OpenAIResponsesSimulator(OpenAISimulator[Scripted]):
    """Serves `script` in order; see SseServer for what it keeps.

    `issued` has the call ids that each piece of encrypted reasoning led to.
    """

    path = "/responses"

    def __init__(self, *script: Scripted) -> None:
        super().__init__(*script)
        self.issued: dict[str, list[str]] = {}

    def problem(self, body: Json) -> str:
        return problem(body) or next(_reasoning(body, self.issued), "")

    def next_step(self, body: Json) -> Scripted:
        step = super().next_step(body)
        self._issue(step.items)
        return step

    def whole(self, step: Scripted) -> object:
        return step.response()

    def frames(self, step: Scripted) -> Iterator[bytes]:
        for event in step.events():
            yield sse(event, str(event["type"]))

    def _issue(self, items: Sequence[Item]) -> None:
        led_to: list[str] = []
        for item in items:
            if item.done["type"] == "reasoning":
                sealed = item.done.get("encrypted_content")
                led_to = self.issued.setdefault(sealed, []) if isinstance(sealed, str) else []
            elif item.done["type"] == "function_call":
                led_to.append(str(item.done["call_id"]))


def problem(body: Json) -> str:
    """What a real server would complain about; empty when the request is valid."""
    return next(_problems(body), "")


def _problems(body: Json) -> Iterator[str]:
    yield from schema.unknown("body", body, BODY)
    yield from schema.plain_values(body)
    yield from schema.count(body, "max_output_tokens", LEAST_OUTPUT_TOKENS)
    if body.get("store") is not False:
        yield "this server stores nothing: store must be false"
    if body.get("include", []) not in ([], [ENCRYPTED]):
        yield "include has an unknown value"
    reasoning = body.get("reasoning")
    if reasoning is not None:
        yield from schema.unknown("reasoning", reasoning, {"effort", "summary"})
        if not isinstance(reasoning, dict) or reasoning.get("effort") not in schema.EFFORTS:
            yield "reasoning.effort is unknown"
    if not isinstance(body.get("instructions", ""), str):
        yield "instructions is no text"
    yield from _tools(body.get("tools"))
    items = body.get("input")
    if not isinstance(items, list) or not items:
        yield "input is empty"
        return
    for place, item in enumerate(items):
        yield from _item(f"input[{place}]", item)
    yield from _order(items)


def _tools(tools: object) -> Iterator[str]:
    if tools is None:
        return
    if not isinstance(tools, list) or not tools:
        yield "tools is an empty list"
        return
    for place, tool in enumerate(tools):
        where = f"tools[{place}]"
        yield from schema.unknown(
            where, tool, {"type", "name", "description", "parameters", "strict"}
        )
        if tool.get("type") != "function" or tool.get("strict") is not False:
            yield f"{where}: a function, and strict unless that is switched off"
        yield from schema.function(where, tool)
    yield from schema.tool_names([tool["name"] for tool in tools])


def _item(where: str, item: Json) -> Iterator[str]:
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in ITEM:
        yield f"{where}.type {kind!r} is unknown"
        return
    yield from schema.unknown(where, item, ITEM[kind])
    if kind == "message":
        yield from _message_item(where, item)
        return
    if kind == "reasoning":
        if not isinstance(item.get("id"), str) or not isinstance(item.get("summary"), list):
            yield f"{where}: reasoning needs id and summary"
        if not item.get("encrypted_content"):
            yield f"{where}: item {item.get('id')!r} not found, items are not stored"
        return
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or not 0 < len(call_id) <= MAX_CALL_ID:
        yield f"{where}.call_id {call_id!r} has not 1 to {MAX_CALL_ID} characters"
    if kind == "function_call_output" and not isinstance(item.get("output"), str):
        yield f"{where}.output is no text"
    if kind == "function_call":
        name = item.get("name")
        if not isinstance(name, str) or not schema.NAME.fullmatch(name):
            yield f"{where}.name {name!r} does not match"
        yield from schema.arguments(where, item.get("arguments"))


def _message_item(where: str, item: Json) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant"):
        yield f"{where}.role {role!r} is unknown"
    if item.get("phase") not in (None, *PHASES) or ("phase" in item and role == "user"):
        yield f"{where}.phase does not belong here"
    if role == "assistant" and (not isinstance(content, str) or not content):
        yield f"{where}.content: what the assistant said is text"
    if isinstance(content, list) and content:
        for part in content:
            yield from _part(f"{where}.content", part)
    elif not isinstance(content, str):
        yield f"{where}.content is neither text nor parts"


def _part(where: str, part: Json) -> Iterator[str]:
    match part:
        case {"type": "input_text", "text": str()}:
            yield from schema.unknown(where, part, {"type", "text"})
        case {"type": "input_image", "detail": "auto" | "low" | "high", "image_url": url}:
            yield from schema.unknown(where, part, {"type", "detail", "image_url"})
            yield from schema.media(where, url, schema.IMAGES)
        case {"type": "input_file", "filename": str(), "file_data": data}:
            yield from schema.unknown(where, part, {"type", "filename", "file_data"})
            yield from schema.media(where, data, None)
        case {"type": "input_file", "file_url": str()}:
            yield from schema.unknown(where, part, {"type", "file_url"})
        case _:
            yield f"{where}: part {part.get('type')!r} is unknown or broken"


def _order(items: list[Json]) -> Iterator[str]:
    """Outputs stand behind their calls, one each; reasoning in front of what it led to."""
    open_calls: list[object] = []
    for place, item in enumerate(items):
        following = items[place + 1] if place + 1 < len(items) else {}
        match item["type"]:
            case "function_call":
                open_calls.append(item["call_id"])
            case "function_call_output":
                if item["call_id"] not in open_calls:
                    yield f"input[{place}]: no tool call found for {item['call_id']!r}"
                    return
                open_calls.remove(item["call_id"])
            case "reasoning":
                theirs = following.get("role") == "assistant"
                if not theirs and following.get("type") != "function_call":
                    yield f"input[{place}]: reasoning without its required following item"
            case _ if open_calls and item.get("role") == "user":
                yield f"no tool output found for {open_calls}"
        if len(set(open_calls)) < len(open_calls):
            yield f"input[{place}] has one call id twice"
    if open_calls:
        yield f"no tool output found for {open_calls}"


def _reasoning(body: Json, issued: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Whether calls come back with the reasoning that led to them, unchanged."""
    items = body["input"]
    assert isinstance(items, list)
    given = {item["encrypted_content"] for item in items if item["type"] == "reasoning"}
    if given - set(issued):
        yield "the encrypted content could not be verified"
    called = {item["call_id"] for item in items if item["type"] == "function_call"}
    for encrypted, calls in issued.items():
        if called & set(calls) and encrypted not in given:
            yield f"calls {calls} came without their required reasoning item"
