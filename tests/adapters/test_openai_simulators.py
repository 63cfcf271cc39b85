"""The simulators speak the wires they stand for: the SDK's own types and client say so.

And they refuse what they should: each rule of a checker is shown a body that breaks it.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from typing import Any, get_type_hints

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from tests.adapters.model_rig import said
from tests.adapters.openai_rig import CHAT, COUNTED, RESPONSES, RESPONSES_USAGE
from tests.simulators import openai_chat as chat
from tests.simulators import openai_responses as responses
from tests.simulators.openai_chat import KEY, OpenAIChatSimulator
from tests.simulators.openai_responses import OpenAIResponsesSimulator
from tests.simulators.sse import Json
from voxglove.core.messages import ToolCall

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
PARAMETERS: Json = {"type": "object", "properties": {}}

CALLS = (ToolCall("now", {"a": 1}, "c1"), ToolCall("now", {}, "c2"))
SAID = said("Hi ", "there", counted=COUNTED)
CALLED = said("Hm.", calls=CALLS, counted=COUNTED)

CHAT_SCRIPTS = [
    CHAT.scripted(SAID),
    CHAT.scripted(CALLED),
    chat.Scripted(choices=[chat.refusal_chunk("No."), chat.finish("content_filter")]),
]
CHAT_WHOLE = [
    CHAT.scripted(SAID),
    CHAT.scripted(CALLED),
    chat.Scripted(whole=chat.completion({"content": None, "refusal": "No."}, "length")),
]
RESPONSES_SCRIPTS = [
    RESPONSES.scripted(SAID),
    RESPONSES.scripted(CALLED),
    responses.Scripted(items=[responses.think("sealed", "Hm."), responses.refuse("No.")]),
    responses.Scripted(items=[responses.say("H", phase="commentary")], incomplete="content_filter"),
    responses.Scripted(failure={"code": "server_error", "message": "boom"}),
    responses.Scripted(error_event={"message": "boom"}),
    responses.Scripted(items=[responses.say("Hi")], only_at_end=True),
]


@pytest.mark.parametrize("script", CHAT_SCRIPTS)
def test_every_chunk_is_one_for_the_sdks_types(script: chat.Scripted) -> None:
    for chunk in script.chunks():
        ChatCompletionChunk.model_validate(chunk)


@pytest.mark.parametrize("script", CHAT_WHOLE)
def test_every_completion_is_one_for_the_sdks_types(script: chat.Scripted) -> None:
    ChatCompletion.model_validate(script.whole)


@pytest.mark.parametrize("script", RESPONSES_SCRIPTS)
def test_every_event_is_one_for_the_sdks_types(script: responses.Scripted) -> None:
    events = script.events()
    for event in events:
        EVENT.validate_python(event)
    Response.model_validate(script.response())
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_no_field_is_taken_that_the_wire_does_not_have() -> None:
    assert set(get_type_hints(CompletionCreateParamsStreaming)) >= chat.BODY
    assert set(get_type_hints(ResponseCreateParamsStreaming)) >= responses.BODY


def client(base_url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key=KEY, base_url=base_url, max_retries=0)


@pytest.mark.real_loop
async def test_official_sdk_drives_chat_completions_through_a_tool_conversation() -> None:
    tools: Any = [{"type": "function", "function": {"name": "now", "parameters": PARAMETERS}}]
    messages: Any = [{"role": "user", "content": "what time is it?"}]
    wanted = '{"zone": "utc"}'
    called = said(calls=(ToolCall("now", wanted, "c1"),), counted=COUNTED)
    script = [
        CHAT.scripted(answer)
        for answer in (
            called,
            said("It is ", "noon ☺."),
            called,
            said("It is noon.", counted=COUNTED),
        )
    ]
    async with (
        OpenAIChatSimulator(*script).running() as server,
        client(server.base_url) as sdk,
    ):
        streaming = sdk.chat.completions.stream
        async with streaming(model="m", messages=messages, tools=tools, **USAGE_ASKED) as live:
            made = (await live.get_final_completion()).choices[0].message
        assert made.tool_calls and made.tool_calls[0].function.arguments == wanted
        messages += [
            chat_message(made),
            {"role": "tool", "tool_call_id": "c1", "content": "12"},
        ]
        async with streaming(model="m", messages=messages, **USAGE_ASKED) as live:
            texts = [event.delta async for event in live if event.type == "content.delta"]
        assert texts == ["It is ", "noon ☺."]
        del messages[1:]
        first = await sdk.chat.completions.create(model="m", messages=messages, tools=tools)
        made_whole = first.choices[0].message
        messages += [
            chat_message(made_whole),
            {"role": "tool", "tool_call_id": "c1", "content": "12"},
        ]
        last = await sdk.chat.completions.create(model="m", messages=messages)
    assert last.choices[0].message.content == "It is noon."
    assert last.usage is not None and last.usage.prompt_tokens == 20
    assert server.refused == [] and len(server.bodies) == 4


USAGE_ASKED: Any = {"stream_options": {"include_usage": True}}


def chat_message(message: Any) -> Json:
    """An answer as a client sends it back."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": message.content, "tool_calls": calls}


