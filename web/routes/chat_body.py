"""The body of `POST /chat`, read strictly into a ModelRequest (seed: createChatHandler).

Pure. What is wrong is named by its path, before any model is asked: a vendor's own refusal would
name neither. What is for people only (`render_data` and the like) never reaches the model.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...adapters.stores.remote_wire import BadField, Fields
from ...core.messages import Message
from ...core.model import ModelLimits, ModelRequest, ToolSpec
from ...core.view import model_view
from .sessions_history import read_batch

MAX_MESSAGES = 4_000
MAX_TOOLS = 256
MAX_NAME_CHARS = 128
MAX_TOKENS = 1_000_000
MAX_SECONDS = 3_600


def read_chat(body: Fields) -> ModelRequest:
    """`{systemPrompt?, messages, tools?, max_tokens?, timeout_s?}`. Raises BadField."""
    messages = read_batch(body.entries("messages", MAX_MESSAGES), "messages")
    if not messages:
        raise BadField("messages", "must not be empty")
    check_pairs(messages)
    return ModelRequest(
        messages=tuple(model_view(messages)),
        tools=tuple(_tools(body)),
        system_prompt=body.optional_text("systemPrompt") or "",
        limits=_limits(body),
    )


def check_pairs(messages: Sequence[Message]) -> None:
    """Every call is answered once, by the message right behind it, and nothing else is a result.
    Raises BadField."""
    open_calls: list[str] = []
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        _check_roles(message, where)
        found = [result.call_id for result in message.tool_results]
        if sorted(found) != sorted(open_calls):
            wanted = ", ".join(open_calls) or "no call"
            raise BadField(f"{where}.tool_results", f"must answer {wanted}, each call once")
        open_calls = [call.id for call in message.tool_calls]
        if not all(open_calls) or len(set(open_calls)) < len(open_calls):
            raise BadField(f"{where}.tool_calls", "every call needs an id of its own")
    if open_calls:
        where = f"messages[{len(messages) - 1}].tool_calls"
        raise BadField(where, "must be followed by a message with their results")


def _check_roles(message: Message, where: str) -> None:
    if message.tool_calls and message.sender != "agent":
        raise BadField(f"{where}.sender", "must be agent where there are tool_calls")
    if message.tool_results and message.sender != "user":
        raise BadField(f"{where}.sender", "must be user where there are tool_results")
    if not (message.text or message.content or message.tool_calls or message.tool_results):
        raise BadField(f"{where}.text", "must not be empty: the message holds nothing")
    for part, content in enumerate(message.content):
        source = content.source
        if content.type == "text" and content.text is None:
            raise BadField(f"{where}.content[{part}].text", "is missing")
        if content.type != "text" and (source is None or not (source.data or source.url)):
            raise BadField(f"{where}.content[{part}].source", "must hold data or url")


def _tools(body: Fields) -> list[ToolSpec]:
    if "tools" not in body:
        return []
    found: list[ToolSpec] = []
    for at, raw in enumerate(body.entries("tools", MAX_TOOLS)):
        tool = Fields(raw, f"tools[{at}]")
        name, parameters = tool.name("name"), tool.mapping("parameters")
        if len(name) > MAX_NAME_CHARS:
            raise BadField(tool.path("name"), f"is limited to {MAX_NAME_CHARS} characters")
        if name in {one.name for one in found}:
            raise BadField(tool.path("name"), "is taken by another tool")
        if parameters is None:
            raise BadField(tool.path("parameters"), "must be a JSON schema, an object")
        found.append(ToolSpec(name, tool.text("description"), parameters))
    return found


def _limits(body: Fields) -> ModelLimits:
    tokens = body.count("max_tokens", 0)
    seconds = body.count("timeout_s", 0)
    if tokens > MAX_TOKENS:
        raise BadField("max_tokens", f"must not be above {MAX_TOKENS}")
    if seconds > MAX_SECONDS:
        raise BadField("timeout_s", f"must not be above {MAX_SECONDS}")
    return ModelLimits(max_tokens=tokens or None, timeout_s=seconds or None)
