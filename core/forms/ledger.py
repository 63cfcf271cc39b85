"""Rising edges and the runs they owe.

Pure. `settle` is part of every commit: it compares what holds now with what held at the last
commit, counts each rising edge, and enters one owed run per edge whose hook has a function. Since
edges and answers are stored in one step, an answer is never stored without the run it owes, and
no run is owed twice. What a finished run leaves is recorded by `recorded`.
"""

from collections.abc import Iterator
from dataclasses import replace

from .definition import FormDefinition
from .effects import CHECKPOINT, FILL, FORM_COMPLETE, STEP, rank
from .evaluation import Evaluation, evaluate
from .state import Dispatch, DispatchState, Edge, FormInstance, FormStatus

MAX_PATCH_ROUNDS = 8
"""Patches of hooks that may follow from one another before the next is refused."""

MAX_BEGINNINGS = 5
"""How often a run that is interrupted each time is begun before it counts as failed."""


def settle(
    definition: FormDefinition,
    instance: FormInstance,
    *,
    round: int = 1,
) -> tuple[FormInstance, Evaluation]:
    """The instance with edges, ledger and status brought up to date, and its evaluation.

    `round` is what the runs raised now are entered with.
    """
    evaluation = evaluate(definition, instance)
    if instance.closed:
        return instance, evaluation
    for hook, high in _conditions(definition, evaluation):
        instance = _edge(definition, instance, hook, high, round)
    # Last, for it depends on what the checkpoints have just begun to wait for.
    finished = instance.forced or (evaluation.complete and not instance.rejected)
    high = finished and not instance.awaiting
    instance = _edge(definition, instance, FORM_COMPLETE, high, round)
    status: FormStatus = "awaiting" if instance.awaiting else "complete" if high else "open"
    return replace(instance, status=status), evaluation


def next_run(instance: FormInstance) -> Dispatch | None:
    """The owed run that comes first: fields, steps, checkpoints, the form; then by age."""
    owed = [one for one in instance.ledger if one.state == "pending"]
    return min(owed, key=lambda one: rank(one.hook), default=None)


def begun(instance: FormInstance, run: Dispatch) -> tuple[FormInstance, Dispatch | None]:
    """The instance with the beginning of `run` on record; None for the run if it is not owed any
    more, or was interrupted too often."""
    owed = next((one for one in instance.ledger if one.key == run.key), None)
    if owed is None or owed.state != "pending":
        return instance, None
    if owed.begun >= MAX_BEGINNINGS:
        return recorded(instance, owed, "failed", "it was interrupted each time"), None
    started = replace(owed, begun=owed.begun + 1)
    ledger = tuple(started if one.key == run.key else one for one in instance.ledger)
    return replace(instance, ledger=ledger), started


def recorded(
    instance: FormInstance, run: Dispatch, state: DispatchState, note: str | None = None
) -> FormInstance:
    """The instance with `run` finished. Older finished runs of its hook are forgotten."""
    finished = replace(run, state=state, note=note)
    kept = [
        one
        for one in instance.ledger
        if one.key != run.key and (one.hook != run.hook or one.state == "pending")
    ]
    return replace(instance, ledger=(*kept, finished))


def closed(instance: FormInstance, status: FormStatus, reason: str) -> FormInstance:
    """The instance ended for good; owed runs are dropped, nobody waits any more."""
    ledger = tuple(
        replace(one, state="dropped") if one.state == "pending" else one for one in instance.ledger
    )
    return replace(
        instance, status=status, closed_reason=reason, ledger=ledger, awaiting=(), jump=None
    )


def _conditions(definition: FormDefinition, evaluation: Evaluation) -> Iterator[tuple[str, bool]]:
    """Every hook but the form's, in order of running, and whether its condition holds."""
    for field_id in definition.fields:
        yield FILL + field_id, field_id in evaluation.answers
    for step in definition.steps:
        yield STEP + step.id, evaluation.progress.steps[step.id]
    for checkpoint in definition.checkpoints:
        yield CHECKPOINT + checkpoint.id, checkpoint.id in evaluation.checkpoints


def _edge(
    definition: FormDefinition,
    instance: FormInstance,
    hook: str,
    high: bool,
    round: int,
) -> FormInstance:
    edge = instance.edges.get(hook, Edge())
    if edge.high == high:
        return instance
    if not high:
        return _fallen(instance, hook, edge)
    edge = Edge(occurrence=edge.occurrence + 1, high=True)
    instance = replace(instance, edges={**instance.edges, hook: edge})
    checkpoint_id = hook.removeprefix(CHECKPOINT)
    checkpoint = definition.checkpoint(checkpoint_id) if hook.startswith(CHECKPOINT) else None
    if checkpoint is not None and checkpoint.blocking:
        instance = replace(instance, awaiting=(*instance.awaiting, checkpoint_id))
    if definition.hook(hook) is None:
        return instance
    key = f"{instance.id}:{hook}:{edge.occurrence}"
    owed = Dispatch(key=key, hook=hook, occurrence=edge.occurrence, round=round)
    return replace(instance, ledger=(*instance.ledger, owed))


def _fallen(instance: FormInstance, hook: str, edge: Edge) -> FormInstance:
    """What has not begun is overtaken: its run would act on what is not so any more. A run that has
    begun stays owed, for it may have done half of its work."""
    checkpoint_id = hook.removeprefix(CHECKPOINT) if hook.startswith(CHECKPOINT) else None
    ledger = tuple(
        replace(one, state="dropped")
        if one.hook == hook and one.state == "pending" and not one.begun
        else one
        for one in instance.ledger
    )
    return replace(
        instance,
        edges={**instance.edges, hook: replace(edge, high=False)},
        ledger=ledger,
        awaiting=tuple(one for one in instance.awaiting if one != checkpoint_id),
        rejected={one: why for one, why in instance.rejected.items() if one != checkpoint_id},
    )
