"""The example of a user's own agent is short, loads by its import path and has its tool."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.web.frontdesk.caller import NOW
from voxglove.adapters.models.demo import DemoModel
from voxglove.adapters.models.scripted import Call, ScriptedModel, say
from voxglove.core.factory import CallInfo
from voxglove.web.frontdesk import Bookings, frontdesk_factory

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_agent.py"


async def test_the_example_answers_with_its_own_tool() -> None:
    pytest.importorskip("openai")
    assert len(EXAMPLE.read_text().splitlines()) < 30
    spec = importlib.util.spec_from_file_location("own_agent", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    agent = module.factory(CallInfo(call_id="call_1"))
    agent.set_model(ScriptedModel([say(Call("stock", {"item": "Umbrella"})), say("Three.")]))
    await agent.process_request("How many umbrellas do you have?")
    messages = await agent.store.get_messages()
    assert [one.result.data for message in messages for one in message.tool_results] == [3]
    assert messages[-1].text == "Three."


async def test_the_front_desks_factory_shares_one_book_between_calls() -> None:
    book = Bookings(":memory:")
    model = DemoModel(clock=lambda: NOW)
    factory = frontdesk_factory(book, lambda info: model, clock=lambda: NOW)
    first, second = (factory(CallInfo(call_id=f"call_{number}")) for number in (1, 2))
    assert first.store.identifier == "call_1"
    await first.process_request("A table for two tomorrow at eight under Anna Smith")
    await first.process_request("yes")
    result = await second.process_request("Do I have a booking? My name is Anna Smith")
    assert result.text == (
        "You have a table for two tomorrow at eight o'clock for Anna Smith. Is there anything else?"
    )
    book.close()
