"""What both of OpenAI's wires have and no other: caches by key, settings, text for arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.adapters.model_rig import HELLO, agent_of, results, said
from tests.adapters.model_suite import ModelSuite
from tests.adapters.openai_rig import CHAT, RESPONSES, RIGS, AnyRig
from voxglove.core import Tool
from voxglove.core.messages import (
    ContentPart,
    ContentSource,
    Message,
    ToolCall,
    ToolResultData,
)
from voxglove.core.model import ModelRequest, ToolSpec
from voxglove.core.usage import Usage

pytestmark = pytest.mark.real_loop
both = pytest.mark.parametrize("wire", RIGS, ids=repr)

LOOKUP = ToolSpec("lookup", "Looks up.", {"type": "object", "properties": {}})


class TestChat(ModelSuite):
    rig = CHAT


class TestResponses(ModelSuite):
    rig = RESPONSES


@both
async def test_core_row_031_media_are_sent_or_named(wire: AnyRig) -> None:
    def inline(kind: Any, media_type: str, data: str = "QUJD", name: str | None = None) -> Any:
        return ContentPart(kind, source=ContentSource("base64", media_type, data=data), name=name)

    shown = (inline("image", "image/png"), inline("document", "application/pdf", name="menu.pdf"))
    named = (
        inline("image", "image/tiff", name="a"),
        inline("image", "image/png", "no base64!", name="b"),
        ContentPart("document", name="c", source=ContentSource("url", "text/plain", url="ftp://x")),
        inline("video", "video/mp4", name="d"),
    )
    message = Message(sender="user", text="what is this?", content=(*shown, *named))
    async with wire.asked(said("A cat.")) as call:
        await call.ask(ModelRequest(messages=(message,)))
    assert call.server.refused == []
    assert "data:image/png;base64,QUJD" in call.sent and "menu.pdf" in call.sent
    assert "data:application/pdf;base64,QUJD" in call.sent
    for note in ("image a", "image b", "document c", "video d"):
        assert f"[{note} cannot be shown here]" in call.sent


@both
async def test_a_server_that_counts_nothing_has_counted_nothing(wire: AnyRig) -> None:
    async with wire.asked(said("Hi")) as call:
        assert (await call.ask()).usage == Usage()


@both
@pytest.mark.parametrize("stream", [True, False])
async def test_arguments_that_are_no_object_pass_and_go_back_as_one(
    wire: AnyRig, stream: bool
) -> None:
    texts = ["{oops", '["a"]', '"text"', "null", '{"a": NaN}']
    calls = tuple(ToolCall("lookup", raw, f"c{at}") for at, raw in enumerate([*texts, ""]))
    async with wire.asked(said(calls=calls), said("Sorry."), stream=stream) as call:
        made = (await call.ask()).messages[0]
        assert [one.input_args for one in made.tool_calls] == [*texts, {}]
        wrong = ToolResultData("error", message="not valid")
        answered = results(*(("lookup", one.id, wrong) for one in made.tool_calls))
        await call.ask(ModelRequest(messages=(*HELLO.messages, made, answered)))
    assert call.server.refused == [] and "oops" in call.sent


@both
async def test_thoughts_go_back_over_several_rounds_of_tools(wire: AnyRig) -> None:
    book = Tool(name="book", description="Books.", do=lambda value: "booked", json_schema={})
    script = [
        said(calls=(ToolCall("book", {}, "a1"),), thoughts="one"),
        said(calls=(ToolCall("book", {}, "a2"), ToolCall("book", {}, "a3")), thoughts="two"),
        said("Booked."),
        said(calls=(ToolCall("book", "{oops", "a1"),), thoughts="three"),
        said("Bye."),
    ]
    more: dict[str, Any] = {"compatible": True} if wire is CHAT else {}
    async with wire.asked(*script, **more) as call:
        agent = agent_of(call.model, book)
        assert (await agent.process_request("a table on friday")).text == "Booked."
        assert (await agent.process_request("once more")).text == "Bye."
    assert call.server.refused == []
    for thought in ("one", "two", "three"):
        where = f"rs of {thought}" if wire is RESPONSES else f'"reasoning_content": "{thought}"'
        assert where in call.sent


@both
async def test_a_cache_is_asked_for_by_what_stays_the_same(wire: AnyRig) -> None:
    scripts = [said("x") for _ in range(3)]
    request = ModelRequest(messages=HELLO.messages, tools=(LOOKUP,), system_prompt="Be kind.")
    async with wire.asked(*scripts, cache="1h") as call:
        await call.ask(request)
        longer = ModelRequest(
            messages=(*HELLO.messages, Message(sender="agent", text="Hi."), *HELLO.messages),
            tools=(LOOKUP,),
            system_prompt="Be kind.",
        )
        await call.ask(longer)
        await call.ask(HELLO)
    keys = [body["prompt_cache_key"] for body in call.server.bodies]
    assert keys[0] == keys[1] != keys[2]
    assert call.body["prompt_cache_retention"] == "24h"
    async with wire.asked(said("x")) as call:
        await call.ask(request)
    assert not [name for name in call.body if "cache" in name]


@both
async def test_settings_are_sent_and_nothing_else(wire: AnyRig) -> None:
    settings: dict[str, Any] = {"temperature": 0.5, "parallel_tool_calls": False}
    settings["reasoning_effort"] = "low"
    async with wire.asked(said("x"), said("x"), said("x")) as call:
        await call.ask()
        bare = set(call.body)
    async with wire.asked(said("x"), said("x"), **settings) as call:
        await call.ask(ModelRequest(messages=HELLO.messages, tools=(LOOKUP,)))
        full = call.body
        await call.ask()
    assert bare <= {"model", "messages", "stream", "stream_options"} or wire is RESPONSES
    assert bare <= {"model", "instructions", "input", "stream", "store"} or wire is CHAT
    assert full["parallel_tool_calls"] is False and full["temperature"] == 0.5
    assert "parallel_tool_calls" not in call.body, "refused where there are no tools"
    assert "low" in json.dumps(full)


@both
async def test_extra_fields_go_into_the_body(wire: AnyRig) -> None:
    async with wire.asked(said("x"), extra={"tool_choice": "none"}) as call:
        await call.ask()
    assert call.body["tool_choice"] == "none"


@both
async def test_nothing_is_sent_that_only_the_process_environment_says(
    wire: AnyRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ORG_ID", "PROJECT_ID", "API_KEY", "ADMIN_KEY"):
        monkeypatch.setenv(f"OPENAI_{name}", "from-the-environment")
    async with wire.asked(said("a")) as call:
        await call.ask()
    async with wire.asked(said("b"), organization="org-1", project="proj-1") as named:
        await named.ask()
    assert "from-the-environment" not in str(call.server.headers)
    assert "openai-organization" not in call.server.headers[0]
    assert named.server.headers[0]["openai-organization"] == "org-1"
    assert named.server.headers[0]["openai-project"] == "proj-1"
