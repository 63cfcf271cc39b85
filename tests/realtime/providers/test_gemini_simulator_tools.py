"""Tool calls of the simulated Gemini Live API: what blocks, what does not, what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.realtime.providers.gemini_peer import (
    Json,
    Peer,
    assert_clean,
    content,
    opened,
    order_of,
    sound_of,
)
from tests.simulators.gemini_live import GeminiLive, gemini_live
from tests.simulators.realtime_script import Asked, Call, Reply, Script

LONG = "alpha bravo charlie delta echo foxtrot golf hotel"


def declared(**fields: object) -> Json:
    return {"functionDeclarations": [{"name": "lookup", **fields}]}


def answer_of(id: str, name: str = "lookup", **fields: object) -> Json:
    answer: Json = {"id": id, "name": name, "response": {"output": "two"}, **fields}
    return {"toolResponse": {"functionResponses": [answer]}}


async def begin_long(peer: Peer) -> None:
    """Typed; a few chunks of the answer have come."""
    await peer.send({"realtimeInput": {"text": "one"}})
    for _ in range(3):
        await peer.until("modelTurn")


def long_then_echo(asked: Asked) -> Reply:
    return Reply(text=LONG if asked.text == "one" else f"echo {asked.text}")


def calls_then(text: str) -> Callable[[Asked], Reply]:
    """Calls on "call", says `text` for results, echoes the rest."""

    def answer(asked: Asked) -> Reply:
        if asked.by == "results":
            return Reply(text=f"{text} {' '.join(asked.results.values())}")
        if asked.text == "call":
            return Reply(calls=(Call(name="lookup", id="fc-a"), Call(name="lookup", id="fc-b")))
        return long_then_echo(asked)

    return answer


async def test_a_model_that_blocks_is_silent_until_every_call_is_answered() -> None:
    script = Script(answer=calls_then("golf"))
    async with gemini_live(script, generation="3.1") as server, opened(server) as peer:
        await peer.send({"realtimeInput": {"text": "call"}})
        await peer.until("toolCall")
        await peer.send(answer_of("fc-a"))
        await asyncio.sleep(5)
        await peer.send(answer_of("fc-b"))
        turn = await peer.until("turnComplete")
    assert sound_of(turn) == ["golf", "two", "two"]
    assert order_of(turn)[0] in ("modelTurn", "outputTranscription")
    assert list(server.tool_responses) == ["fc-a", "fc-b"]
    assert_clean(server)


async def call_and_begin_long(peer: Peer) -> None:
    """Two calls run beside the model, which answers something else at length."""
    await peer.send({"realtimeInput": {"text": "call"}})
    await peer.until("toolCall")
    ending = (await peer.until("turnComplete"))[-1]
    assert content(ending)["interactionStatus"] == "IN_PROGRESS"
    await begin_long(peer)


async def run_loose(scheduling: str) -> tuple[GeminiLive, list[str], list[str]]:
    """Order of what came after the first result, and what was said after that turn."""
    script = Script(answer=calls_then("golf"))
    async with gemini_live(script) as server, opened(server, tools=[declared()]) as peer:
        await call_and_begin_long(peer)
        await peer.send(answer_of("fc-a", scheduling=scheduling))
        first = order_of(await peer.until("turnComplete"))
        await peer.send({"realtimeInput": {"text": "six"}})
        second = sound_of(await peer.until("turnComplete"))
    assert_clean(server)
    return server, first, second


async def test_a_result_may_wait_until_the_model_is_idle() -> None:
    _, first, second = await run_loose("WHEN_IDLE")
    assert "interrupted" not in first and second == ["golf", "two"]


async def test_a_result_may_cut_the_model() -> None:
    _, first, second = await run_loose("INTERRUPT")
    assert first[-2:] == ["interrupted", "turnComplete"] and second == ["golf", "two"]


async def test_a_result_may_be_told_in_silence() -> None:
    server, first, second = await run_loose("SILENT")
    assert "interrupted" not in first and second == ["echo", "six"]
    assert ("tool", "two") in server.conversation


async def test_a_call_that_does_not_block_may_be_answered_in_parts_and_outlives_barge_in() -> None:
    script = Script(answer=calls_then("golf"))
    async with gemini_live(script) as server, opened(server, tools=[declared()]) as peer:
        await call_and_begin_long(peer)
        await peer.speak("six")
        cut = await peer.until("turnComplete")
        assert "toolCallCancellation" not in order_of(cut)
        await peer.until("turnComplete")
        for more in (True, False):
            await peer.send(answer_of("fc-a", willContinue=more))
            assert sound_of(await peer.until("turnComplete")) == ["golf", "two"]
    assert_clean(server)


CALLS = Reply(calls=(Call(name="lookup", id="fc-a"),))


async def called(peer: Peer) -> None:
    await peer.send({"realtimeInput": {"text": "alpha"}})
    await peer.until("toolCall")


@pytest.mark.parametrize(
    ("answer", "code", "reason"),
    [
        (answer_of("fc-9"), 1008, "functionResponses.id: fc-9 is unknown"),
        (answer_of("fc-a", name="other"), 1007, "fc-a is a call of lookup"),
        (answer_of("fc-a", scheduling="SILENT"), 1007, "lookup is not NON_BLOCKING"),
        (answer_of("fc-a", willContinue=True), 1007, "lookup is not NON_BLOCKING"),
    ],
)
async def test_a_tool_response_is_refused(answer: Json, code: int, reason: str) -> None:
    tools = [declared(behavior="BLOCKING")]
    script = Script(answer=lambda asked: CALLS)
    async with gemini_live(script) as server, opened(server, tools=tools) as peer:
        await called(peer)
        await peer.send(answer)
        closed = await peer.refused()
    assert closed[0] == code and reason in closed[1]
    assert server.violations == [closed[1]] and server.tool_responses == {}


async def test_a_call_is_answered_once() -> None:
    script = Script(answer=lambda asked: CALLS if asked.by == "text" else Reply(text="golf"))
    async with gemini_live(script) as server, opened(server, tools=[declared()]) as peer:
        await called(peer)
        await peer.send(answer_of("fc-a"))
        await peer.until("generationComplete")
        await peer.send(answer_of("fc-a"))
        closed = await peer.refused()
    assert closed == (1008, "functionResponses.id: fc-a is answered already")


async def test_a_cancelled_call_is_not_answered() -> None:
    script = Script(answer=lambda asked: CALLS if asked.by == "text" else Reply())
    tools = [declared(behavior="BLOCKING")]
    async with gemini_live(script) as server, opened(server, tools=tools) as peer:
        await called(peer)
        await peer.speak("bravo")
        got = await peer.until("turnComplete")
        assert {"toolCallCancellation": {"ids": ["fc-a"]}} in got
        await peer.send(answer_of("fc-a"))
        closed = await peer.refused()
    assert closed == (1008, "functionResponses.id: fc-a is cancelled")
    assert server.violations == [closed[1]]
