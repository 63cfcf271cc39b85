"""What only Gemini fails with: the details of its errors, and its many reasons to finish."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.adapters.gemini_rig import GEMINI
from tests.adapters.model_rig import HELLO, NOW
from tests.simulators.gemini_generate import Scripted, call, text

pytestmark = pytest.mark.real_loop
asked = GEMINI.asked

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


async def test_fields_and_parts_of_tomorrow_are_passed_over() -> None:
    script = Scripted(
        parts=[{"executableCode": {"language": "PYTHON", "code": "1"}}, text("Hi.")],
        garbage=b'data: {"brandNew": 1, "candidates": [{"index": 0, "newField": {"a": 1},'
        b' "finishReason": "STOP"}]}\n\n',
    )
    async with asked(script) as asking:
        assert (await asking.ask()).messages[0].text == "Hi."


async def test_calls_of_a_withheld_answer_are_not_run() -> None:
    script = Scripted(parts=[text("I"), call("fc1", "now", {}, "U0lH")], finish="SAFETY")
    async with asked(script) as asking:
        result = await asking.ask(replace(HELLO, tools=(NOW,)))
    assert result.messages[0].tool_calls == () and "ToolUse" not in asking.kinds()
    assert result.stop_reason == "refusal"


async def test_an_error_inside_the_stream_is_an_error() -> None:
    cases = [(503, "ERR_MODEL_SERVER"), (429, "ERR_MODEL_RATE_LIMIT")]
    scripts = [Scripted(parts=[text("Hal")], stream_error=status) for status, _ in cases]
    async with asked(*scripts) as asking:
        errors = [await asking.fail() for _ in cases]
    assert [(error.code, error.retryable) for error in errors] == [
        (code, True) for _, code in cases
    ]
    assert asking.deltas() == ["Hal", "Hal"]


async def test_an_error_without_a_status_is_one_and_closes_the_stream() -> None:
    garbage = b'data: {"error": {"message": "no code"}}\n\n'
    async with asked(Scripted(parts=[text("Hm")], garbage=garbage, ending="stall")) as asking:
        error = await asking.fail()
        assert error.code in ("ERR_MODEL_PROTOCOL", "ERR_MODEL_CONNECTION")
        async with asyncio.timeout(1):
            await asking.server.closed.wait()


async def test_garbage_for_a_whole_answer_is_named() -> None:
    garbage = (b"{oops", b'"hello"', b'{"candidates": 5}')
    async with asked(*(Scripted(garbage=one) for one in garbage), stream=False) as asking:
        codes = [(await asking.fail()).code for _ in garbage]
    assert set(codes) == {"ERR_MODEL_PROTOCOL"}


@pytest.mark.filterwarnings("ignore:BRAND_NEW is not a valid")
async def test_why_an_answer_stopped_is_told() -> None:
    reasons = {
        "STOP": "end_turn",
        "MAX_TOKENS": "max_tokens",
        "SAFETY": "refusal",
        "RECITATION": "refusal",
        "OTHER": "other",
        "BRAND_NEW": "brand_new",
    }
    scripts = [Scripted(parts=[text("Hi")], finish=finish) for finish in reasons]
    for stream in (True, False):
        async with asked(*scripts, stream=stream) as asking:
            stops = [(await asking.ask()).stop_reason for _ in scripts]
        assert stops == list(reasons.values())


NO_ANSWERS = [
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
]


@pytest.mark.parametrize("stream", [True, False])
async def test_what_is_no_answer_is_an_error(stream: bool) -> None:
    async with asked(*(script for script, _, _ in NO_ANSWERS), stream=stream) as asking:
        for script, code, retryable in NO_ANSWERS:
            error = await asking.fail()
            assert (script, error.code, error.retryable) == (script, code, retryable)