@pytest.mark.real_loop
async def test_official_sdk_drives_responses_through_a_tool_conversation() -> None:
    common: Any = {
        "model": "m",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": "now", "parameters": PARAMETERS, "strict": False}],
    }
    asks = [responses.think("sealed", "Hm."), responses.call("c1", "now", '{"zone":', '"utc"}')]
    script = [
        responses.Scripted(items=asks, usage=RESPONSES_USAGE),
        responses.Scripted(items=[responses.say("It is ", "noon ☺.")]),
        responses.Scripted(items=asks),
        responses.Scripted(items=[responses.say("It is noon.")], usage=RESPONSES_USAGE),
    ]
    question: Any = {"type": "message", "role": "user", "content": "what time is it?"}
    async with (
        OpenAIResponsesSimulator(*script).running() as server,
        client(server.base_url) as sdk,
    ):
        async with sdk.responses.stream(input=[question], **common) as live:
            first = await live.get_final_response()
        again = [question, *returned(first)]
        async with sdk.responses.stream(input=again, **common) as live:
            texts = [e.delta async for e in live if e.type == "response.output_text.delta"]
            assert (await live.get_final_response()).output_text == "It is noon ☺."
        assert texts == ["It is ", "noon ☺."]
        second = await sdk.responses.create(input=[question], **common)
        last = await sdk.responses.create(input=[question, *returned(second)], **common)
    assert last.output_text == "It is noon."
    assert last.usage is not None and last.usage.input_tokens_details.cached_tokens == 5
    assert server.refused == [] and len(server.bodies) == 4


def returned(response: Response) -> list[Any]:
    """What a client sends back of a response: reasoning, call and its output."""
    reasoning, call = response.output
    kept = reasoning.to_dict()
    kept.pop("status", None)
    assert call.type == "function_call"
    asked = {"type": "function_call", "call_id": call.call_id, "name": call.name}
    return [
        kept,
        asked | {"arguments": call.arguments},
        {"type": "function_call_output", "call_id": call.call_id, "output": "12"},
    ]


@pytest.mark.real_loop
async def test_reasoning_that_is_missing_or_changed_is_refused() -> None:
    asks = [responses.think("sealed"), responses.call("c1", "now", "{}")]
    common: Any = {"model": "m", "store": False}
    question: Any = {"type": "message", "role": "user", "content": "x"}
    async with (
        OpenAIResponsesSimulator(responses.Scripted(items=asks)).running() as server,
        client(server.base_url) as sdk,
    ):
        kept, *rest = returned(await sdk.responses.create(input=[question], **common))
        with pytest.raises(openai.BadRequestError, match="without their required reasoning"):
            await sdk.responses.create(input=[question, *rest], **common)
        forged = kept | {"encrypted_content": "forged"}
        with pytest.raises(openai.BadRequestError, match="could not be verified"):
            await sdk.responses.create(input=[question, forged, *rest], **common)


