"""Moves over the revision logs: set, retract, undo, redo.

Pure. Logs only grow; undo and redo move a cursor. Each revision knows the one it followed, so undo
after a correction goes back to the answer that was in force before, not to the neighbour in the
log, and a redo takes the newest branch. No answer can be lost by any sequence of moves.
"""

from dataclasses import replace
from typing import Literal

from .state import FieldLog, FormInstance, Revision

_EMPTY = FieldLog()
Direction = Literal["undo", "redo"]
DIRECTIONS: tuple[Direction, ...] = ("undo", "redo")


def log_of(instance: FormInstance, field_id: str) -> FieldLog:
    """The field's log; empty if nothing was ever said about it."""
    return instance.logs.get(field_id, _EMPTY)


def append(
    instance: FormInstance,
    field_id: str,
    value: object,
    *,
    source: str,
    at: str,
    reason: str | None = None,
    retracted: bool = False,
) -> FormInstance:
    """Put a new revision in force."""
    log = log_of(instance, field_id)
    revision = Revision(
        seq=1 + sum(len(one.revisions) for one in instance.logs.values()),
        parent=log.cursor,
        value=None if retracted else value,
        retracted=retracted,
        source=source,
        reason=reason,
        at=at,
    )
    revisions = (*log.revisions, revision)
    return _with_log(instance, field_id, FieldLog(revisions=revisions, cursor=len(revisions) - 1))


def target(log: FieldLog, direction: Direction) -> int | None:
    """Where the cursor would go, or None if there is nothing to undo or redo."""
    if direction == "undo":
        return log.revisions[log.cursor].parent if log.cursor >= 0 else None
    children = [at for at, one in enumerate(log.revisions) if one.parent == log.cursor]
    return children[-1] if children else None


def field_to_move(
    instance: FormInstance, direction: Direction, known: frozenset[str]
) -> str | None:
    """Of the `known` fields the one whose last answer by a person is undone or redone next.

    What hooks wrote is skipped: "take that back" means the caller's own words.
    """
    found: list[tuple[int, str]] = []
    for field_id, log in instance.logs.items():
        goal = target(log, direction)
        if goal is None or field_id not in known:
            continue
        moved = log.revisions[log.cursor if direction == "undo" else goal]
        if not moved.by_hook:
            found.append((moved.seq, field_id))
    if not found:
        return None
    return (max(found) if direction == "undo" else min(found))[1]


def move(instance: FormInstance, field_id: str, direction: Direction) -> FormInstance | None:
    """The instance with the cursor moved; None if there is nowhere to go."""
    log = log_of(instance, field_id)
    goal = target(log, direction)
    if goal is None:
        return None
    return _with_log(instance, field_id, replace(log, cursor=goal))


def _with_log(instance: FormInstance, field_id: str, log: FieldLog) -> FormInstance:
    return replace(instance, logs={**instance.logs, field_id: log})
