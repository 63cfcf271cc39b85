"""Fault 21, where the mesh's own tests do not look: what is left of an agent that left."""

from __future__ import annotations

import pytest

from tests.core.support import ScriptedModel, make_agent
from voxglove.core.mesh import (
    AgentIdentity,
    DeliveryMode,
    MemoryMeshAdapter,
    MeshMessage,
    MeshNetwork,
    mount_mesh,
)


@pytest.mark.parametrize("delivery", ["inbox", "events"])
async def test_fault_21_who_left_hears_nothing_meant_for_his_successor(
    delivery: DeliveryMode,
) -> None:
    network, model = MeshNetwork(), ScriptedModel("hello")
    who = AgentIdentity(id="desk", name="Desk", description="answers")
    agent = make_agent(model)
    adapter = MemoryMeshAdapter(network, "desk")
    mesh = await mount_mesh(agent, adapter=adapter, identity=who, delivery=delivery)
    await mesh.unmount()
    network.register(who)  # another agent took the place
    other = MemoryMeshAdapter(network, "other")
    await other.register(AgentIdentity(id="other", name="Other", description="asks"))
    await other.send(
        MeshMessage(
            id="m1",
            from_id="other",
            to="desk",
            content="for you",
            created_at="2026-01-01T10:00:00Z",
        )
    )
    await agent.process_request("hi")
    assert [one.text for one in model.requests[0].messages] == ["hi"]