@pytest.mark.real_loop
@pytest.mark.parametrize("simulator", [OpenAIChatSimulator, OpenAIResponsesSimulator])
async def test_a_foreign_key_and_a_script_that_is_over_are_refused(simulator: Any) -> None:
    async with simulator().running() as server:
        for key, error in (("sk-other", openai.AuthenticationError), (KEY, openai.BadRequestError)):
            sdk = openai.AsyncOpenAI(api_key=key, base_url=server.base_url, max_retries=0)
            async with sdk:
                with pytest.raises(error):
                    if simulator is OpenAIChatSimulator:
                        hello: Any = [{"role": "user", "content": "x"}]
                        await sdk.chat.completions.create(model="m", messages=hello)
                    else:
                        item: Any = [{"type": "message", "role": "user", "content": "x"}]
                        await sdk.responses.create(model="m", input=item, store=False)


def chat_body() -> Any:
    """A body that holds one of everything and is in order."""
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    function = {"name": "now", "description": "", "parameters": PARAMETERS}
    return {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                    {
                        "type": "file",
                        "file": {"filename": "a", "file_data": "data:a/b;base64,QUJD"},
                    },
                ],
            },
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "12"},
            {"role": "assistant", "content": "Noon."},
            {"role": "user", "content": "thanks"},
        ],
        "tools": [{"type": "function", "function": function}],
        "parallel_tool_calls": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 10,
        "temperature": 1,
        "reasoning_effort": "low",
        "prompt_cache_key": "k",
    }


def responses_body() -> Any:
    """As chat_body."""
    return {
        "model": "m",
        "instructions": "Be kind.",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "see"},
                    {
                        "type": "input_image",
                        "detail": "auto",
                        "image_url": "data:image/png;base64,QUJD",
                    },
                    {"type": "input_file", "filename": "a", "file_data": "data:a/b;base64,QUJD"},
                    {"type": "input_file", "file_url": "https://x/a.pdf"},
                ],
            },
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "sealed"},
            {"type": "function_call", "call_id": "c1", "name": "now", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "12"},
            {"type": "message", "role": "assistant", "content": "Noon.", "phase": "final_answer"},
            {"type": "message", "role": "user", "content": "thanks"},
        ],
        "tools": [{"type": "function", "name": "now", "parameters": PARAMETERS, "strict": False}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 16,
        "reasoning": {"effort": "low"},
    }


Break = Callable[[Any], object]

