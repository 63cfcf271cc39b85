"""Both of OpenAI's wires as one thing to test: what a reply of each is, and a model on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.simulators import openai_chat as chat
from tests.simulators import openai_responses as responses
from tests.simulators.openai_chat import KEY
from tests.simulators.sse import Json, SseServer
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.openai import OpenAIConfig, OpenAIModel
from voxglove.adapters.models.openai_config import OPENAI_DIALECT
from voxglove.adapters.models.openai_responses import OpenAIResponsesModel
from voxglove.core.cancel import CancelToken
from voxglove.core.events import TextDelta
from voxglove.core.messages import Message
from voxglove.core.model import ModelEvent, ModelRequest, ModelResult

HELLO = ModelRequest(messages=(Message(sender="user", text="hello"),), system_prompt="Be kind.")

Script = chat.Scripted | responses.Scripted
AnyModel = OpenAIModel | OpenAIResponsesModel
Called = tuple[str, str, str]
"""(call id, name, arguments)."""


@dataclass
class Asked:
    """A model on a simulator, and what it reported."""

    server: SseServer
    model: AnyModel
    token: CancelToken = field(default_factory=CancelToken)
    events: list[ModelEvent] = field(default_factory=list)

    async def ask(self, request: ModelRequest = HELLO) -> ModelResult:
        return await self.model.prompt(request, self.events.append, self.token)

    def deltas(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, TextDelta)]

    @property
    def body(self) -> Json:
        """The last request's body."""
        return self.server.bodies[-1]


@dataclass(frozen=True)
class Wire:
    """One of the two. `said`, `called` and `failing` make replies; `options` go to the server's
    script as they are, and mean the same on both."""

    name: str
    said: Callable[..., Script]
    called: Callable[..., Script]
    failing: Callable[..., Script]
    serve: Callable[..., SseServer]
    model: type[OpenAIModel] | type[OpenAIResponsesModel]

    @asynccontextmanager
    async def asked(
        self, *script: Script, key: str = KEY, compatible: bool = False, **config: Any
    ) -> AsyncIterator[Asked]:
        """A model with `config` on a server with `script`."""
        more = {"compatible": True} if compatible else {}
        async with self.serve(*script, **more).running() as server:
            if not compatible:
                config.setdefault("dialect", OPENAI_DIALECT)
            wanted = OpenAIConfig(model="m", base_url=server.base_url, timeout_s=5)
            model = self.model(replace(wanted, **config), Secret(key))
            try:
                yield Asked(server, model)
            finally:
                await model.aclose()
        assert server.streams == 0, "a stream is still being written"


def usage_json(tokens_in: int, tokens_out: int, cached: int, written: int) -> tuple[Json, Json]:
    """The same counts in the words of chat completions and of Responses."""
    total = tokens_in + tokens_out
    details = {"cached_tokens": cached, "cache_write_tokens": written}
    reasoning = {"reasoning_tokens": 2}
    return (
        {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": total,
            "prompt_tokens_details": details,
            "completion_tokens_details": reasoning,
        },
        {
            "input_tokens": tokens_in,
            "output_tokens": tokens_out,
            "total_tokens": total,
            "input_tokens_details": details,
            "output_tokens_details": reasoning,
        },
    )


USAGE = usage_json(20, 9, 5, 3)


def _chat_said(*words: str, counted: bool = False, **options: Any) -> chat.Scripted:
    usage = USAGE[0] if counted else None
    whole = chat.completion({"content": "".join(words)}, usage=usage)
    choices = [*map(chat.text_chunk, words)]
    if options.get("ends", "clean") == "clean":
        choices.append(chat.finish("stop"))
    if options.pop("whole", False):
        return chat.Scripted(whole=whole, **options)
    return chat.Scripted(choices=choices, usage=usage, **options)


def _chat_called(
    *calls: Called, text: str = "", counted: bool = False, whole: bool = False
) -> chat.Scripted:
    usage = USAGE[0] if counted else None
    if whole:
        made = [chat.whole_call(*call) for call in calls]
        message: Json = {"content": text or None, "tool_calls": made}
        return chat.Scripted(whole=chat.completion(message, "tool_calls", usage))
    choices = [chat.text_chunk(text)] if text else []
    for index, (call_id, name, arguments) in enumerate(calls):
        choices.append(chat.call_chunk(index, call_id, name))
        choices += [chat.call_chunk(index, arguments=piece) for piece in halves(arguments)]
    return chat.Scripted(choices=[*choices, chat.finish("tool_calls")], usage=usage)


def _chat_failing(message: str, code: str) -> chat.Scripted:
    error = {"message": message, "type": code, "code": code}
    return chat.Scripted(choices=[chat.text_chunk("Hal")], stream_error=error)


def _responses_said(*words: str, counted: bool = False, **options: Any) -> responses.Scripted:
    options.pop("whole", None)
    items = [responses.say(*words)] if words else []
    return responses.Scripted(items=items, usage=USAGE[1] if counted else None, **options)


def _responses_called(
    *calls: Called, text: str = "", counted: bool = False, whole: bool = False
) -> responses.Scripted:
    items = [responses.say(text)] if text else []
    items += [responses.call(id, name, *halves(arguments)) for id, name, arguments in calls]
    return responses.Scripted(items=items, usage=USAGE[1] if counted else None)


def _responses_failing(message: str, code: str) -> responses.Scripted:
    failure: Json = {"message": message, "code": code}
    return responses.Scripted(items=[responses.say("Hal")], failure=failure)


def halves(text: str) -> Sequence[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


CHAT = Wire(
    "chat",
    _chat_said,
    _chat_called,
    _chat_failing,
    chat.OpenAIChatSimulator,
    OpenAIModel,
)
RESPONSES = Wire(
    "responses",
    _responses_said,
    _responses_called,
    _responses_failing,
    responses.OpenAIResponsesSimulator,
    OpenAIResponsesModel,
)
WIRES = (CHAT, RESPONSES)
