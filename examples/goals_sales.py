"""A sales conversation with goals, and an offer that arrives in the middle of it.

    python goals_sales.py

The goals are the application's, kept with versions; the model records progress by a tool and is
shown where it stands at every call. The offer comes from outside: an idle agent is woken by it and
speaks first. For a real model replace ScriptedModel(SCRIPT) by create_adapter("openai") of
voxglove.adapters.models.create.
"""

import asyncio

from voxglove.adapters.models.scripted import Call, ScriptedModel, Step, say
from voxglove.core import (
    AgentEvent,
    Glove,
    ModelResponseComplete,
    RequestEnded,
    RequestStarted,
    SubscriberEvent,
)
from voxglove.core.goals import (
    Goal,
    GoalHooks,
    GoalInstance,
    GoalSpec,
    MemoryGoalAdapter,
    Program,
    Scope,
    use_goal_runner,
)

SALE = Program(
    id="pilot",
    goals=(
        GoalSpec(id="need", title="Need", done_when="we know how large the team is"),
        GoalSpec(id="offer", title="Offer", done_when="they heard the present price"),
        GoalSpec(id="date", title="Date", done_when="a first call is agreed or refused"),
    ),
)


def met(goal: str, version: int, note: str) -> Call:
    progress = {"goal_id": goal, "status": "met", "note": note, "expected_version": version}
    return Call("glove_goal_update", progress)


SCRIPT: list[Step | str] = [
    "Hello! How many of you answer calls?",
    say(met("need", 1, "12 people")),
    "Twelve, thank you. Shall we talk on Tuesday?",
    say(met("offer", 2, "20 % less until Friday")),
    "This just came in: until Friday a team of twelve pays 20 % less.",
    say(met("date", 3, "Tuesday at ten")),
    "Tuesday at ten it is.",
]


class OwnWords:
    """Prints what the agent says unasked: the answers of requests without a user message."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._wake = ""

    def record(self, event: SubscriberEvent) -> None:
        match event:
            case RequestStarted(user_message_id=None):
                self._wake = event.run_id
            case ModelResponseComplete(run_id=self._wake) if event.text:
                print(f"agent:    {event.text}")
            case RequestEnded(run_id=self._wake):
                self.ended.set()


def tell(goal: Goal, goals: GoalInstance) -> None:
    """Runs when a goal ended. At least once: what was interrupted runs again at the next turn."""
    print(f"          ({goal.title}: {goal.status}, {goal.note})")


async def main() -> None:
    own_words = OwnWords()
    glove = Glove(model=ScriptedModel(SCRIPT), system_prompt="You sell voxglove.")
    agent = glove.add_subscriber(own_words).build()
    scope = Scope(subject="customer-7", key="pilot")
    goals = use_goal_runner(agent, MemoryGoalAdapter(), scope=scope, hooks=GoalHooks(on_end=tell))
    await goals.start(SALE)

    async def say_to_it(words: str) -> None:
        print(f"customer: {words}")
        print(f"agent:    {(await agent.process_request(words)).text}")

    async with agent.running():  # an idle agent can be woken in here, and only in here
        await say_to_it("Hi.")
        await say_to_it("There are twelve of us.")
        offer = AgentEvent(
            id="offer:9", source="product-catalog", content="Teams from 10: 20 % off until Friday."
        )
        receipt = await agent.emit_event(offer)
        print(f"          (an event came: {receipt.status})")
        await own_words.ended.wait()
        await say_to_it("Tuesday at ten is fine.")
    stands = await goals.status()
    if stands is not None:
        print(f"          (complete: {stands.complete}, at version {stands.version})")


if __name__ == "__main__":
    asyncio.run(main())
