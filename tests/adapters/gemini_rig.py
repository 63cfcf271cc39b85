"""Gemini's model on its simulator, for the suite and for its own tests."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from typing import Any

from google.genai import types

from tests.adapters.model_rig import Asked, Options, Said, encoded, opened, outgoing
from tests.simulators.gemini_generate import KEY, GeminiSimulator, Scripted, call, text, thought
from tests.simulators.gemini_rules import check_body
from tests.simulators.sse import Json, Refused
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.gemini import GeminiConfig, GeminiModel
from voxglove.adapters.models.gemini_wire import WORDS, wire_contents, wire_declarations
from voxglove.core.model import ModelRequest
from voxglove.core.usage import Usage

FINISHES = {"": "STOP", "max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}
SIGNED = "U0lH"


def _kept(*parts: Json, model: str = "m") -> dict[str, object]:
    return {"gemini": {"model": model, "parts": list(parts)}}


class GeminiRig:
    """generateContent. The simulator wants calls back signed, as the newer models do."""

    usage = Usage(20, 9, 0, 5)
    modes = (True, False)
    thinks = True
    has_sdk = True
    garbage = (
        b"data: {oops\n\n",
        b'data: "hello"\n\n',
        b"data: [1, 2]\n\n",
        b'data: {"candidates": [{"content": {"role": "model", "parts": [{"text": 5}]}}]}\n\n',
        b'data: {"candidates": 5}\n\n',
        b'data: {"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]}\n\n',
    )
    noise = b'data: {"brandNew": 1, "candidates": [{"index": 0, "newField": {"a": 1}}]}\n\n'
    options: Options = (
        None,
        {"anthropic": {"model": "m", "blocks": []}},
        {"gemini": "nonsense"},
        _kept({"text": "Hello.", "signature": "QUJD"}, model="other"),
        _kept({"text": "Hello."}, {"text": "", "signature": "QUJD"}),
        _kept({"text": " "}, {"text": " "}, {"call": True}),
        _kept(
            {"text": "Hm.", "thought": True, "signature": "QUJD"},
            {"call": True},
            {"text": "Hello.", "signature": "QUJD"},
        ),
    )

    def asked(
        self, *script: Said | Scripted, key: str = KEY, signs: bool = True, **config: Any
    ) -> AbstractAsyncContextManager[Asked]:
        steps = (self.scripted(one) if isinstance(one, Said) else one for one in script)
        server = GeminiSimulator(*steps, signs=signs)

        def make() -> GeminiModel:
            own: dict[str, Any] = {"model": "m", "base_url": server.base_url, "timeout_s": 5.0}
            return GeminiModel(GeminiConfig(**own | config), Secret(key))

        return opened(server, make)

    def scripted(self, answer: Said) -> Scripted:
        parts = [thought(answer.thoughts)] if answer.thoughts else []
        parts += map(text, answer.words)
        for at, one in enumerate(answer.calls):
            parts.append(call(one.id, one.tool_name, one.input_args, "" if at else SIGNED))
        usage: Json = {}
        if (count := answer.counted) is not None:
            usage = {
                "promptTokenCount": count.tokens_in,
                "candidatesTokenCount": count.tokens_out,
                "cachedContentTokenCount": count.cache_read_input_tokens,
            }
        return Scripted(
            parts=parts,
            finish=FINISHES[answer.stop],
            usage=usage,
            stream_error=503 if answer.breaks else 0,
            **outgoing(answer),
        )

    def tool_name(self, name: str) -> str:
        return WORDS.wire(name)

    def bound(self, body: Json) -> object:
        generation = body["generationConfig"]
        assert isinstance(generation, dict)
        return generation.get("maxOutputTokens")

    def problem(self, request: ModelRequest) -> str:
        try:
            check_body(sdk_body(request))
        except Refused as refused:
            return str(refused)
        return ""


GEMINI = GeminiRig()


def sdk_body(request: ModelRequest) -> Json:
    """What the SDK makes of our contents and declarations, in its own JSON."""
    declared = [
        types.FunctionDeclaration.model_validate(one) for one in wire_declarations(request.tools)
    ]
    contents = [types.Content.model_validate(one) for one in wire_contents(request, "m")]
    tools = [types.Tool(function_declarations=declared)] if declared else []
    body: Json = {
        "contents": [_dumped(one) for one in contents],
        "tools": [_dumped(one) for one in tools],
    }
    made: Json = encoded(body)
    return made


def _dumped(one: types.Content | types.Tool) -> object:
    return json.loads(one.model_dump_json(exclude_none=True, by_alias=True))
