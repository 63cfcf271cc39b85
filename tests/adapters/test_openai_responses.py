"""What the Responses wire alone has to show: items, reasoning on its way back, terminal events."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.adapters.model_rig import HELLO, said
from tests.adapters.openai_rig import RESPONSES
from tests.simulators.openai_responses import Item, Scripted, call, refuse, say, think
from tests.simulators.sse import Json, sse
from voxglove.adapters.models.openai_responses_wire import OPTIONS_KEY
from voxglove.core.errors import ModelError
from voxglove.core.messages import (
    Message,
    ToolCall,
    ToolResult,
    ToolResultData,
    decode_message,
    encode_message,
)
from voxglove.core.model import ModelLimits, ModelRequest, ToolSpec

pytestmark = pytest.mark.real_loop

LOOKUP = ToolSpec("lookup", "Looks up.", {"type": "object", "properties": {}})


def items(body: Json) -> list[Json]:
    found = body["input"]
    assert isinstance(found, list)
    return found


def kinds(body: Json) -> list[str]:
    return [str(item.get("role") or item["type"]) for item in items(body)]


def results(made: Message) -> Message:
    done = ToolResultData("success", "fine")
    answers = tuple(ToolResult(one.tool_name, one.id, done) for one in made.tool_calls)
    return Message(sender="user", tool_results=answers, is_tool_results=True)


async def test_the_request_is_as_the_wire_wants_it() -> None:
    request = ModelRequest(messages=HELLO.messages, system_prompt="Be kind.", tools=(LOOKUP,))
    async with RESPONSES.asked(said("Hi"), reasoning_effort="low") as asked:
        await asked.ask(request)
    assert asked.body == {
        "model": "m",
        "instructions": "Be kind.",
        "input": [{"type": "message", "role": "user", "content": "hello"}],
        "tools": [
            {
                "type": "function",
                "name": "lookup",
                "description": "Looks up.",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            }
        ],
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
    }


async def test_reasoning_goes_back_with_its_calls_through_the_store() -> None:
    first = Scripted(
        items=[
            think("sealed-1", "I look.", id="rs_1"),
            say("One moment.", phase="commentary"),
            call("c1", "lookup", '{"q": 1}'),
            call("c2", "lookup", "{}"),
        ]
    )
    second = Scripted(items=[think("sealed-2", id="rs_2"), call("c3", "lookup", "{}")])
    last = Scripted(items=[think("sealed-3", id="rs_3"), say("Done.", phase="final_answer")])
    async with RESPONSES.asked(first, second, last, said("Bye.")) as asked:
        history = list(HELLO.messages)
        for _ in range(3):
            made = (await asked.ask(ModelRequest(messages=tuple(history)))).messages[0]
            made = decode_message(encode_message(made))
            history += [made, results(made)] if made.tool_calls else [made]
        third = asked.body
        await asked.ask(ModelRequest(messages=(*history, Message(sender="user", text="bye"))))
    assert asked.server.refused == []
    assert history[1].reasoning_content == "I look."
    output = "function_call_output"
    looked = ["user", "reasoning", "assistant", "function_call", "function_call", output, output]
    assert kinds(third) == [*looked, "reasoning", "function_call", output]
    sealed = items(third)[1]
    assert sealed["encrypted_content"] == "sealed-1" and "status" not in sealed
    spoken = [item for item in items(asked.body) if item.get("role") == "assistant"]
    assert [one["phase"] for one in spoken] == ["commentary", "final_answer"]
    assert kinds(asked.body).count("reasoning") == 2, "with calls only"
    assert "sealed-3" not in str(history[-1]), "what never goes back is not stored"


async def test_reasoning_goes_to_nobody_but_the_model_it_came_from() -> None:
    thought = Scripted(items=[think("sealed"), call("c1", "lookup", "{}")])
    async with RESPONSES.asked(thought) as asked:
        made = (await asked.ask()).messages[0]
    assert made.provider_options is not None
    request = ModelRequest(messages=(*HELLO.messages, made, results(made)))
    async with RESPONSES.asked(said("x"), model="other") as asked:
        await asked.ask(request)
    assert kinds(asked.body) == ["user", "function_call", "function_call_output"]


async def test_reasoning_that_cannot_be_read_again_stays_here() -> None:
    plain = Scripted(items=[think(None, "Hm."), call("c1", "lookup", "{}")])
    async with RESPONSES.asked(plain, said("x")) as asked:
        made = (await asked.ask()).messages[0]
        assert made.provider_options is None and made.reasoning_content == "Hm."
        await asked.ask(ModelRequest(messages=(*HELLO.messages, made, results(made))))
    assert "reasoning" not in kinds(asked.body)


async def test_what_was_heard_replaces_what_was_written() -> None:
    thought = Scripted(
        items=[
            think("sealed-1", id="rs_1"),
            say("A long story.", phase="commentary"),
            think("sealed-2", id="rs_2"),
            call("c1", "lookup", "{}"),
        ]
    )
    async with RESPONSES.asked(thought) as asked:
        made = (await asked.ask()).messages[0]
    for text, expected in (("A long [interrupted]", 2), ("", 1)):
        heard = replace(made, text=text)
        async with RESPONSES.asked(said("x")) as asked:
            asked.server.issued = {"sealed-1": [], "sealed-2": ["c1"]}  # type: ignore[attr-defined]
            await asked.ask(ModelRequest(messages=(*HELLO.messages, heard, results(heard))))
        assert kinds(asked.body).count("reasoning") == expected
        assert "A long story" not in str(asked.body)


@pytest.mark.parametrize("options", [{}, {"items": 7}, {"items": [7, {"type": "reasoning"}]}, 3])
async def test_broken_options_of_a_stored_message_do_no_harm(options: object) -> None:
    if isinstance(options, dict):
        options = {"model": "m", **options}
    made = Message(
        sender="agent",
        text="Hm.",
        tool_calls=(ToolCall("lookup", {}, "c1"),),
        provider_options={OPTIONS_KEY: options},
    )
    async with RESPONSES.asked(said("x")) as asked:
        await asked.ask(ModelRequest(messages=(*HELLO.messages, made, results(made))))
    assert kinds(asked.body) == ["user", "assistant", "function_call", "function_call_output"]


async def test_two_messages_of_one_answer_do_not_run_into_each_other() -> None:
    two = Scripted(items=[say("One ", "moment.", id="msg_1"), say("Here.", id="msg_2")])
    async with RESPONSES.asked(two) as asked:
        result = await asked.ask()
    assert result.messages[0].text == "One moment.\n\nHere." == "".join(asked.deltas())
    assert result.messages[0].provider_options is None


async def test_items_that_come_with_the_end_only_are_taken() -> None:
    late = [say("Hi ", "there."), call("c1", "lookup", '{"q": 1}')]
    async with RESPONSES.asked(Scripted(items=late, only_at_end=True)) as asked:
        result = await asked.ask()
    assert asked.deltas() == ["Hi there."]
    assert result.messages[0].tool_calls == (ToolCall("lookup", {"q": 1}, "c1"),)


async def test_why_an_answer_ended_is_in_cores_words() -> None:
    cases: list[tuple[list[Item], str | None, str]] = [
        ([say("Hm")], None, "end_turn"),
        ([say("Hm")], "max_output_tokens", "max_tokens"),
        ([say("Hm")], "content_filter", "refusal"),
        ([say("Hm")], "steered", "steered"),
        ([refuse("I can", "not.")], None, "refusal"),
        ([call("c1", "lookup", '{"q": ', status="incomplete")], "max_output_tokens", "tool_use"),
    ]
    for stream in (True, False):
        scripts = [Scripted(items=made, incomplete=reason) for made, reason, _ in cases]
        async with RESPONSES.asked(*scripts, stream=stream) as asked:
            answers = [await asked.ask() for _ in cases]
        assert [answer.stop_reason for answer in answers] == [stop for _, _, stop in cases]
        assert answers[4].messages[0].text == "I cannot."
        assert answers[5].messages[0].tool_calls[0].input_args == '{"q": ', "cut, and so invalid"


async def test_an_answer_that_was_ended_before_it_began_is_an_error() -> None:
    spent = Scripted(items=[think("sealed")], incomplete="max_output_tokens")
    async with RESPONSES.asked(spent) as asked:
        with pytest.raises(ModelError, match="max_tokens") as caught:
            await asked.ask()
    assert caught.value.code == "ERR_MODEL_EMPTY" and not caught.value.retryable


@pytest.mark.parametrize("stream", [True, False])
async def test_a_failed_response_is_an_error(stream: bool) -> None:
    failed = Scripted(failure={"code": "rate_limit_exceeded", "message": "slow down"})
    async with RESPONSES.asked(failed, stream=stream) as asked:
        with pytest.raises(ModelError, match="slow down") as caught:
            await asked.ask()
    assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_RATE_LIMIT", True)


async def test_both_shapes_of_an_error_event_are_errors() -> None:
    flat: Json = {"code": "server_error", "message": "boom"}
    nested: Json = {"message": "boom", "error": flat}
    scripts = [Scripted(items=[say("Hal")], error_event=event) for event in (flat, nested)]
    async with RESPONSES.asked(*scripts) as asked:
        for _ in scripts:
            with pytest.raises(ModelError, match="boom") as caught:
                await asked.ask()
            assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_SERVER", True)
    assert asked.deltas() == ["Hal", "Hal"]


async def test_a_stream_without_a_terminal_event_is_no_answer() -> None:
    made = [say("Hal"), call("c1", "lookup", "{}")]
    async with RESPONSES.asked(Scripted(items=made, ending="early")) as asked:
        with pytest.raises(ModelError) as caught:
            await asked.ask()
    assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_CONNECTION", True)
    assert len(asked.events) == 1, "calls of a broken answer are not told"


async def test_a_body_that_does_not_end_holds_nobody_up() -> None:
    whole = Scripted(items=[say("Hi")])
    frames = b"".join(sse(event, str(event["type"])) for event in whole.events())
    endless = Scripted(garbage=frames, ending="stall")
    async with RESPONSES.asked(endless) as asked:
        loop = asyncio.get_running_loop()
        started = loop.time()
        result = await asked.ask()
        assert loop.time() - started < 3
    assert result.messages[0].text == "Hi"


async def test_a_bound_below_what_the_wire_takes_is_raised_to_it() -> None:
    async with RESPONSES.asked(said("x")) as asked:
        await asked.ask(ModelRequest(messages=HELLO.messages, limits=ModelLimits(max_tokens=5)))
    assert asked.body["max_output_tokens"] == 16


async def test_models_without_reasoning_are_not_asked_for_it() -> None:
    async with RESPONSES.asked(said("x"), said("x")) as asked:
        await asked.ask()
    assert "include" not in asked.body and "reasoning" not in asked.body
    async with RESPONSES.asked(said("x"), encrypted_reasoning=True) as asked:
        await asked.ask()
    assert asked.body["include"] == ["reasoning.encrypted_content"]
