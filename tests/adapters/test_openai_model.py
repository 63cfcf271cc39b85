"""The OpenAI model against a strict local server, through the official SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from tests.simulators.openai_chat import (
    KEY,
    OpenAIChatSimulator,
    Scripted,
    call_chunk,
    finish,
    text_chunk,
)
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.openai import OpenAIConfig, OpenAIModel
from voxglove.core.cancel import CancelToken
from voxglove.core.errors import AbortError, ModelError
from voxglove.core.events import ModelResponse, ModelResponseComplete, TextDelta, ToolUse
from voxglove.core.messages import (
    ContentPart,
    ContentSource,
    Message,
    ToolCall,
    ToolResult,
    ToolResultData,
)
from voxglove.core.model import ModelEvent, ModelRequest, ModelResult, ToolSpec
from voxglove.core.usage import Usage

pytestmark = pytest.mark.real_loop

USAGE: dict[str, object] = {
    "prompt_tokens": 20,
    "completion_tokens": 9,
    "total_tokens": 29,
    "prompt_tokens_details": {"cached_tokens": 5},
}
HELLO = ModelRequest(messages=(Message(sender="user", text="hello"),), system_prompt="Be kind.")


@dataclass
class Asked:
    """A model on a simulator, and what it reported."""

    server: OpenAIChatSimulator
    model: OpenAIModel
    token: CancelToken = field(default_factory=CancelToken)
    events: list[ModelEvent] = field(default_factory=list)

    async def ask(self, request: ModelRequest = HELLO) -> ModelResult:
        return await self.model.prompt(request, self.events.append, self.token)

    def deltas(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, TextDelta)]


@asynccontextmanager
async def asked(
    *script: Scripted, key: str = KEY, stream: bool = True, timeout_s: float = 5
) -> AsyncIterator[Asked]:
    async with OpenAIChatSimulator(*script).running() as server:
        config = OpenAIConfig(
            model="m", base_url=server.base_url, stream=stream, timeout_s=timeout_s
        )
        model = OpenAIModel(config, Secret(key))
        try:
            yield Asked(server, model)
        finally:
            await model.aclose()


def said(*words: str, usage: dict[str, object] | None = None) -> Scripted:
    return Scripted(choices=[*map(text_chunk, words), finish("stop")], usage=usage)


async def test_text_streams_and_usage_is_counted() -> None:
    async with asked(said("Hel", "lo", " there ☺", usage=USAGE)) as call:
        result = await call.ask()
    assert call.deltas() == ["Hel", "lo", " there ☺"]
    assert result.messages[0].text == "Hello there ☺"
    assert result.usage == Usage(20, 9, 0, 5)
    assert result.stop_reason == "end_turn"
    assert isinstance(call.events[-1], ModelResponseComplete)
    assert call.server.bodies[0]["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "hello"},
    ]
    assert "tools" not in call.server.bodies[0] and "temperature" not in call.server.bodies[0]


async def test_tool_calls_are_put_together_from_fragments() -> None:
    script = Scripted(
        choices=[
            call_chunk(0, "call_1", "lookup", ""),
            call_chunk(0, arguments='{"id":'),
            call_chunk(1, "call_2", "now"),
            call_chunk(0, arguments="7}"),
            finish("tool_calls"),
        ]
    )
    spec = ToolSpec("lookup", "Looks up.", {"type": "object", "properties": {}})
    async with asked(script) as call:
        result = await call.ask(ModelRequest(messages=HELLO.messages, tools=(spec,)))
    expected = (ToolCall("lookup", {"id": 7}, "call_1"), ToolCall("now", {}, "call_2"))
    assert result.messages[0].tool_calls == expected
    assert result.stop_reason == "tool_use"
    used = [event for event in call.events if isinstance(event, ToolUse)]
    assert [(use.id, use.input) for use in used] == [("call_1", {"id": 7}), ("call_2", {})]
    tools = call.server.bodies[0]["tools"]
    assert isinstance(tools, list) and tools[0]["function"]["name"] == "lookup"


@pytest.mark.parametrize("index", [0, None])
async def test_whole_calls_without_an_index_of_their_own_stay_apart(index: int | None) -> None:
    script = Scripted(
        choices=[
            call_chunk(index, "a", "one", "{}"),
            call_chunk(index, "b", "two", "{}"),
            finish("stop"),
        ]
    )
    async with asked(script) as call:
        result = await call.ask()
    assert [c.tool_name for c in result.messages[0].tool_calls] == ["one", "two"]
    assert result.stop_reason == "tool_use"


async def test_arguments_that_are_no_json_reach_the_executor_as_they_are() -> None:
    script = Scripted(choices=[call_chunk(0, "a", "one", "{oops"), finish("tool_calls")])
    async with asked(script) as call:
        result = await call.ask()
    assert result.messages[0].tool_calls[0].input_args == "{oops"


async def test_history_is_valid_on_the_wire() -> None:
    calls = (ToolCall("look", {"q": 1}, "c1"), ToolCall("book", {}, "c2"))
    results = (
        ToolResult("look", "c1", ToolResultData("success", {"free": 3}, render_data="secret")),
        ToolResult("book", "c2", ToolResultData("aborted", message="hang-up")),
    )
    image = ContentPart("image", source=ContentSource("base64", "image/png", data="QUJD"))
    history = (
        Message(sender="user", text="is a table free?"),
        Message(sender="user", text="hello?", content=(image,)),
        Message(sender="agent", text="", tool_calls=calls),
        Message(sender="user", tool_results=results, is_tool_results=True),
        Message(sender="agent", text="Three are."),
        Message(sender="user", text="thanks"),
    )
    async with asked(said("Welcome.")) as call:
        await call.ask(ModelRequest(messages=history))
    sent = call.server.bodies[0]["messages"]
    assert isinstance(sent, list)
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert [m["content"] for m in sent[2:4]] == ['{"free":3}', "Aborted: hang-up"]
    assert sent[0]["content"][-1]["image_url"]["url"] == "data:image/png;base64,QUJD"
    assert "secret" not in str(sent)


async def test_a_model_may_answer_whole() -> None:
    whole: dict[str, object] = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "Hi."},
            }
        ],
        "usage": USAGE,
    }
    async with asked(Scripted(whole=whole), stream=False) as call:
        result = await call.ask()
    assert result.messages[0].text == "Hi." and result.usage.tokens_in == 20
    assert [type(event) for event in call.events] == [ModelResponse]


@pytest.mark.parametrize(
    ("status", "error", "code", "retryable"),
    [
        (400, {"message": "no"}, "ERR_MODEL_REFUSED", False),
        (404, {"message": "no such model"}, "ERR_MODEL_REFUSED", False),
        (403, {"message": "no"}, "ERR_MODEL_AUTH", False),
        (429, {"message": "slow"}, "ERR_MODEL_RATE_LIMIT", True),
        (429, {"message": "pay", "code": "insufficient_quota"}, "ERR_MODEL_RATE_LIMIT", False),
        (500, {"message": "oops"}, "ERR_MODEL_SERVER", True),
        (503, {"message": "busy"}, "ERR_MODEL_SERVER", True),
    ],
)
async def test_refusals_say_whether_to_try_again(
    status: int, error: dict[str, object], code: str, retryable: bool
) -> None:
    async with asked(Scripted(status=status, error=error)) as call:
        with pytest.raises(ModelError) as caught:
            await call.ask()
    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert caught.value.__cause__ is not None
    assert len(call.server.bodies) == 1, "the SDK retried by itself"


async def test_a_wrong_key_is_refused_and_not_shown() -> None:
    async with asked(said("x"), key="sk-wrong-key-0123456789") as call:
        with pytest.raises(ModelError) as caught:
            await call.ask()
    assert caught.value.code == "ERR_MODEL_AUTH" and not caught.value.retryable
    assert "sk-wrong-key" not in f"{caught.value}{call.model!r}"


async def test_an_error_inside_the_stream_is_an_error() -> None:
    broken = Scripted(
        choices=[text_chunk("Hal")], stream_error={"message": "boom", "type": "server_error"}
    )
    async with asked(broken) as call:
        with pytest.raises(ModelError) as caught:
            await call.ask()
    assert call.deltas() == ["Hal"]
    assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_SERVER", True)


async def test_a_stream_that_ends_early_is_no_answer() -> None:
    cut = Scripted(choices=[text_chunk("Hal")], breaks_off=True)
    ended = Scripted(choices=[text_chunk("Hal")])
    async with asked(cut, ended) as call:
        for _ in range(2):
            with pytest.raises(ModelError) as caught:
                await call.ask()
            assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_CONNECTION", True)


async def test_garbage_in_the_stream_is_named() -> None:
    async with asked(Scripted(raw="data: {oops\n\n")) as call:
        with pytest.raises(ModelError) as caught:
            await call.ask()
    assert caught.value.code == "ERR_MODEL_PROTOCOL"


async def test_a_silent_server_is_given_up() -> None:
    async with asked(Scripted(choices=[text_chunk("Hm")], hangs=True), timeout_s=0.2) as call:
        with pytest.raises(ModelError) as caught:
            await call.ask()
    assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_STALLED", True)


async def test_nobody_listening_can_be_tried_again() -> None:
    model = OpenAIModel(OpenAIConfig(model="m", base_url="http://127.0.0.1:9/v1"), Secret("x"))
    with pytest.raises(ModelError) as caught:
        await model.prompt(HELLO, lambda event: None, CancelToken())
    await model.aclose()
    assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_CONNECTION", True)


@pytest.mark.parametrize("by_token", [True, False])
async def test_stopping_closes_the_http_stream(by_token: bool) -> None:
    async with asked(Scripted(choices=[text_chunk("One")], hangs=True)) as call:
        loop = asyncio.get_running_loop()

        async def ask_in_vain() -> None:
            with pytest.raises(AbortError if by_token else asyncio.CancelledError):
                await call.ask()

        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            task = group.create_task(ask_in_vain())
            while not call.deltas():  # noqa: ASYNC110 - the model reports by callback
                await asyncio.sleep(0.01)
            started = loop.time()
            if by_token:
                call.token.abort("barge-in")
            else:
                task.cancel()
        assert loop.time() - started < 0.5
        async with asyncio.timeout(2):
            await call.server.closed.wait()
