"""Goals: what a conversation is to reach, kept with versions (spec core 13.7)."""

from .port import GoalAdapter, GoalConflict, MemoryGoalAdapter
from .runner import GoalHooks, GoalRunner, use_goal_runner
from .values import Goal, GoalChange, GoalInstance, GoalSpec, GoalStatus, Program, Scope

__all__ = [
    "Goal",
    "GoalAdapter",
    "GoalChange",
    "GoalConflict",
    "GoalHooks",
    "GoalInstance",
    "GoalRunner",
    "GoalSpec",
    "GoalStatus",
    "MemoryGoalAdapter",
    "Program",
    "Scope",
    "use_goal_runner",
]
