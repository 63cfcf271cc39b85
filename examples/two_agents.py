"""Two agents on a mesh: one at the desk, one in the kitchen, each with its own model and history.

    python two_agents.py

A message of the other one is an outside event: it joins what runs, or wakes an idle agent. Two
agents can therefore talk without a person; EventConfig.wake_budget bounds how long. For real models
replace the two ScriptedModels by create_adapter("openai") of voxglove.adapters.models.create.
"""

import asyncio

from voxglove.adapters.models.scripted import Call, ScriptedModel, say
from voxglove.core import (
    Agent,
    AgentConfig,
    EventConfig,
    Glove,
    Model,
    ModelResponseComplete,
    SubscriberEvent,
    ToolStarted,
)
from voxglove.core.mesh import AgentIdentity, MemoryMeshAdapter, MeshNetwork, mount_mesh

DESK = ScriptedModel(
    [
        say(Call("glove_mesh_list_agents"), expects="nuts"),
        say(
            Call(
                "glove_mesh_send_message",
                {"to": "kitchen", "content": "Is there anything without nuts today?"},
            )
        ),
        "I am asking the kitchen.",
        say("The soup has no nuts.", expects="lentil soup"),
    ]
)
KITCHEN = ScriptedModel(
    [
        say(
            Call("glove_mesh_send_message", {"to": "desk", "content": "Yes, the lentil soup."}),
            expects="without nuts",
        ),
        "Done.",
    ]
)


class Screen:
    """Prints what the agents say and send; `told` is set by the guest's answer."""

    def __init__(self) -> None:
        self.told = asyncio.Event()

    def record(self, event: SubscriberEvent) -> None:
        match event:
            case ToolStarted(tool_name="glove_mesh_send_message", input={"content": content}):
                print(f"  {event.agent} sends: {content}")
            case ModelResponseComplete() if event.text:
                print(f"{event.agent}: {event.text}")
                if "soup" in event.text:
                    self.told.set()


async def join(network: MeshNetwork, id: str, model: Model, screen: Screen) -> Agent:
    """An agent that is known to the others as `id`."""
    config = AgentConfig(name=id, events=EventConfig(wake_budget=5))
    agent = Glove(model=model, config=config).add_subscriber(screen).build()
    await mount_mesh(
        agent,
        adapter=MemoryMeshAdapter(network, id),
        identity=AgentIdentity(id=id, name=id.title(), description=f"Speaks for the {id}."),
        delivery="events",
    )
    return agent


async def main() -> None:
    network, screen = MeshNetwork(), Screen()
    desk = await join(network, "desk", DESK, screen)
    kitchen = await join(network, "kitchen", KITCHEN, screen)
    async with desk.running(), kitchen.running():
        print("guest: I must not eat nuts. What can I have?")
        await desk.process_request("I must not eat nuts. What can I have?")
        await screen.told.wait()


if __name__ == "__main__":
    asyncio.run(main())
