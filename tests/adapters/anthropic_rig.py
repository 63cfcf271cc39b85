"""Anthropic's model on its simulator, for the suite and for its own tests."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.adapters.model_rig import (
    Asked,
    Options,
    Said,
    arguments_of,
    encoded,
    halves,
    opened,
    outgoing,
)
from tests.simulators.anthropic_messages import (
    KEY,
    AnthropicSimulator,
    Scripted,
    call,
    text,
    thinking,
)
from tests.simulators.anthropic_rules import check_body
from tests.simulators.sse import Json, Refused
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.anthropic import AnthropicConfig, AnthropicModel
from voxglove.adapters.models.anthropic_wire import WORDS, CacheTtl, wire_request
from voxglove.core.model import ModelRequest
from voxglove.core.usage import Usage

VERSION = "2026-10-21"


def _kept(*blocks: Json, model: str = "m") -> dict[str, object]:
    return {"anthropic": {"model": model, "blocks": list(blocks)}}


_THOUGHT: Json = {"type": "thinking", "thinking": "Hm.", "signature": "S"}
_HELLO: Json = {"type": "text", "text": "Hello."}


class AnthropicRig:
    """The Messages API."""

    usage = Usage(20, 9, 3, 5)
    modes = (True, False)
    thinks = True
    has_sdk = True
    garbage = (
        b"event: content_block_delta\ndata: {oops\n\n",
        b"event: content_block_delta\ndata: 5\n\n",
        b'event: content_block_delta\ndata: {"type":"content_block_delta"}\n\n',
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":9,'
        b'"delta":{"type":"text_delta","text":"x"}}\n\n',
        b"event: content_block_delta\ndata: \xff\xfe\n\n",
    )
    noise = b'event: brand_new\ndata: {"type":"brand_new"}\n\n: a note\n\n'
    options: Options = (
        None,
        {"gemini": {"model": "m", "parts": []}},
        {"anthropic": "nonsense"},
        _kept(_HELLO, model="other"),
        _kept(_THOUGHT, _HELLO),
        _kept(
            {"type": "redacted_thinking", "data": "D"},
            _HELLO,
            {"type": "tool_use"},
            _THOUGHT,
            {"type": "tool_use"},
        ),
    )

    def asked(
        self, *script: Said | Scripted, key: str = KEY, **config: Any
    ) -> AbstractAsyncContextManager[Asked]:
        steps = (self.scripted(one) if isinstance(one, Said) else one for one in script)
        server = AnthropicSimulator(*steps)

        def make() -> AnthropicModel:
            own: dict[str, Any] = {"model": "m", "base_url": server.base_url, "timeout_s": 5.0}
            return AnthropicModel(AnthropicConfig(**own | config), Secret(key))

        return opened(server, make)

    def scripted(self, answer: Said) -> Scripted:
        blocks = [thinking(answer.thoughts, f"SIG {answer.thoughts}")] if answer.thoughts else []
        blocks += [text(*answer.words)] if answer.words else []
        for one in answer.calls:
            blocks.append(call(one.id, one.tool_name, *halves(arguments_of(one))))
        usage: Json = {}
        final: Json = {"output_tokens": 9}
        if (count := answer.counted) is not None:
            written, read = count.cache_creation_input_tokens, count.cache_read_input_tokens
            usage = {
                "input_tokens": count.tokens_in - written - read,
                "cache_creation_input_tokens": written,
                "cache_read_input_tokens": read,
            }
            final = {"output_tokens": count.tokens_out}
        return Scripted(
            blocks=blocks,
            stop=answer.stop,
            usage=usage,
            final=final,
            stream_error="overloaded_error" if answer.breaks else "",
            **outgoing(answer),
        )

    def tool_name(self, name: str) -> str:
        return WORDS.wire(name)

    def bound(self, body: Json) -> object:
        return body["max_tokens"]

    def problem(self, request: ModelRequest) -> str:
        caches: tuple[CacheTtl | None, ...] = (None, "1h")
        try:
            for cache in caches:
                check_body(body_of(request, cache), VERSION)
        except Refused as refused:
            return str(refused)
        return ""


ANTHROPIC = AnthropicRig()


def body_of(request: ModelRequest, cache: CacheTtl | None = None) -> Json:
    """What `request` becomes, with thinking where it is allowed."""
    wire = wire_request(request, model="m", cache=cache)
    body = {
        "model": "m",
        "max_tokens": 5000,
        "messages": wire.messages,
        "system": wire.system,
        "tools": wire.tools,
        "thinking": {"type": "enabled", "budget_tokens": 1024} if wire.may_think else None,
    }
    decoded: Json = encoded(body)
    return {key: value for key, value in decoded.items() if value is not None}
