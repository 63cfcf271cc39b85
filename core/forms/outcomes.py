"""What a hook asked for, applied to the form.

Pure. The first decision about a blocking checkpoint counts: a run that ends after the host has
decided changes nothing. Terminate is applied last and wins (spec core 13.8).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .definition import FormDefinition
from .effects import CHECKPOINT, Complete, Effect, Fail, Jump, Patch, Terminate, subject
from .ledger import MAX_PATCH_ROUNDS, closed
from .state import FormInstance
from .writing import Origin, write


@dataclass(frozen=True, slots=True)
class Applied:
    """The changed form; `note` is for the model, `problems` are for the log of the host."""

    instance: FormInstance
    note: str | None = None
    problems: tuple[str, ...] = ()


def apply_effects(
    definition: FormDefinition,
    instance: FormInstance,
    hook: str,
    effects: Sequence[Effect],
    *,
    round: int,
    at: str,
) -> Applied:
    """Apply all effects of one run of `hook`. `round` is that of the run, for the patch limit."""
    if instance.closed or not effects:
        return Applied(instance)
    checkpoint_id = subject(hook, CHECKPOINT)
    checkpoint = definition.checkpoint(checkpoint_id) if checkpoint_id is not None else None
    reasons = [one.reason for one in effects if isinstance(one, Fail)]
    note = "; ".join(reasons) or None
    if checkpoint is not None and checkpoint.blocking:
        if checkpoint.id not in instance.awaiting:
            return Applied(instance, problems=("the checkpoint was decided meanwhile",))
        instance = _decided(instance, checkpoint.id, note)
        note = None
    problems: list[str] = []
    for effect in effects:
        match effect:
            case Patch():
                instance, wrong = _patched(definition, instance, hook, effect, round, at)
                problems.extend(wrong)
            case Jump(step=step_id) if definition.step(step_id) is None:
                problems.append(f"Jump: there is no step {step_id!r}")
            case Jump(step=step_id):
                instance = replace(instance, jump=step_id)
            case Complete():
                instance = replace(instance, forced=True)
    ends = [one.reason for one in effects if isinstance(one, Terminate)]
    if ends:
        instance = closed(instance, "terminated", ends[0])
    return Applied(instance, note, tuple(problems))


def _decided(instance: FormInstance, checkpoint_id: str, reason: str | None) -> FormInstance:
    awaiting = tuple(one for one in instance.awaiting if one != checkpoint_id)
    if reason is None:
        return replace(instance, awaiting=awaiting)
    return replace(
        instance, awaiting=awaiting, rejected={**instance.rejected, checkpoint_id: reason}
    )


def _patched(
    definition: FormDefinition,
    instance: FormInstance,
    hook: str,
    patch: Patch,
    round: int,
    at: str,
) -> tuple[FormInstance, list[str]]:
    if round > MAX_PATCH_ROUNDS:
        return instance, [f"Patch: refused after {MAX_PATCH_ROUNDS} rounds of hooks raising hooks"]
    origin = Origin(source=f"hook:{hook}", at=at)
    instance, report = write(definition, instance, patch.values, origin)
    return instance, [f"Patch of {name!r}: {why.error}" for name, why in report.rejected.items()]
