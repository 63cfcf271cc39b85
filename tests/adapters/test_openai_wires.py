"""What both of OpenAI's wires must do, against strict simulators, through the official SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.adapters.openai_suite import CHAT, HELLO, RESPONSES, WIRES, Wire
from voxglove.core.errors import ModelError
from voxglove.core.events import ModelResponse, ModelResponseComplete, TextDelta, ToolUse
from voxglove.core.messages import (
    ContentPart,
    ContentSource,
    Message,
    ToolCall,
    ToolResult,
    ToolResultData,
)
from voxglove.core.model import ModelLimits, ModelRequest, ToolSpec
from voxglove.core.usage import Usage

pytestmark = [
    pytest.mark.real_loop,
    pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name),
]

LOOKUP = ToolSpec("lookup", "Looks up.", {"type": "object", "properties": {}})
PNG = ContentPart("image", source=ContentSource("base64", "image/png", data="QUJD"))
PDF = ContentPart(
    "document", source=ContentSource("base64", "application/pdf", data="QUJD"), name="menu.pdf"
)


async def test_core_row_029_deltas_then_calls_then_the_end(wire: Wire) -> None:
    script = wire.called(("c1", "lookup", '{"id": 7}'), ("c2", "now", ""), text="One moment.")
    async with wire.asked(script) as call:
        result = await call.ask(ModelRequest(messages=HELLO.messages, tools=(LOOKUP,)))
    assert [type(event) for event in call.events] == [
        TextDelta,
        ToolUse,
        ToolUse,
        ModelResponseComplete,
    ]
    used = [event for event in call.events if isinstance(event, ToolUse)]
    assert [(use.id, use.name, use.input) for use in used] == [
        ("c1", "lookup", {"id": 7}),
        ("c2", "now", {}),
    ]
    expected = (ToolCall("lookup", {"id": 7}, "c1"), ToolCall("now", {}, "c2"))
    assert result.messages[0].tool_calls == expected
    assert result.messages[0].text == "One moment." and result.stop_reason == "tool_use"


async def test_core_row_030_an_answer_in_one_piece_is_one_event(wire: Wire) -> None:
    said = wire.said("Hi ", "there.", whole=True, counted=True)
    asked = wire.called(("c1", "lookup", "{oops"), whole=True)
    async with wire.asked(said, asked, stream=False) as call:
        first, second = await call.ask(), await call.ask()
    assert [type(event) for event in call.events] == [ModelResponse, ModelResponse]
    assert first.messages[0].text == "Hi there." and first.usage.tokens_in == 20
    assert second.messages[0].tool_calls == (ToolCall("lookup", "{oops", "c1"),)
    assert (first.stop_reason, second.stop_reason) == ("end_turn", "tool_use")


async def test_core_row_031_pictures_and_documents_reach_the_model(wire: Wire) -> None:
    linked = ContentPart("image", source=ContentSource("url", "image/png", url="https://x/y.png"))
    film = ContentPart("video", source=ContentSource("base64", "video/mp4", data="QUJD"))
    message = Message(sender="user", text="what is this?", content=(PNG, linked, PDF, film))
    async with wire.asked(wire.said("A cat.")) as call:
        await call.ask(ModelRequest(messages=(message,)))
        sent = json.dumps(call.body)
    assert "data:image/png;base64,QUJD" in sent and "https://x/y.png" in sent
    assert "data:application/pdf;base64,QUJD" in sent and "menu.pdf" in sent
    assert "what is this?" in sent and "[video cannot be shown here]" in sent


async def test_core_row_032_tokens_are_counted_cached_ones_too(wire: Wire) -> None:
    async with wire.asked(wire.said("Hi", counted=True), wire.said("Hi")) as call:
        counted, silent = await call.ask(), await call.ask()
    assert counted.usage == Usage(20, 9, 3, 5)
    assert silent.usage == Usage()
    complete = call.events[-1]
    assert isinstance(complete, ModelResponseComplete) and complete.usage == Usage()


async def test_core_row_033_damaged_history_is_valid_on_the_wire(wire: Wire) -> None:
    done = ToolResultData("success", {"free": 3}, render_data="secret")
    history = (
        Message(sender="user", text="is a table free?"),
        Message(sender="user", text="hello?", content=(PNG,)),
        Message(sender="agent", tool_calls=(ToolCall("look", {}, "c1"), ToolCall("x", {}, "c2"))),
        Message(sender="user", text="are you there?"),
        Message(sender="user", tool_results=(ToolResult("look", "c1", done),)),
        Message(sender="user", tool_results=(ToolResult("look", "c1", done),)),
        Message(sender="user", tool_results=(ToolResult("gone", "c9", done),)),
    )
    async with wire.asked(wire.said("Yes.")) as call:
        await call.ask(ModelRequest(messages=history))
        sent = json.dumps(call.body)
    assert call.server.refused == []
    assert sent.count('{\\"free\\":3}') == 1 and sent.count("No result available") == 1
    assert "is a table free?" in sent and "hello?" in sent and "QUJD" in sent
    assert "secret" not in sent and "c9" not in sent


async def test_names_and_ids_the_wire_does_not_take_come_back_as_ours(wire: Wire) -> None:
    odd, long_id = "files/read ä", "call_" + "x" * 80
    history = (
        Message(sender="user", text="read it"),
        Message(sender="agent", tool_calls=(ToolCall(odd, {"a": 1}, long_id),)),
        Message(
            sender="user", tool_results=(ToolResult(odd, long_id, ToolResultData("success", "x")),)
        ),
    )
    tools = (ToolSpec(odd, "Reads.", {"anyOf": [{"type": "object"}]}),)
    async with wire.asked(wire.said("Hm.")) as call:
        await call.ask(ModelRequest(messages=history, tools=tools))
        listed = call.body["tools"]
        assert isinstance(listed, list)
        name = (listed[0].get("function") or listed[0])["name"]
    async with wire.asked(wire.called(("c1", name, "{}"), ("c2", "unheard_of", "{}"))) as call:
        result = await call.ask(ModelRequest(messages=HELLO.messages, tools=tools))
    assert [one.tool_name for one in result.messages[0].tool_calls] == [odd, "unheard_of"]


async def test_arguments_that_are_no_object_pass_and_go_back_as_one(wire: Wire) -> None:
    texts = ["{oops", '["a"]', '"text"', "null"]
    calls = [(f"c{place}", "lookup", raw) for place, raw in enumerate(texts)]
    async with wire.asked(wire.called(*calls), wire.said("Sorry.")) as call:
        made = (await call.ask()).messages[0]
        assert [one.input_args for one in made.tool_calls] == texts
        wrong = ToolResultData("error", message="not valid")
        results = tuple(ToolResult("lookup", one.id, wrong) for one in made.tool_calls)
        answered = Message(sender="user", tool_results=results)
        await call.ask(ModelRequest(messages=(*HELLO.messages, made, answered)))
    assert call.server.refused == []


async def test_half_a_surrogate_pair_does_not_block_the_conversation(wire: Wire) -> None:
    broken = "\ud83d"
    call_made = ToolCall("lookup", {"q": broken}, "c1")
    result = ToolResult("lookup", "c1", ToolResultData("success", broken))
    history = (
        Message(sender="user", text=f"hello {broken}"),
        Message(sender="agent", text=broken, tool_calls=(call_made,)),
        Message(sender="user", tool_results=(result,)),
    )
    async with wire.asked(wire.said("Fine.")) as call:
        await call.ask(ModelRequest(messages=history, system_prompt=broken))
    assert call.server.refused == []


async def test_characters_split_between_reads_arrive_whole(wire: Wire) -> None:
    words = ("Grüß ", "☺ ", "日本 ", "👩‍🍳")
    async with wire.asked(wire.said(*words, write_bytes=5)) as call:
        result = await call.ask()
    assert call.deltas() == list(words) and result.messages[0].text == "".join(words)


async def test_a_requests_own_limits_win(wire: Wire) -> None:
    limits = ModelLimits(max_tokens=33)
    field = "max_completion_tokens" if wire is CHAT else "max_output_tokens"
    async with wire.asked(wire.said("a"), wire.said("b"), max_tokens=900) as call:
        await call.ask()
        usual = call.body[field]
        await call.ask(ModelRequest(messages=HELLO.messages, limits=limits))
        own = call.body[field]
    assert (usual, own) == (900, 33)


async def test_one_agents_prompt_never_reaches_another(wire: Wire) -> None:
    async with wire.asked(wire.said("a"), wire.said("b")) as call:
        call.model.set_system_prompt("Be short.")
        await call.ask()
        own = json.dumps(call.body)
        limits = ModelLimits(max_tokens=50)
        await call.ask(ModelRequest(messages=HELLO.messages, limits=limits))
        kept = json.dumps(call.body)
    assert "Be kind." in own and "Be short." not in own
    assert "Be short." not in kept and "50" in kept


async def test_a_cache_is_asked_for_by_what_stays_the_same(wire: Wire) -> None:
    scripts = [wire.said("x") for _ in range(3)]
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
    async with wire.asked(wire.said("x")) as call:
        await call.ask(request)
    assert not [name for name in call.body if "cache" in name]


async def test_settings_are_sent_and_nothing_else(wire: Wire) -> None:
    settings: dict[str, Any] = {"temperature": 0.5, "parallel_tool_calls": False}
    settings["reasoning_effort"] = "low"
    async with wire.asked(wire.said("x"), wire.said("x"), wire.said("x")) as call:
        await call.ask()
        bare = set(call.body)
    async with wire.asked(wire.said("x"), wire.said("x"), **settings) as call:
        await call.ask(ModelRequest(messages=HELLO.messages, tools=(LOOKUP,)))
        full = call.body
        await call.ask()
    assert bare <= {"model", "messages", "stream", "stream_options"} or wire is RESPONSES
    assert bare <= {"model", "instructions", "input", "stream", "store"} or wire is CHAT
    assert full["parallel_tool_calls"] is False and full["temperature"] == 0.5
    assert "parallel_tool_calls" not in call.body, "refused where there are no tools"
    assert "low" in json.dumps(full)


async def test_extra_fields_go_into_the_body(wire: Wire) -> None:
    async with wire.asked(wire.said("x"), extra={"tool_choice": "none"}) as call:
        await call.ask()
    assert call.body["tool_choice"] == "none"


@pytest.mark.parametrize("stream", [True, False])
async def test_the_connection_is_kept_from_turn_to_turn(wire: Wire, stream: bool) -> None:
    scripts = [wire.said("Hi.", whole=not stream) for _ in range(3)]
    refused = wire.said(status=429, error={"message": "slow"})
    async with wire.asked(scripts[0], refused, *scripts[1:], stream=stream) as call:
        await call.ask()
        with pytest.raises(ModelError):
            await call.ask()
        await call.ask()
        await call.ask()
    assert len(set(call.server.peers)) == 1, "each new connection costs a turn its round trips"


async def test_nothing_is_sent_that_only_the_process_environment_says(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ORG_ID", "PROJECT_ID", "API_KEY", "ADMIN_KEY"):
        monkeypatch.setenv(f"OPENAI_{name}", "from-the-environment")
    async with wire.asked(wire.said("a")) as call:
        await call.ask()
    async with wire.asked(wire.said("b"), organization="org-1", project="proj-1") as named:
        await named.ask()
    assert "from-the-environment" not in str(call.server.headers)
    assert "openai-organization" not in call.server.headers[0]
    assert named.server.headers[0]["openai-organization"] == "org-1"
    assert named.server.headers[0]["openai-project"] == "proj-1"
