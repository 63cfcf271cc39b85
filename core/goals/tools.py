"""The model's tools for goals. Every refusal is a result that tells the model what to do next."""

from collections.abc import Callable, Sequence
from typing import Protocol

from pydantic import BaseModel, Field

from ..errors import UsageError
from ..tool import Tool, ToolContext
from .port import GoalConflict
from .render import changes, snapshot
from .values import Author, GoalInstance, GoalStatus

NOT_STARTED = "No goals are set in this conversation."


class Goals(Protocol):
    """What the tools use of a runner."""

    async def status(self) -> GoalInstance | None: ...

    async def update(
        self,
        goal_id: str,
        status: GoalStatus,
        note: str = "",
        *,
        expected_version: int | None = None,
        author: Author = "app",
    ) -> GoalInstance: ...


class Nothing(BaseModel):
    """No input."""


class UpdateGoal(BaseModel):
    """What the model fills in."""

    goal_id: str = Field(description="The goal's id, as listed")
    status: GoalStatus = Field(
        description="active: being worked at; met; refused: the user declined; blocked: something"
        " outside stands in the way"
    )
    note: str = Field(default="", description="What was learned or agreed, in one sentence")
    expected_version: int = Field(description="The version you were shown last")


def make(goals: Goals, names: Sequence[str]) -> list[Tool]:
    """The tools of these names (status, update, history)."""
    makers: dict[str, Callable[[Goals], Tool]] = {
        "status": _status,
        "update": _update,
        "history": _history,
    }
    return [makers[name](goals) for name in names]


def _status(goals: Goals) -> Tool:
    return _reading(
        goals,
        "glove_goal_status",
        "See the goals of this conversation, their status and the present version.",
        snapshot,
    )


def _history(goals: Goals) -> Tool:
    return _reading(
        goals,
        "glove_goal_history",
        "See how the goals changed so far, oldest change first.",
        changes,
    )


def _reading(
    goals: Goals, name: str, description: str, render: Callable[[GoalInstance], str]
) -> Tool:
    async def read(value: Nothing, ctx: ToolContext) -> object:
        instance = await goals.status()
        return _refused(NOT_STARTED) if instance is None else render(instance)

    return Tool(name=name, description=description, do=read, input_model=Nothing, read_only=True)


def _update(goals: Goals) -> Tool:
    async def update(value: UpdateGoal, ctx: ToolContext) -> object:
        return await _updated(goals, value)

    return Tool(
        name="glove_goal_update",
        description=(
            "Record progress towards a goal as soon as the conversation shows it. A refusal is a"
            " valid outcome."
        ),
        do=update,
        input_model=UpdateGoal,
    )


async def _updated(goals: Goals, value: UpdateGoal) -> object:
    try:
        instance = await goals.update(
            value.goal_id,
            value.status,
            value.note,
            expected_version=value.expected_version,
            author="model",
        )
    except (GoalConflict, UsageError) as error:
        now = await goals.status()
        return _refused(str(error), None if now is None else snapshot(now))
    return snapshot(instance)


def _refused(message: str, data: str | None = None) -> dict[str, object]:
    return {"status": "error", "data": data, "message": message}
