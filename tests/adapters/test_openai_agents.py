"""A real agent with tools on each of OpenAI's wires: several rounds, a cut in the middle."""

from __future__ import annotations

import asyncio

import pytest

from tests.adapters.openai_suite import CHAT, WIRES, Asked, Wire
from tests.simulators import openai_responses as responses
from tests.simulators.openai_chat import Scripted as ChatScripted
from tests.simulators.openai_chat import call_chunk, delta, finish
from voxglove.core import AbortError, Agent, CancelToken, Glove, Tool

pytestmark = [
    pytest.mark.real_loop,
    pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name),
]

SCHEMA = {"type": "object", "properties": {"day": {"type": "string"}}}


def make_agent(asked: Asked) -> Agent:
    """Two tools, one with a name that the wire does not take."""

    async def free(day: object) -> dict[str, int]:
        return {"tables": 3}

    async def book(day: object) -> str:
        return "booked"

    glove = Glove(model=asked.model, system_prompt="You are a host.")
    glove.fold(Tool(name="tables/free", description="Counts.", do=free, json_schema=SCHEMA))
    glove.fold(Tool(name="book", description="Books.", do=book, json_schema=SCHEMA))
    return glove.build()


def thoughtful(wire: Wire, sealed: str, *calls: tuple[str, str, str]) -> object:
    """A reply that thinks before it calls, in the manner of the wire."""
    if wire is CHAT:
        made = [call_chunk(at, *one) for at, one in enumerate(calls)]
        thought = delta({"reasoning_content": f"thinking {sealed}"})
        return ChatScripted(choices=[thought, *made, finish("tool_calls")])
    items = [responses.think(sealed, id=f"rs_{sealed}")]
    items += [responses.call(id, name, arguments) for id, name, arguments in calls]
    return responses.Scripted(items=items)


async def test_an_agent_talks_over_several_rounds_of_tools(wire: Wire) -> None:
    # What the wire calls the tool `tables/free`, as a model would have read it there.
    async with wire.asked(wire.said("Hello!"), compatible=wire is CHAT) as asked:
        await make_agent(asked).process_request("hi")
        listed = asked.body["tools"]
        assert isinstance(listed, list)
        name = (listed[0].get("function") or listed[0])["name"]
    script = [
        thoughtful(wire, "one", ("a1", name, '{"day": "friday"}')),
        thoughtful(wire, "two", ("a2", name, "{}"), ("a3", "book", '{"day": "friday"}')),
        wire.said("Booked ", "for you.", counted=True),
        thoughtful(wire, "three", ("a1", "book", "{oops")),  # an id that was there before
        wire.said("Bye."),
    ]
    async with wire.asked(*script, compatible=wire is CHAT) as asked:  # type: ignore[arg-type]
        agent = make_agent(asked)
        first = await agent.process_request("a table on friday")
        second = await agent.process_request("once more")
    assert (first.text, first.model_calls) == ("Booked for you.", 3)
    assert (second.text, second.model_calls) == ("Bye.", 2)
    assert first.usage.tokens_in == 20
    assert asked.server.refused == [] and len(asked.server.bodies) == 5
    stored = await agent.store.get_messages()
    called = [one.tool_name for message in stored for one in message.tool_calls]
    assert called == ["tables/free", "tables/free", "book", "book"]
    ids = [one.id for message in stored for one in message.tool_calls]
    assert len(set(ids)) == 4
    last = str(asked.body)
    if wire is CHAT:
        assert all(f"thinking {word}" in last for word in ("one", "two", "three"))
    else:
        assert all(f"rs_{word}" in last for word in ("one", "two", "three"))


async def test_a_cut_answer_is_kept_and_the_next_request_is_valid(wire: Wire) -> None:
    async with wire.asked(wire.said("A long ", ends="hangs"), wire.said("Yes?")) as asked:
        agent, token = make_agent(asked), CancelToken()

        async def talk() -> None:
            with pytest.raises(AbortError):
                await agent.process_request("tell me", token=token)

        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            group.create_task(talk())
            while not asked.server.bodies:  # noqa: ASYNC110 - the server is polled
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.1)
            token.abort("barge-in")
        result = await agent.process_request("wait")
        async with asyncio.timeout(1):
            await asked.server.closed.wait()
    assert result.text == "Yes?" and asked.server.refused == []
    assert "A long  [interrupted]" in str(asked.body)
