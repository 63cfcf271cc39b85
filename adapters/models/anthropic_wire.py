"""Anthropic's Messages wire, outwards: our messages and tools to one valid request body.

Pure. What the wire demands and our view does not have: turns that alternate and begin and end with
the user, results at the head of the user turn behind their calls, no blank text, ids and names
within its letters, thinking handed back where it stood. The way in is anthropic_answer.py.
Source: protocols/chat-models 3; `anthropic` types/message_create_params, types/*_param.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

from ...core.encoding import whole_text
from ...core.messages import Message, ToolCall, ToolResult, result_text
from ...core.model import ModelRequest, ToolSpec
from ...core.view import paired_results
from .anthropic_media import Block, media_block
from .call_arguments import arguments_object
from .object_schema import object_schema
from .turns import BEGUN, SILENT, agent_text, user_parts
from .wire_names import WireNames, WordRule

if TYPE_CHECKING:
    from anthropic.types import MessageParam, TextBlockParam, ToolParam

WORDS = WordRule(letters="A-Za-z0-9_-", first="A-Za-z0-9_-", longest=64)
"""Of tool names and call ids."""
OPTIONS_KEY = "anthropic"
"""Under this key of provider_options stands what only this wire understands."""

THINKING = frozenset({"thinking", "redacted_thinking"})
_TRANSIENT = frozenset({"runtime", "inbox"})

CacheTtl = Literal["5m", "1h"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """The parts of a body that come from a ModelRequest.

    `may_think` is False in the middle of a tool loop whose calls came without thinking (from
    another model): asking for thinking there is refused.
    """

    system: list[TextBlockParam]
    tools: list[ToolParam]
    messages: list[MessageParam]
    may_think: bool


def tool_names(request: ModelRequest) -> WireNames:
    """The request's tools by the names this wire takes."""
    return WireNames(WORDS, (tool.name for tool in request.tools))


def wire_request(request: ModelRequest, *, model: str, cache: CacheTtl | None) -> WireRequest:
    """Everything that `request` says. `model` decides whose thinking is handed back.

    With `cache`, three breakpoints: behind the tools, behind the system prompt, and behind the
    last message that the next request will repeat.
    """
    prompt = request.system_prompt
    system: list[Block] = [_text(prompt)] if prompt.strip() else []
    tools = [_wire_tool(tool) for tool in request.tools]
    turns = _Turns(model)
    for message in paired_results(request.messages):
        turns.add(message)
    turns.close()
    if cache is not None:
        for block in (*tools[-1:], *system[-1:], *turns.stable):
            block["cache_control"] = _cache_mark(cache)
    return WireRequest(
        system=cast("list[TextBlockParam]", system),
        tools=cast("list[ToolParam]", tools),
        messages=cast("list[MessageParam]", turns.messages()),
        may_think=turns.may_think(),
    )


def _cache_mark(ttl: CacheTtl) -> dict[str, object]:
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


def _wire_tool(tool: ToolSpec) -> Block:
    return {
        "name": WORDS.wire(tool.name),
        "description": whole_text(tool.description),
        "input_schema": object_schema(tool.parameters),
    }


@dataclass(slots=True)
class _Turn:
    role: Literal["user", "assistant"]
    blocks: list[Block] = field(default_factory=list)


class _Turns:
    """Alternating turns in the making."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._turns: list[_Turn] = []
        self.stable: list[Block] = []
        """The last block that the next request repeats, if any."""

    def add(self, message: Message) -> None:
        """Append a message; one without anything the wire shows leaves no trace."""
        if message.sender == "agent":
            blocks = list(_agent_blocks(message, self._model))
            self._append("assistant", blocks)
        else:
            blocks = list(_user_blocks(message))
            self._append("user", blocks)
        if message.framework_context not in _TRANSIENT:
            self.stable = [one for one in blocks if one["type"] not in THINKING][-1:] or self.stable

    def close(self) -> None:
        """A request ends with the user's turn: this wire answers, it does not continue."""
        if not self._turns or self._turns[-1].role == "assistant":
            self._turns.append(_Turn("user", [_text(SILENT if self._turns else BEGUN)]))

    def messages(self) -> list[dict[str, object]]:
        return [{"role": turn.role, "content": turn.blocks} for turn in self._turns]

    def may_think(self) -> bool:
        last = next((turn for turn in reversed(self._turns) if turn.role == "assistant"), None)
        if last is None or all(block["type"] != "tool_use" for block in last.blocks):
            return True
        return last.blocks[0]["type"] in THINKING

    def _append(self, role: Literal["user", "assistant"], blocks: list[Block]) -> None:
        if not blocks:
            return
        last = self._turns[-1] if self._turns else None
        if last is None and role == "assistant":
            self._turns.append(_Turn("user", [_text(BEGUN)]))
        elif last is not None and last.role == role:
            if blocks[0]["type"] not in THINKING:
                last.blocks.extend(blocks)
                return
            # Thinking stands at the head of its turn.
            self._turns.append(_Turn("user", [_text(SILENT)]))
        self._turns.append(_Turn(role, blocks))


def _user_blocks(message: Message) -> Iterator[Block]:
    if message.tool_results:
        yield from map(_result_block, message.tool_results)
        return
    for part in user_parts(message):
        yield _text(part.text or "") if part.type == "text" else media_block(part)


def _result_block(result: ToolResult) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": WORDS.wire(result.call_id)}
    text = whole_text(result_text(result.result))
    if text.strip():
        block["content"] = text
    if result.result.status != "success":
        block["is_error"] = True
    return block


def _agent_blocks(message: Message, model: str) -> Iterator[Block]:
    """The turn as its model gave it; media are not sent, and of cut speech only what was heard."""
    calls = [_call_block(call) for call in message.tool_calls]
    layout = _layout(message, model)
    if layout is None:
        text = agent_text(message)
        if text.strip():
            yield _text(text)
        yield from calls
        return
    whole = "".join(str(item["text"]) for item in layout if item["type"] == "text")
    left = None if whole == message.text else message.text
    for item in layout:
        if item["type"] == "tool_use":
            yield calls.pop(0)
        elif item["type"] != "text":
            yield dict(item)
        else:
            # Text that was amended since goes where the first text stood.
            text = str(item["text"]) if left is None else left
            left = None if left is None else ""
            if text.strip():
                yield _text(text)


def _layout(message: Message, model: str) -> list[Mapping[str, object]] | None:
    """The order of thinking, text and calls as this model gave them; None: plain, or another's."""
    kept = (message.provider_options or {}).get(OPTIONS_KEY)
    if not isinstance(kept, Mapping) or kept.get("model") != model:
        return None
    items = kept.get("blocks")
    if not isinstance(items, Sequence) or not all(isinstance(item, Mapping) for item in items):
        return None
    kinds = [item.get("type") for item in items]
    said = bool(message.text.strip())
    if kinds.count("tool_use") != len(message.tool_calls) or (said and "text" not in kinds):
        return None
    return list(items) if said or message.tool_calls else None


def _call_block(call: ToolCall) -> Block:
    return {
        "type": "tool_use",
        "id": WORDS.wire(call.id),
        "name": WORDS.wire(call.tool_name),
        "input": arguments_object(call.input_args),
    }


def _text(text: str) -> Block:
    return {"type": "text", "text": whole_text(text)}
