"""Gemini's generateContent wire, inwards: chunks, or one whole response, to one answer.

An accumulator without I/O. Thoughts are never text. A signature is kept unread with the part it
came with, from where gemini_wire.py hands it back; parts with one are never joined with others.
Source: protocols/chat-models 4; `google-genai` types.GenerateContentResponse.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.messages import Message, ToolCall
from ...core.usage import Usage
from .gemini_wire import OPTIONS_KEY
from .wire_names import WireNames

if TYPE_CHECKING:
    from google.genai.types import (
        FunctionCall,
        GenerateContentResponse,
        GenerateContentResponseUsageMetadata,
    )
    from google.genai.types import Part as WirePart

REFUSALS = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "MODEL_ARMOR",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)
"""Reasons for which the provider withholds an answer."""
MISHAPS = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "OTHER",
    }
)
"""Reasons that are accidents of this one answer: the next attempt may well succeed."""
STOP_REASONS = {"STOP": "end_turn", "MAX_TOKENS": "max_tokens"}


@dataclass(slots=True)
class _Part:
    """A part as it came; `call` where it is one."""

    text: str = ""
    thought: bool = False
    signature: bytes | None = None
    call: FunctionCall | None = None

    def joins(self, other: _Part) -> bool:
        """Whether `other` is the same text going on."""
        plain = self.call is None and other.call is None and self.thought == other.thought
        return plain and self.signature is None and other.signature is None


class Answer:
    """An answer while it comes in; `finish` is the wire's reason once it is whole."""

    def __init__(self, names: WireNames, model: str) -> None:
        self._names = names
        self._model = model
        self._parts: list[_Part] = []
        self.finish: str | None = None
        self.blocked: str | None = None
        """Why the prompt was refused; then nothing else comes."""
        self.has_candidate = False
        self.usage = Usage()

    def feed(self, chunk: GenerateContentResponse) -> str:
        """Take a chunk; the text it adds. Raises ValueError for one that is none of this wire."""
        if not chunk.model_fields_set - {"sdk_http_response", "automatic_function_calling_history"}:
            raise ValueError("a chunk without anything that a response has")
        if chunk.usage_metadata is not None:
            self.usage = usage_of(chunk.usage_metadata)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason is not None:
            self.blocked = chunk.prompt_feedback.block_reason.value
        if not chunk.candidates:
            return ""
        self.has_candidate = True
        candidate = chunk.candidates[0]
        if candidate.finish_reason is not None:
            self.finish = candidate.finish_reason.value
        parts = candidate.content.parts if candidate.content is not None else None
        return "".join(self._take(part) for part in parts or ())

    @property
    def refused(self) -> bool:
        """The provider stopped the answer for what it said; its calls are not run."""
        return self.finish in REFUSALS

    @property
    def stop_reason(self) -> str | None:
        """In core's words. The wire says STOP for calls too."""
        if self.calls():
            return "tool_use"
        if self.finish is None or self.refused:
            return "refusal" if self.refused else None
        return STOP_REASONS.get(self.finish, self.finish.lower())

    def calls(self) -> tuple[ToolCall, ...]:
        if self.refused:
            return ()
        return tuple(self._call(part.call, part.signature) for part in self._parts if part.call)

    def message(self) -> Message:
        return Message(
            sender="agent",
            text="".join(part.text for part in self._parts if not part.thought),
            tool_calls=self.calls(),
            reasoning_content="".join(p.text for p in self._parts if p.thought) or None,
            provider_options=self._options(),
        )

    def _take(self, part: WirePart) -> str:
        call = part.function_call
        if call is None and part.text is None and part.thought_signature is None:
            return ""  # code, files and other things that only server tools make
        taken = _Part(part.text or "", bool(part.thought), part.thought_signature, call)
        if call is not None and not call.name:
            raise ValueError("a function call without a name")
        if self._parts and self._parts[-1].joins(taken):
            self._parts[-1].text += taken.text
        else:
            self._parts.append(taken)
        return "" if taken.thought else taken.text

    def _call(self, call: FunctionCall, signature: bytes | None) -> ToolCall:
        kept: dict[str, object] = {"model": self._model, "id": call.id or None}
        if signature is not None:
            kept["signature"] = b64encode(signature).decode()
        name = self._names.ours(call.name or "")
        return ToolCall(name, dict(call.args or {}), call.id or "", {OPTIONS_KEY: kept})

    def _options(self) -> Mapping[str, object] | None:
        """The order of the parts, kept only where text or thoughts are signed."""
        if self.refused or not any(p.signature is not None and p.call is None for p in self._parts):
            return None
        kept = [_kept(part) for part in self._parts if not part.thought or part.signature]
        return {OPTIONS_KEY: {"model": self._model, "parts": kept}}


def usage_of(usage: GenerateContentResponseUsageMetadata) -> Usage:
    """Token counts; the prompt's hold the cached ones already, thoughts are output."""
    return Usage(
        (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
        0,
        usage.cached_content_token_count or 0,
    )


def _kept(part: _Part) -> Mapping[str, object]:
    if part.call is not None:
        return {"call": True}
    kept: dict[str, object] = {"text": part.text}
    if part.thought:
        kept["thought"] = True
    if part.signature is not None:
        kept["signature"] = b64encode(part.signature).decode()
    return kept
