"""Goals as text for a model. Pure."""

from .values import Goal, GoalInstance

HEAD = "[goals: {program}] version {version}"
HOW = (
    "Work at the active goal; note a later one when the user answers it unasked. Record progress"
    " with glove_goal_update and expected_version {version}. A refusal is a valid outcome: record"
    " it as refused and do not press."
)
DONE = "All goals have ended; nothing is left to pursue."


def snapshot(instance: GoalInstance, *, can_update: bool = True) -> str:
    """The state of the goals: what a context provider tells and the status tool answers."""
    head = HEAD.format(program=instance.program_id, version=instance.version)
    lines = [_line(at, goal) for at, goal in enumerate(instance.goals, 1)]
    tail = [DONE] if instance.complete else []
    if can_update and not instance.complete:
        tail = [HOW.format(version=instance.version)]
    return "\n".join([head, *lines, *tail])


def changes(instance: GoalInstance) -> str:
    """The history of an instance, oldest first."""
    if not instance.history:
        return "No goal has changed yet."
    return "\n".join(
        f"version {one.version}: {one.goal_id} {one.before} -> {one.after}"
        f" by {one.author}{_noted(one.note)}"
        for one in instance.history
    )


def _line(at: int, goal: Goal) -> str:
    want = "" if goal.ended else f"; done when: {goal.done_when}"
    return f"{at}. {goal.id} - {goal.title}: {goal.status}{_noted(goal.note)}{want}"


def _noted(note: str) -> str:
    return f" ({note})" if note else ""
