"""What is sold, what a sales conversation is to reach, and the agent that holds it.

Nothing in here knows that the agent will be on a call, or which model answers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from voxglove.core import Agent, AgentConfig, AgentEvent, Glove, TasksChanged, tool
from voxglove.core.context import TurnPreparation
from voxglove.core.goals import (
    Goal,
    GoalAdapter,
    GoalHooks,
    GoalInstance,
    GoalRunner,
    GoalSpec,
    MemoryGoalAdapter,
    Program,
    Scope,
    use_goal_runner,
)
from voxglove.core.model import Model
from voxglove.core.records import Task, TaskStatus
from voxglove.core.store import Store, TaskStore
from voxglove.realtime.factory import realtime_model

PROMPT = """\
You are Nova and sell appointment software of Calendry to small practices. You are on the phone:
one or two short sentences at a time, one question at a time, no lists.
Work at your goals in their order. As soon as the conversation shows one, call glove_goal_update
with the version you were shown last; if it is refused, read the version it names and try again.
Take plans and prices from the product tools, never from memory. A product update that reaches you
during the call is newer than they are: mention it once.
A refusal is a good outcome. Record it, thank them, and do not press."""

SCOPE = Scope(subject="demo-prospect", key="sales-discovery")
DISCOVERY = Program(
    id="sales-discovery",
    goals=(
        GoalSpec(
            id="needs",
            title="Discover needs",
            done_when="workflow, appointments a month and the main pain are known",
        ),
        GoalSpec(
            id="fit",
            title="Recommend a fit",
            done_when="a plan from the product tools was recommended, or none fits",
        ),
        GoalSpec(
            id="next_step",
            title="Agree a next step",
            done_when="a next step is agreed, or the prospect declines one",
        ),
    ),
)
OFFER = AgentEvent(
    id="pilot-offer:1",
    source="product-catalog",
    content="Growth now costs 39 USD per month instead of 49 USD.",
)
"""What reaches the agent while it talks."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A product."""

    name: str
    appointments_a_month: int
    usd_a_month: int
    includes: tuple[str, ...]


PLANS = (
    Plan("Starter", 100, 19, ("online booking",)),
    Plan("Growth", 500, 49, ("online booking", "reminders by text message")),
    Plan("Clinic", 5_000, 149, ("online booking", "reminders by text message", "waiting list")),
)


@tool(read_only=True)
def find_plan(appointments_a_month: int) -> dict[str, object]:
    """The smallest plan for a number of appointments, with its price."""
    fitting = [plan for plan in PLANS if plan.appointments_a_month >= appointments_a_month]
    return asdict(fitting[0]) if fitting else {"name": None, "why": "no plan is large enough"}


@tool(read_only=True)
def plan_details(name: str) -> dict[str, object]:
    """All about one plan: Starter, Growth or Clinic."""
    found = [plan for plan in PLANS if plan.name.lower() == name.lower()]
    return asdict(found[0]) if found else {"known": [plan.name for plan in PLANS]}


@dataclass(frozen=True, slots=True)
class Sale:
    """An agent, and the application's hold on its goals."""

    agent: Agent
    goals: GoalRunner


def sale(
    store: Store | None = None, *, model: Model | None = None, adapter: GoalAdapter | None = None
) -> Sale:
    """The agent of one conversation. Goals are kept in `adapter`; one in memory outlives every
    change of connection, and not the process."""
    agent = (
        Glove(
            model=model or realtime_model(),
            system_prompt=PROMPT,
            config=AgentConfig(builtin_tools=()),
        )
        .fold(find_plan)
        .fold(plan_details)
        .build(store)
    )

    async def begin(turn: TurnPreparation) -> None:
        """Start the program, or go on where it was left. Costs nothing the second time."""
        await goals.start(DISCOVERY)

    async def ended(goal: Goal, instance: GoalInstance) -> None:
        await show(agent, instance)

    agent.add_turn_preparer(begin)
    goals = use_goal_runner(
        agent,
        adapter or MemoryGoalAdapter(),
        scope=SCOPE,
        delivery="history",
        allow=("status", "update", "history"),
        hooks=GoalHooks(configure=lambda _, instance: show(agent, instance), on_end=ended),
    )
    return Sale(agent, goals)


STATUS: dict[str, TaskStatus] = {
    "active": "in_progress",
    "met": "completed",
    "refused": "completed",
}


async def show(agent: Agent, goals: GoalInstance) -> None:
    """Goals are the application's and a page draws an agent's plan: so the plan shows them."""
    store = agent.store
    tasks = [
        Task(
            id=goal.id,
            content=f"{goal.title}: {goal.status}" + (f" ({goal.note})" if goal.note else ""),
            active_form=goal.title,
            status=STATUS.get(goal.status, "pending"),
        )
        for goal in goals.goals
    ]
    if isinstance(store, TaskStore) and tasks != await store.get_tasks():
        await store.add_tasks(tasks)
        agent.notify_subscribers(TasksChanged(tasks=tuple(tasks)))
