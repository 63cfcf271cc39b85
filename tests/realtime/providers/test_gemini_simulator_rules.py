"""Each thing that the simulated Gemini Live API refuses, and how it says so."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.realtime.providers.gemini_peer import (
    Json,
    audio,
    dialled,
    opened,
    setup_for,
)
from tests.simulators.gemini_live import gemini_live
from tests.simulators.gemini_live_rules import MESSAGES as MESSAGE_NAMES
from tests.simulators.gemini_live_rules import Refusal, read_message
from tests.simulators.gemini_live_setup import GenerationName, check_schema, read_setup
from tests.simulators.realtime_script import Script

USER: Json = {"role": "user", "parts": [{"text": "alpha"}]}
MODEL: Json = {"role": "model", "parts": [{"text": "bravo"}]}
MANUAL: Json = {"automaticActivityDetection": {"disabled": True}}


def function(**fields: object) -> list[object]:
    return [{"functionDeclarations": [{"name": "lookup", **fields}]}]


def parameters(**schema: object) -> list[object]:
    return function(parameters={"type": "OBJECT", "properties": {"id": schema}})


SETUPS: list[tuple[GenerationName, Json, int, str]] = [
    ("3.8", {"model": "models/gemini-9"}, 1008, "models/gemini-9 is not found"),
    ("3.8", {"model": "gemini-3.8-live"}, 1008, "is not found"),
    ("3.8", {"model": "models/gemini-3.1-flash-live-preview"}, 1008, "is not found"),
    ("3.8", {"voice": "Puck"}, 1007, 'Unknown name "voice" at "setup"'),
    ("3.8", {"generationConfig": {"voice": 1}}, 1007, 'Unknown name "voice" at "setup.generation'),
    ("3.8", {"generationConfig": {"responseModalities": ["TEXT"]}}, 1007, "TEXT is not supported"),
    ("3.1", {"generationConfig": {"responseModalities": ["TEXT"]}}, 1007, "TEXT is not supported"),
    ("2.5", {"generationConfig": {"responseModalities": ["TEXT"]}}, 1007, "TEXT is not supported"),
    (
        "3.8",
        {"generationConfig": {"responseModalities": ["TEXT", "AUDIO"]}},
        1007,
        "responseModalities: exactly one",
    ),
    ("3.8", {"generationConfig": {"temperature": "hot"}}, 1007, "temperature: a number"),
    ("3.8", {"generationConfig": {"seed": 1.5}}, 1007, "seed: an integer"),
    (
        "3.8",
        {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}},
        1007,
        "thinkingLevel is not supported",
    ),
    (
        "3.1",
        {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 0}}},
        1007,
        "thinkingBudget or thinkingLevel",
    ),
    ("3.8", {"generationConfig": {"enableAffectiveDialog": True}}, 1007, "enableAffectiveDialog"),
    ("3.8", {"proactivity": {"proactiveAudio": False}}, 1007, "proactiveAudio cannot be false"),
    ("3.8", {"sessionResumption": {"transparent": True}}, 1007, "Vertex only"),
    ("3.8", {"sessionResumption": {"handle": ""}}, 1007, "sessionResumption.handle: empty"),
    ("3.8", {"sessionResumption": {"handle": "h"}}, 1007, "handle not found or expired"),
    ("3.8", {"contextWindowCompression": {}}, 1007, "slidingWindow: missing"),
    (
        "3.8",
        {"contextWindowCompression": {"triggerTokens": "5", "slidingWindow": {"targetTokens": 5}}},
        1007,
        "must be less than triggerTokens",
    ),
    (
        "3.8",
        {"realtimeInputConfig": {"automaticActivityDetection": {"silenceDurationMs": -1}}},
        1007,
        "silenceDurationMs: negative",
    ),
    ("3.8", {"realtimeInputConfig": {"activityHandling": "NONE"}}, 1007, 'Invalid value "NONE"'),
    ("3.8", {"systemInstruction": {"role": "model", "parts": [{"text": "x"}]}}, 1007, "role: user"),
    ("3.8", {"systemInstruction": {"parts": []}}, 1007, "text parts only"),
    ("3.8", {"systemInstruction": "Be brief."}, 1007, "systemInstruction: an object is wanted"),
    ("3.8", {"tools": function(name="no spaces")}, 1007, "Invalid function name"),
    ("3.8", {"tools": function() + function()}, 1007, "Duplicate function declaration lookup"),
    ("3.8", {"tools": function(strict=True)}, 1007, 'Unknown name "strict"'),
    ("3.8", {"tools": function(behavior="ASYNC")}, 1007, 'Invalid value "ASYNC"'),
    ("3.8", {"tools": [{"functionDeclarations": [], "googleSearch": {}}]}, 1007, "one kind in"),
    (
        "3.8",
        {
            "tools": function(
                parameters={"type": "OBJECT", "properties": {"id": {"type": "STRING"}}},
                parametersJsonSchema={"type": "object"},
            )
        },
        1007,
        "parameters or parametersJsonSchema, not both",
    ),
    ("3.8", {"tools": function(parameters={"type": "OBJECT"})}, 1007, "should be non-empty"),
    ("3.8", {"tools": function(parameters={"type": "object"})}, 1007, "type: OBJECT is wanted"),
    ("3.8", {"tools": parameters(type="string")}, 1007, 'lookup.parameters.id.type: Invalid "str'),
    ("3.8", {"tools": parameters(type=["STRING", "NULL"])}, 1007, "lookup.parameters.id.type"),
    ("3.8", {"tools": parameters(type="STRING", const="x")}, 1007, 'Unknown name "const"'),
    (
        "3.8",
        {"tools": function(parametersJsonSchema={"type": "object", "$schema": "x"})},
        1007,
        'Unknown name "$schema"',
    ),
    (
        "3.8",
        {"tools": function(parametersJsonSchema={"type": "OBJECT"})},
        1007,
        "type: Invalid 'OBJECT'",
    ),
]


@pytest.mark.parametrize(("generation", "fields", "code", "reason"), SETUPS)
async def test_a_setup_is_refused(
    generation: GenerationName, fields: Json, code: int, reason: str
) -> None:
    async with gemini_live(Script(), generation=generation) as server, dialled(server) as peer:
        await peer.send({"setup": setup_for(server, **fields)})
        closed = await peer.refused()
    assert closed[0] == code and reason in closed[1]
    assert server.setups == [] and server.faults == []


SCHEMAS: list[tuple[Json, str]] = [
    ({}, "type: Invalid"),
    ({"type": "ARRAY"}, "items: missing field"),
    ({"type": "ARRAY", "items": {"type": "string"}}, 'items.type: Invalid "string"'),
    ({"type": "STRING", "enum": []}, "enum: non-empty strings"),
    ({"type": "STRING", "enum": [""]}, "enum: non-empty strings"),
    ({"type": "INTEGER", "enum": [1]}, "enum: non-empty strings"),
    ({"type": "STRING", "format": "email"}, "format: 'email' is not supported for STRING"),
    ({"type": "STRING", "nullable": "yes"}, "nullable: true or false"),
    ({"type": "STRING", "additionalProperties": False}, "additionalProperties"),
    ({"type": "STRING", "$ref": "#/x"}, "$ref"),
    ({"anyOf": [{"type": "STRING"}, {"type": "null"}]}, 'anyOf.type: Invalid "null"'),
    ({"type": "OBJECT", "properties": ["a"]}, "properties: an object is wanted"),
    ({"type": "STRING", "enum": "a"}, "enum: a list is wanted"),
    ({"type": "OBJECT", "properties": {"a": True}}, "a schema is an object"),
    ({"type": "OBJECT", "properties": {}, "required": ["a"]}, "property is not defined"),
    ({"type": "OBJECT", "properties": {}, "propertyOrdering": ["a"]}, "property is not defined"),
]


@pytest.mark.parametrize(("schema", "reason"), SCHEMAS)
def test_a_schema_is_refused(schema: Json, reason: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_schema("s", schema)
    assert reason in refused.value.reason


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "STRING", "enum": ["a"], "format": "enum", "nullable": True},
        {"type": "ARRAY", "items": {"any_of": [{"type": "NUMBER"}, {"type": "NULL"}]}},
        {
            "anyOf": [
                {"type": "OBJECT", "properties": {"a": {"type": "BOOLEAN"}}, "required": ["a"]}
            ]
        },
        {"type": "INTEGER", "minimum": 1, "maximum": 9, "format": "int64", "default": 2},
    ],
)
def test_a_schema_of_the_subset_is_taken(schema: Json) -> None:
    check_schema("s", schema)


FRAMES: list[tuple[str | bytes, str]] = [
    ("{", "It cannot be parsed"),
    (b"\xff\xfe\x00", "It cannot be parsed"),
    ("[]", "An object is wanted"),
    ("{}", "exactly one of"),
    ('{"setup": {}, "realtimeInput": {}}', "exactly one of"),
    ('{"setup": null}', "setup: an object is wanted"),
    ('{"audio": {}}', 'Unknown name "audio"'),
    ('{"setup": {}}', "setup.model: missing"),
    ('{"realtimeInput": {"audio": {"mimeType": "a", "data": "?"}}}', "audio.data: Base64"),
    ('{"realtimeInput": {"audio": {"mimeType": "a", "data": "AAA"}}}', "audio.data: Base64"),
    ('{"realtimeInput": {"audio": {"mimeType": "a"}}}', "audio.data: missing"),
    ('{"realtimeInput": {"audio": {"mimeType": "a", "data": "", "rate": 1}}}', '"rate"'),
    ('{"realtimeInput": {"audio": {"mime_type": "a", "mimeType": "a"}}}', "mimeType: given twice"),
    ('{"clientContent": {"turns": {}}}', "clientContent.turns: a list is wanted"),
    ('{"clientContent": {"turns": [{"role": "user"}]}}', "turns[0].parts: missing"),
    ('{"clientContent": {"turnComplete": 1}}', "turnComplete: true or false"),
    ('{"toolResponse": {}}', "functionResponses: missing"),
]


@pytest.mark.parametrize(("frame", "reason"), FRAMES)
def test_a_message_of_no_shape_is_refused(frame: str | bytes, reason: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_message(frame)
    assert refused.value.code == 1007 and reason in refused.value.reason


def test_both_spellings_and_both_alphabets_are_taken() -> None:
    mixed = {"realtime_input": {"video": {"mime_type": "image/jpeg", "data": "_9j_"}}}
    plain = {"realtimeInput": {"video": {"mimeType": "image/jpeg", "data": "/9j/"}}}
    taken = ("realtimeInput", {"video": {"mimeType": "image/jpeg", "data": b"\xff\xd8\xff"}})
    assert read_message(json.dumps(mixed)) == taken == read_message(json.dumps(plain).encode())


def test_the_names_inside_a_struct_are_left_alone() -> None:
    response = {"name": "lookup", "id": "fc-1", "response": {"snake_case": None}}
    _, message = read_message(json.dumps({"tool_response": {"function_responses": [response]}}))
    assert message["functionResponses"] == [response]


def data(mime: str, value: str) -> Json:
    return {"mimeType": mime, "data": value}


MESSAGES: list[tuple[GenerationName, Json, Json, str]] = [
    ("3.8", {}, {"setup": {"model": "models/gemini-3.8-live"}}, "setup: only as the first"),
    ("3.8", {}, {"realtimeInput": {}}, "exactly one field"),
    (
        "3.8",
        {},
        {"realtimeInput": {"text": "a", "audio": data("audio/pcm", "AAA=")}},
        "exactly one field: ['audio', 'text']",
    ),
    ("3.8", {}, {"realtimeInput": {"text": " "}}, "text: must not be blank"),
    ("3.8", {}, {"realtimeInput": {"audio": data("audio/mp3", "AAA=")}}, "audio/mp3 is not"),
    ("3.8", {}, {"realtimeInput": {"audio": data("audio/pcm;rate=0", "AAA=")}}, "rate 0 is not"),
    ("3.8", {}, {"realtimeInput": {"audio": data("audio/pcm", "AAAB")}}, "half a sample"),
    ("3.8", {}, {"realtimeInput": {"video": data("image/gif", "AAAB")}}, "image/gif is not"),
    ("3.8", {}, {"realtimeInput": {"video": data("image/jpeg", "AAAB")}}, "image is not valid"),
    ("3.8", {}, {"realtimeInput": {"activityStart": {}}}, "activityStart needs automatic"),
    ("3.8", {}, {"realtimeInput": {"activityEnd": {}}}, "activityEnd needs automatic"),
    (
        "3.8",
        {"realtimeInputConfig": MANUAL},
        {"realtimeInput": {"audioStreamEnd": True}},
        "audioStreamEnd needs automatic activity detection",
    ),
    (
        "3.8",
        {"realtimeInputConfig": MANUAL},
        {"realtimeInput": {"activityEnd": {}}},
        "activityEnd: the activity was not started",
    ),
    ("3.8", {}, {"realtimeInput": {"audioStreamEnd": False}}, "audioStreamEnd: true"),
    (
        "3.1",
        {},
        {"realtimeInput": {"mediaChunks": [data("audio/pcm", "AAA=")]}},
        "media_chunks is deprecated",
    ),
    ("3.8", {}, {"clientContent": {"turns": [{"parts": [{"text": "a"}]}]}}, "turns[0].role"),
    (
        "3.1",
        {"historyConfig": {"initialHistoryInClientContent": True}},
        {"clientContent": {"turns": [{"role": None, "parts": [{"text": "a"}]}]}},
        "turns[0].role: Please use a valid role",
    ),
    (
        "2.5",
        {},
        {"clientContent": {"turns": [{"role": "system", "parts": [{"text": "a"}]}]}},
        "turns[0].role",
    ),
    ("2.5", {}, {"clientContent": {"turns": [USER, MODEL]}}, "must end with a user turn"),
    (
        "2.5",
        {"historyConfig": {"initialHistoryInClientContent": True}},
        {"clientContent": {"turns": [USER, MODEL], "turnComplete": True}},
        "must end with a user turn",
    ),
    ("3.1", {}, {"clientContent": {"turns": [USER]}}, "Request contains an invalid argument"),
    ("3.8", {}, {"clientContent": {"turns": [{"role": "user", "parts": []}]}}, "must not be empty"),
    (
        "3.8",
        {},
        {"clientContent": {"turns": [{"role": "user", "parts": [{"text": ""}]}]}},
        "text must not be blank",
    ),
    ("3.8", {}, {"clientContent": {"turns": [{"role": "user", "parts": [{}]}]}}, "exactly one k"),
    (
        "3.8",
        {},
        {
            "clientContent": {
                "turns": [{"role": "user", "parts": [{"functionCall": {"name": "lookup"}}]}]
            }
        },
        "no functionCall in a user turn",
    ),
    (
        "3.8",
        {"historyConfig": {"initialHistoryInClientContent": True}},
        audio(b"\0\0"),
        "realtimeInput before the initial history is complete",
    ),
    ("3.8", {}, {"contextUpdate": {}}, "systemInstruction or tools"),
    ("3.1", {}, {"contextUpdate": {"tools": {"tools": []}}}, 'Unknown name "contextUpdate"'),
    ("2.5", {}, {"contextUpdate": {"tools": {"tools": []}}}, 'Unknown name "contextUpdate"'),
    ("3.8", {}, {"toolResponse": {"functionResponses": []}}, "functionResponses: empty"),
    (
        "3.8",
        {},
        {"toolResponse": {"functionResponses": [{"name": "lookup", "response": {}}]}},
        "functionResponses.id: missing",
    ),
]


@pytest.mark.parametrize(("generation", "fields", "message", "reason"), MESSAGES)
async def test_a_message_is_refused(
    generation: GenerationName, fields: Json, message: Json, reason: str
) -> None:
    async with (
        gemini_live(Script(), generation=generation) as server,
        opened(server, **fields) as peer,
    ):
        await peer.send(message)
        code, why = await peer.refused()
    assert code == 1007 and reason in why
    assert [violation[:120] for violation in server.violations] == [why]
    assert server.faults == []


async def test_an_activity_cannot_be_started_twice() -> None:
    async with gemini_live(Script()) as server, opened(server, realtimeInputConfig=MANUAL) as peer:
        for _ in range(2):
            await peer.send({"realtimeInput": {"activityStart": {}}})
        assert await peer.refused() == (1007, "activityStart: the activity is open already")


@pytest.mark.parametrize("message", [audio(b"\0\0"), {"clientContent": {}}])
async def test_nothing_may_come_before_setup(message: Json) -> None:
    async with gemini_live(Script()) as server, dialled(server) as peer:
        await peer.send(message)
        code, reason = await peer.refused()
    assert code == 1007 and reason.startswith("setup must be the first message")


NAMES = st.sampled_from(["type", "items", "properties", "enum", "anyOf", "required", "a", "$defs"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["OBJECT", "ARRAY", "object", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


KINDS = st.sampled_from([("parameters", "OBJECT"), ("parametersJsonSchema", "object")])


@settings(max_examples=60)
@given(schema=VALUES, kind=KINDS)
def test_no_schema_breaks_the_simulator(schema: object, kind: tuple[str, str]) -> None:
    function: Json = {"name": "lookup", kind[0]: {"type": kind[1], "properties": {"a": schema}}}
    message = {
        "setup": {
            "model": "models/gemini-3.8-live",
            "tools": [{"functionDeclarations": [function]}],
        }
    }
    with contextlib.suppress(Refusal):
        read_setup(read_message(json.dumps(message))[1], "3.8")


FIELDS = st.sampled_from(
    [
        *MESSAGE_NAMES,
        "model",
        "turns",
        "parts",
        "text",
        "audio",
        "data",
        "mimeType",
        "role",
        "tools",
    ]
)


@settings(max_examples=60)
@given(
    message=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(FIELDS, inner, max_size=3),
        max_leaves=10,
    )
)
def test_no_message_breaks_the_simulator(message: object) -> None:
    with contextlib.suppress(Refusal):
        kind, _ = read_message(json.dumps(message))
        assert kind in MESSAGE_NAMES
