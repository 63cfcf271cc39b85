"""The stored state of one form being filled: frozen values, JSON in and out.

This is all an adapter ever sees. What an answer means (does it apply, is the form complete) is
computed from it by evaluation.py and never stored. Nothing here reads a clock or a store.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

FormStatus = Literal["open", "awaiting", "complete", "terminated", "abandoned", "stale"]
CLOSED: frozenset[FormStatus] = frozenset({"terminated", "abandoned"})
DispatchState = Literal["pending", "done", "failed", "dropped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One thing said about a field; never changed and never removed.

    seq        place among all revisions of the instance, from 1
    parent     index of the revision it followed, -1 for none: what undo goes back to
    value      the answer as JSON, as it was given; it is parsed again whenever it is used
    retracted  the answer was taken back; `value` is None
    source     who said it: `model`, `host`, `migrate` or `hook:<hook id>`
    """

    seq: int
    parent: int
    value: object = None
    retracted: bool = False
    source: str = "model"
    reason: str | None = None
    at: str = ""

    @property
    def by_hook(self) -> bool:
        return self.source.startswith("hook:")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldLog:
    """All revisions of one field, oldest first, and which of them is in force (-1: none)."""

    revisions: tuple[Revision, ...] = ()
    cursor: int = -1

    @property
    def current(self) -> Revision | None:
        """The revision in force, a retraction too."""
        return self.revisions[self.cursor] if self.cursor >= 0 else None

    @property
    def answer(self) -> Revision | None:
        """The revision in force unless it takes the answer back."""
        current = self.current
        return None if current is None or current.retracted else current


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Whether a hook's condition holds, and how often it came to hold."""

    occurrence: int = 0
    high: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """One run of a hook that is owed or over.

    key    `instance:hook:occurrence`; the same whenever an interrupted run is repeated
    round  1 for hooks raised by a write, one more for each patch of a hook in between
    begun  how often it was begun; more than once means that it was interrupted
    note   what a finished run has to say to the model: why it failed
    """

    key: str
    hook: str
    occurrence: int
    round: int = 1
    begun: int = 0
    state: DispatchState = "pending"
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormInstance:
    """One form of one scope.

    version   counts commits; adapters compare it (adapter.FormAdapter)
    logs      answers by field id
    edges     by hook id
    ledger    hook runs: all that are owed, and the last finished one of each hook
    awaiting  blocking checkpoints without a decision; while there is one, writes are refused
    rejected  blocking checkpoints that said no, with their reason, while their condition holds
    jump      the step a hook sent the conversation to, until an answer lands there
    forced    a hook declared the form complete
    """

    id: str
    form_id: str
    form_version: int
    scope: str
    status: FormStatus = "open"
    version: int = 1
    logs: Mapping[str, FieldLog] = field(default_factory=dict)
    edges: Mapping[str, Edge] = field(default_factory=dict)
    ledger: tuple[Dispatch, ...] = ()
    awaiting: tuple[str, ...] = ()
    rejected: Mapping[str, str] = field(default_factory=dict)
    jump: str | None = None
    forced: bool = False
    closed_reason: str | None = None
    created_at: str = ""
    updated_at: str = ""

    @property
    def closed(self) -> bool:
        """Whether nothing can change any more."""
        return self.status in CLOSED


def encode_instance(instance: FormInstance) -> bytes:
    """JSON of everything; what an adapter stores."""
    return _adapter().dump_json(instance, exclude_defaults=True)


def decode_instance(raw: bytes | str) -> FormInstance:
    """The inverse of encode_instance; raises pydantic.ValidationError on foreign JSON."""
    return _adapter().validate_json(raw)


@cache
def _adapter() -> TypeAdapter[FormInstance]:
    """Made at first use: it costs as much as the whole module."""
    return TypeAdapter(FormInstance)
