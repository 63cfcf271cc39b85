"""What predicates and hooks are shown of a form: the answers that count, and how far it is.

Read-only. Held answers are never in here (spec core 13.8). Owned by whoever evaluates the form.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError

RESERVED_FIELDS = frozenset({"get", "items", "keys", "values"})
"""Names a field may not have: they would hide behind the methods of Answers."""

Predicate = Callable[..., object]
"""(answers) or (answers, progress) -> truth; synchronous, quick, without side effects."""


class Answers(Mapping[str, object]):
    """Live answers by field id, parsed: `answers["mode"]` or `answers.mode`.

    As an attribute a field without an answer is None, so that a predicate may ask at any time; a
    name that is no field raises AttributeError. As a mapping it holds answered fields only.
    """

    __slots__ = ("_fields", "_live")

    def __init__(self, live: Mapping[str, object], fields: frozenset[str]) -> None:
        self._live = dict(live)
        self._fields = fields

    def __getitem__(self, key: str) -> object:
        return self._live[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._live)

    def __len__(self) -> int:
        return len(self._live)

    # Any, for a definition knows its fields' types and we do not.
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._fields:
            raise AttributeError(f"the form has no field {name!r}")
        return self._live.get(name)

    def __repr__(self) -> str:
        return f"Answers({', '.join(self._live)})"  # names only: values are personal


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a form is. Steps that do not apply are not complete."""

    steps: Mapping[str, bool]
    checkpoints: Mapping[str, int]
    complete: bool = False

    def step_complete(self, step_id: str) -> bool:
        """Whether the step applies and has all it needs. Raises UsageError."""
        if step_id not in self.steps:
            raise UsageError(f"step_complete: no step {step_id!r}; known: {_names(self.steps)}")
        return self.steps[step_id]

    def checkpoint_fired(self, checkpoint_id: str) -> bool:
        """Whether the checkpoint came to hold before this commit. Raises UsageError."""
        if checkpoint_id not in self.checkpoints:
            known = _names(self.checkpoints)
            raise UsageError(f"checkpoint_fired: no checkpoint {checkpoint_id!r}; known: {known}")
        return self.checkpoints[checkpoint_id] > 0


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate with the place it stands at; made by the builder."""

    place: str
    predicate: Predicate
    wants_progress: bool

    @classmethod
    def of(cls, place: str, predicate: Predicate | None) -> "Condition | None":
        """Raises UsageError for what cannot be a predicate."""
        if predicate is None:
            return None
        if not callable(predicate) or inspect.iscoroutinefunction(predicate):
            raise UsageError(f"{place}: give a plain function (answers) -> bool, not async")
        count = _required_parameters(predicate)
        if count not in (1, 2):
            raise UsageError(f"{place}: takes (answers) or (answers, progress), not {count} values")
        return cls(place, predicate, count == 2)

    def holds(self, answers: Answers, progress: Callable[[], Progress]) -> bool:
        """The verdict; whatever the predicate raises comes out. `progress` is asked if needed."""
        if self.wants_progress:
            return bool(self.predicate(answers, progress()))
        return bool(self.predicate(answers))


def _required_parameters(function: Predicate) -> int:
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in positional and one.default is one.empty for one in parameters)


def _names(known: Mapping[str, object]) -> str:
    return ", ".join(known) or "none"
