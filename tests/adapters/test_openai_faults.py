"""How both of OpenAI's wires fail and stop: refusals, silence, garbage, cuts at any moment."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from tests.adapters.openai_suite import CHAT, HELLO, WIRES, Asked, Wire
from voxglove.core.cancel import CancelToken
from voxglove.core.errors import AbortError, ModelError
from voxglove.core.model import ModelLimits, ModelRequest

pytestmark = [
    pytest.mark.real_loop,
    pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name),
]


@pytest.mark.parametrize("options", [{"ends": "hangs"}, {"silent": True}])
async def test_a_request_past_its_time_has_stalled(wire: Wire, options: dict[str, object]) -> None:
    limits = ModelLimits(timeout_s=0.2)
    async with wire.asked(wire.said("Hm", **options)) as call:
        started = asyncio.get_running_loop().time()
        with pytest.raises(ModelError) as caught:
            await call.ask(ModelRequest(messages=HELLO.messages, limits=limits))
        took = asyncio.get_running_loop().time() - started
        if call.server.bodies:  # a busy machine may not have come so far
            async with asyncio.timeout(2):
                await call.server.closed.wait()
    assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_STALLED", True)
    assert 0.19 < took < 2, "the server's silence is allowed 5 s"


@pytest.mark.parametrize("options", [{"ends": "hangs"}, {"silent": True}])
async def test_a_silent_server_is_given_up(wire: Wire, options: dict[str, object]) -> None:
    async with wire.asked(wire.said("Hm", **options), timeout_s=0.15) as call:
        with pytest.raises(ModelError) as caught:
            await call.ask()
    assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_STALLED", True)


REFUSALS: list[tuple[int, dict[str, object], str, bool]] = [
    (400, {"message": "no"}, "ERR_MODEL_REFUSED", False),
    (404, {"message": "no such model"}, "ERR_MODEL_REFUSED", False),
    (403, {"message": "no"}, "ERR_MODEL_AUTH", False),
    (413, {"message": "too long"}, "ERR_MODEL_TOO_LARGE", False),
    (429, {"message": "slow"}, "ERR_MODEL_RATE_LIMIT", True),
    (429, {"message": "pay", "code": "insufficient_quota"}, "ERR_MODEL_RATE_LIMIT", False),
    (429, {"message": "pay", "type": "insufficient_quota"}, "ERR_MODEL_RATE_LIMIT", False),
    (500, {"message": "oops"}, "ERR_MODEL_SERVER", True),
    (503, {"message": "busy"}, "ERR_MODEL_SERVER", True),
]


async def test_refusals_say_whether_to_try_again(wire: Wire) -> None:
    scripts = [wire.said(status=status, error=error) for status, error, _, _ in REFUSALS]
    async with wire.asked(*scripts) as call:
        for _, error, code, retryable in REFUSALS:
            with pytest.raises(ModelError, match=str(error["message"])) as caught:
                await call.ask()
            assert (caught.value.code, caught.value.retryable) == (code, retryable)
            assert caught.value.__cause__ is not None and caught.value.retry_after_s is None
    assert len(call.server.bodies) == len(REFUSALS), "the SDK retried by itself"


async def test_a_wish_to_wait_is_passed_on(wire: Wire) -> None:
    wishes = [{"retry-after": "3"}, {"retry-after-ms": "3000"}]
    busy = [wire.said(status=429, error={"message": "slow"}, headers=wish) for wish in wishes]
    async with wire.asked(*busy) as call:
        for _ in wishes:
            with pytest.raises(ModelError) as caught:
                await call.ask()
            assert caught.value.retry_after_s == 3


async def test_a_wrong_key_is_refused_and_not_shown(wire: Wire) -> None:
    async with wire.asked(wire.said("x"), key="sk-wrong-key-0123456789") as call:
        with pytest.raises(ModelError) as caught:
            await call.ask()
    assert caught.value.code == "ERR_MODEL_AUTH" and not caught.value.retryable
    assert "sk-wrong-key" not in f"{caught.value}{call.model!r}"


async def test_an_error_inside_the_stream_is_an_error(wire: Wire) -> None:
    cases = [
        ("server_error", "ERR_MODEL_SERVER", True),
        ("rate_limit_exceeded", "ERR_MODEL_RATE_LIMIT", True),
        ("invalid_prompt", "ERR_MODEL_REFUSED", False),
        ("never_heard_of", "ERR_MODEL_SERVER", False),
    ]
    async with wire.asked(*(wire.failing("boom", word) for word, _, _ in cases)) as call:
        for _, code, retryable in cases:
            with pytest.raises(ModelError, match="boom") as caught:
                await call.ask()
            assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert call.deltas() == ["Hal"] * len(cases)


async def test_a_stream_that_ends_early_is_no_answer(wire: Wire) -> None:
    async with wire.asked(wire.said("Hal", ends="drops")) as call:
        with pytest.raises(ModelError) as caught:
            await call.ask()
    assert call.deltas() == ["Hal"]
    assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_CONNECTION", True)


async def test_garbage_in_the_stream_is_named(wire: Wire) -> None:
    garbage = ["data: {oops\n\n", "data: [1]\n\n", "data: 7\n\n"]
    async with wire.asked(*(wire.said("Hm", raw=raw) for raw in garbage)) as call:
        for _ in garbage:
            with pytest.raises(ModelError) as caught:
                await call.ask()
            assert caught.value.code == "ERR_MODEL_PROTOCOL"


async def test_an_event_that_says_nothing_is_passed_over(wire: Wire) -> None:
    async with wire.asked(wire.said("Hm", raw='data: {"type": "new.kind"}\n\n: note\n\n')) as call:
        assert (await call.ask()).messages[0].text == "Hm"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_body_that_is_no_answer_is_an_error(wire: Wire, stream: bool) -> None:
    bodies = [b"", b"<html>", b"{}", b"[1]", b'"x"', b'{"choices": [1], "output": [1]}']
    async with wire.asked(*(wire.said("x", body=body) for body in bodies), stream=stream) as call:
        for body in bodies:
            with pytest.raises(ModelError) as caught:
                await call.ask()
            empty = wire is CHAT and body == b"{}"
            whole = "ERR_MODEL_EMPTY" if empty else "ERR_MODEL_PROTOCOL"
            assert caught.value.code == ("ERR_MODEL_CONNECTION" if stream else whole)


async def test_nobody_listening_can_be_tried_again(wire: Wire) -> None:
    async with wire.asked(base_url="http://127.0.0.1:9/v1") as call:
        with pytest.raises(ModelError) as caught:
            await call.ask()
    assert (caught.value.code, caught.value.retryable) == ("ERR_MODEL_CONNECTION", True)


async def begun(call: Asked, requests: int, *, speaks: bool) -> None:
    """Until the server has more than so many requests, and the model said something."""
    while len(call.server.bodies) <= requests or (speaks and not call.events):  # noqa: ASYNC110
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("options", [{"ends": "hangs"}, {"silent": True}])
@pytest.mark.parametrize("by_token", [True, False])
async def test_stopping_closes_the_http_stream_within_100_ms(
    wire: Wire, by_token: bool, options: dict[str, object]
) -> None:
    scripts = [wire.said("One", **options) for _ in range(3)]
    loop, took = asyncio.get_running_loop(), []
    async with wire.asked(*scripts) as call:
        for attempt in range(3):  # the best of three: the machine may be busy
            call.token, call.events = CancelToken(), []
            call.server.closed.clear()

            async def ask_in_vain() -> None:
                with pytest.raises(AbortError if by_token else asyncio.CancelledError):
                    await call.ask()

            async with asyncio.timeout(5), asyncio.TaskGroup() as group:
                task = group.create_task(ask_in_vain())
                await begun(call, attempt, speaks="silent" not in options)
                started = loop.time()
                if by_token:
                    call.token.abort("barge-in")
                else:
                    task.cancel()
            async with asyncio.timeout(2):
                await call.server.closed.wait()
            took.append(call.server.left_at - started)
    assert min(took) < 0.1


async def test_a_cut_at_any_moment_leaves_nothing_open(wire: Wire) -> None:
    moments = [step / 1000 for step in range(0, 20, 2)]
    options: dict[str, object] = {"write_bytes": 40}
    scripts = [wire.said("One ", "two ", "three.", **options) for _ in range(2 * len(moments))]
    async with wire.asked(*scripts, wire.said("Well?")) as call:
        for moment in moments:
            for by_token in (True, False):
                call.token = CancelToken()
                async with asyncio.TaskGroup() as group:
                    task = group.create_task(ended(call))
                    await asyncio.sleep(moment)
                    if by_token:
                        call.token.abort("barge-in")
                    else:
                        task.cancel()
        call.token = CancelToken()
        call.server.rest_of_script(1)
        result = await call.ask()
        async with asyncio.timeout(2):
            while call.server.streams:  # noqa: ASYNC110 - the server is polled
                await asyncio.sleep(0.005)
    assert result.messages[0].text == "Well?" and call.server.refused == []


async def ended(call: Asked) -> None:
    """Ask, and take an abort for an answer."""
    with suppress(AbortError):
        await call.ask()
