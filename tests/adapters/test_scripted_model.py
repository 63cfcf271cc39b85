"""The scripted models: order, strictness, streaming, stopping; the echo behind a real agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.adapters.model_rig import Asked, Said
from tests.adapters.model_suite import AnswerCases
from tests.simulators.sse import SseServer
from voxglove.adapters.models.scripted import (
    Call,
    EchoModel,
    Fail,
    Part,
    ScriptedModel,
    Step,
    Text,
    say,
)
from voxglove.core.builder import Glove
from voxglove.core.cancel import CancelToken
from voxglove.core.errors import AbortError, ModelError
from voxglove.core.events import ModelResponse, ModelResponseComplete, TextDelta, ToolUse
from voxglove.core.messages import Message, ToolCall
from voxglove.core.model import Model, ModelEvent, ModelRequest, ModelResult
from voxglove.core.usage import Usage
from voxglove.core.view import NOTHING_HEARD


class ScriptedRig:
    """What is said as a step; a server that stalls is a word that takes an hour."""

    usage = Usage(20, 9, 3, 5)
    thinks = False

    @asynccontextmanager
    async def asked(self, *script: Said, **config: Any) -> AsyncIterator[Asked]:
        yield Asked(SseServer(), ScriptedModel([self.step(answer) for answer in script]))

    def step(self, answer: Said) -> Step:
        parts: list[Part] = [Text(word) for word in answer.words]
        parts += [Call(one.tool_name, _object(one), one.id) for one in answer.calls]
        if answer.ending == "stall":
            parts.append(Text("never", after_ms=3_600_000))
        counted = answer.counted or Usage()
        return Step(tuple(parts), usage=counted, stop_reason=answer.stop or None)

    def tool_name(self, name: str) -> str:
        return name


def _object(call: ToolCall) -> dict[str, object]:
    assert isinstance(call.input_args, dict)
    return call.input_args


class TestScripted(AnswerCases):
    rig = ScriptedRig()


def heard(text: str) -> ModelRequest:
    return ModelRequest(messages=(Message(sender="user", text=text),))


async def ask(model: Model, text: str) -> tuple[ModelResult, list[ModelEvent]]:
    events: list[ModelEvent] = []
    return await model.prompt(heard(text), events.append, CancelToken()), events


async def test_steps_stream_in_order_word_by_word() -> None:
    model = ScriptedModel(["Hello there.", say("One ", Call("book", {"at": 7}), expects="TABLE")])
    result, events = await ask(model, "hi")
    assert result.messages[0].text == "Hello there."
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Hello ", "there."]
    assert isinstance(events[-1], ModelResponseComplete)
    result, events = await ask(model, "a table please")
    assert result.messages[0].tool_calls == (ToolCall("book", {"at": 7}, "call_1"),)
    assert [e.id for e in events if isinstance(e, ToolUse)] == ["call_1"]
    assert result.stop_reason == "tool_use"
    assert [request.messages[-1].text for request in model.requests] == ["hi", "a table please"]
    model.verify()


async def test_a_step_never_asked_for_is_named() -> None:
    model = ScriptedModel(["Hello.", "Goodbye."])
    await ask(model, "hi")
    with pytest.raises(AssertionError, match="Goodbye"):
        model.verify()


@pytest.mark.parametrize("steps", [[], [say("x", expects="table")]])
async def test_an_unexpected_request_fails_now_and_at_the_end(steps: list[object]) -> None:
    model = ScriptedModel(steps)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="hi") as caught:
        await ask(model, "hi")
    assert not caught.value.retryable
    with pytest.raises(AssertionError, match="hi"):
        model.verify()


async def test_words_take_the_time_they_were_given() -> None:
    model = ScriptedModel([say(Text("one two three", after_ms=100))])
    loop = asyncio.get_running_loop()
    started = loop.time()
    await ask(model, "hi")
    assert loop.time() - started == pytest.approx(0.3)


async def test_a_model_may_break_off_or_answer_whole() -> None:
    error = ModelError("boom", code="ERR_MODEL_SERVER", retryable=True)
    model = ScriptedModel([say("Half ", Fail(error)), say("Whole answer.", streams=False)])
    events: list[ModelEvent] = []
    with pytest.raises(ModelError, match="boom"):
        await model.prompt(heard("x"), events.append, CancelToken())
    assert events == [TextDelta(text="Half ")]
    _, events = await ask(model, "x")
    assert [type(event) for event in events] == [ModelResponse]


async def test_a_token_stops_it_between_words() -> None:
    model = ScriptedModel([say(Text("one two three", after_ms=100))])
    token, events = CancelToken(), list[ModelEvent]()
    asyncio.get_running_loop().call_later(0.15, token.abort, "barge-in")
    with pytest.raises(AbortError, match="barge-in"):
        await model.prompt(heard("x"), events.append, token)
    assert events == [TextDelta(text="one ")]


async def test_echo_says_what_the_user_said() -> None:
    result, events = await ask(EchoModel(), "two tables please")
    assert result.messages[0].text == "You said: two tables please"
    assert len([e for e in events if isinstance(e, TextDelta)]) == 5
    nothing, _ = await ask(EchoModel(), " ")
    assert nothing.messages[0].text == "I heard nothing."


async def test_echo_repeats_the_caller_and_not_the_view() -> None:
    result, _ = await ask(EchoModel(), f"{NOTHING_HEARD}\nfor two people")
    assert result.messages[0].text == "You said: for two people"


async def test_echo_answers_behind_a_real_agent() -> None:
    agent = Glove(model=EchoModel()).build()
    try:
        result = await agent.process_request("hello world")
        assert result.text == "You said: hello world"
    finally:
        await agent.aclose()
