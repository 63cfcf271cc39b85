"""What a store keeps beside messages: inbox items and tasks, as values.

Frozen and comparable. Times are ISO 8601 in UTC, as text, so that every store gives back the very
value it was given. Nothing here reads or writes a store (spec core 13.2, 13.3).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypedDict

from .errors import UsageError

InboxStatus = Literal["pending", "resolved", "consumed"]
INBOX_STATUSES: tuple[InboxStatus, ...] = ("pending", "resolved", "consumed")
TaskStatus = Literal["pending", "in_progress", "completed"]
TASK_STATUSES: tuple[TaskStatus, ...] = ("pending", "in_progress", "completed")


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxItem:
    """A request that somebody outside the conversation answers later.

    `blocking` is advice to the model: wait for it. An item goes from pending to resolved to
    consumed (its answer is in history) and never back; pending to consumed is a withdrawal.
    """

    id: str
    tag: str
    request: str
    created_at: str
    response: str | None = None
    status: InboxStatus = "pending"
    blocking: bool = False
    resolved_at: str | None = None

    def __post_init__(self) -> None:
        for name in ("id", "tag", "request"):
            if not getattr(self, name).strip():
                raise UsageError(f"InboxItem.{name}: must not be empty")
        if self.status not in INBOX_STATUSES:
            known = ", ".join(INBOX_STATUSES)
            raise UsageError(f"InboxItem.status: {self.status!r} is none of {known}")


class InboxPatch(TypedDict, total=False):
    """The fields of an inbox item that may change; absent keys keep their value."""

    status: InboxStatus
    response: str | None
    resolved_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One line of the agent's own plan; `active_form` says it while it is being done."""

    id: str
    content: str
    active_form: str
    status: TaskStatus = "pending"

    def __post_init__(self) -> None:
        if self.status not in TASK_STATUSES:
            raise UsageError(f"Task.status: {self.status!r} is none of {', '.join(TASK_STATUSES)}")


class TaskPatch(TypedDict, total=False):
    """The fields of a task that may change."""

    content: str
    active_form: str
    status: TaskStatus


def patched_item(item: InboxItem, patch: InboxPatch) -> InboxItem:
    """The changed item. Unknown keys raise TypeError."""
    return replace(item, **patch)


def patched_task(task: Task, patch: TaskPatch) -> Task:
    """The changed task. Unknown keys raise TypeError."""
    return replace(task, **patch)


def item_json(item: InboxItem) -> dict[str, object]:
    """The item with the field names of the seeds, for REST and pages."""
    return {name: getattr(item, name) for name in InboxItem.__dataclass_fields__}


def task_json(task: Task) -> dict[str, object]:
    """The task with the field names of the seeds (`activeForm`)."""
    return {
        "id": task.id,
        "content": task.content,
        "activeForm": task.active_form,
        "status": task.status,
    }


def task_from_json(raw: Mapping[str, object]) -> Task:
    """The inverse of task_json. Raises KeyError or UsageError."""
    status = str(raw["status"])
    for known in TASK_STATUSES:
        if status == known:
            return Task(
                id=str(raw["id"]),
                content=str(raw["content"]),
                active_form=str(raw["activeForm"]),
                status=known,
            )
    raise UsageError(f"Task.status: {status!r} is none of {', '.join(TASK_STATUSES)}")


def utc_now() -> str:
    """The present moment as records carry it. Read where a record is made, never in logic."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
