"""What hooks get and what they may ask for in return.

A hook is `(HookContext) -> effect, several, or None`, plain or async. It runs after the answers
that raised it are stored, at least once, with one key per occurrence: use the key where the work
must not be done twice (spec core 13.8). Plain functions run in a thread.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import UsageError
from .answers import Answers, Progress


@dataclass(frozen=True, slots=True)
class Patch:
    """Answers to write, by field id; each is checked like an answer of the user."""

    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Fail:
    """Something is wrong and the model should know why. From a blocking checkpoint it is its
    verdict: the form cannot complete while the checkpoint's condition holds."""

    reason: str


@dataclass(frozen=True, slots=True)
class Passed:
    """A blocking checkpoint decided at once that nothing stands in the way."""


@dataclass(frozen=True, slots=True)
class Jump:
    """Ask about this step next, also if it is done already; over when an answer lands there."""

    step: str


@dataclass(frozen=True, slots=True)
class Complete:
    """The form is complete, whatever is still unanswered."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """End the form for good. Wins over everything else that happens at once."""

    reason: str


Effect = Patch | Fail | Passed | Jump | Complete | Terminate
Effects = Effect | Sequence[Effect] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HookContext:
    """What a hook is called with.

    key      `instance:hook:occurrence`; a repeated run has the same, a new occurrence a new one
    values   the live answers; never held ones
    field    the field of an on_fill hook, else None; `value` is its answer
    """

    key: str
    hook: str
    occurrence: int
    instance_id: str
    form_id: str
    scope: str
    values: Answers
    progress: Progress
    field: str | None = None
    value: object = None


HookFunction = Callable[[HookContext], Effects | Awaitable[Effects]]

_KINDS = (Patch, Fail, Passed, Jump, Complete, Terminate)


def as_effects(outcome: object) -> tuple[Effect, ...]:
    """What a hook returned as a tuple; raises UsageError for anything that is no effect."""
    if outcome is None:
        return ()
    if isinstance(outcome, _KINDS):
        return (outcome,)
    if isinstance(outcome, Sequence) and not isinstance(outcome, str | bytes):
        found = [one for one in outcome if isinstance(one, _KINDS)]
        if len(found) == len(outcome):
            return tuple(found)
    kinds = ", ".join(kind.__name__ for kind in _KINDS)
    raise UsageError(
        f"a hook returns {kinds}, a list of them or None, not {type(outcome).__name__}"
    )


FILL, STEP, CHECKPOINT = "fill.", "step.", "checkpoint."
FORM_COMPLETE = "form.complete"
_ORDER = (FILL, STEP, CHECKPOINT, FORM_COMPLETE)


def rank(hook: str) -> int:
    """The place of a hook in the order of running: fields, steps, checkpoints, the form."""
    return next(at for at, prefix in enumerate(_ORDER) if hook.startswith(prefix))


def subject(hook: str, prefix: str) -> str | None:
    """The field, step or checkpoint a hook belongs to, if it is of that kind."""
    return hook.removeprefix(prefix) if hook.startswith(prefix) else None
