"""define_form: writes a form down, step by step, and checks it as a whole at build().

form = (
    define_form(id="claim", version=1, name="Travel claim", description="Who, where, how.")
    .step("trip", title="Trip", fields=Trip)
    .checkpoint("cap", when=lambda a: (a.total or 0) > 750, blocking=True, run=ask_finance)
    .on_complete(file_claim)
    .build()
)
"""

from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel

from ..errors import UsageError
from .answers import Condition, Predicate
from .definition import Checkpoint, FormDefinition, Migrate, Step
from .effects import HookFunction
from .fields import FieldSpec, FormField, step_fields
from .names import NameIndex, is_identifier

_ID_RULE = "an id is an ASCII letter, then letters, digits, _ or -"


def define_form(
    *, id: str, version: int, name: str, description: str, conduct: str | None = None
) -> "FormBuilder":
    """Begin a form.

    version   raise it when answers of the old form no longer fit; see FormBuilder.migrate
    conduct   how the model should hold the conversation, told when the form starts
    """
    return FormBuilder(id=id, version=version, name=name, description=description, conduct=conduct)


class FormBuilder:
    """Collects the parts of one form; chainable. Mistakes are reported by build() at the latest."""

    def __init__(
        self, *, id: str, version: int, name: str, description: str, conduct: str | None
    ) -> None:
        self._head = (id, version, name, description, conduct)
        self._place = f"form {id!r}"
        self._steps: list[Step] = []
        self._checkpoints: list[Checkpoint] = []
        self._on_fill: dict[str, HookFunction] = {}
        self._on_complete: HookFunction | None = None
        self._migrate: Migrate | None = None

    def step(
        self,
        id: str,
        *,
        title: str,
        fields: type[BaseModel] | Mapping[str, FieldSpec],
        preview: str | None = None,
        ask: str | None = None,
        when: Predicate | None = None,
        on_complete: HookFunction | None = None,
    ) -> Self:
        """Add a step. Steps are the order of asking; an answer is welcome at any time.

        on_complete   runs each time all that the step needs is there
        """
        place = f"{self._place}, step {id!r}"
        if not is_identifier(id):
            raise UsageError(f"{place}: {_ID_RULE}")
        if not title.strip():
            raise UsageError(f"{place}: title must not be empty")
        _check_hook(f"{place}, on_complete", on_complete)
        self._steps.append(
            Step(
                id=id,
                title=title,
                fields=step_fields(self._head[0], id, fields),
                preview=preview,
                ask=ask,
                when=Condition.of(f"{place}, when", when),
                on_complete=on_complete,
            )
        )
        return self

    def checkpoint(
        self,
        id: str,
        *,
        when: Predicate,
        run: HookFunction | None = None,
        blocking: bool = False,
        wait_message: str | None = None,
    ) -> Self:
        """Add a condition that runs `run` each time it comes to hold; see definition.Checkpoint.

        wait_message   what the model may say while a blocking one is undecided
        """
        place = f"{self._place}, checkpoint {id!r}"
        if not is_identifier(id):
            raise UsageError(f"{place}: {_ID_RULE}")
        if wait_message is not None and not blocking:
            raise UsageError(f"{place}: wait_message is for blocking=True; nothing waits here")
        if run is None and not blocking:
            raise UsageError(f"{place}: give run=, or blocking=True to let the host decide")
        _check_hook(f"{place}, run", run)
        condition = Condition.of(f"{place}, when", when)
        if condition is None:
            raise UsageError(f"{place}: give when=, the condition that raises it")
        self._checkpoints.append(
            Checkpoint(id=id, when=condition, run=run, blocking=blocking, wait_message=wait_message)
        )
        return self

    def on_fill(self, field: str, run: HookFunction) -> Self:
        """Run `run` each time the field's answer comes to count (not when it is only corrected)."""
        place = f"{self._place}, on_fill {field!r}"
        _check_hook(place, run)
        if field in self._on_fill:
            raise UsageError(f"{place}: has a hook already; let one function do both")
        self._on_fill[field] = run
        return self

    def on_complete(self, run: HookFunction) -> Self:
        """Run `run` each time the form comes to be complete, after every other hook."""
        _check_hook(f"{self._place}, on_complete", run)
        if self._on_complete is not None:
            raise UsageError(f"{self._place}, on_complete: set already; let one function do both")
        self._on_complete = run
        return self

    def migrate(self, run: Migrate) -> Self:
        """Carry answers of an older version over; without it such a form is stale."""
        self._migrate = run
        return self

    def build(self) -> FormDefinition:
        """The checked form. Raises UsageError naming the place and the remedy."""
        identity, version, name, description, conduct = self._head
        self._check_head()
        if not self._steps:
            raise UsageError(f"{self._place}: has no steps; add one with .step(…)")
        fields = [field for step in self._steps for field in step.fields]
        _check_unique(self._place, "step", [(one.id, one.title) for one in self._steps])
        _check_unique(self._place, "field", [(one.id, one.label) for one in fields])
        _check_unique(self._place, "checkpoint", [(one.id, one.id) for one in self._checkpoints])
        return FormDefinition(
            id=identity,
            version=version,
            name=name,
            description=description,
            conduct=conduct,
            steps=tuple(self._steps),
            checkpoints=tuple(self._checkpoints),
            on_fill=self._fill_hooks(fields),
            on_complete=self._on_complete,
            migrate=self._migrate,
        )

    def _check_head(self) -> None:
        identity, version, name, description, _ = self._head
        if not is_identifier(identity):
            raise UsageError(f"define_form id {identity!r}: {_ID_RULE}")
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise UsageError(f"{self._place}: version is a whole number from 1, not {version!r}")
        for key, text in (("name", name), ("description", description)):
            if not text.strip():
                raise UsageError(f"{self._place}: {key} must not be empty; models choose by it")

    def _fill_hooks(self, fields: list[FormField]) -> dict[str, HookFunction]:
        hooks = {one.id: one.on_fill for one in fields if one.on_fill is not None}
        known = NameIndex({one.id: one.label for one in fields})
        ids = {one.id for one in fields}
        for field, run in self._on_fill.items():
            place = f"{self._place}, on_fill {field!r}"
            if field not in ids:
                near = known.suggestions(field)
                hint = f"did you mean {', '.join(near)}?" if near else f"there are {sorted(ids)}"
                raise UsageError(f"{place}: there is no such field; {hint}")
            if field in hooks:
                raise UsageError(f"{place}: its FieldSpec has an on_fill already; keep one")
            hooks[field] = run
        for field, hook in hooks.items():
            _check_hook(f"{self._place}, on_fill {field!r}", hook)
        return hooks


def _check_hook(place: str, run: object) -> None:
    if run is not None and not callable(run):
        raise UsageError(f"{place}: give a function (HookContext) -> effects, not {run!r}")


def _check_unique(place: str, kind: str, names: list[tuple[str, str]]) -> None:
    ids = [identity for identity, _ in names]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise UsageError(
            f"{place}: {kind} {twice!r} exists twice; ids are unique in the whole form"
        )
    collisions = NameIndex(dict(names)).collisions
    if collisions:
        first, second = collisions[0]
        raise UsageError(
            f"{place}: {kind}s {first!r} and {second!r} cannot be told apart once case and"
            " punctuation are dropped; change an id or a label"
        )
