"""What the Anthropic model makes of a server that fails, lies, stalls or goes away."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.adapters.model_rig import HELLO, NOW, asks, results
from tests.adapters.test_anthropic_model import asked, said
from tests.simulators.anthropic_messages import Scripted, call, text
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.anthropic import AnthropicConfig, AnthropicModel
from voxglove.core.cancel import CancelToken
from voxglove.core.errors import ModelError
from voxglove.core.messages import ToolCall, ToolResultData
from voxglove.core.model import ModelLimits

pytestmark = pytest.mark.real_loop

SPENT: dict[str, object] = {
    "type": "error",
    "error": {
        "type": "rate_limit_error",
        "message": "over",
        "details": {"error_code": "enforced_spend_limit_reached"},
    },
}


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "ERR_MODEL_REFUSED", False),
        (401, "ERR_MODEL_AUTH", False),
        (403, "ERR_MODEL_AUTH", False),
        (404, "ERR_MODEL_REFUSED", False),
        (413, "ERR_MODEL_TOO_LARGE", False),
        (429, "ERR_MODEL_RATE_LIMIT", True),
        (500, "ERR_MODEL_SERVER", True),
        (529, "ERR_MODEL_SERVER", True),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_refusals_say_whether_to_try_again(
    status: int, code: str, retryable: bool, stream: bool
) -> None:
    async with asked(Scripted(status=status), stream=stream) as asking:
        error = await asking.fail()
    assert (error.code, error.retryable) == (code, retryable)
    assert error.__cause__ is not None
    assert len(asking.server.bodies) == 1, "the SDK retried by itself"


async def test_waiting_is_told_where_it_helps() -> None:
    slow = Scripted(status=429, headers={"retry-after": "7"})
    over = Scripted(status=529, headers={"retry-after": "3"})
    async with asked(slow, over, Scripted(status=429, error=SPENT)) as asking:
        errors = [await asking.fail() for _ in range(3)]
    assert [error.retry_after_s for error in errors] == [7, 3, None]
    assert [error.retryable for error in errors] == [True, True, False]


async def test_a_wrong_key_is_refused_and_not_shown() -> None:
    async with asked(said("x"), key="sk-wrong-key-0123456789") as asking:
        error = await asking.fail()
    assert error.code == "ERR_MODEL_AUTH" and not error.retryable
    assert "sk-wrong-key" not in f"{error}{asking.model!r}"


@pytest.mark.parametrize(
    ("name", "code", "retryable"),
    [
        ("overloaded_error", "ERR_MODEL_SERVER", True),
        ("rate_limit_error", "ERR_MODEL_RATE_LIMIT", True),
        ("api_error", "ERR_MODEL_SERVER", True),
        ("invalid_request_error", "ERR_MODEL_REFUSED", False),
        ("new_error", "ERR_MODEL_SERVER", False),
    ],
)
async def test_an_error_inside_the_stream_is_an_error(
    name: str, code: str, retryable: bool
) -> None:
    broken = Scripted(blocks=[text("Hal")], stream_error=name)
    async with asked(broken) as asking:
        error = await asking.fail()
    assert asking.deltas() == ["Hal"]
    assert (error.code, error.retryable) == (code, retryable)


@pytest.mark.parametrize("ending", ["early", "drop"])
async def test_a_stream_that_ends_early_is_no_answer_and_names_no_call(ending: str) -> None:
    cut = Scripted(blocks=[text("Hal"), call("toolu_1", "now", "{}")], ending=ending)  # type: ignore[arg-type]
    async with asked(cut, said("Hi.")) as asking:
        error = await asking.fail(replace(HELLO, tools=(NOW,)))
        assert asking.kinds() == ["TextDelta"]
        assert (error.code, error.retryable) == ("ERR_MODEL_CONNECTION", True)
        assert (await asking.ask()).messages[0].text == "Hi.", "the client is usable afterwards"


async def test_half_a_whole_answer_is_a_broken_connection() -> None:
    async with asked(Scripted(blocks=[text("x" * 500)], ending="drop"), stream=False) as asking:
        error = await asking.fail()
    assert (error.code, error.retryable) == ("ERR_MODEL_CONNECTION", True)


@pytest.mark.parametrize(
    "garbage",
    [
        b"event: content_block_delta\ndata: {oops\n\n",
        b"event: content_block_delta\ndata: 5\n\n",
        b'event: content_block_delta\ndata: {"type":"content_block_delta"}\n\n',
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":9,'
        b'"delta":{"type":"text_delta","text":"x"}}\n\n',
        b"event: content_block_delta\ndata: \xff\xfe\n\n",
    ],
)
async def test_garbage_in_the_stream_is_named(garbage: bytes) -> None:
    async with asked(Scripted(blocks=[text("Hm")], garbage=garbage)) as asking:
        error = await asking.fail()
    assert (error.code, error.retryable) == ("ERR_MODEL_PROTOCOL", False)


@pytest.mark.parametrize("garbage", [b"{oops", b'"hello"', b'{"type":"message"}'])
async def test_garbage_for_a_whole_answer_is_named(garbage: bytes) -> None:
    async with asked(Scripted(garbage=garbage), stream=False) as asking:
        error = await asking.fail()
    assert error.code == "ERR_MODEL_PROTOCOL"


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


async def test_letters_split_across_packets_stay_whole() -> None:
    script = Scripted(blocks=[text("Grüße ☺", "\u2028🎉")], split=1)
    async with asked(script) as asking:
        assert (await asking.ask()).messages[0].text == "Grüße ☺\u2028🎉"


@pytest.mark.parametrize("ending", ["stall", "half_open"])
async def test_a_silent_server_is_given_up(ending: str) -> None:
    silent = Scripted(blocks=[text("Hm")], ending=ending)  # type: ignore[arg-type]
    async with asked(silent, timeout_s=0.2) as asking:
        error = await asking.fail()
        assert (error.code, error.retryable) == ("ERR_MODEL_STALLED", True)
        async with asyncio.timeout(2):
            await asking.server.closed.wait()


@pytest.mark.parametrize("stream", [True, False])
async def test_the_limit_of_a_request_bounds_the_whole_call(stream: bool) -> None:
    silent = Scripted(blocks=[text("Hm")], ending="stall")
    async with asked(silent, stream=stream) as asking:
        error = await asking.fail(replace(HELLO, limits=ModelLimits(timeout_s=0.2)))
        assert (error.code, error.retryable) == ("ERR_MODEL_STALLED", True)
        async with asyncio.timeout(2):
            await asking.server.closed.wait()


async def test_nobody_listening_can_be_tried_again() -> None:
    config = AnthropicConfig(model="m", base_url="http://127.0.0.1:9")
    model = AnthropicModel(config, Secret("x"))
    with pytest.raises(ModelError) as caught:
        await model.prompt(HELLO, lambda event: None, CancelToken())
    await model.aclose()
    assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_CONNECTION", True)


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("end_turn", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("stop_sequence", "stop_sequence"),
        ("refusal", "refusal"),
        ("brand_new", "brand_new"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_why_an_answer_stopped_is_told(stop: str, reason: str, stream: bool) -> None:
    async with asked(Scripted(blocks=[text("Hi")], stop=stop), stream=stream) as asking:
        assert (await asking.ask()).stop_reason == reason


async def test_calls_of_a_refused_answer_are_not_run() -> None:
    script = Scripted(blocks=[text("I"), call("toolu_1", "now", "{}")], stop="refusal")
    async with asked(script, Scripted(stop="refusal")) as asking:
        result = await asking.ask()
        assert result.messages[0].tool_calls == () and "ToolUse" not in asking.kinds()
        error = await asking.fail()
    assert (error.code, error.retryable) == ("ERR_MODEL_REFUSED", False)


async def test_an_empty_answer_is_one_only_behind_results() -> None:
    after = replace(
        HELLO,
        messages=(
            *HELLO.messages,
            asks(ToolCall("now", {}, "c1")),
            results(("now", "c1", ToolResultData("success", "noon"))),
        ),
    )
    async with asked(Scripted(), Scripted(), Scripted(stop="max_tokens")) as asking:
        assert (await asking.ask(after)).messages[0].text == ""
        assert (await asking.fail()).code == "ERR_MODEL_EMPTY"
        assert (await asking.fail(after)).code == "ERR_MODEL_EMPTY"


@pytest.mark.parametrize(
    ("fragments", "input"),
    [
        ((), {}),
        (("",), {}),
        (("{}",), {}),
        (('{"a": ', "1"), '{"a": 1'),
        (("[1]",), "[1]"),
        (('{"a": NaN}',), '{"a": NaN}'),
    ],
)
async def test_arguments_that_are_no_object_reach_the_executor_as_they_are(
    fragments: tuple[str, ...], input: object
) -> None:
    script = Scripted(blocks=[call("toolu_1", "now", *fragments)])
    async with asked(script) as asking:
        result = await asking.ask(replace(HELLO, tools=(NOW,)))
    assert result.messages[0].tool_calls[0].input_args == input
