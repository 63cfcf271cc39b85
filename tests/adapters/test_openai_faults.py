"""What only OpenAI's wires fail with: spent quotas, errors by name, bodies of odd servers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.model_rig import said
from tests.adapters.openai_rig import CHAT, RIGS, AnyRig
from tests.simulators import openai_chat as chat
from tests.simulators import openai_responses as responses
from tests.simulators.sse import Json

pytestmark = [
    pytest.mark.real_loop,
    pytest.mark.parametrize("wire", RIGS, ids=repr),
]


async def test_a_spent_quota_is_not_tried_again(wire: AnyRig) -> None:
    errors: list[Json] = [
        {"message": "pay", "code": "insufficient_quota"},
        {"message": "pay", "type": "insufficient_quota"},
    ]
    async with wire.asked(*(said(status=429, error=one) for one in errors)) as call:
        for _ in errors:
            error = await call.fail()
            assert (error.code, error.retryable) == ("ERR_MODEL_RATE_LIMIT", False)
            assert "pay" in str(error), "in the server's words"


async def test_an_error_inside_the_stream_is_known_by_its_name(wire: AnyRig) -> None:
    cases = [
        ("server_error", "ERR_MODEL_SERVER", True),
        ("rate_limit_exceeded", "ERR_MODEL_RATE_LIMIT", True),
        ("invalid_prompt", "ERR_MODEL_REFUSED", False),
        ("never_heard_of", "ERR_MODEL_SERVER", False),
    ]
    async with wire.asked(*(failing(wire, word) for word, _, _ in cases)) as call:
        for _, code, retryable in cases:
            error = await call.fail()
            assert "boom" in str(error)
            assert (error.code, error.retryable) == (code, retryable)
    assert call.deltas() == ["Hal"] * len(cases)


def failing(wire: AnyRig, code: str) -> Any:
    error: Json = {"message": "boom", "code": code}
    if wire is CHAT:
        return chat.Scripted(choices=[chat.text_chunk("Hal")], stream_error=error | {"type": code})
    return responses.Scripted(items=[responses.say("Hal")], failure=error)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_body_that_is_no_answer_is_an_error(wire: AnyRig, stream: bool) -> None:
    bodies = [b"", b"<html>", b"{}", b"[1]", b'"x"', b'{"choices": [1], "output": [1]}']
    async with wire.asked(*(said(body=body) for body in bodies), stream=stream) as call:
        for body in bodies:
            empty = wire is CHAT and body == b"{}"
            whole = "ERR_MODEL_EMPTY" if empty else "ERR_MODEL_PROTOCOL"
            wanted = "ERR_MODEL_CONNECTION" if stream else whole
            assert (await call.fail()).code == wanted
