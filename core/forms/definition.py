"""A form as it was defined: steps, fields, checkpoints, hooks. Immutable, free of I/O.

Made by builder.define_form, which checks it. Models never see it; they see what render.py makes of
it together with the answers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from .answers import Condition
from .effects import CHECKPOINT, FILL, FORM_COMPLETE, STEP, HookFunction, subject
from .fields import FormField
from .names import NameIndex

Migrate = Callable[[Mapping[str, object], int], Mapping[str, object]]
"""(answers as JSON, the version they were given under) -> the answers of this version."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Step:
    """Fields that are asked for together.

    preview   a few words on what will be asked, shown while the step is still to come
    when      whether the step applies; if not, its fields do not either
    """

    id: str
    title: str
    fields: tuple[FormField, ...]
    preview: str | None = None
    ask: str | None = None
    when: Condition | None = None
    on_complete: HookFunction | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """A condition over answers that runs a hook each time it comes to hold.

    A blocking one keeps the form from changing until it is decided: by an effect of its own run,
    or by the host (runner.resolve_checkpoint) if the run returned None or there is none.
    """

    id: str
    when: Condition
    run: HookFunction | None
    blocking: bool = False
    wait_message: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class FormDefinition:
    """See the module. `version` is raised when old answers no longer fit (drift.py)."""

    id: str
    version: int
    name: str
    description: str
    steps: tuple[Step, ...]
    conduct: str | None = None
    checkpoints: tuple[Checkpoint, ...] = ()
    on_fill: Mapping[str, HookFunction]
    on_complete: HookFunction | None = None
    migrate: Migrate | None = None

    @cached_property
    def fields(self) -> Mapping[str, FormField]:
        """All fields by id, in the order they are asked."""
        return {field.id: field for step in self.steps for field in step.fields}

    @cached_property
    def field_ids(self) -> frozenset[str]:
        return frozenset(self.fields)

    @cached_property
    def field_names(self) -> NameIndex:
        return NameIndex({one.id: one.label for one in self.fields.values()})

    @cached_property
    def step_names(self) -> NameIndex:
        return NameIndex({one.id: one.title for one in self.steps})

    def step(self, step_id: str) -> Step | None:
        return next((one for one in self.steps if one.id == step_id), None)

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        return next((one for one in self.checkpoints if one.id == checkpoint_id), None)

    def hook(self, hook: str) -> HookFunction | None:
        """The function behind a hook id, if it has one."""
        if hook == FORM_COMPLETE:
            return self.on_complete
        field_id, step_id = subject(hook, FILL), subject(hook, STEP)
        checkpoint_id = subject(hook, CHECKPOINT)
        if field_id is not None:
            return self.on_fill.get(field_id)
        if step_id is not None:
            step = self.step(step_id)
            return step.on_complete if step is not None else None
        checkpoint = self.checkpoint(checkpoint_id) if checkpoint_id is not None else None
        return checkpoint.run if checkpoint is not None else None