CHAT_WRONG: list[tuple[str, Break]] = [
    ("Unknown parameter: body.max_tokens", lambda b: b.update(max_tokens=1)),
    ("provide a model", lambda b: b.pop("model")),
    ("temperature", lambda b: b.update(temperature=3)),
    ("stream is no boolean", lambda b: b.update(stream=1)),
    ("only allowed when tools", lambda b: b.pop("tools")),
    ("include_usage is missing", lambda b: b.pop("stream_options")),
    ("only allowed when stream", lambda b: b.pop("stream")),
    ("max_completion_tokens", lambda b: b.update(max_completion_tokens=0)),
    ("reasoning_effort", lambda b: b.update(reasoning_effort="huge")),
    ("more than 64", lambda b: b.update(prompt_cache_key="k" * 65)),
    ("messages is empty", lambda b: b["messages"].clear()),
    ("role 'robot'", lambda b: b["messages"][1].update(role="robot")),
    ("Unknown parameter: messages", lambda b: b["messages"][4].update(reasoning_content="x")),
    ("content is null", lambda b: b["messages"][4].update(content=None)),
    ("no parts here", lambda b: b["messages"][4].update(content=[{"type": "text", "text": "x"}])),
    ("not supported", lambda b: image(b).update(url="data:video/mp4;base64,QUJD")),
    ("neither an address", lambda b: image(b).update(url="file:///etc/passwd")),
    ("no valid base64", lambda b: image(b).update(url="data:image/png;base64,QUJ")),
    ("unknown or broken", lambda b: b["messages"][1]["content"][2].update(file={})),
    ("tool_calls is empty", lambda b: b["messages"][2].update(content="x", tool_calls=[])),
    ("has not 1 to 40", lambda b: b["messages"][2]["tool_calls"][0].update(id="c" * 41)),
    ("does not match", lambda b: made(b).update(name="files/read")),
    ("not the JSON of an object", lambda b: made(b).update(arguments="{oops")),
    ("answers no open", lambda b: b["messages"][3].update(tool_call_id="c2")),
    ("have no result", lambda b: b["messages"].pop(3)),
    ("have no result", lambda b: b["messages"].insert(3, {"role": "user", "content": "x"})),
    ("one call id twice", lambda b: b["messages"][2].update(tool_calls=[call_of(b)] * 2)),
    ("system messages stand first", lambda b: b["messages"].append(b["messages"][0])),
    ("tools is an empty list", lambda b: (b.update(tools=[]), b.pop("parallel_tool_calls"))),
    ("does not match", lambda b: b["tools"][0]["function"].update(name="n" * 65)),
    ("type object", lambda b: b["tools"][0]["function"].update(parameters={"type": "array"})),
    ("is there twice", lambda b: b["tools"].append(b["tools"][0])),
]
RESPONSES_WRONG: list[tuple[str, Break]] = [
    ("Unknown parameter: body.messages", lambda b: b.update(messages=[])),
    ("store must be false", lambda b: b.pop("store")),
    ("max_output_tokens", lambda b: b.update(max_output_tokens=15)),
    ("include", lambda b: b.update(include=["x"])),
    ("effort", lambda b: b.update(reasoning={"effort": "huge"})),
    ("input is empty", lambda b: b["input"].clear()),
    ("type 'thought'", lambda b: b["input"][1].update(type="thought")),
    ("Unknown parameter: input", lambda b: b["input"][1].update(status=None)),
    ("not stored", lambda b: b["input"][1].pop("encrypted_content")),
    ("without its required following", lambda b: b["input"].pop(2)),
    ("no tool call found", lambda b: b["input"][3].update(call_id="c2")),
    ("no tool output found", lambda b: b["input"].pop(3)),
    ("has not 1 to 64", lambda b: b["input"][2].update(call_id="c" * 65)),
    ("output is no text", lambda b: b["input"][3].update(output={})),
    ("does not match", lambda b: b["input"][2].update(name="a b")),
    ("what the assistant said", lambda b: b["input"][4].update(content="")),
    ("phase", lambda b: b["input"][5].update(phase="commentary")),
    ("unknown or broken", lambda b: b["input"][0]["content"][1].pop("detail")),
    ("strict unless", lambda b: b["tools"][0].pop("strict")),
    ("one call id twice", lambda b: b["input"].insert(2, b["input"][2])),
]


def image(body: Any) -> Any:
    return body["messages"][1]["content"][1]["image_url"]


def call_of(body: Any) -> Any:
    return body["messages"][2]["tool_calls"][0]


def made(body: Any) -> Any:
    return call_of(body)["function"]


@pytest.mark.parametrize(("complaint", "spoil"), CHAT_WRONG)
def test_the_chat_checker_refuses_each_fault(complaint: str, spoil: Break) -> None:
    body = copy.deepcopy(chat_body())
    assert chat.problem(body) == ""
    spoil(body)
    assert complaint in chat.problem(body)


@pytest.mark.parametrize(("complaint", "spoil"), RESPONSES_WRONG)
def test_the_responses_checker_refuses_each_fault(complaint: str, spoil: Break) -> None:
    body = copy.deepcopy(responses_body())
    assert responses.problem(body) == ""
    spoil(body)
    assert complaint in responses.problem(body)


@pytest.mark.real_loop
async def test_a_client_that_leaves_is_noticed() -> None:
    async with OpenAIChatSimulator(chat.Scripted(ending="stall")).running() as server:
        host, port = server.base_url.split("/")[2].split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = json.dumps(chat_body()).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert b"200" in await reader.readline()
        assert server.streams == 1
        writer.close()
        async with asyncio.timeout(1):
            await server.closed.wait()
