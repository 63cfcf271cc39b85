"""Gemini's bodies in detail, and the simulator itself: the official SDK is content with it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import errors, types
from pydantic import BaseModel, Field, TypeAdapter

from tests.adapters.gemini_rig import GEMINI, sdk_body
from tests.adapters.model_rig import agent_of
from tests.adapters.test_gemini_model import sent
from tests.simulators.gemini_generate import KEY, GeminiSimulator, Scripted, call, text, thought
from tests.simulators.gemini_rules import check_body
from tests.simulators.sse import Refused
from voxglove.adapters.models.gemini_wire import wire_declarations
from voxglove.core import Tool
from voxglove.core.model import ModelRequest, ToolSpec


class Leaf(BaseModel):
    """A leaf."""

    kind: str = Field(pattern="^l", min_length=1)
    size: float = Field(default=1.0, gt=0, lt=9)


class Tree(BaseModel):
    """A tree that holds trees."""

    name: str
    state: bool | None = None
    leaf: Leaf | None = None
    below: list[Tree] = []


class Other(BaseModel):
    name: str
    number: int


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"type": "object", "additionalProperties": False},
        {
            "type": "object",
            "properties": {"a": {"enum": ["x", None, True, 3]}, "b": {"const": "y"}},
        },
        {
            "properties": {"a": {"allOf": [{"$ref": "#/$defs/A"}]}},
            "$defs": {"A": {"type": "string"}},
        },
        {"properties": {"a": {"not": {"type": "null"}, "if": {}, "then": {}}}, "$schema": "x"},
        Leaf.model_json_schema(),
        Tree.model_json_schema(),
        TypeAdapter(Tree | Other).json_schema(),
    ],
)
def test_a_schema_is_cut_down_to_what_the_wire_knows(parameters: Mapping[str, object]) -> None:
    check_body(sdk_body(ModelRequest(messages=(), tools=(ToolSpec("t", "d", parameters),))))


def test_what_the_wire_does_not_know_is_said_in_words() -> None:
    (declared,) = wire_declarations([ToolSpec("t", "d", Leaf.model_json_schema())])
    schema: Any = declared["parameters_json_schema"]
    assert schema["properties"]["kind"]["description"] == '(pattern: "^l"; minLength: 1)'
    assert "exclusiveMinimum: 0" in schema["properties"]["size"]["description"]
    assert schema["required"] == ["kind"]


def test_links_stay_links_and_stand_alone() -> None:
    parameters = Tree.model_json_schema()
    (declared,) = wire_declarations([ToolSpec("t", "d", parameters)])
    schema: Any = declared["parameters_json_schema"]
    assert schema["properties"]["leaf"]["anyOf"] == [{"$ref": "#/$defs/Leaf"}, {"type": "null"}]
    assert schema["properties"]["below"]["items"] == {"$ref": "#/$defs/Tree"}
    assert set(schema["$defs"]) == {"Leaf", "Tree"}
    linked = {"properties": {"a": {"$ref": "#/$defs/A", "description": "x"}}, "$defs": {"A": {}}}
    (declared,) = wire_declarations([ToolSpec("t", "d", linked)])
    schema = declared["parameters_json_schema"]
    assert schema["properties"]["a"] == {"$ref": "#/$defs/A"}


Body = dict[str, object]
CALL: Body = {"functionCall": {"id": "f", "name": "now", "args": {}}}
RESULT: Body = {"functionResponse": {"id": "f", "name": "now", "response": {"output": "noon"}}}
WORDS: Body = {"text": "and?"}


@pytest.mark.parametrize(
    "contents",
    [
        [],
        [("model", [WORDS])],
        [("user", [WORDS]), ("user", [WORDS])],
        [("user", [WORDS]), ("model", [WORDS])],
        [("user", [{"text": " "}])],
        [("user", [{"text": "a", "inlineData": {}}])],
        [("user", [WORDS | {"thoughtSignature": "QUJD"}])],
        [("user", [WORDS]), ("model", [CALL]), ("user", [WORDS])],
        [("user", [WORDS]), ("model", [CALL]), ("user", [RESULT, WORDS])],
        [("user", [WORDS]), ("model", [CALL, CALL]), ("user", [RESULT])],
        [("user", [WORDS]), ("model", [WORDS]), ("user", [RESULT])],
        [("user", [WORDS]), ("model", [{"functionCall": {"name": "a b", "args": {}}}])],
        [("user", [{"inlineData": {"mimeType": "image/tiff", "data": "QUJD"}}])],
    ],
)
def test_the_simulator_refuses_what_the_service_refuses(
    contents: list[tuple[str, list[dict[str, object]]]],
) -> None:
    def body(contents: list[tuple[str, list[dict[str, object]]]]) -> dict[str, object]:
        return {"contents": [{"role": role, "parts": parts} for role, parts in contents]}

    good: list[tuple[str, list[dict[str, object]]]] = [
        ("user", [WORDS]),
        ("model", [CALL]),
        ("user", [RESULT]),
        ("user", [WORDS]),
    ]
    check_body(body(good))
    with pytest.raises(Refused):
        check_body(body(contents))
    with pytest.raises(Refused):
        check_body(body(good) | {"unknown": 1})


SCRIPT = (
    Scripted(
        parts=[
            thought("Which one?"),
            text("One moment."),
            call("fc1", "lookup", {"id": 7}, "U0lH"),
            call("fc2", "now"),
        ]
    ),
    Scripted(parts=[text("It is "), text("noon.")]),
)


@pytest.mark.real_loop
@pytest.mark.parametrize("stream", [True, False])
async def test_official_sdk_drives_a_tool_conversation_against_the_simulator(stream: bool) -> None:
    async with (
        GeminiSimulator(*SCRIPT, signs=True).running() as server,
        httpx2.AsyncClient() as http,
    ):
        options = types.HttpOptions(base_url=server.base_url, httpx_async_client=http)
        client = genai.Client(vertexai=False, api_key=KEY, http_options=options)
        asked_for = types.Content(role="user", parts=[types.Part(text="What time is it?")])
        first = await sdk_answer(client, [asked_for], stream=stream)
        calls = [part.function_call for part in first if part.function_call]
        assert [one.name for one in calls] == ["lookup", "now"] and calls[0].args == {"id": 7}
        answers = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=one.id, name=one.name, response={"output": "noon"}
                )
            )
            for one in calls
        ]
        back = types.Content(role="user", parts=answers)
        turn = types.Content(role="model", parts=[part for part in first if not part.thought])
        last = await sdk_answer(client, [asked_for, turn, back], stream=stream)
        assert "".join(part.text or "" for part in last) == "It is noon."
        for signature in (None, b"FORGED"):
            forged = turn.model_copy(deep=True)
            assert forged.parts is not None
            forged.parts[1].thought_signature = signature
            with pytest.raises(errors.ClientError, match="thought"):
                await sdk_answer(client, [asked_for, forged, back], stream=stream)
        client.close()
    for one in server.sent:
        types.GenerateContentResponse.model_validate_json(json.dumps(one))


async def sdk_answer(
    client: genai.Client, contents: list[types.Content], *, stream: bool
) -> list[types.Part]:
    """The parts of one answer."""
    declared = [types.FunctionDeclaration(name=name) for name in ("lookup", "now")]
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=declared)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    models = client.aio.models
    if stream:
        chunks = [
            chunk
            async for chunk in await models.generate_content_stream(
                model="m", contents=[*contents], config=config
            )
        ]
    else:
        chunks = [await models.generate_content(model="m", contents=[*contents], config=config)]
    found = [chunk.candidates[0].content for chunk in chunks if chunk.candidates]
    return [part for content in found if content is not None for part in content.parts or []]


@pytest.mark.real_loop
async def test_signatures_last_over_several_rounds_of_tools() -> None:
    ran: list[object] = []

    def lookup(value: object) -> str:
        ran.append(value)
        if len(ran) == 2:
            raise RuntimeError("the book is closed")
        return "free"

    script = (
        *SCRIPT[:1],
        Scripted(parts=[call("fc1", "lookup", {"id": 8}, "U0lHMg==")]),
        Scripted(parts=[text("Booked."), text("", "VEVYVA==")]),
        Scripted(parts=[text("Bye.")]),
    )
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    async with GEMINI.asked(*script) as asking:
        agent = agent_of(
            asking.model,
            Tool(name="lookup", description="Looks up.", do=lookup, json_schema=schema),
            Tool(name="now", description="The time.", do=lambda value: "noon", json_schema={}),
        )
        result = await agent.process_request("A table, please.")
        assert result.messages[-1].text == "Booked." and result.model_calls == 3
        assert (await agent.process_request("Thanks.")).messages[-1].text == "Bye."
    assert ran == [{"id": 7}, {"id": 8}] and asking.server.refused == []
    turns = sent(asking)
    (failed,) = turns[4][1]
    assert "the book is closed" in failed["functionResponse"]["response"]["error"]
    assert base64.urlsafe_b64decode(turns[5][1][1]["thoughtSignature"]) == b"TEXT"
