"""What Anthropic's Messages API refuses, as checks over one request body.

Stricter than the service where it is lenient: it joins turns of one role, we want them apart. A
field that is not listed is refused. Source: protocols/chat-models 3; `anthropic` types/*_param.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence

from tests.simulators.sse import Json, need

VERSIONS = {"2023-06-01", "2026-10-21"}
WORD = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FIELDS = {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream"} | {
    "thinking",
    "output_config",
    "metadata",
    "stop_sequences",
}
BLOCKS: dict[str, tuple[str, set[str], set[str]]] = {
    "text": ("both", {"text"}, {"cache_control"}),
    "image": ("user", {"source"}, {"cache_control"}),
    "document": ("user", {"source"}, {"title", "context", "cache_control"}),
    "tool_result": ("user", {"tool_use_id"}, {"content", "is_error", "cache_control"}),
    "tool_use": ("assistant", {"id", "name", "input"}, {"cache_control"}),
    "thinking": ("assistant", {"thinking", "signature"}, set()),
    "redacted_thinking": ("assistant", {"data"}, set()),
}
"""Type -> (whose turn, wanted fields, other fields)."""
SOURCES = {
    ("image", "base64"): {"image/jpeg", "image/png", "image/gif", "image/webp"},
    ("document", "base64"): {"application/pdf"},
    ("document", "text"): {"text/plain"},
}
THINKING = ("thinking", "redacted_thinking")


def check_body(body: Json, version: str) -> None:
    """Raises Refused."""
    sampling = {"temperature"} if version == "2023-06-01" else set()
    unknown = set(body) - FIELDS - sampling
    need(not unknown, f"{sorted(unknown)}: Extra inputs are not permitted")
    need(isinstance(body.get("model"), str) and body["model"], "model: Field required")
    limit = body.get("max_tokens")
    need(isinstance(limit, int) and limit > 0, "max_tokens: Field required")
    _check_system(body.get("system", []))
    names = _check_tools(body.get("tools", []))
    turns = _check_turns(body.get("messages"))
    _check_pairs(turns)
    _check_thinking(body, turns)
    _check_cache(body, turns)
    need(names or "tool_choice" not in body, "tool_choice: without tools")


def _check_system(system: object) -> None:
    for block in _blocks(system):
        need(block.get("type") == "text", "system: only text blocks")
        _check_block("system", block, "user")


def _check_tools(tools: object) -> set[str]:
    names: set[str] = set()
    for at, tool in enumerate(_list(tools)):
        place = f"tools.{at}"
        unknown = set(tool) - {"name", "description", "input_schema", "cache_control", "strict"}
        need(not unknown, f"{place}: {sorted(unknown)} not permitted")
        name, schema = str(tool.get("name")), tool.get("input_schema")
        need(WORD.fullmatch(name), f"{place}.name: String should match pattern")
        need(name not in names, "tools: Tool names must be unique.")
        names.add(name)
        need(isinstance(schema, Mapping), f"{place}.input_schema: Field required")
        assert isinstance(schema, Mapping)
        need(schema.get("type") == "object", f"{place}.input_schema.type: Field required")
        wide = {"anyOf", "oneOf", "allOf"} & set(schema)
        need(not wide, f"{place}.input_schema: no oneOf, allOf, or anyOf at the top level")
    return names


def _check_turns(messages: object) -> list[tuple[str, list[Json]]]:
    """(role, blocks) of every message."""
    turns: list[tuple[str, list[Json]]] = []
    need(isinstance(messages, list) and messages, "messages: at least one message is required")
    for at, message in enumerate(_list(messages)):
        place, role, content = f"messages.{at}", message.get("role"), message.get("content")
        need(set(message) == {"role", "content"}, f"{place}: Extra inputs are not permitted")
        need(role in ("user", "assistant"), f"{place}.role: user or assistant")
        wanted = "user" if at % 2 == 0 else "assistant"
        need(role == wanted, f"{place}.role: {wanted} must speak here")
        blocks = _blocks(content)
        need(blocks, f"{place}.content: must not be empty")
        for number, block in enumerate(blocks):
            _check_block(f"{place}.content.{number}", block, str(role))
        turns.append((str(role), blocks))
    need(turns[-1][0] == "user", "messages: must end with a user message, no prefill")
    return turns


def _check_block(place: str, block: Json, role: str) -> None:
    kind = str(block.get("type"))
    need(kind in BLOCKS, f"{place}.type: {kind!r} is unknown")
    whose, wanted, others = BLOCKS[kind]
    need(whose in (role, "both"), f"{place}: {kind} is not allowed in a {role} message")
    missing, unknown = wanted - set(block), set(block) - wanted - others - {"type"}
    need(not missing, f"{place}: {sorted(missing)} Field required")
    need(not unknown, f"{place}: {sorted(unknown)} Extra inputs are not permitted")
    match kind:
        case "text":
            text = block["text"]
            need(isinstance(text, str) and text.strip(), f"{place}: text must not be blank")
        case "image" | "document":
            _check_source(place, kind, block["source"])
        case "tool_use":
            need(WORD.fullmatch(str(block["id"])), f"{place}.id: String should match pattern")
            need(WORD.fullmatch(str(block["name"])), f"{place}.name: String should match pattern")
            need(isinstance(block["input"], dict), f"{place}.input: should be a dictionary")
        case "tool_result":
            _check_result(place, block)


def _check_source(place: str, kind: str, source: object) -> None:
    need(isinstance(source, dict), f"{place}.source: Field required")
    assert isinstance(source, dict)
    if source.get("type") == "url":
        need(set(source) == {"type", "url"}, f"{place}.source: Extra inputs")
        need(str(source["url"]).startswith("http"), f"{place}.source.url: only http")
        return
    allowed = SOURCES.get((kind, str(source.get("type"))))
    need(allowed, f"{place}.source.type: unknown")
    need(set(source) == {"type", "media_type", "data"}, f"{place}.source: Extra inputs")
    need(source["media_type"] in (allowed or ()), f"{place}.source.media_type: not supported")
    need(isinstance(source["data"], str) and source["data"], f"{place}.source.data: empty")
    if source["type"] == "base64":
        base64.b64decode(source["data"], validate=True)


def _check_result(place: str, block: Json) -> None:
    need(WORD.fullmatch(str(block["tool_use_id"])), f"{place}.tool_use_id: should match pattern")
    content, failed = block.get("content"), block.get("is_error", False)
    plain = content is None or (isinstance(content, str) and content.strip())
    need(plain, f"{place}.content: text is wanted, and none that is blank")
    need(isinstance(failed, bool), f"{place}.is_error: a boolean")
    need(content or not failed, f"{place}.content: cannot be empty if `is_error` is true")


def _check_pairs(turns: Sequence[tuple[str, list[Json]]]) -> None:
    """Every call is answered at the head of the next turn, once, and nothing else is."""
    seen: set[str] = set()
    asked: list[str] = []
    for at, (_, blocks) in enumerate(turns):
        answered = [str(one["tool_use_id"]) for one in blocks if one["type"] == "tool_result"]
        head = [one["type"] for one in blocks[: len(answered)]]
        need(set(head) <= {"tool_result"}, f"messages.{at}: tool_result blocks must come first")
        need(len(answered) == len(set(answered)), f"messages.{at}: two results for one id")
        missing, orphans = set(asked) - set(answered), set(answered) - set(asked)
        need(not missing, f"messages.{at}: `tool_use` ids without `tool_result`: {missing}")
        need(not orphans, f"messages.{at}: unexpected `tool_use_id`: {orphans}")
        asked = [str(one["id"]) for one in blocks if one["type"] == "tool_use"]
        need(not seen & set(asked), f"messages.{at}: `tool_use` ids must be unique")
        need(len(asked) == len(set(asked)), f"messages.{at}: `tool_use` ids must be unique")
        seen |= set(asked)
    need(not asked, "`tool_use` ids were found without `tool_result` blocks")


def _check_thinking(body: Json, turns: Sequence[tuple[str, list[Json]]]) -> None:
    thinking = body.get("thinking", {"type": "adaptive"})
    need(isinstance(thinking, dict), "thinking: should be a dictionary")
    assert isinstance(thinking, dict)
    need(thinking.get("type") in ("adaptive", "enabled", "disabled"), "thinking.type: unknown")
    if thinking["type"] != "enabled":
        return
    budget, limit = thinking.get("budget_tokens"), body["max_tokens"]
    assert isinstance(limit, int)
    need(isinstance(budget, int) and 1024 <= budget < limit, "thinking.budget_tokens: too small")
    need("temperature" not in body, "temperature: not with thinking")
    last = next((blocks for role, blocks in reversed(turns) if role == "assistant"), [])
    if any(block["type"] == "tool_use" for block in last):
        need(last[0]["type"] in THINKING, "Expected `thinking` or `redacted_thinking` first")


def _check_cache(body: Json, turns: Sequence[tuple[str, list[Json]]]) -> None:
    places = [*_list(body.get("tools", []))]
    system = body.get("system", [])
    places += [] if isinstance(system, str) else _list(system)
    places += [block for _, blocks in turns for block in blocks]
    marks = [block["cache_control"] for block in places if "cache_control" in block]
    need(len(marks) <= 4, "A maximum of 4 blocks with cache_control may be provided")
    ttls: list[str] = []
    for mark in marks:
        need(isinstance(mark, dict) and mark.get("type") == "ephemeral", "cache_control.type")
        assert isinstance(mark, dict)
        need(not set(mark) - {"type", "ttl"}, "cache_control: Extra inputs are not permitted")
        ttls.append(str(mark.get("ttl", "5m")))
    need(set(ttls) <= {"5m", "1h"}, "cache_control.ttl: 5m or 1h")
    need(ttls == sorted(ttls), "cache_control: longer ttl must come first")


def _blocks(content: object) -> list[Json]:
    """A string is short for one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else _list(content)


def _list(value: object) -> list[Json]:
    need(isinstance(value, list), "Input should be a valid array")
    assert isinstance(value, list)
    for item in value:
        need(isinstance(item, dict), "Input should be a valid dictionary")
    return value
