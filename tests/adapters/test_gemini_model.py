"""The Gemini model, through the official SDK: the suite, and what its wire alone has."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from tests.adapters.gemini_rig import GEMINI
from tests.adapters.model_rig import (
    HELLO,
    LOOKUP,
    NOW,
    PNG,
    Asked,
    asks,
    results,
    said,
)
from tests.adapters.model_suite import ModelSuite
from tests.simulators.gemini_generate import (
    Scripted,
    call,
    text,
    thought,
)
from voxglove.adapters.models.gemini import GeminiConfig
from voxglove.core.errors import UsageError
from voxglove.core.messages import ContentPart, ContentSource, Message, ToolCall, ToolResultData
from voxglove.core.model import ModelLimits, ModelRequest, ToolSpec
from voxglove.core.usage import Usage

pytestmark = pytest.mark.real_loop
asked = GEMINI.asked


class TestGemini(ModelSuite):
    rig = GEMINI


async def test_core_row_031_gemini_shows_images_videos_and_documents() -> None:
    note = base64.b64encode("Größe".encode()).decode()
    parts = (
        PNG,
        ContentPart("image", source=ContentSource("url", "image/webp", url="https://x.test/a")),
        ContentPart("image", source=ContentSource("url", "", url="data:image/png;base64,QUJD")),
        ContentPart("video", source=ContentSource("base64", "video/mp4", data="QUJD")),
        ContentPart("video", source=ContentSource("url", "video/mp4", url="https://youtu.be/x")),
        ContentPart("document", source=ContentSource("base64", "application/pdf", data="QUJD")),
        ContentPart("document", source=ContentSource("base64", "text/markdown", data=note)),
        ContentPart("image", source=ContentSource("base64", "image/tiff", data="QUJD"), name="t"),
    )
    seen = Message(sender="user", text="What is this?", content=parts)
    async with asked(said("A cat.")) as asking:
        await asking.ask(ModelRequest(messages=(seen,)))
    ((role, turn),) = sent(asking)
    kinds = [next(iter(part)) for part in turn]
    assert role == "user" and kinds == [
        "text",
        "inlineData",
        "fileData",
        "inlineData",
        "inlineData",
        "fileData",
        "inlineData",
        "inlineData",
        "text",
    ]
    assert (
        turn[0]["text"] == "What is this?" and turn[-1]["text"] == "[image t cannot be shown here]"
    )
    assert base64.urlsafe_b64decode(turn[7]["inlineData"]["data"]) == "Größe".encode()


async def test_core_row_032_gemini_counts_thoughts_as_output_and_cached_tokens_as_input() -> None:
    usage: dict[str, object] = {"cachedContentTokenCount": 3, "thoughtsTokenCount": 20}
    async with asked(Scripted(parts=[text("Hi.")], usage=usage)) as asking:
        result = await asking.ask()
    assert result.usage == Usage(5, 29, 0, 3)


async def test_core_row_033_gemini_history_is_valid_on_the_wire() -> None:
    calls = (ToolCall("look", {"q": 1}, "c.1"), ToolCall("book", "{oops", "c2"))
    history = (
        Message(sender="agent", text="Good evening."),
        Message(sender="user", text="is a table free?"),
        Message(sender="user", text="hello?", content=(PNG,)),
        Message(sender="user", text="  "),
        asks(*calls),
        results(
            ("book", "c2", ToolResultData("aborted", message="hang-up")),
            ("look", "c.1", ToolResultData("success", {"free": 3}, render_data="secret")),
            ("book", "c2", ToolResultData("success", "twice")),
            ("gone", "c9", ToolResultData("success", "an orphan")),
        ),
        Message(sender="user", text="and?"),
        Message(sender="agent", text="Well."),
        asks(ToolCall("book", {}, "c3")),
        Message(sender="user", text="thanks"),
        Message(sender="agent", text="Welcome."),
    )
    async with asked(said("Bye."), signs=True) as asking:
        await asking.ask(ModelRequest(messages=history))
    turns = sent(asking)
    assert [(role, [next(iter(part)) for part in parts]) for role, parts in turns] == [
        ("user", ["text"]),
        ("model", ["text"]),
        ("user", ["text", "text", "inlineData"]),
        ("model", ["functionCall", "functionCall"]),
        ("user", ["functionResponse", "functionResponse"]),
        ("user", ["text"]),
        ("model", ["text", "functionCall"]),
        ("user", ["functionResponse"]),
        ("user", ["text"]),
        ("model", ["text"]),
        ("user", ["text"]),
    ]
    responses = [part["functionResponse"]["response"] for part in turns[4][1]]
    assert responses == [{"output": '{"free":3}'}, {"error": "Aborted: hang-up"}]
    assert turns[3][1][1]["functionCall"]["args"] == {"arguments": "{oops"}
    assert turns[7][1][0]["functionResponse"]["response"] == {"output": "No result available"}
    assert "secret" not in str(turns) and "orphan" not in str(turns)


@pytest.mark.parametrize("stream", [True, False])
async def test_signatures_come_back_with_their_parts_and_only_to_their_model(stream: bool) -> None:
    first = Scripted(
        parts=[
            thought("Hm.", "VEhJTks="),
            text("Let me "),
            text("see."),
            text("", "VEVYVA=="),
            call("fc1", "lookup", {"id": None}, "/+8="),
            call("fc2", "now"),
        ]
    )
    async with asked(first, said("Noon."), said("Yes."), signs=True, stream=stream) as asking:
        request = replace(HELLO, tools=(LOOKUP, NOW))
        answer = (await asking.ask(request)).messages[0]
        assert answer.text == "Let me see."
        data = ToolResultData("success", "12:00")
        back = results(("lookup", "fc1", data), ("now", "fc2", data))
        later = replace(request, messages=(*HELLO.messages, answer, back))
        await asking.ask(later)
        turn = sent(asking)[1][1]
        assert [part.get("text") for part in turn] == ["Hm.", "Let me see.", "", None, None]
        assert [part.get("thoughtSignature") for part in turn] == [
            "VEhJTks=",
            None,
            "VEVYVA==",
            "_-8=",
            None,
        ]
        heard = replace(answer, text="Let me [interrupted]")
        await asking.ask(replace(later, messages=(*HELLO.messages, heard, back)))
        turn = sent(asking)[1][1]
        assert [part.get("thoughtSignature") for part in turn] == [None, "_-8=", None]
    async with asked(said("Noon."), model="another", signs=True) as other:
        await other.ask(later)
    turn = sent(other)[1][1]
    assert [part.get("thoughtSignature") for part in turn] == [
        None,
        "skip_thought_signature_validator",
        None,
    ]


async def test_a_model_without_ids_gets_none_back() -> None:
    unsigned = Scripted(parts=[call("", "now")])
    async with asked(unsigned, said("Noon."), signs=False) as asking:
        request = replace(HELLO, tools=(NOW,))
        answer = (await asking.ask(request)).messages[0]
        (made,) = answer.tool_calls
        named = replace(answer, tool_calls=(replace(made, id="call_1"),))
        back = results(("now", "call_1", ToolResultData("success", "noon")))
        await asking.ask(replace(request, messages=(*HELLO.messages, named, back)))
    turns = sent(asking)
    assert turns[1][1][0]["functionCall"] == {"name": "now", "args": {}}
    assert "id" not in turns[2][1][0]["functionResponse"]


async def test_options_reach_the_wire_and_only_those_that_were_given() -> None:
    async with asked(said("Hi.")) as plain:
        await plain.ask()
    assert set(plain.server.bodies[0]) == {"contents", "systemInstruction", "generationConfig"}
    assert plain.server.bodies[0]["generationConfig"] == {}
    assert "X-Server-Timeout" not in plain.server.headers[0], "it would end a long answer"
    async with asked(
        said("Hi."), temperature=0.0, max_tokens=900, reasoning_effort="max", include_thoughts=True
    ) as full:
        await full.ask(replace(HELLO, limits=ModelLimits(max_tokens=50)))
    assert full.server.bodies[0]["generationConfig"] == {
        "temperature": 0.0,
        "maxOutputTokens": 50,
        "thinkingConfig": {"include_thoughts": True, "thinking_level": "XHIGH"},
    }
    async with asked(said("Hi."), reasoning_effort="none") as quick:
        await quick.ask()
    assert quick.server.bodies[0]["generationConfig"] == {"thinkingConfig": {"thinking_budget": 0}}


async def test_names_of_any_kind_survive_the_wire() -> None:
    strange = ToolSpec("9files/read ☺", "Reads.", {"properties": {"a": {"const": 1}}})
    async with asked(said("x")) as asking:
        await asking.ask(replace(HELLO, tools=(strange, NOW)))
    declared = declarations(asking)
    wire = declared[0]["name"]
    assert wire != strange.name and set(declared[1]) == {"name", "description"}
    async with asked(Scripted(parts=[call("fc1", wire)])) as asking:
        result = await asking.ask(replace(HELLO, tools=(strange,)))
    assert result.messages[0].tool_calls[0].tool_name == strange.name


async def test_an_answer_that_the_server_continues_is_one_answer() -> None:
    first = Scripted(parts=[text("One, ")], finish="CONTINUATION", token="VE9L")
    async with asked(first, said("two.")) as asking:
        result = await asking.ask()
    assert result.messages[0].text == "One, two." and asking.deltas() == ["One, ", "two."]
    assert result.usage == Usage(10, 18) and result.stop_reason == "end_turn"


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": ""},
        {"timeout_s": -1},
        {"max_tokens": 0},
        {"reasoning_effort": "much"},
        {"thinking_tokens": -1},
        {"reasoning_effort": "low", "thinking_tokens": 5},
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=next(reversed(wrong))):
        GeminiConfig(**{"model": "m", **wrong})  # type: ignore[arg-type]


def sent(asking: Asked) -> list[tuple[str, list[dict[str, Any]]]]:
    """(role, parts) of every content of the newest request."""
    contents = asking.server.bodies[-1]["contents"]
    assert isinstance(contents, list)
    return [(content["role"], content["parts"]) for content in contents]


def declarations(asking: Asked) -> list[dict[str, Any]]:
    tools = asking.server.bodies[-1]["tools"]
    assert isinstance(tools, list)
    found: list[dict[str, Any]] = tools[0]["functionDeclarations"]
    return found
