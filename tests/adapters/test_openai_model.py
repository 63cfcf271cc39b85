"""What chat completions alone has to show: fragments, servers with habits, reasoning, parts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.adapters.model_rig import HELLO, said
from tests.adapters.openai_rig import CHAT, CHAT_USAGE
from tests.simulators.openai_chat import (
    Scripted,
    call_chunk,
    completion,
    delta,
    finish,
    refusal_chunk,
    text_chunk,
)
from tests.simulators.sse import Json
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.openai import OpenAIConfig, OpenAIModel
from voxglove.adapters.models.openai_config import OPENAI_DIALECT, ChatDialect
from voxglove.core.errors import ModelError, UsageError
from voxglove.core.events import ModelResponseComplete
from voxglove.core.messages import (
    ContentPart,
    ContentSource,
    Message,
    ToolCall,
    ToolResult,
    ToolResultData,
    decode_message,
    encode_message,
)
from voxglove.core.model import ModelRequest, ToolSpec
from voxglove.core.usage import Usage

real_loop = pytest.mark.real_loop


def sent(body: Json) -> list[Json]:
    messages = body["messages"]
    assert isinstance(messages, list)
    return messages


@real_loop
async def test_the_request_is_as_the_wire_wants_it() -> None:
    spec = ToolSpec("lookup", "Looks up.", {"type": "object", "properties": {}})
    async with CHAT.asked(said("Hi")) as call:
        await call.ask(
            ModelRequest(messages=HELLO.messages, system_prompt="Be kind.", tools=(spec,))
        )
    assert call.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "hello"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "lookup",
                    "description": "Looks up.",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@real_loop
async def test_results_are_one_message_each_behind_their_calls() -> None:
    calls = (ToolCall("look", {"q": 1}, "c1"), ToolCall("book", {}, "c2"))
    results = (
        ToolResult("look", "c1", ToolResultData("success", {"free": 3})),
        ToolResult("book", "c2", ToolResultData("aborted", message="hang-up")),
    )
    history = (
        *HELLO.messages,
        Message(sender="agent", tool_calls=calls),
        Message(sender="user", tool_results=results, is_tool_results=True),
        Message(sender="agent", text="Three are."),
        Message(sender="user", text="thanks"),
    )
    async with CHAT.asked(said("Welcome.")) as call:
        await call.ask(ModelRequest(messages=history))
    messages = sent(call.body)
    roles = [message["role"] for message in messages]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert messages[1]["content"] is None
    assert [m["content"] for m in messages[2:4]] == ['{"free":3}', "Aborted: hang-up"]


@real_loop
async def test_calls_are_put_together_from_mixed_fragments() -> None:
    script = Scripted(
        choices=[
            call_chunk(0, "call_1", "lookup", ""),
            call_chunk(0, arguments='{"id":'),
            call_chunk(1, "call_2", "now"),
            call_chunk(0, arguments="7}"),
            finish("tool_calls"),
        ]
    )
    async with CHAT.asked(script) as call:
        result = await call.ask()
    expected = (ToolCall("lookup", {"id": 7}, "call_1"), ToolCall("now", {}, "call_2"))
    assert result.messages[0].tool_calls == expected


@real_loop
@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("ids", [("a", "b"), ("", "")])
async def test_calls_without_an_index_of_their_own_stay_apart(
    index: int | None, ids: tuple[str, str]
) -> None:
    script = Scripted(
        choices=[
            call_chunk(index, ids[0], "one", '{"a":'),
            call_chunk(index, arguments="1}"),
            call_chunk(index, ids[1], "two", "{}"),
            finish("stop"),
        ]
    )
    async with CHAT.asked(script) as call:
        result = await call.ask()
    expected = [("one", {"a": 1}), ("two", {})]
    assert [(c.tool_name, c.input_args) for c in result.messages[0].tool_calls] == expected
    assert result.stop_reason == "tool_use"


@real_loop
@pytest.mark.parametrize("ending", ["stall", "drop"])
async def test_an_answer_that_has_ended_is_whole_however_the_body_ends(ending: Any) -> None:
    ended = Scripted(choices=[text_chunk("Hi."), finish("stop")], usage=CHAT_USAGE, ending=ending)
    async with CHAT.asked(ended) as call:
        started = asyncio.get_running_loop().time()
        result = await call.ask()
        assert asyncio.get_running_loop().time() - started < 3
    assert result.messages[0].text == "Hi." and result.usage.tokens_in == 20


@real_loop
async def test_servers_with_habits_are_understood() -> None:
    as_object = delta(
        {"tool_calls": [{"id": "a", "function": {"name": "one", "arguments": {"x": 1}}}]}
    )
    habits = Scripted(
        choices=[{"index": 0, "delta": {}}, {"index": 0}, as_object, finish("done")],
        garbage=b'data: {"choices": null, "usage": {"total_tokens": 7, "prompt_tokens": 4}}\n\n',
    )
    async with CHAT.asked(habits) as call:
        result = await call.ask()
    assert result.messages[0].tool_calls == (ToolCall("one", {"x": 1}, "a"),)
    assert result.usage == Usage(4, 0)


@real_loop
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_kept_and_handed_back_on_tool_turns_only(
    field: str, stream: bool
) -> None:
    whole_call: Json = {"id": "c1", "type": "function"}
    whole_call |= {"function": {"name": "now", "arguments": "{}"}}
    thought = Scripted(
        choices=[
            delta({field: "Let me "}),
            delta({field: "think."}),
            call_chunk(0, "c1", "now", "{}"),
            finish("tool_calls"),
        ],
        whole=None
        if stream
        else completion({field: "Let me think.", "content": None, "tool_calls": [whole_call]}),
    )
    dialect = ChatDialect(reasoning_field="reasoning")
    async with CHAT.asked(
        thought,
        said("Noon."),
        compatible=True,
        stream=stream,
        dialect=dialect,
    ) as call:
        made = (await call.ask()).messages[0]
        assert made.reasoning_content == "Let me think." and made.text == ""
        answered = Message(
            sender="user",
            tool_results=(ToolResult("now", "c1", ToolResultData("success", "12")),),
        )
        before = Message(sender="agent", text="Before.", reasoning_content="Old thoughts.")
        await call.ask(
            ModelRequest(messages=(*HELLO.messages, before, *HELLO.messages, made, answered))
        )
    assert [m.get("reasoning") for m in sent(call.body)] == [
        None,
        None,
        None,
        "Let me think.",
        None,
    ]
    assert call.deltas() in ([], ["Noon."]), "reasoning is never spoken"


@real_loop
@pytest.mark.parametrize("cumulative", [True, False])
async def test_signatures_of_thoughts_go_back_unread_to_their_model(cumulative: bool) -> None:
    pieces = ["I ", "I look."] if cumulative else ["I ", "look."]
    details: list[Json] = [
        {"type": "reasoning.text", "index": 0, "text": piece, "signature": None} for piece in pieces
    ]
    sealed: Json = {"type": "reasoning.encrypted", "index": 1, "data": "sealed"}
    signed: Json = {"google": {"thought_signature": "QUJD"}}
    fragment: Json = {"index": 0, "id": "c1", "function": {"name": "now", "arguments": "{}"}}
    script = Scripted(
        choices=[
            *(delta({"reasoning_details": [detail]}) for detail in details),
            delta({"reasoning_details": [sealed, "?"]}),
            delta({"tool_calls": [fragment | {"extra_content": signed}]}),
            finish("tool_calls"),
        ]
    )
    async with CHAT.asked(script, said("Noon."), compatible=True) as call:
        made = decode_message(encode_message((await call.ask()).messages[0]))
        done = ToolResult("now", "c1", ToolResultData("success", "12"))
        history = (*HELLO.messages, made, Message(sender="user", tool_results=(done,)))
        await call.ask(ModelRequest(messages=history))
    turn = sent(call.body)[1]
    assert turn["reasoning_details"] == [details[0] | {"text": "I look."}, sealed]
    assert isinstance(turn["tool_calls"], list)
    assert turn["tool_calls"][0]["extra_content"] == signed
    for config in ({"compatible": True, "model": "other"}, {}):
        async with CHAT.asked(said("x"), **config) as call:  # type: ignore[arg-type]
            await call.ask(ModelRequest(messages=history))
        assert "sealed" not in str(call.body) and "QUJD" not in str(call.body)


@real_loop
async def test_openai_itself_is_never_sent_reasoning() -> None:
    made = Message(sender="agent", tool_calls=(ToolCall("now", {}, "c1"),), reasoning_content="Hm.")
    async with CHAT.asked(said("x")) as call:
        await call.ask(ModelRequest(messages=(*HELLO.messages, made)))
    assert "Hm." not in str(call.body)


@real_loop
async def test_compatible_servers_get_films_and_notes_and_their_own_bound() -> None:
    parts = (
        ContentPart("video", source=ContentSource("base64", "video/mp4", data="QUJD")),
        ContentPart(
            "document", source=ContentSource("base64", "text/plain", data="QUJD"), name="a"
        ),
    )
    async with CHAT.asked(said("x"), compatible=True, max_tokens=70, cache=True) as call:
        await call.ask(ModelRequest(messages=(Message(sender="user", text="see", content=parts),)))
    assert sent(call.body)[0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:video/mp4;base64,QUJD"}},
        {"type": "text", "text": "[document a cannot be shown here]"},
    ]
    assert call.body["max_tokens"] == 70 and "prompt_cache_key" not in call.body


@real_loop
async def test_a_refusal_is_said_and_marked() -> None:
    streamed = Scripted(choices=[refusal_chunk("I can"), refusal_chunk("not."), finish("stop")])
    whole = Scripted(whole=completion({"content": None, "refusal": "I cannot."}))
    for stream, script in ((True, streamed), (False, whole)):
        async with CHAT.asked(script, stream=stream) as call:
            result = await call.ask()
        assert (result.messages[0].text, result.stop_reason) == ("I cannot.", "refusal")


@real_loop
async def test_why_an_answer_ended_is_in_cores_words() -> None:
    reasons = {
        "stop": "end_turn",
        "length": "max_tokens",
        "content_filter": "refusal",
        "eos": "eos",
    }
    scripts = [Scripted(choices=[text_chunk("Hm"), finish(reason)]) for reason in reasons]
    async with CHAT.asked(*scripts) as call:
        stops = [(await call.ask()).stop_reason for _ in scripts]
    assert stops == list(reasons.values())


@real_loop
async def test_an_answer_that_was_ended_before_it_began_is_an_error() -> None:
    scripts = [Scripted(choices=[finish(reason)]) for reason in ("length", "content_filter")]
    async with CHAT.asked(*scripts, Scripted(choices=[finish("stop")])) as call:
        with pytest.raises(ModelError, match="max_tokens") as short:
            await call.ask()
        with pytest.raises(ModelError, match="filter") as filtered:
            await call.ask()
        called = Message(sender="agent", tool_calls=(ToolCall("now", {}, "c1"),))
        done = (ToolResult("now", "c1", ToolResultData("success", "12")),)
        answered = Message(sender="user", tool_results=done, is_tool_results=True)
        silent = await call.ask(ModelRequest(messages=(*HELLO.messages, called, answered)))
    assert (short.value.code, filtered.value.code) == ("ERR_MODEL_EMPTY", "ERR_MODEL_REFUSED")
    assert silent.messages[0].text == "", "behind results nothing may be left to say"
    assert not [event for event in call.events[:-1] if isinstance(event, ModelResponseComplete)]


@real_loop
async def test_no_choice_is_an_error() -> None:
    none = completion({"content": "x"}) | {"choices": []}
    async with CHAT.asked(Scripted(whole=none), stream=False) as call:
        with pytest.raises(ModelError) as caught:
            await call.ask()
    assert caught.value.code == "ERR_MODEL_EMPTY"


@real_loop
async def test_a_gateways_error_in_numbers_is_understood() -> None:
    broken = Scripted(stream_error={"code": 502, "message": "upstream"})
    spoken = Scripted(stream_error="out of memory")
    async with CHAT.asked(broken, spoken) as call:
        with pytest.raises(ModelError) as numbered:
            await call.ask()
        with pytest.raises(ModelError) as worded:
            await call.ask()
    assert (numbered.value.code, numbered.value.retryable) == ("ERR_MODEL_SERVER", True)
    assert (worded.value.code, worded.value.retryable) == ("ERR_MODEL_SERVER", False)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"model": " "}, "model"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"cache": "2h"}, "cache"),
        ({"reasoning_effort": "huge"}, "reasoning_effort"),
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, object], field: str) -> None:
    with pytest.raises(UsageError, match=rf"OpenAIConfig\.{field}"):
        OpenAIConfig(**({"model": "m"} | wrong))  # type: ignore[arg-type]


async def test_nothing_is_taken_from_the_process_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("BASE_URL", "ORG_ID", "PROJECT_ID", "API_KEY"):
        monkeypatch.setenv(f"OPENAI_{name}", "http://elsewhere.invalid/v1")
    model = OpenAIModel(OpenAIConfig(model="m"), Secret("sk-own"))
    sdk = model._client.sdk
    assert str(sdk.base_url) == "https://api.openai.com/v1/" and sdk.api_key == "sk-own"
    assert sdk.organization is None and sdk.project is None and sdk.max_retries == 0
    assert model.name == "openai:m" and OPENAI_DIALECT.reasoning_field is None
    await model.aclose()
