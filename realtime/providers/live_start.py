"""The first frame of GPT-Live: instructions, history and tools, within what the provider takes.

Owned by the codec; pure. Most of it can never change on this connection (spec/voice 18.10).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ...core.messages import Message, ToolResult
from ...core.model import ToolSpec
from ..port import Setup
from .live_frames import BYTES_PER_TOKEN, beginning, tokens
from .reading import Json

INSTRUCTION_TOKENS = 16_384
HISTORY_MESSAGES = 128
HISTORY_TOKENS = 8_192
MESSAGE_TOKENS = 6
"""What a message costs besides its text."""
SHOWN_CHARS = 160
"""Of a tool's description in what the voice is told."""

Delegation = Literal["responses", "client"]
Role = Literal["developer", "user", "assistant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """What a session of GPT-Live is started with besides the setup; see GptLiveConfig."""

    model: str = "gpt-live-1"
    voice: str = "marin"
    rate: int = 16_000
    delegation: Delegation = "responses"
    delegation_model: str = "gpt-5.6-luna"
    delegation_instructions: str = ""
    delegation_effort: str = ""
    delegation_max_tokens: int | None = None
    acknowledgement_delay_ms: int = 0
    store: bool = False
    safety_identifier: str = ""


def session_of(options: LiveOptions, setup: Setup) -> tuple[Json, bool]:
    """The `session` of session.start, and whether something had to be left out of it."""
    told = voice_instructions(setup.instructions, setup.tools, options.delegation)
    instructions = beginning(told, INSTRUCTION_TOKENS * BYTES_PER_TOKEN)
    history, whole = _input(setup.history)
    voice: object = options.voice
    if options.voice.startswith("voice_"):
        voice = {"id": options.voice}
    session: dict[str, object] = {
        "model": options.model,
        "instructions": instructions,
        "audio": {
            "format": {"type": "audio/pcm", "rate": options.rate},
            "output": {"voice": voice},
        },
        "delegation": _delegation(options, setup),
        "store": options.store,
    }
    if history:
        session["input"] = history
    if options.safety_identifier:
        session["safety_identifier"] = options.safety_identifier
    return session, instructions != told or not whole


def function_tools(tools: Sequence[ToolSpec]) -> list[Json]:
    """Tools as the backend takes them."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
            "strict": False,
        }
        for tool in tools
    ]


def voice_instructions(instructions: str, tools: Sequence[ToolSpec], delegation: Delegation) -> str:
    """Instructions of the voice. It has no tools itself: it must know what the backend has, or it
    never gives work away."""
    if delegation == "client" or not tools:
        return instructions
    return f"{instructions}\n\n{tool_notice(tools)}".strip()


def tool_notice(tools: Sequence[ToolSpec]) -> str:
    """What the voice is told of the backend's tools."""
    if not tools:
        return "Delegated work has no tools any more."
    lines = [f"- {tool.name}: {tool.description.strip()[:SHOWN_CHARS]}" for tool in tools]
    return "Delegate what one of these tools can do:\n" + "\n".join(lines)


def _delegation(options: LiveOptions, setup: Setup) -> Json:
    delegation: dict[str, object] = {
        "type": options.delegation,
        "acknowledgement_delay_ms": options.acknowledgement_delay_ms,
    }
    if options.delegation == "client":
        return delegation
    responses: dict[str, object] = {
        "model": options.delegation_model,
        "instructions": options.delegation_instructions or setup.instructions,
        "tools": function_tools(setup.tools),
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }
    if options.delegation_effort:
        responses["reasoning"] = {"effort": options.delegation_effort}
    if options.delegation_max_tokens is not None:
        responses["max_output_tokens"] = options.delegation_max_tokens
    return delegation | {"responses": responses}


def _input(history: Sequence[Message]) -> tuple[list[Json], bool]:
    """The newest messages that fit, oldest first, and whether that is all of them."""
    texts = [each for message in history for each in _texts(message)]
    kept: list[Json] = []
    left = HISTORY_TOKENS
    for role, text in reversed(texts):
        cost = tokens(text) + MESSAGE_TOKENS
        if len(kept) == HISTORY_MESSAGES or (cost > left and kept):
            break
        if cost > left:
            text = beginning(text, (left - MESSAGE_TOKENS) * BYTES_PER_TOKEN)
        left -= cost
        kept.append(_message(role, text))
    return kept[::-1], len(kept) == len(texts) and left >= 0


def _message(role: Role, text: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _texts(message: Message) -> Iterator[tuple[Role, str]]:
    """A message as texts with roles: tool pairs and the framework's words are the developer's."""
    role: Role = "user" if message.is_user_turn else "developer"
    if message.sender == "agent" and not message.is_compaction:
        role = "assistant"
    if message.text.strip() and not message.tool_results:
        yield role, message.text.strip()
    for call in message.tool_calls:
        args = call.input_args
        shown = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False, default=str)
        yield "developer", f"You called the tool {call.tool_name} with {shown}."
    for result in message.tool_results:
        yield "developer", f"The tool {result.tool_name} answered: {_outcome(result)}"


def _outcome(result: ToolResult) -> str:
    """What a model may see of a result: never render data or summaries."""
    data = result.result.data
    shown = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
    if result.result.status == "success":
        return shown
    told = result.result.message or ("" if data is None else shown)
    return f"{result.result.status}: {told}".strip()
