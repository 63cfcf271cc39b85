"""Goals as values: a program, its instance for one subject, and the pure rules of change.

A program is what a conversation is to reach, in order; an instance is how far it got. Instances
carry a revision that grows by one with every commit, so that two writers cannot overwrite each
other. Nothing here does I/O.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ..errors import UsageError

GoalStatus = Literal["open", "active", "met", "refused", "blocked"]
Author = Literal["model", "app"]
STATUSES: tuple[GoalStatus, ...] = get_args(GoalStatus)
ENDED: frozenset[GoalStatus] = frozenset({"met", "refused"})
"""A refusal is an outcome like any other: it is not asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalSpec:
    """One goal of a program. `done_when` is what the model compares the conversation with."""

    id: str
    title: str
    done_when: str

    def __post_init__(self) -> None:
        for name in ("id", "title", "done_when"):
            if not getattr(self, name).strip():
                raise UsageError(f"GoalSpec.{name}: must not be empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Goals in the order they are worked at. Raise `version` whenever a goal changes."""

    id: str
    goals: Sequence[GoalSpec]
    version: int = 1

    def __post_init__(self) -> None:
        ids = [goal.id for goal in self.goals]
        if not ids:
            raise UsageError(f"Program {self.id!r}: goals must not be empty")
        double = sorted({one for one in ids if ids.count(one) > 1})
        if double:
            raise UsageError(f"Program {self.id!r}: goals.id {', '.join(double)} stands twice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose goals: one instance for each subject (a customer) and key (a purpose)."""

    subject: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A goal of an instance, with how far it got."""

    id: str
    title: str
    done_when: str
    status: GoalStatus = "open"
    note: str = ""

    @property
    def ended(self) -> bool:
        return self.status in ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalChange:
    """One line of an instance's history; `version` is the one that the change made."""

    version: int
    goal_id: str
    before: GoalStatus
    after: GoalStatus
    note: str
    author: Author


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalInstance:
    """How far one program got for one scope.

    version   grows with every change of a goal; what the model is shown and must name
    revision  grows with every commit, also when only `due` got shorter
    due  hooks that are owed: `end:<goal id>` or `complete`. They are stored with the change that
         caused them and taken off when they ran, so an interrupted one runs again (at least once)
    """

    scope: Scope
    program_id: str
    program_version: int
    goals: tuple[Goal, ...]
    version: int = 1
    revision: int = 1
    history: tuple[GoalChange, ...] = ()
    due: tuple[str, ...] = ()

    @property
    def current(self) -> Goal | None:
        """The goal to work at: the active one, else the first that has not ended."""
        left = [goal for goal in self.goals if not goal.ended]
        active = [goal for goal in left if goal.status == "active"]
        return next(iter(active or left), None)

    @property
    def complete(self) -> bool:
        """Every goal has ended, met or refused."""
        return all(goal.ended for goal in self.goals)

    def goal(self, goal_id: str) -> Goal | None:
        return next((goal for goal in self.goals if goal.id == goal_id), None)


def begin(program: Program, scope: Scope) -> GoalInstance:
    """A new instance, its first goal active."""
    goals = [Goal(id=one.id, title=one.title, done_when=one.done_when) for one in program.goals]
    return GoalInstance(
        scope=scope,
        program_id=program.id,
        program_version=program.version,
        goals=_with_active(goals),
    )


def migrate(instance: GoalInstance, program: Program) -> GoalInstance:
    """The instance under another version of its program: goals keep status and note by id, new
    ones are open, removed ones live on in the history."""
    known = {goal.id: goal for goal in instance.goals}
    goals = [
        Goal(
            id=one.id,
            title=one.title,
            done_when=one.done_when,
            status=known[one.id].status if one.id in known else "open",
            note=known[one.id].note if one.id in known else "",
        )
        for one in program.goals
    ]
    moved = replace(
        instance,
        program_id=program.id,
        program_version=program.version,
        goals=_with_active(goals),
        version=instance.version + 1,
        revision=instance.revision + 1,
    )
    return replace(moved, due=_due(instance, moved))


def change(
    instance: GoalInstance, goal_id: str, status: GoalStatus, note: str, author: Author
) -> GoalInstance:
    """The instance after a change; the same one if nothing changes.

    When a goal ends, the next open one becomes active. Raises UsageError for an unknown goal, and
    when a model would reopen one that ended.
    """
    goal = instance.goal(goal_id)
    if goal is None:
        known = ", ".join(one.id for one in instance.goals)
        raise UsageError(f"goal_id: there is no goal {goal_id!r}; goals: {known}")
    if status not in STATUSES:
        raise UsageError(f"status: {status!r} is none of {', '.join(STATUSES)}")
    if goal.ended and status not in ENDED and author == "model":
        raise UsageError(f"goal_id: {goal_id!r} has ended ({goal.status}) and stays so")
    changed = replace(goal, status=status, note=note or goal.note)
    if changed == goal:
        return instance
    entry = GoalChange(
        version=instance.version + 1,
        goal_id=goal_id,
        before=goal.status,
        after=status,
        note=note,
        author=author,
    )
    goals = [changed if one.id == goal_id else one for one in instance.goals]
    after = replace(
        instance,
        goals=_with_active(goals, preferred=goal_id if status == "active" else None),
        version=entry.version,
        revision=instance.revision + 1,
        history=(*instance.history, entry),
    )
    return replace(after, due=_due(instance, after))


def _with_active(goals: Sequence[Goal], preferred: str | None = None) -> tuple[Goal, ...]:
    """At most one goal active: the preferred one, else the one that is, else the first open."""
    active = [goal.id for goal in goals if goal.status == "active"]
    first_open = [goal.id for goal in goals if goal.status == "open"]
    chosen = preferred or next(iter(active or first_open), None)
    return tuple(
        replace(goal, status="active")
        if goal.id == chosen
        else replace(goal, status="open")
        if goal.status == "active"
        else goal
        for goal in goals
    )


def _due(before: GoalInstance, after: GoalInstance) -> tuple[str, ...]:
    """Hooks owed after a change: those owed before, and one for each rising edge."""
    ended_before = {goal.id for goal in before.goals if goal.ended}
    due = [f"end:{goal.id}" for goal in after.goals if goal.ended and goal.id not in ended_before]
    if after.complete and not before.complete:
        due.append("complete")
    return (*before.due, *(one for one in due if one not in before.due))
