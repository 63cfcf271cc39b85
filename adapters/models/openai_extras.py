"""What compatible servers want back unread: signatures of thoughts, beside calls and on them.

OpenRouter and MiniMax send `reasoning_details` with an answer, Google's compatible endpoint
`extra_content` with a call; some models refuse a tool's result without them. Both are opaque here,
go back only on tool turns, and only to the model they came from.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core.messages import Message, ToolCall
from .openai_media import Json

OPTIONS_KEY = "openai_chat"
"""Where messages and calls keep them."""

_GROWING = ("text", "summary", "data", "arguments")
"""Fields of a detail that come in pieces."""


class ReasoningDetails:
    """Those of one answer while they come in: pieces of one detail have its type and index."""

    def __init__(self) -> None:
        self._details: dict[tuple[object, object], Json] = {}

    def take(self, extra: Mapping[str, object] | None) -> None:
        """The details among a delta's unknown fields, if there are any."""
        details = (extra or {}).get("reasoning_details")
        for place, detail in enumerate(details if isinstance(details, list) else ()):
            if isinstance(detail, Mapping):
                key = (detail.get("type"), detail.get("index", place))
                _join(self._details.setdefault(key, {}), detail)

    def kept(self) -> list[Json]:
        """The whole details, in the order in which they began."""
        return list(self._details.values())


def _join(whole: Json, piece: Mapping[str, object]) -> None:
    """MiniMax repeats what it sent before in every piece, OpenRouter sends what is new."""
    for name, value in piece.items():
        before = whole.get(name)
        grows = name in _GROWING and isinstance(before, str) and isinstance(value, str)
        if grows and not str(value).startswith(str(before)):
            whole[name] = f"{before}{value}"
        elif value is not None or name not in whole:
            whole[name] = value


def options(model: str, name: str, value: object) -> dict[str, object] | None:
    """`provider_options` of a message or a call; None where there is nothing to keep."""
    return {OPTIONS_KEY: {"model": model, name: value}} if value else None


def returned(model: str, owner: Message | ToolCall, name: str) -> object:
    """What `owner` keeps under `name` for `model`; None if nothing."""
    kept = (owner.provider_options or {}).get(OPTIONS_KEY)
    if not isinstance(kept, Mapping) or kept.get("model") != model:
        return None
    return kept.get(name)
