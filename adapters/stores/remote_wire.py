"""What a store looks like on the wire: JSON of its records, read strictly at both ends.

Shared by the client (remote.py) and the server's door (web/routes/sessions). Field names are those
of the seeds: snake_case, but for `activeForm`, `itemId` and `taskId`. Pure values: no I/O. Every
complaint names the field by its path and says what belongs there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar, get_args

from ...core.external import AgentEvent
from ...core.records import (
    InboxItem,
    InboxPatch,
    InboxStatus,
    Task,
    TaskPatch,
    TaskStatus,
    task_json,
)
from ...core.store import Permission
from ...core.usage import Usage

Feature = Literal["consumption", "permissions", "tasks", "inbox", "events", "sub_agents"]
FEATURES: tuple[Feature, ...] = get_args(Feature)
"""Groups that a store may lack, by the names that `GET /sessions/{id}` uses."""

IDEMPOTENCY = "Idempotency-Key"
"""Header of every write: the same key is answered again and not done again."""
REPEATED = "Voxglove-Repeated"
"""Header of a write that is sent again because its answer was lost."""

ABANDONED = "Voxglove-Abandoned"
"""Header with the keys of writes that their caller gave up: what has not begun is never done."""
MAX_ABANDONED = 16

MAX_SESSION_CHARS = 200

T = TypeVar("T", bound=str)


class BadField(ValueError):
    """A field of a body is missing or wrong; `field` is its path, the message the remedy."""

    def __init__(self, field: str, remedy: str) -> None:
        super().__init__(f"{field}: {remedy}")
        self.field = field


class Fields:
    """Reads one JSON object; `at` is where it stands in the body."""

    def __init__(self, raw: object, at: str = "") -> None:
        if not isinstance(raw, Mapping):
            raise BadField(at or "body", "must be an object")
        self._raw: Mapping[str, object] = raw
        self._at = at

    def path(self, name: str) -> str:
        """The path of the field `name`."""
        return f"{self._at}.{name}" if self._at else name

    def raw(self, name: str) -> object:
        """The value as it is; BadField when it is missing."""
        if name not in self._raw:
            raise BadField(self.path(name), "is missing")
        return self._raw[name]

    def below(self, name: str) -> Fields:
        """The object under `name`."""
        return Fields(self.raw(name), self.path(name))

    def text(self, name: str) -> str:
        value = self.raw(name)
        if not isinstance(value, str):
            raise BadField(self.path(name), "must be text")
        return value

    def name(self, name: str) -> str:
        """Text that is not blank."""
        value = self.text(name)
        if not value.strip():
            raise BadField(self.path(name), "must not be empty")
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self._raw.get(name) is None else self.text(name)

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._raw.get(name, default)
        if not isinstance(value, bool):
            raise BadField(self.path(name), "must be true or false")
        return value

    def count(self, name: str, default: int | None = None) -> int:
        """A whole number from 0 on."""
        value = self.raw(name) if default is None else self._raw.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
            raise BadField(self.path(name), "must be a whole number from 0 on")
        return value

    def choice(self, name: str, choices: Sequence[T]) -> T:
        value = self.raw(name)
        for one in choices:
            if value == one:
                return one
        raise BadField(self.path(name), f"must be one of {', '.join(choices)}")

    def entries(self, name: str, limit: int) -> Sequence[object]:
        value = self.raw(name)
        if not isinstance(value, list):
            raise BadField(self.path(name), "must be a list")
        if len(value) > limit:
            raise BadField(self.path(name), f"must not have more than {limit} entries")
        return value

    def texts(self, name: str, limit: int) -> list[str]:
        """A list of texts."""
        found: list[str] = []
        for at, value in enumerate(self.entries(name, limit)):
            if not isinstance(value, str):
                raise BadField(f"{self.path(name)}[{at}]", "must be text")
            found.append(value)
        return found

    def mapping(self, name: str) -> Mapping[str, object] | None:
        """An object, or None where it is null or missing."""
        value = self._raw.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise BadField(self.path(name), "must be an object or null")
        return value

    def only(self, *known: str) -> None:
        """BadField for any other key: of a patch nothing may be lost in silence."""
        for name in self._raw:
            if name not in known:
                raise BadField(self.path(name), f"is not known; use {', '.join(known)}")

    def __contains__(self, name: str) -> bool:
        return name in self._raw


def session_problem(session_id: str) -> str | None:
    """Why this text cannot name a session; None if it can."""
    if not session_id.strip():
        return "must not be empty"
    if len(session_id) > MAX_SESSION_CHARS:
        return f"must not be longer than {MAX_SESSION_CHARS} characters"
    if session_id in (".", ".."):
        return "must not be a dot or two: addresses read that as a folder"
    if any(
        ord(char) < 32 or ord(char) == 127 or "\ud800" <= char <= "\udfff" for char in session_id
    ):
        return "must not hold control characters"
    return None


def item_from(fields: Fields) -> InboxItem:
    """An inbox item, as records.item_json wrote it."""
    return InboxItem(
        id=fields.name("id"),
        tag=fields.name("tag"),
        request=fields.name("request"),
        created_at=fields.text("created_at"),
        response=fields.optional_text("response"),
        status=fields.choice("status", get_args(InboxStatus)) if "status" in fields else "pending",
        blocking=fields.flag("blocking"),
        resolved_at=fields.optional_text("resolved_at"),
    )


def item_patch_from(fields: Fields) -> InboxPatch:
    """A patch of an inbox item: `status`, `response`, `resolved_at`."""
    fields.only("status", "response", "resolved_at")
    patch: InboxPatch = {}
    if "status" in fields:
        patch["status"] = fields.choice("status", get_args(InboxStatus))
    if "response" in fields:
        patch["response"] = fields.optional_text("response")
    if "resolved_at" in fields:
        patch["resolved_at"] = fields.optional_text("resolved_at")
    return patch


def task_from(fields: Fields) -> Task:
    """A task, as records.task_json wrote it."""
    return Task(
        id=fields.text("id"),
        content=fields.text("content"),
        active_form=fields.text("activeForm"),
        status=fields.choice("status", get_args(TaskStatus)) if "status" in fields else "pending",
    )


def item_patch_json(patch: InboxPatch) -> dict[str, object]:
    """As it is. Raises TypeError for an unknown field."""
    return {name: patch[_known(name, InboxPatch)] for name in patch}  # type: ignore[literal-required]  # its own keys


def _known(name: str, kind: type) -> str:
    if name not in kind.__annotations__:
        raise TypeError(f"{name} is no field of {kind.__name__}")
    return name


def task_patch_json(patch: TaskPatch) -> dict[str, object]:
    """`activeForm` on the wire. Raises TypeError for an unknown field."""
    names = {"active_form": "activeForm"}
    return {names.get(name, name): patch[_known(name, TaskPatch)] for name in patch}  # type: ignore[literal-required]  # its own keys


def task_patch_from(fields: Fields) -> TaskPatch:
    """The inverse of task_patch_json."""
    fields.only("content", "activeForm", "status")
    patch: TaskPatch = {}
    if "content" in fields:
        patch["content"] = fields.text("content")
    if "activeForm" in fields:
        patch["active_form"] = fields.text("activeForm")
    if "status" in fields:
        patch["status"] = fields.choice("status", get_args(TaskStatus))
    return patch


def event_json(event: AgentEvent) -> dict[str, object]:
    """Every field by name."""
    return {name: getattr(event, name) for name in AgentEvent.__dataclass_fields__}


def event_from(fields: Fields) -> AgentEvent:
    """The inverse of event_json."""
    return AgentEvent(
        source=fields.name("source"),
        content=fields.name("content"),
        id=fields.text("id") if "id" in fields else "",
        kind=fields.optional_text("kind"),
        created_at=fields.optional_text("created_at"),
        metadata=fields.mapping("metadata"),
    )


def usage_json(usage: Usage) -> dict[str, int]:
    """Every count by name."""
    return {name: getattr(usage, name) for name in Usage.__dataclass_fields__}


def usage_from(fields: Fields) -> Usage:
    """The inverse of usage_json; a count that is missing is 0."""
    return Usage(**{name: fields.count(name, 0) for name in Usage.__dataclass_fields__})


def permission_from(fields: Fields) -> Permission:
    """The field `status`: granted, denied or unset."""
    return fields.choice("status", get_args(Permission))


def parsed(raw: bytes) -> object:
    """JSON of an answer; None for an empty one. Raises BadField."""
    try:
        return json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        raise BadField("answer", "is no JSON") from None


def read_tasks(raw: Sequence[object], at: str = "tasks") -> list[Task]:
    """Tasks of parsed JSON. Raises BadField."""
    return [task_from(Fields(one, f"{at}[{index}]")) for index, one in enumerate(raw)]


def tasks_json(tasks: Sequence[Task]) -> list[dict[str, object]]:
    """Tasks in order."""
    return [task_json(task) for task in tasks]
