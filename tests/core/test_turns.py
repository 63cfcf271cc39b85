"""What a caller knows about his words when his request did not come to an answer."""

from __future__ import annotations

import asyncio

import pytest

from tests.core.support import (
    Recorder,
    ScriptedModel,
    SlowStore,
    call,
    hang,
    make_agent,
    make_tool,
    stored,
    until,
)
from voxglove.core import AbortError, CancelToken, Wake


async def test_an_abort_in_the_turn_queue_says_that_the_words_are_not_stored() -> None:
    agent, recorder, token = make_agent(ScriptedModel("hello")), Recorder(), CancelToken()
    async with agent.turn_queue.hold("another call"):
        request = asyncio.ensure_future(
            agent.process_request("hi", token=token, subscriber=recorder)
        )
        await until(lambda: agent.turn_queue.waiting == 1)
        token.abort("the user went on")
        with pytest.raises(AbortError) as caught:
            await request
    assert not caught.value.user_stored
    assert await stored(agent) == [] and recorder.wires == []
    assert (await agent.process_request("hi, it's me")).text == "hello"
    assert [message.text for message in await stored(agent)] == ["hi, it's me", "hello"]


async def test_a_token_that_fired_before_the_request_stores_nothing() -> None:
    agent, token = make_agent(ScriptedModel()), CancelToken()
    token.abort("the user went on")
    with pytest.raises(AbortError) as caught:
        await agent.process_request("hi", token=token)
    assert not caught.value.user_stored and await stored(agent) == []


async def test_an_abort_while_the_user_message_is_written_says_that_it_is_stored() -> None:
    agent, token = make_agent(ScriptedModel(), store=SlowStore()), CancelToken()
    request = asyncio.ensure_future(agent.process_request("hi", token=token))
    await until(lambda: agent.busy)
    token.abort("the user went on")
    with pytest.raises(AbortError) as caught:
        await request
    assert caught.value.user_stored
    assert [message.text for message in await stored(agent)] == ["hi"]


@pytest.mark.parametrize("where", ["model", "tool"])
async def test_an_abort_of_a_running_request_says_that_the_words_are_stored(where: str) -> None:
    started = asyncio.Event()

    async def stuck(value: object) -> None:
        started.set()
        await asyncio.Event().wait()

    model = ScriptedModel(hang("Well") if where == "model" else call(("act", {})))
    agent, token = make_agent(model, make_tool(stuck)), CancelToken()
    request = asyncio.ensure_future(agent.process_request("hi", token=token))
    await until(lambda: bool(model.requests) if where == "model" else started.is_set())
    token.abort("barge-in")
    with pytest.raises(AbortError) as caught:
        await request
    assert caught.value.user_stored
    assert (await stored(agent))[0].text == "hi"


async def test_a_wake_has_no_words_to_store() -> None:
    model = ScriptedModel(hang())
    agent, token = make_agent(model), CancelToken()
    request = asyncio.ensure_future(agent.process_request(Wake(note="look"), token=token))
    await until(lambda: bool(model.requests))
    token.abort("barge-in")
    with pytest.raises(AbortError) as caught:
        await request
    assert not caught.value.user_stored
