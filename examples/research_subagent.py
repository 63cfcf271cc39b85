"""An agent that hands reading to a sub-agent, and a screen that tells the two apart.

    python research_subagent.py

A sub-agent is a whole agent with its own prompt, tools and history; it gets the task as its only
message and gives one text back. Its events arrive wrapped, so that nobody takes its words for the
agent's. For real models replace the ScriptedModels by create_adapter("openai") of
voxglove.adapters.models.create.
"""

import asyncio

from voxglove.adapters.models.scripted import Call, ScriptedModel, Step, say
from voxglove.core import (
    Agent,
    Glove,
    ModelResponseComplete,
    SubAgentCompleted,
    SubAgentContext,
    SubAgentEvent,
    SubAgentInvoked,
    SubscriberEvent,
    ToolUseResult,
    tool,
)

SHELF = {"opus": "Opus is an audio codec of 2012, RFC 6716.", "g711": "G.711 is a codec of 1972."}

READER: list[Step | str] = [
    say(Call("read", {"title": "opus"}), Call("read", {"title": "g711"})),
    "Opus is 40 years younger than G.711.",
]
DESK: list[Step | str] = [
    say(
        "One moment. ",
        Call("glove_invoke_subagent", {"name": "reader", "prompt": "Compare Opus and G.711."}),
    ),
    "Opus is the younger one, by 40 years.",
]


@tool(read_only=True, parallel=True)
def read(title: str) -> str:
    """A page of the shelf."""
    return SHELF.get(title, f"There is no such page. Pages: {', '.join(SHELF)}")


async def reader(context: SubAgentContext) -> Agent:
    """Called for each task. `durable` keeps what this reader has read, under its name."""
    store = await context.store(durable=True)
    agent = Glove(model=ScriptedModel(READER), system_prompt="Read, then answer in a sentence.")
    return agent.fold(read).build(store)  # context.parent.model would be the parent's own


class Screen:
    """A subscriber: hears every event, in order, from a task of its own."""

    def record(self, event: SubscriberEvent) -> None:
        match event:
            case SubAgentInvoked():
                print(f"  > {event.name}: {event.prompt}")
            case SubAgentEvent(event=ToolUseResult() as inner):
                print(f"  | {event.name} read: {inner.result.data}")
            case SubAgentCompleted():
                print(f"  < {event.name}: {event.status}")
            case ModelResponseComplete() if event.text.strip():
                print(f"agent: {event.text.strip()}")


async def main() -> None:
    glove = Glove(model=ScriptedModel(DESK), system_prompt="Hand reading to the reader.")
    glove.define_sub_agent("reader", reader, description="Reads pages and compares them.")
    agent = glove.add_subscriber(Screen()).build()
    await agent.process_request("Which is younger, Opus or G.711?")


if __name__ == "__main__":
    asyncio.run(main())
