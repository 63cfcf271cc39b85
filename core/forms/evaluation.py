"""What the stored answers of a form amount to: which apply, what is missing, what is asked next.

Pure, and computed anew whenever it is needed, so that nothing derived can go stale. An answer is
live if it fits its field and the field applies; an answer to a field that does not apply is held.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from .answers import Answers, Condition, Progress
from .definition import FormDefinition, Step
from .effects import CHECKPOINT, FORM_COMPLETE
from .fields import InvalidAnswer
from .revisions import log_of
from .state import Edge, FormInstance


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The meaning of one state of a form.

    answers     live answers, parsed
    held        answered fields that do not apply now
    invalid     answered fields whose answer does not fit (any more), with the reason
    applicable  fields that apply, answered or not
    missing     applicable required fields without a live answer, in order of asking
    complete    nothing is missing (checkpoints may still stand in the way)
    open_step   the step to ask about now, if any
    revisit     the open step is done already and is to be gone through again
    checkpoints ids of those whose condition holds
    broken      predicates that raised, which counts as false, with the error
    """

    answers: Answers
    progress: Progress
    held: tuple[str, ...]
    invalid: Mapping[str, str]
    applicable: frozenset[str]
    missing: tuple[str, ...]
    complete: bool
    open_step: str | None
    revisit: bool
    checkpoints: frozenset[str]
    broken: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FormSnapshot:
    """An instance with its definition and meaning; both are None if it is stale for `reason`."""

    instance: FormInstance
    definition: FormDefinition | None
    evaluation: Evaluation | None
    reason: str = ""


def evaluate(definition: FormDefinition, instance: FormInstance) -> Evaluation:
    """Never raises for what a definition's predicates or validators do."""
    parsed: dict[str, object] = {}
    invalid: dict[str, str] = {}
    for field in definition.fields.values():
        said = log_of(instance, field.id).answer
        if said is None:
            continue
        try:
            parsed[field.id] = field.parse(said.value)
        except InvalidAnswer as error:
            invalid[field.id] = str(error)
    settling = _Settling(definition, instance, parsed)
    settling.run()
    answers, progress = settling.answers(), settling.progress()
    holding = frozenset(one.id for one in definition.checkpoints if settling.holds(one.when))
    missing = tuple(settling.missing())
    open_step, revisit = settling.open_step()
    return Evaluation(
        answers=answers,
        progress=progress,
        held=tuple(one for one in parsed if one not in answers),
        invalid=invalid,
        applicable=frozenset(one for one, applies in settling.applies.items() if applies),
        missing=missing,
        complete=not missing,
        open_step=open_step,
        revisit=revisit,
        checkpoints=holding,
        broken=settling.broken,
    )


class _Settling:
    """Finds which fields and steps apply. Used for one evaluation.

    Predicates may ask about any answer and any step, so the verdicts are repeated in the order of
    the form until none changes. Predicates that contradict themselves would never settle; then
    what applied is only ever taken away, which ends.
    """

    def __init__(
        self, definition: FormDefinition, instance: FormInstance, parsed: Mapping[str, object]
    ) -> None:
        self._definition = definition
        self._instance = instance
        self._parsed = parsed
        self.applies: dict[str, bool] = dict.fromkeys(definition.fields, True)
        self._steps: dict[str, bool] = {one.id: True for one in definition.steps}
        self._done: dict[str, bool] = {one.id: self._is_done(one) for one in definition.steps}
        self.broken: dict[str, str] = {}

    def run(self) -> None:
        for _ in range(len(self.applies) + len(self._steps) + 1):
            if not self._pass(shrink=False):
                return
        while self._pass(shrink=True):
            continue

    def answers(self) -> Answers:
        live = {one: value for one, value in self._parsed.items() if self.applies[one]}
        return Answers(live, self._definition.field_ids)

    def progress(self) -> Progress:
        edges, no_edge = self._instance.edges, Edge()
        return Progress(
            steps=dict(self._done),
            checkpoints={
                one.id: edges.get(CHECKPOINT + one.id, no_edge).occurrence
                for one in self._definition.checkpoints
            },
            complete=edges.get(FORM_COMPLETE, no_edge).high,
        )

    def holds(self, condition: Condition | None) -> bool:
        """Whether it holds as far as is decided; what does not exist always does."""
        if condition is None:
            return True
        try:
            return condition.holds(self.answers(), self.progress)
        except Exception as error:  # a user's predicate must not end a turn; it is reported
            self.broken[condition.place] = f"{type(error).__name__}: {error}"
            return False

    def missing(self) -> list[str]:
        return [
            field.id
            for field in self._definition.fields.values()
            if self.applies[field.id] and field.required and field.id not in self._parsed
        ]

    def open_step(self) -> tuple[str | None, bool]:
        """The step a hook sent us to, else the first that applies and is not done."""
        if self._instance.closed:
            return None, False
        jump = self._instance.jump
        if jump is not None and self._steps.get(jump):
            return jump, self._done[jump]
        if self._instance.forced:
            return None, False
        ids = (one.id for one in self._definition.steps)
        return next((one for one in ids if self._steps[one] and not self._done[one]), None), False

    def _pass(self, *, shrink: bool) -> bool:
        """Decide everything once more; whether anything changed that matters."""
        changed = False
        self.broken.clear()  # what raised on the way to the verdict does not matter
        for step in self._definition.steps:
            verdict = self.holds(step.when) and (self._steps[step.id] or not shrink)
            changed |= self._steps[step.id] != verdict
            self._steps[step.id] = verdict
            for field in step.fields:
                applies = verdict and self.holds(field.when)
                applies = applies and (self.applies[field.id] or not shrink)
                changed |= self.applies[field.id] != applies
                self.applies[field.id] = applies
            done = self._is_done(step)
            changed |= self._done[step.id] != done and not shrink
            self._done[step.id] = done
        return changed

    def _is_done(self, step: Step) -> bool:
        return self._steps[step.id] and all(
            not (self.applies[one.id] and one.required) or one.id in self._parsed
            for one in step.fields
        )
