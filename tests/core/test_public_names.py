"""The public names of the core, pinned: removing or renaming one is a decision, not an accident."""

from __future__ import annotations

import inspect

import voxglove.core as core
from tests.core.support import ScriptedModel
from voxglove.core import Agent, AgentFactory, CallInfo, Glove, MemoryStore


def test_every_exported_name_exists_once() -> None:
    assert sorted(set(core.__all__)) == core.__all__
    assert all(hasattr(core, name) for name in core.__all__)


def test_process_request_keeps_its_parameters() -> None:
    parameters = list(inspect.signature(Agent.process_request).parameters)
    assert parameters == [
        "self",
        "request",
        "token",
        "hold",
        "playback",
        "subscriber",
        "committed",
        "message_id",
        "limits",
    ]


def test_events_keep_the_wire_names_of_the_seeds() -> None:
    wires = {event.wire for event in core.SubscriberEvent.__args__}
    assert wires >= {
        "text_delta",
        "tool_use",
        "model_response",
        "model_response_complete",
        "tool_use_result",
        "compaction_start",
        "compaction_end",
        "token_consumption",
        "event_received",
        "event_injected",
    }


async def test_a_factory_makes_the_agent_of_a_call() -> None:
    def front_desk(call: CallInfo) -> Agent:
        return Glove(model=ScriptedModel("hello"), store=MemoryStore(call.call_id)).build()

    factory: AgentFactory = front_desk
    agent = factory(CallInfo(call_id="c-1", line="fixture"))
    assert agent.store.identifier == "c-1"
    assert (await agent.process_request("hi")).text == "hello"
