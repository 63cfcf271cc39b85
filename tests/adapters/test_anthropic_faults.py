"""What only Anthropic fails with: its names of errors, its reasons to stop, its fragments."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.adapters.anthropic_rig import ANTHROPIC
from tests.adapters.model_rig import HELLO, NOW
from tests.simulators.anthropic_messages import Scripted, call, text

pytestmark = pytest.mark.real_loop
asked = ANTHROPIC.asked

SPENT: dict[str, object] = {
    "type": "error",
    "error": {
        "type": "rate_limit_error",
        "message": "over",
        "details": {"error_code": "enforced_spend_limit_reached"},
    },
}


async def test_waiting_is_told_where_it_helps() -> None:
    slow = Scripted(status=429, headers={"retry-after": "7"})
    over = Scripted(status=529, headers={"retry-after": "3"})
    async with asked(slow, over, Scripted(status=429, error=SPENT)) as asking:
        errors = [await asking.fail() for _ in range(3)]
    assert [error.retry_after_s for error in errors] == [7, 3, None]
    assert [error.retryable for error in errors] == [True, True, False]


async def test_events_and_blocks_of_tomorrow_are_passed_over() -> None:
    script = Scripted(
        blocks=[
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            {"type": "brand_new", "shape": 1},
            text("Hi."),
        ],
        garbage=b'event: brand_new\ndata: {"type":"brand_new"}\n\n'
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn",'
        b'"stop_sequence":null},"usage":{"output_tokens":3}}\n\n'
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    )
    async with asked(script) as asking:
        result = await asking.ask()
    assert result.messages[0].text == "Hi." and result.usage.tokens_out == 3


async def test_calls_of_a_refused_answer_are_not_run() -> None:
    script = Scripted(blocks=[text("I"), call("toolu_1", "now", "{}")], stop="refusal")
    async with asked(script, Scripted(stop="refusal")) as asking:
        result = await asking.ask()
        assert result.messages[0].tool_calls == () and "ToolUse" not in asking.kinds()
        error = await asking.fail()
    assert (error.code, error.retryable) == ("ERR_MODEL_REFUSED", False)


async def test_an_error_inside_the_stream_is_an_error() -> None:
    cases = [
        ("overloaded_error", "ERR_MODEL_SERVER", True),
        ("rate_limit_error", "ERR_MODEL_RATE_LIMIT", True),
        ("api_error", "ERR_MODEL_SERVER", True),
        ("invalid_request_error", "ERR_MODEL_REFUSED", False),
        ("new_error", "ERR_MODEL_SERVER", False),
    ]
    scripts = [Scripted(blocks=[text("Hal")], stream_error=name) for name, _, _ in cases]
    async with asked(*scripts) as asking:
        for name, code, retryable in cases:
            error = await asking.fail()
            assert (name, error.code, error.retryable) == (name, code, retryable)
    assert asking.deltas() == ["Hal"] * len(cases)


async def test_garbage_for_a_whole_answer_is_named() -> None:
    garbage = (b"{oops", b'"hello"', b'{"type":"message"}')
    async with asked(*(Scripted(garbage=one) for one in garbage), stream=False) as asking:
        codes = [(await asking.fail()).code for _ in garbage]
    assert set(codes) == {"ERR_MODEL_PROTOCOL"}


async def test_why_an_answer_stopped_is_told() -> None:
    stops = ["end_turn", "max_tokens", "stop_sequence", "refusal", "brand_new"]
    scripts = [Scripted(blocks=[text("Hi")], stop=stop) for stop in stops]
    for stream in (True, False):
        async with asked(*scripts, stream=stream) as asking:
            assert [(await asking.ask()).stop_reason for _ in stops] == stops


async def test_arguments_that_are_no_object_reach_the_executor_as_they_are() -> None:
    cases: list[tuple[tuple[str, ...], object]] = [
        ((), {}),
        (("",), {}),
        (("{}",), {}),
        (('{"a": ', "1"), '{"a": 1'),
        (("[1]",), "[1]"),
        (('{"a": NaN}',), '{"a": NaN}'),
    ]
    scripts = [Scripted(blocks=[call("toolu_1", "now", *pieces)]) for pieces, _ in cases]
    async with asked(*scripts) as asking:
        for _, given in cases:
            result = await asking.ask(replace(HELLO, tools=(NOW,)))
            assert result.messages[0].tool_calls[0].input_args == given
