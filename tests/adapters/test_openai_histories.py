"""Whatever a history has become, the request made of it is one the wire takes.

Random histories: users in a row, calls without results, results late, double or of nobody, answers
cut in every way, names and ids and texts of any kind, media, options of other vendors. What
`model_view` makes of one must pass the strict checkers, and so must the raw history itself.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.simulators import openai_chat, openai_responses
from voxglove.adapters.models import openai_responses_wire, openai_wire
from voxglove.adapters.models.openai_config import COMPATIBLE_DIALECT, OPENAI_DIALECT, OpenAIConfig
from voxglove.core.messages import (
    ContentPart,
    ContentSource,
    Message,
    ToolCall,
    ToolResult,
    ToolResultData,
)
from voxglove.core.model import ModelLimits, ModelRequest, ToolSpec
from voxglove.core.view import model_view

ANY_TEXT = st.text(st.characters(), max_size=12)  # lone surrogates as well
NAMES = st.one_of(st.sampled_from(["look", "files/read", "ä" * 70, "n" * 80]), ANY_TEXT)
ARGUMENTS = st.one_of(
    st.dictionaries(ANY_TEXT, st.one_of(st.integers(), ANY_TEXT, st.floats()), max_size=2),
    st.sampled_from(["{oops", '{"a": 1}', "[1]", ""]),
    st.lists(st.integers(), max_size=2),
)
SOURCES = st.sampled_from(
    [
        ("image", ContentSource("base64", "image/png", data="QUJD")),
        ("image", ContentSource("url", "image/png", url="https://x/y.png")),
        ("video", ContentSource("base64", "video/mp4", data="QUJD")),
        ("document", ContentSource("base64", "application/pdf", data="QUJD")),
        ("document", ContentSource("url", "application/pdf", url="https://x/y.pdf")),
        ("document", None),
    ]
)


@st.composite
def parts(draw: st.DrawFn) -> ContentPart:
    if draw(st.booleans()):
        return ContentPart("text", text=draw(ANY_TEXT))
    kind, source = draw(SOURCES)
    name = draw(st.one_of(st.none(), st.just("menu.pdf")))
    return ContentPart(kind, source=source, name=name)  # type: ignore[arg-type]


@st.composite
def answers(draw: st.DrawFn, first_call: int) -> Message:
    """What an agent said: finished, cut before or after something was heard, with or without
    calls, and with what some model wants back."""
    calls = tuple(
        ToolCall(draw(NAMES), draw(ARGUMENTS), f"call_{first_call + at}" + "x" * long)
        for at, long in enumerate(draw(st.lists(st.sampled_from([0, 60, 160]), max_size=3)))
    )
    text = draw(ANY_TEXT)
    cut = draw(st.booleans())
    heard = draw(st.one_of(st.none(), st.just(text[:3])))
    kept = draw(
        st.lists(st.sampled_from(["reasoning", "message", "function_call", "other"]), max_size=5)
    )
    items = [
        {"type": kind, "id": f"rs_{at}", "summary": [], "encrypted_content": "sealed"}
        if kind == "reasoning"
        else {"type": kind}
        for at, kind in enumerate(kept)
    ]
    options = {openai_responses_wire.OPTIONS_KEY: {"model": "m", "items": items}}
    return Message(
        sender="agent",
        id=f"msg_{first_call}",
        text=text,
        tool_calls=calls,
        interrupted=cut,
        playback=draw(st.sampled_from([None, "pending", "settled"])) if cut else None,
        heard=heard,
        reasoning_content=draw(st.one_of(st.none(), ANY_TEXT)),
        provider_options=draw(st.sampled_from([None, options, {"anthropic": {"blocks": [1]}}])),
    )


RESULTS = st.builds(
    ToolResultData,
    status=st.sampled_from(["success", "error", "aborted"]),
    data=st.one_of(st.none(), ANY_TEXT, st.integers()),
    message=st.one_of(st.none(), ANY_TEXT),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    history: list[Message] = []
    asked: list[ToolCall] = []
    for at in range(draw(st.integers(1, 9))):
        kind = draw(st.sampled_from(["user", "media", "agent", "agent", "results", "orphan"]))
        if kind == "agent":
            history.append(draw(answers(at * 10)))
            asked += history[-1].tool_calls
        elif kind == "results" and asked:
            of = draw(st.lists(st.sampled_from(asked), min_size=1, max_size=3))
            made = tuple(ToolResult(one.tool_name, one.id, draw(RESULTS)) for one in of)
            history.append(Message(sender="user", tool_results=made, is_tool_results=True))
        elif kind == "orphan":
            made = (ToolResult("gone", f"gone_{at}", draw(RESULTS)),)
            history.append(Message(sender="user", tool_results=made))
        else:
            content = tuple(draw(st.lists(parts(), min_size=1, max_size=3)))
            compacted = draw(st.integers(0, 9)) == 0
            history.append(
                Message(
                    sender="user",
                    text=draw(ANY_TEXT),
                    content=content if kind == "media" else (),
                    is_compaction=compacted,
                )
            )
    history.append(Message(sender="user", text=draw(ANY_TEXT)))
    return history


SCHEMAS = st.sampled_from(
    [
        {"type": "object", "properties": {}},
        {},
        {"anyOf": [{"type": "object", "properties": {"a": {}}}, {"$ref": "#/$defs/x"}]},
    ]
)
TOOLS = st.lists(
    st.builds(ToolSpec, NAMES, ANY_TEXT, SCHEMAS), max_size=3, unique_by=lambda tool: tool.name
)


def request(messages: list[Message], tools: list[ToolSpec], prompt: str) -> ModelRequest:
    return ModelRequest(
        messages=tuple(messages),
        tools=tuple(tools),
        system_prompt=prompt,
        limits=ModelLimits(max_tokens=1),
    )


def on_the_wire(body: object) -> Any:
    """As it arrives: what cannot be encoded raises here."""
    return json.loads(json.dumps(body, ensure_ascii=False).encode())


@given(histories(), TOOLS, ANY_TEXT, st.booleans())
def test_core_row_033_any_history_is_a_chat_request(
    history: list[Message], tools: list[ToolSpec], prompt: str, viewed: bool
) -> None:
    messages = model_view(history) if viewed else history
    asked = request(messages, tools, prompt)
    for dialect in (OPENAI_DIALECT, COMPATIBLE_DIALECT):
        config = OpenAIConfig(model="m", dialect=dialect, cache="1h", parallel_tool_calls=True)
        body = on_the_wire(openai_wire.streamed_body(config, asked))
        compatible = dialect is COMPATIBLE_DIALECT
        assert openai_chat.problem(body, compatible=compatible) == ""


@given(histories(), TOOLS, ANY_TEXT, st.booleans())
def test_core_row_033_any_history_is_a_responses_request(
    history: list[Message], tools: list[ToolSpec], prompt: str, viewed: bool
) -> None:
    messages = model_view(history) if viewed else history
    config = OpenAIConfig(model="m", cache=True, reasoning_effort="low", parallel_tool_calls=True)
    body = on_the_wire(
        openai_responses_wire.streamed_body(config, request(messages, tools, prompt))
    )
    assert openai_responses.problem(body) == ""


@given(st.lists(NAMES, unique=True, max_size=6))
def test_every_tool_name_finds_its_way_back(names: list[str]) -> None:
    asked = request([], [ToolSpec(name, "", {}) for name in names], "")
    shown = openai_wire.shown_names(asked)
    wired = [openai_wire.TOOL_NAMES.wire(name) for name in names]
    assert [shown.ours(name) for name in wired] == names and len(set(wired)) == len(names)
