"""What the Gemini model makes of a server that fails, lies, stalls or goes away."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.adapters.model_rig import HELLO, NOW, asks, results
from tests.adapters.test_gemini_model import asked, said
from tests.simulators.gemini_generate import Scripted, call, text
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.gemini import GeminiConfig, GeminiModel
from voxglove.core.cancel import CancelToken
from voxglove.core.errors import ModelError
from voxglove.core.messages import ToolCall, ToolResultData
from voxglove.core.model import ModelLimits

pytestmark = pytest.mark.real_loop

RETRY: dict[str, object] = {
    "@type": "type.googleapis.com/google.rpc.RetryInfo",
    "retryDelay": "34.5s",
}
DAILY: dict[str, object] = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}],
}
BAD_KEY: dict[str, object] = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "API_KEY_INVALID",
}


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "ERR_MODEL_REFUSED", False),
        (403, "ERR_MODEL_AUTH", False),
        (404, "ERR_MODEL_REFUSED", False),
        (429, "ERR_MODEL_RATE_LIMIT", True),
        (500, "ERR_MODEL_SERVER", True),
        (503, "ERR_MODEL_SERVER", True),
        (504, "ERR_MODEL_SERVER", True),
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
    script = (
        Scripted(status=429, details=[RETRY]),
        Scripted(status=429, details=[DAILY, RETRY]),
        Scripted(status=503, headers={"retry-after": "3"}),
        Scripted(status=400, details=[BAD_KEY]),
    )
    async with asked(*script) as asking:
        errors = [await asking.fail() for _ in script]
    assert [error.retry_after_s for error in errors] == [34.5, 34.5, 3, None]
    assert [error.retryable for error in errors] == [True, False, True, False]
    assert errors[3].code == "ERR_MODEL_AUTH"


async def test_a_wrong_key_is_refused_and_not_shown() -> None:
    async with asked(said("x"), key="AIza-wrong-key-0123456789") as asking:
        error = await asking.fail()
    assert error.code == "ERR_MODEL_AUTH" and not error.retryable
    assert "AIza-wrong" not in f"{error}{asking.model!r}"


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [(503, "ERR_MODEL_SERVER", True), (429, "ERR_MODEL_RATE_LIMIT", True)],
)
async def test_an_error_inside_the_stream_is_an_error(
    status: int, code: str, retryable: bool
) -> None:
    async with asked(Scripted(parts=[text("Hal")], stream_error=status)) as asking:
        error = await asking.fail()
    assert asking.deltas() == ["Hal"]
    assert (error.code, error.retryable) == (code, retryable)


@pytest.mark.parametrize("ending", ["early", "drop"])
async def test_a_stream_that_ends_early_is_no_answer_and_names_no_call(ending: str) -> None:
    cut = Scripted(parts=[text("Hal"), call("fc1", "now")], ending=ending)  # type: ignore[arg-type]
    async with asked(cut, said("Hi.")) as asking:
        error = await asking.fail(replace(HELLO, tools=(NOW,)))
        assert asking.kinds() == ["TextDelta"]
        assert (error.code, error.retryable) == ("ERR_MODEL_CONNECTION", True)
        assert (await asking.ask()).messages[0].text == "Hi.", "the client is usable afterwards"


async def test_half_a_whole_answer_is_a_broken_connection() -> None:
    async with asked(Scripted(parts=[text("x" * 500)], ending="drop"), stream=False) as asking:
        error = await asking.fail()
    assert (error.code, error.retryable) == ("ERR_MODEL_CONNECTION", True)


GARBAGE = [
    b"data: {oops\n\n",
    b'data: "hello"\n\n',
    b"data: [1, 2]\n\n",
    b'data: {"error": {"message": "no code"}}\n\n',
    b'data: {"candidates": [{"content": {"role": "model", "parts": [{"text": 5}]}}]}\n\n',
    b'data: {"candidates": 5}\n\n',
    b'data: {"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]}\n\n',
]


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("ending", ["whole", "stall"])
async def test_garbage_in_the_stream_is_named_and_closes_it(garbage: bytes, ending: str) -> None:
    script = Scripted(parts=[text("Hm")], garbage=garbage, ending=ending)  # type: ignore[arg-type]
    async with asked(script) as asking:
        error = await asking.fail()
        assert error.code in ("ERR_MODEL_PROTOCOL", "ERR_MODEL_CONNECTION")
        if ending == "stall":
            async with asyncio.timeout(1):
                await asking.server.closed.wait()


@pytest.mark.parametrize("garbage", [b"{oops", b'"hello"', b'{"candidates": 5}'])
async def test_garbage_for_a_whole_answer_is_named(garbage: bytes) -> None:
    async with asked(Scripted(garbage=garbage), stream=False) as asking:
        error = await asking.fail()
    assert error.code == "ERR_MODEL_PROTOCOL"


async def test_fields_and_parts_of_tomorrow_are_passed_over() -> None:
    script = Scripted(
        parts=[{"executableCode": {"language": "PYTHON", "code": "1"}}, text("Hi.")],
        garbage=b'data: {"brandNew": 1, "candidates": [{"index": 0, "newField": {"a": 1},'
        b' "finishReason": "STOP"}]}\n\n',
    )
    async with asked(script) as asking:
        assert (await asking.ask()).messages[0].text == "Hi."


async def test_letters_split_across_packets_stay_whole() -> None:
    script = Scripted(parts=[text("Grüße ☺"), text("\u2028🎉")], split=1)
    async with asked(script) as asking:
        assert (await asking.ask()).messages[0].text == "Grüße ☺\u2028🎉"


@pytest.mark.parametrize("ending", ["stall", "half_open"])
async def test_a_silent_server_is_given_up(ending: str) -> None:
    silent = Scripted(parts=[text("Hm")], ending=ending)  # type: ignore[arg-type]
    async with asked(silent, timeout_s=0.2) as asking:
        error = await asking.fail()
        assert (error.code, error.retryable) == ("ERR_MODEL_STALLED", True)
        async with asyncio.timeout(2):
            await asking.server.closed.wait()


@pytest.mark.parametrize("stream", [True, False])
async def test_the_limit_of_a_request_bounds_the_whole_call(stream: bool) -> None:
    silent = Scripted(parts=[text("Hm")], ending="stall")
    async with asked(silent, stream=stream) as asking:
        error = await asking.fail(replace(HELLO, limits=ModelLimits(timeout_s=0.2)))
        assert (error.code, error.retryable) == ("ERR_MODEL_STALLED", True)
        async with asyncio.timeout(2):
            await asking.server.closed.wait()


async def test_nobody_listening_can_be_tried_again() -> None:
    model = GeminiModel(GeminiConfig(model="m", base_url="http://127.0.0.1:9"), Secret("x"))
    with pytest.raises(ModelError) as caught:
        await model.prompt(HELLO, lambda event: None, CancelToken())
    await model.aclose()
    assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_CONNECTION", True)


async def test_a_reporter_that_fails_closes_the_stream() -> None:
    async with asked(Scripted(parts=[text("One")], ending="stall")) as asking:

        def fail(event: object) -> None:
            raise RuntimeError("no ears")

        with pytest.raises(RuntimeError):
            await asking.model.prompt(HELLO, fail, CancelToken())
        async with asyncio.timeout(1):
            await asking.server.closed.wait()


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("STOP", "end_turn"),
        ("MAX_TOKENS", "max_tokens"),
        ("SAFETY", "refusal"),
        ("RECITATION", "refusal"),
        ("OTHER", "other"),
        ("BRAND_NEW", "brand_new"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.filterwarnings("ignore:BRAND_NEW is not a valid")
async def test_why_an_answer_stopped_is_told(finish: str, reason: str, stream: bool) -> None:
    async with asked(Scripted(parts=[text("Hi")], finish=finish), stream=stream) as asking:
        assert (await asking.ask()).stop_reason == reason


@pytest.mark.parametrize(
    ("script", "code", "retryable"),
    [
        (Scripted(prompt_block="SAFETY"), "ERR_MODEL_REFUSED", False),
        (Scripted(no_candidates=True), "ERR_MODEL_EMPTY", False),
        (Scripted(), "ERR_MODEL_EMPTY", False),
        (Scripted(finish="MAX_TOKENS"), "ERR_MODEL_EMPTY", False),
        (Scripted(finish="SAFETY"), "ERR_MODEL_REFUSED", False),
        (Scripted(finish="PROHIBITED_CONTENT"), "ERR_MODEL_REFUSED", False),
        (Scripted(finish="MALFORMED_FUNCTION_CALL"), "ERR_MODEL_PROTOCOL", True),
        (Scripted(finish="OTHER"), "ERR_MODEL_PROTOCOL", True),
        (Scripted(finish="MISSING_THOUGHT_SIGNATURE"), "ERR_MODEL_PROTOCOL", False),
        (
            Scripted(parts=[text("Well")], finish="MALFORMED_FUNCTION_CALL"),
            "ERR_MODEL_PROTOCOL",
            False,
        ),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_what_is_no_answer_is_an_error(
    script: Scripted, code: str, retryable: bool, stream: bool
) -> None:
    async with asked(script, stream=stream) as asking:
        error = await asking.fail()
    assert (error.code, error.retryable) == (code, retryable)


async def test_calls_of_a_withheld_answer_are_not_run() -> None:
    script = Scripted(parts=[text("I"), call("fc1", "now", {}, "U0lH")], finish="SAFETY")
    async with asked(script) as asking:
        result = await asking.ask(replace(HELLO, tools=(NOW,)))
    assert result.messages[0].tool_calls == () and "ToolUse" not in asking.kinds()
    assert result.stop_reason == "refusal"


async def test_an_empty_answer_is_one_behind_results() -> None:
    after = replace(
        HELLO,
        messages=(
            *HELLO.messages,
            asks(ToolCall("now", {}, "c1")),
            results(("now", "c1", ToolResultData("success", "noon"))),
        ),
    )
    async with asked(Scripted()) as asking:
        assert (await asking.ask(after)).messages[0].text == ""
