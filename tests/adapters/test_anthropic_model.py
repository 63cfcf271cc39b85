"""The Anthropic model, through the official SDK: the suite, and what its wire alone has."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from tests.adapters.anthropic_rig import ANTHROPIC
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
from tests.simulators.anthropic_messages import (
    KEY,
    Scripted,
    call,
    redacted,
    text,
    thinking,
)
from voxglove.adapters.models.anthropic import AnthropicConfig
from voxglove.core.errors import UsageError
from voxglove.core.messages import ContentPart, ContentSource, Message, ToolCall, ToolResultData
from voxglove.core.model import ModelLimits, ModelRequest
from voxglove.core.usage import Usage

pytestmark = pytest.mark.real_loop
asked = ANTHROPIC.asked


class TestAnthropic(ModelSuite):
    rig = ANTHROPIC


async def test_core_row_031_anthropic_shows_images_and_documents() -> None:
    note = base64.b64encode("Größe".encode()).decode()
    parts = (
        PNG,
        ContentPart("image", source=ContentSource("url", "image/png", url="https://x.test/a")),
        ContentPart("image", source=ContentSource("url", "", url="data:image/gif;base64,QUJD")),
        ContentPart(
            "document", source=ContentSource("base64", "application/pdf", data="QUJD"), name="menu"
        ),
        ContentPart("document", source=ContentSource("base64", "text/markdown", data=note)),
        ContentPart("document", source=ContentSource("url", "application/pdf", url="https://x/p")),
        ContentPart(
            "video", source=ContentSource("base64", "video/mp4", data="QUJD"), name="v.mp4"
        ),
    )
    seen = Message(sender="user", text="What is this?", content=parts)
    async with asked(said("A cat.")) as asking:
        await asking.ask(ModelRequest(messages=(seen,)))
    (turn,) = sent(asking)
    assert [one["type"] for one in turn] == ["text", *["image"] * 3, *["document"] * 3, "text"]
    assert (
        turn[0]["text"] == "What is this?"
        and turn[-1]["text"] == "[video v.mp4 cannot be shown here]"
    )
    assert [one["source"]["type"] for one in turn[1:7]] == [
        "base64",
        "url",
        "base64",
        "base64",
        "text",
        "url",
    ]
    assert turn[4]["title"] == "menu" and turn[5]["source"]["data"] == "Größe"


async def test_core_row_032_anthropic_counts_cached_tokens_as_part_of_the_input() -> None:
    script = Scripted(
        blocks=[text("Hi.")],
        usage={"cache_creation_input_tokens": 100, "cache_read_input_tokens": 40},
        final={"output_tokens": 12, "cache_read_input_tokens": 50},
    )
    async with asked(script) as asking:
        result = await asking.ask()
    assert result.usage == Usage(25 + 100 + 50, 12, 100, 50)


async def test_core_row_033_anthropic_history_is_valid_on_the_wire() -> None:
    calls = (ToolCall("look", {"q": 1}, "c.1"), ToolCall("book", "{oops", "c2"))
    history = (
        Message(sender="agent", text="Good evening."),
        Message(sender="user", text="is a table free?"),
        Message(sender="user", text="hello?", content=(PNG,)),
        Message(sender="user", text="  "),
        asks(*calls),
        results(
            ("look", "c.1", ToolResultData("success", {"free": 3}, render_data="secret")),
            ("book", "c2", ToolResultData("aborted", message="hang-up")),
            ("book", "c2", ToolResultData("success", "twice")),
            ("gone", "c9", ToolResultData("success", "an orphan")),
        ),
        Message(sender="user", text="and?"),
        asks(ToolCall("book", {}, "c3"), text="Well."),
        Message(sender="user", text="thanks"),
    )
    async with asked(said("Welcome.")) as asking:
        await asking.ask(ModelRequest(messages=history))
    turns = sent(asking)
    assert [[one["type"] for one in turn] for turn in turns] == [
        ["text"],
        ["text"],
        ["text", "text", "image"],
        ["tool_use", "tool_use"],
        ["tool_result", "tool_result", "text"],
        ["text", "tool_use"],
        ["tool_result", "text"],
    ]
    assert turns[4][0]["content"] == '{"free":3}' and "is_error" not in turns[4][0]
    assert turns[4][1]["content"] == "Aborted: hang-up" and turns[4][1]["is_error"] is True
    assert turns[3][1]["input"] == {"arguments": "{oops"}
    assert turns[6][0]["content"] == "No result available"
    assert "secret" not in str(turns) and "orphan" not in str(turns)


async def test_thinking_comes_back_where_it_stood_and_only_to_its_model() -> None:
    first = Scripted(
        blocks=[
            thinking("First.", "SIG-1"),
            redacted("OPAQUE"),
            text("Let me see."),
            call("toolu_1", "now"),
        ]
    )
    async with asked(first, said("Noon."), said("Yes.")) as asking:
        request = replace(HELLO, tools=(NOW,))
        answer = (await asking.ask(request)).messages[0]
        back = results(("now", "toolu_1", ToolResultData("success", "12:00")))
        later = replace(request, messages=(*HELLO.messages, answer, back))
        await asking.ask(later)
        assert [one["type"] for one in sent(asking)[1]] == [
            "thinking",
            "redacted_thinking",
            "text",
            "tool_use",
        ]
        heard = replace(answer, text="Let me [interrupted]")
        await asking.ask(replace(later, messages=(*HELLO.messages, heard, back)))
        assert sent(asking)[1][2]["text"] == "Let me [interrupted]"
    async with asked(said("Noon."), model="another") as other:
        await other.ask(later)
    assert [one["type"] for one in sent(other)[1]] == ["text", "tool_use"]


async def test_only_whole_thinking_is_kept() -> None:
    script = Scripted(
        blocks=[thinking("Cut o", ""), {"type": "brand_new"}, text("Well."), call("toolu_1", "now")]
    )
    whole = replace(script, blocks=[thinking("Hm.", "SIG"), *script.blocks])
    async with asked(script, whole) as asking:
        request = replace(HELLO, tools=(NOW,))
        cut = (await asking.ask(request)).messages[0]
        kept = (await asking.ask(request)).messages[0].provider_options
    assert cut.provider_options is None and cut.reasoning_content == "Cut o"
    assert kept is not None
    options: Any = kept["anthropic"]
    assert [one["type"] for one in options["blocks"]] == ["thinking", "text", "tool_use"]


async def test_a_thinking_budget_fits_the_answer_and_pauses_where_calls_came_without() -> None:
    foreign = (
        *HELLO.messages,
        asks(ToolCall("now", {}, "c1")),
        results(("now", "c1", ToolResultData("success", "noon"))),
    )
    async with asked(said("Hi."), reasoning_effort="none") as asking:
        await asking.ask(ModelRequest(messages=foreign, tools=(NOW,)))
    assert asking.server.bodies[0]["thinking"] == {"type": "disabled"}
    async with asked(*[said("Hi.")] * 4, thinking_tokens=4000, max_tokens=9000) as asking:
        await asking.ask()
        await asking.ask(replace(HELLO, limits=ModelLimits(max_tokens=3000)))
        await asking.ask(replace(HELLO, limits=ModelLimits(max_tokens=500)))
        await asking.ask(ModelRequest(messages=foreign, tools=(NOW,)))
    bodies = asking.server.bodies
    assert [body.get("thinking") for body in bodies] == [
        {"type": "enabled", "budget_tokens": 4000},
        {"type": "enabled", "budget_tokens": 2999},
        None,
        None,
    ]
    assert [body["max_tokens"] for body in bodies] == [9000, 3000, 500, 9000]


async def test_options_reach_the_wire_and_only_those_that_were_given() -> None:
    async with asked(said("Hi.")) as plain:
        await plain.ask()
    assert set(plain.server.bodies[0]) == {"model", "max_tokens", "messages", "system", "stream"}
    async with asked(said("Hi."), temperature=0.3, reasoning_effort="none") as hot:
        await hot.ask()
    assert hot.server.bodies[0]["temperature"] == 0.3
    assert hot.server.bodies[0]["thinking"] == {"type": "disabled"}
    headers = [*plain.server.headers, *hot.server.headers]
    assert [one["anthropic-version"] for one in headers] == ["2026-10-21", "2023-06-01"]
    async with asked(said("Hi."), reasoning_effort="minimal") as eager:
        await eager.ask()
    assert eager.server.bodies[0]["output_config"] == {"effort": "low"}


@pytest.mark.parametrize(("cache", "ttl"), [(True, {}), ("5m", {}), ("1h", {"ttl": "1h"})])
async def test_breakpoints_stand_behind_what_the_next_request_repeats(
    cache: object, ttl: dict[str, str]
) -> None:
    request = ModelRequest(
        messages=(
            Message(sender="user", text="hello"),
            Message(sender="agent", text="Hi."),
            Message(sender="user", text="a table"),
            Message(sender="user", text="It is noon.", framework_context="runtime"),
        ),
        tools=(LOOKUP, NOW),
        system_prompt="Be kind.",
    )
    async with asked(said("Hi."), cache=cache) as asking:
        await asking.ask(request)
    body, mark = asking.server.bodies[0], {"type": "ephemeral", **ttl}
    assert [one.get("cache_control") for one in blocks(body["tools"])] == [None, mark]
    assert blocks(body["system"])[0]["cache_control"] == mark
    assert [one.get("cache_control") for turn in sent(asking) for one in turn] == [
        None,
        None,
        mark,
        None,
    ]


async def test_a_long_answer_need_not_be_streamed() -> None:
    async with asked(said("Hi."), stream=False, max_tokens=64_000) as asking:
        assert (await asking.ask()).messages[0].text == "Hi."


async def test_a_compatible_server_finds_the_key_where_it_looks() -> None:
    async with asked(said("Hi.")) as asking:
        await asking.ask()
    (headers,) = asking.server.headers
    assert headers["x-api-key"] == KEY and headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": " "},
        {"timeout_s": 0},
        {"max_tokens": 0},
        {"cache": "2h"},
        {"reasoning_effort": "much"},
        {"thinking_tokens": 100},
        {"thinking_tokens": 2000, "temperature": 0.5},
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=next(reversed(wrong))):
        AnthropicConfig(**{"model": "m", **wrong})  # type: ignore[arg-type]


def sent(asking: Asked) -> list[list[dict[str, Any]]]:
    """The blocks of every turn of the newest request."""
    messages = asking.server.bodies[-1]["messages"]
    assert isinstance(messages, list)
    return [message["content"] for message in messages]


def blocks(value: object) -> list[dict[str, Any]]:
    assert isinstance(value, list)
    return value
