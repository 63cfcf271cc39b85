"""Anthropic's bodies in detail, and the simulator itself: the official SDK is content with it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from anthropic import AsyncAnthropic, AuthenticationError, BadRequestError
from anthropic.types import Message as SdkMessage
from anthropic.types import MessageParam, RawMessageStreamEvent, ToolParam, ToolResultBlockParam
from pydantic import TypeAdapter

from tests.adapters.anthropic_rig import ANTHROPIC, VERSION, body_of
from tests.adapters.model_rig import HELLO, LOOKUP, NOW, PNG, asks, results
from tests.simulators.anthropic_messages import (
    KEY,
    AnthropicSimulator,
    Scripted,
    call,
    redacted,
    text,
    thinking,
)
from tests.simulators.anthropic_rules import check_body
from tests.simulators.sse import Refused
from voxglove.core.messages import Message, ToolCall, ToolResultData
from voxglove.core.model import ModelRequest, ToolSpec
from voxglove.core.view import model_view


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"anyOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": {}}}], "$defs": {"A": {}}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {"$ref": "#/$defs/A"}}}}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
        {"$ref": "#"},
    ],
)
def test_a_tool_is_an_object_whatever_its_schema(parameters: dict[str, object]) -> None:
    spec = ToolSpec("t", "d", parameters)
    check_body(body_of(ModelRequest(messages=(), tools=(spec,))), VERSION)


def test_a_union_of_objects_offers_all_their_fields_and_demands_the_common_ones() -> None:
    one = {"type": "object", "properties": {"a": {}, "k": {}}, "required": ["a", "k"]}
    two = {"type": "object", "properties": {"b": {}, "k": {}}, "required": ["k"]}
    body = body_of(ModelRequest(messages=(), tools=(ToolSpec("t", "d", {"oneOf": [one, two]}),)))
    tools = body["tools"]
    assert isinstance(tools, list)
    schema = tools[0]["input_schema"]
    assert set(schema["properties"]) == {"a", "b", "k"} and schema["required"] == ["k"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"unknown": 1},
        {"max_tokens": None},
        {"temperature": 1.0},
        {"messages": []},
        {"messages": [{"role": "assistant", "content": "Hi"}]},
        {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
        {"messages": [{"role": "user", "content": " "}]},
        {"messages": [{"role": "system", "content": "a"}]},
        {"tools": [{"name": "a b", "input_schema": {"type": "object"}}]},
        {"tools": [{"name": "a", "input_schema": {}}]},
        {"thinking": {"type": "enabled", "budget_tokens": 10}},
    ],
)
def test_the_simulator_refuses_what_the_service_refuses(wrong: dict[str, object]) -> None:
    good = {"model": "m", "max_tokens": 5000, "messages": [{"role": "user", "content": "Hi"}]}
    check_body(good, VERSION)
    with pytest.raises(Refused):
        check_body(good | wrong, VERSION)


CALL = {"type": "tool_use", "id": "t1", "name": "now", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "noon"}
WORDS = {"type": "text", "text": "and?"}


@pytest.mark.parametrize(
    ("asked_for", "answered"),
    [
        ([CALL], [WORDS]),
        ([CALL], [WORDS, RESULT]),
        ([CALL], [RESULT, RESULT]),
        ([CALL], [RESULT | {"tool_use_id": "t2"}]),
        ([CALL], [RESULT | {"is_error": True, "content": ""}]),
        ([CALL | {"id": "t.1"}], [RESULT | {"tool_use_id": "t.1"}]),
        ([CALL | {"input": "{}"}], [RESULT]),
        ([CALL, CALL], [RESULT]),
        ([WORDS], [RESULT]),
    ],
)
def test_the_simulator_wants_every_call_answered_first_and_once(
    asked_for: list[dict[str, object]], answered: list[dict[str, object]]
) -> None:
    def body(asked_for: object, answered: object) -> dict[str, object]:
        turns = [("user", [WORDS]), ("assistant", asked_for), ("user", answered)]
        messages = [{"role": role, "content": content} for role, content in turns]
        return {"model": "m", "max_tokens": 5, "messages": messages}

    check_body(body([CALL], [RESULT, WORDS]), VERSION)
    with pytest.raises(Refused):
        check_body(body(asked_for, answered), VERSION)


SCRIPT = (
    Scripted(
        blocks=[
            thinking("Which one?", "SIG-1"),
            redacted("OPAQUE"),
            text("One ", "moment."),
            call("toolu_1", "lookup", '{"id"', ": 7}"),
            call("toolu_2", "now"),
        ]
    ),
    Scripted(blocks=[text("It is noon.")]),
)


@pytest.mark.real_loop
@pytest.mark.parametrize("stream", [True, False])
async def test_official_sdk_drives_a_tool_conversation_against_the_simulator(stream: bool) -> None:
    async with AnthropicSimulator(*SCRIPT).running() as server:
        client = AsyncAnthropic(api_key=KEY, base_url=server.base_url, max_retries=0)
        messages: list[MessageParam] = [{"role": "user", "content": "What time is it?"}]
        first = await sdk_answer(client, messages, stream=stream)
        assert [block.type for block in first.content] == [
            "thinking",
            "redacted_thinking",
            "text",
            "tool_use",
            "tool_use",
        ]
        assert first.content[3].type == "tool_use" and first.content[3].input == {"id": 7}
        messages += [first.to_param(), {"role": "user", "content": answers(first)}]
        last = await sdk_answer(client, messages, stream=stream)
        assert last.content[0].type == "text" and last.content[0].text == "It is noon."
        forged = first.model_copy(deep=True)
        assert forged.content[0].type == "thinking"
        forged.content[0].signature = "FORGED"
        with pytest.raises(BadRequestError):
            await sdk_answer(client, [messages[0], forged.to_param(), messages[2]], stream=stream)
        ancient = client.with_options(default_headers={"anthropic-version": "2023-01-01"})
        with pytest.raises(BadRequestError, match="anthropic-version"):
            await sdk_answer(ancient, messages[:1], stream=stream)
        stranger = client.with_options(api_key="sk-ant-another")
        with pytest.raises(AuthenticationError):
            await sdk_answer(stranger, messages[:1], stream=stream)
        await client.close()
    kind = TypeAdapter(RawMessageStreamEvent if stream else SdkMessage)
    for one in server.sent:
        kind.validate_python(one)


async def sdk_answer(
    client: AsyncAnthropic, messages: Sequence[MessageParam], *, stream: bool
) -> SdkMessage:
    tools: list[ToolParam] = [
        {"name": name, "input_schema": {"type": "object"}} for name in ("lookup", "now")
    ]
    if not stream:
        return await client.messages.create(
            model="m", max_tokens=100, messages=messages, tools=tools
        )
    async with client.messages.stream(
        model="m", max_tokens=100, messages=messages, tools=tools
    ) as events:
        return await events.get_final_message()


def answers(message: SdkMessage) -> list[ToolResultBlockParam]:
    return [
        {"type": "tool_result", "tool_use_id": block.id, "content": "noon"}
        for block in message.content
        if block.type == "tool_use"
    ]


def test_thinking_stands_at_the_head_of_its_turn() -> None:
    history = (
        Message(sender="user", text="hi"),
        Message(sender="agent", text="One mo", interrupted=True),
        Message(
            sender="agent",
            text="Hello.",
            tool_calls=(ToolCall("now", {}, "c1"), ToolCall("now", {}, "c2")),
            provider_options=ANTHROPIC.options[-1],
        ),
    )
    body = body_of(ModelRequest(messages=tuple(model_view(history)), tools=(NOW,)))
    messages = body["messages"]
    assert isinstance(messages, list) and "thinking" in body
    kinds = [[block["type"] for block in message["content"]] for message in messages]
    assert kinds == [
        ["text"],
        ["text"],
        ["text"],
        ["redacted_thinking", "text", "tool_use", "thinking", "tool_use"],
        ["tool_result", "tool_result"],
    ]


def test_what_was_not_json_is_kept_when_it_is_handed_back() -> None:
    history = (
        Message(sender="user", text="hi"),
        Message(sender="agent", tool_calls=(ToolCall("now", "{oops", "c1"),)),
    )
    messages = body_of(ModelRequest(messages=history))["messages"]
    assert isinstance(messages, list)
    assert messages[1]["content"][0]["input"] == {"arguments": "{oops"}


def test_the_sdks_own_types_know_every_kind_of_block() -> None:
    history = (
        Message(sender="user", text="hi", content=(PNG,)),
        asks(ToolCall("now", {}, "c1"), text="Well."),
        results(("now", "c1", ToolResultData("error", message="no"))),
    )
    for options in ANTHROPIC.options:
        kept = (*history, Message(sender="agent", text="Hello.", provider_options=options))
        body = body_of(ModelRequest(messages=(*kept, *HELLO.messages), tools=(LOOKUP, NOW)), "1h")
        TypeAdapter(list[MessageParam]).validate_python(body["messages"])
        TypeAdapter(list[ToolParam]).validate_python(body["tools"])
