"""OpenAI's two models on their simulators, for the suite and for their own tests."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
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
from tests.simulators import openai_chat as chat
from tests.simulators import openai_responses as responses
from tests.simulators.openai_chat import KEY
from tests.simulators.sse import Json
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models import openai_responses_wire, openai_wire
from voxglove.adapters.models.openai import OpenAIConfig, OpenAIModel
from voxglove.adapters.models.openai_config import COMPATIBLE_DIALECT, OPENAI_DIALECT
from voxglove.adapters.models.openai_responses import OpenAIResponsesModel
from voxglove.adapters.models.openai_wire import TOOL_NAMES
from voxglove.core.model import ModelLimits, ModelRequest
from voxglove.core.usage import Usage

FINISHES = {"": "stop", "max_tokens": "length", "refusal": "content_filter"}
INCOMPLETE = {"": None, "max_tokens": "max_output_tokens", "refusal": "content_filter"}
COUNTED = Usage(20, 9, 3, 5)
BOOM: Json = {"message": "boom", "type": "server_error", "code": "server_error"}


def usage_json(count: Usage, prompt: str, completion: str) -> Json:
    """Counts in the words of one of the wires."""
    cached = {
        "cached_tokens": count.cache_read_input_tokens,
        "cache_write_tokens": count.cache_creation_input_tokens,
    }
    return {
        f"{prompt}_tokens": count.tokens_in,
        f"{completion}_tokens": count.tokens_out,
        "total_tokens": count.tokens_in + count.tokens_out,
        f"{prompt}_tokens_details": cached,
        f"{completion}_tokens_details": {"reasoning_tokens": 2},
    }


CHAT_USAGE = usage_json(COUNTED, "prompt", "completion")
RESPONSES_USAGE = usage_json(COUNTED, "input", "output")


class OpenAIRig:
    """What both rigs share; `name` tells them apart in the ids of tests."""

    name: str
    usage = COUNTED
    modes = (True, False)
    thinks = True
    has_sdk = True
    garbage = (b"data: {oops\n\n", b"data: [1]\n\n", b"data: 7\n\n")
    noise = b'data: {"type": "new.kind"}\n\n: a note\n\n'

    def __repr__(self) -> str:
        return self.name

    def tool_name(self, name: str) -> str:
        return TOOL_NAMES.wire(name)


class ChatRig(OpenAIRig):
    """Chat completions. `compatible`: one of the servers that take a bit more."""

    name = "chat"
    options: Options = (None, {"openai_chat": {"model": "m", "reasoning_details": [{"type": "x"}]}})

    def asked(
        self,
        *script: Said | chat.Scripted,
        key: str = KEY,
        compatible: bool = False,
        **config: Any,
    ) -> AbstractAsyncContextManager[Asked]:
        steps = (self.scripted(one) if isinstance(one, Said) else one for one in script)
        server = chat.OpenAIChatSimulator(*steps, compatible=compatible)
        dialect = {} if compatible else {"dialect": OPENAI_DIALECT}

        def make() -> OpenAIModel:
            own = OpenAIConfig(model="m", base_url=server.base_url, timeout_s=5)
            return OpenAIModel(replace(own, **dialect | config), Secret(key))

        return opened(server, make)

    def scripted(self, answer: Said) -> chat.Scripted:
        choices = [chat.delta({"reasoning_content": answer.thoughts})] if answer.thoughts else []
        choices += map(chat.text_chunk, answer.words)
        calls = [(one.id, one.tool_name, arguments_of(one)) for one in answer.calls]
        for index, (call_id, name, arguments) in enumerate(calls):
            choices.append(chat.call_chunk(index, call_id, name))
            choices += [chat.call_chunk(index, arguments=piece) for piece in halves(arguments)]
        reason = "tool_calls" if calls and not answer.stop else FINISHES[answer.stop]
        if answer.ends_well and not answer.breaks:
            choices.append(chat.finish(reason))
        usage = None
        if answer.counted is not None:
            usage = usage_json(answer.counted, "prompt", "completion")
        made: Json = {"tool_calls": [chat.whole_call(*one) for one in calls]} if calls else {}
        thoughts: Json = {"reasoning_content": answer.thoughts} if answer.thoughts else {}
        message = {"content": "".join(answer.words) or None} | made | thoughts
        return chat.Scripted(
            choices=choices,
            usage=usage,
            whole=chat.completion(message, reason, usage),
            stream_error=BOOM if answer.breaks else None,
            **outgoing(answer) | {"keepalives": True},
        )

    def bound(self, body: Json) -> object:
        return body.get("max_completion_tokens")

    def problem(self, request: ModelRequest) -> str:
        for dialect in (OPENAI_DIALECT, COMPATIBLE_DIALECT):
            config = OpenAIConfig(model="m", dialect=dialect, cache="1h", parallel_tool_calls=True)
            body = encoded(openai_wire.streamed_body(config, request))
            wrong = chat.problem(body, compatible=dialect is COMPATIBLE_DIALECT)
            if wrong:
                return wrong
        return ""


def _kept(items: object) -> dict[str, object]:
    return {openai_responses_wire.OPTIONS_KEY: {"model": "m", "items": items}}


_SEALED: Json = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "s"}


class ResponsesRig(OpenAIRig):
    """The Responses API."""

    name = "responses"
    options: Options = (
        None,
        {"anthropic": {"blocks": [1]}},
        _kept(7),
        _kept([_SEALED]),
        _kept([_SEALED, {"type": "message"}, {"type": "function_call"}]),
        _kept([{"type": "function_call"}, {"type": "other"}, {"type": "message"}]),
    )

    def asked(
        self, *script: Said | responses.Scripted, key: str = KEY, **config: Any
    ) -> AbstractAsyncContextManager[Asked]:
        steps = (self.scripted(one) if isinstance(one, Said) else one for one in script)
        server = responses.OpenAIResponsesSimulator(*steps)

        def make() -> OpenAIResponsesModel:
            own = OpenAIConfig(model="m", base_url=server.base_url, timeout_s=5)
            return OpenAIResponsesModel(replace(own, **config), Secret(key))

        return opened(server, make)

    def scripted(self, answer: Said) -> responses.Scripted:
        items = []
        if answer.thoughts:
            sealed = f"sealed {answer.thoughts}"
            items.append(responses.think(sealed, answer.thoughts, id=f"rs of {answer.thoughts}"))
        items += [responses.say(*answer.words)] if answer.words else []
        for one in answer.calls:
            items.append(responses.call(one.id, one.tool_name, *halves(arguments_of(one))))
        usage = None
        if answer.counted is not None:
            usage = usage_json(answer.counted, "input", "output")
        return responses.Scripted(
            items=items,
            usage=usage,
            incomplete=INCOMPLETE[answer.stop],
            error_event={"message": "boom", "code": "server_error"} if answer.breaks else None,
            **outgoing(answer) | {"keepalives": True},
        )

    def bound(self, body: Json) -> object:
        return body.get("max_output_tokens")

    def problem(self, request: ModelRequest) -> str:
        config = OpenAIConfig(
            model="m", cache=True, reasoning_effort="low", parallel_tool_calls=True
        )
        limited = replace(request, limits=ModelLimits(max_tokens=1))
        return responses.problem(encoded(openai_responses_wire.streamed_body(config, limited)))


CHAT, RESPONSES = ChatRig(), ResponsesRig()
RIGS = (CHAT, RESPONSES)
AnyRig = ChatRig | ResponsesRig
