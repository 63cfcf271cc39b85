"""Gemini's generateContent wire, outwards: our messages and tools to contents and declarations.

Pure; what it makes are the plain values of the SDK's types, bytes where those want bytes. What the
wire demands and our view does not have: turns of `user` and `model` that begin and end with the
user, all results of a step in one content of their own behind it, names within its letters, and
thought signatures in the very part they came with. The way in is gemini_answer.py.
Source: protocols/chat-models 4; `google-genai` types.Content, types.Part; the vendor's page on
thought signatures.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ...core.encoding import whole_text
from ...core.messages import Message, ToolCall, ToolResult, result_text
from ...core.model import ModelRequest, ToolSpec
from ...core.view import paired_results
from .call_arguments import arguments_object
from .gemini_media import Part, media_part
from .gemini_schema import gemini_schema
from .turns import BEGUN, SILENT, agent_text, user_parts
from .wire_names import WireNames, WordRule

WORDS = WordRule(letters="A-Za-z0-9_.-", first="A-Za-z_", longest=64)
"""Of function names."""
OPTIONS_KEY = "gemini"
"""Under this key of provider_options stands what only this wire understands."""

FOREIGN_SIGNATURE = urlsafe_b64decode("skip_thought_signature_validator")
"""What the vendor documents for calls that another model made: on the wire it reads so."""


def tool_names(request: ModelRequest) -> WireNames:
    """The request's tools by the names this wire takes."""
    return WireNames(WORDS, (tool.name for tool in request.tools))


def wire_declarations(tools: Sequence[ToolSpec]) -> list[dict[str, object]]:
    """Fields of types.FunctionDeclaration; `No input` has no parameters at all."""
    out: list[dict[str, object]] = []
    for tool in tools:
        schema = gemini_schema(tool.parameters)
        declared: dict[str, object] = {
            "name": WORDS.wire(tool.name),
            "description": whole_text(tool.description),
        }
        out.append(declared if schema is None else {**declared, "parameters_json_schema": schema})
    return out


def wire_contents(request: ModelRequest, model: str) -> list[dict[str, object]]:
    """Fields of types.Content. `model` decides whose signatures are handed back."""
    contents = _Contents(model)
    for message in paired_results(request.messages):
        contents.add(message)
    return contents.closed()


@dataclass(slots=True)
class _Content:
    role: Literal["user", "model"]
    parts: list[Part] = field(default_factory=list)
    foreign: Part | None = None
    """The first call, where another model made it."""

    @property
    def answers(self) -> bool:
        """Whether it holds results; nothing else stands beside them."""
        return any("function_response" in part for part in self.parts)


class _Contents:
    """Contents in the making."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._contents: list[_Content] = []
        self._asked: dict[str, dict[str, object]] = {}
        """Our call id -> name and id of the call, which its result repeats."""

    def add(self, message: Message) -> None:
        """Append a message; one without anything the wire shows leaves no trace."""
        if message.tool_results:
            parts = [self._answer(result) for result in message.tool_results]
            self._contents.append(_Content("user", parts))
        elif message.sender == "agent":
            self._append("model", self._agent_parts(message))
            self._remember_foreign(message)
        else:
            self._append("user", list(_user_parts(message)))

    def closed(self) -> list[dict[str, object]]:
        """All of them; a request ends with the user's turn."""
        if not self._contents or self._contents[-1].role == "model":
            text = SILENT if self._contents else BEGUN
            self._contents.append(_Content("user", [{"text": text}]))
        self._sign_foreign()
        return [{"role": one.role, "parts": one.parts} for one in self._contents]

    def _append(self, role: Literal["user", "model"], parts: list[Part]) -> None:
        if not parts:
            return
        last = self._contents[-1] if self._contents else None
        if last is not None and last.role == role and not last.answers:
            last.parts.extend(parts)
            return
        if last is None and role == "model":
            self._contents.append(_Content("user", [{"text": BEGUN}]))
        self._contents.append(_Content(role, parts))

    def _remember_foreign(self, message: Message) -> None:
        if message.tool_calls and _own(message.tool_calls[0].provider_options, self._model) is None:
            content = self._contents[-1]
            first = next(part for part in content.parts if "function_call" in part)
            content.foreign = content.foreign or first

    def _sign_foreign(self) -> None:
        """Each step of the current turn begins with a signed call, or the request is refused."""
        for content in reversed(self._contents):
            if content.role == "user" and not content.answers:
                return
            if content.foreign is not None:
                content.foreign["thought_signature"] = FOREIGN_SIGNATURE

    def _agent_parts(self, message: Message) -> list[Part]:
        calls = [self._call(call) for call in message.tool_calls]
        said = agent_text(message)
        text: list[Part] = [{"text": said}] if said.strip() else []
        kept = _own(message.provider_options, self._model)
        layout = _layout(kept, message) if kept is not None else None
        if layout is None:
            return text + calls
        parts = [calls.pop(0) if "call" in item else _text_part(item) for item in layout]
        return [part for part in parts if not _is_blank(part)]

    def _call(self, call: ToolCall) -> Part:
        """A call with its own signature, and its own id if it had one: ours may be another."""
        kept = _own(call.provider_options, self._model) or {}
        own_id = kept.get("id", call.id)
        named: dict[str, object] = {"name": WORDS.wire(call.tool_name)}
        named |= {"id": own_id} if isinstance(own_id, str) and own_id else {}
        self._asked[call.id] = named
        arguments = arguments_object(call.input_args)
        return {"function_call": {**named, "args": arguments}, **_signature(kept)}

    def _answer(self, result: ToolResult) -> Part:
        key = "output" if result.result.status == "success" else "error"
        response = {key: whole_text(result_text(result.result))}
        return {"function_response": {**self._asked[result.call_id], "response": response}}


def _user_parts(message: Message) -> Iterator[Part]:
    for part in user_parts(message):
        yield {"text": whole_text(part.text or "")} if part.type == "text" else media_part(part)


def _own(options: Mapping[str, object] | None, model: str) -> Mapping[str, object] | None:
    """What this adapter kept beside an answer or a call of the same model."""
    kept = (options or {}).get(OPTIONS_KEY)
    return kept if isinstance(kept, Mapping) and kept.get("model") == model else None


def _layout(kept: Mapping[str, object], message: Message) -> list[Mapping[str, object]] | None:
    """The order of the parts as the model gave them; None where the text was amended since."""
    items = kept.get("parts")
    if not isinstance(items, Sequence) or not all(isinstance(item, Mapping) for item in items):
        return None
    said = "".join(str(item.get("text", "")) for item in items if not item.get("thought"))
    calls = sum(1 for item in items if "call" in item)
    return list(items) if said == message.text and calls == len(message.tool_calls) else None


def _text_part(item: Mapping[str, object]) -> Part:
    thought: Part = {"thought": True} if item.get("thought") else {}
    return {"text": whole_text(str(item.get("text", ""))), **thought, **_signature(item)}


def _is_blank(part: Part) -> bool:
    """Text that says nothing and carries no signature."""
    said = str(part.get("text", "?")).strip()
    return not said and "thought_signature" not in part


def _signature(kept: Mapping[str, object]) -> Part:
    signature = kept.get("signature")
    return {"thought_signature": b64decode(signature)} if isinstance(signature, str) else {}
