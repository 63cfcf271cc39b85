"""What a model is shown of a form: one line at every turn, details when it asks.

Pure. The line (tier 0) holds names from the definition only, never an answer; tier 1 is the open
step, tier 2 whatever is asked for. Short, for a model that speaks waits for all of it.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from .definition import FormDefinition, Step
from .evaluation import Evaluation, FormSnapshot
from .fields import FormField
from .revisions import DIRECTIONS, field_to_move, log_of
from .state import FormInstance

MAX_LINES = 3
"""Open forms that get lines of their own; of more only the ids are told."""
MAX_HISTORY = 20
Data = dict[str, object]
FieldState = Literal["answered", "pending", "held", "invalid", "does not apply now"]


def tier_zero(snapshots: Iterable[FormSnapshot]) -> str:
    """The lines about all forms that want something; empty if none does."""
    lines = [(one.instance.form_id, text) for one in snapshots if (text := form_line(one))]
    shown = [text for _, text in lines[:MAX_LINES]]
    if len(lines) > MAX_LINES:
        shown.append(f"also open: {', '.join(name for name, _ in lines[MAX_LINES:])}")
    return "\n".join(shown)


def form_line(snapshot: FormSnapshot) -> str:
    """`[form: id] step i/n "Title" · pending: …`, then `later: …`; empty if nothing is open."""
    instance, definition, evaluation = snapshot.instance, snapshot.definition, snapshot.evaluation
    if definition is None or evaluation is None or instance.closed:
        return ""
    head = f"[form: {instance.form_id}]"
    if instance.awaiting:
        return (
            f"{head} waiting: {_wait_message(definition, instance)} · it cannot change until then"
        )
    step = definition.step(evaluation.open_step or "")
    reasons = _one_line("; ".join(instance.rejected.values()))
    if step is None:
        return f"{head} all answered, but refused: {reasons}" if reasons else ""
    place = f"step {_number(definition, step)}/{len(definition.steps)} {_quoted(step.title)}"
    if evaluation.revisit:
        labels = ", ".join(_one_line(one.label) for one in _applying(step, evaluation))
        line = f"{head} back at {place} — go through it again, filling what is confirmed: {labels}"
    else:
        line = f"{head} {place} · pending: {', '.join(pending_labels(step, evaluation))}"
    line += f" · refused: {reasons}" if reasons else ""
    later = [_preview(one) for one in definition.steps if _is_later(one, step, evaluation)]
    return f"{line}\nlater: {' · '.join(later)}" if later else line


def pending_labels(step: Step, evaluation: Evaluation) -> list[str]:
    """Labels of what the step still wants, optional ones marked."""
    return [
        _one_line(one.label) + ("" if one.required else " (optional)")
        for one in _applying(step, evaluation)
        if one.id not in evaluation.answers
    ]


def brief(snapshot: FormSnapshot) -> Data:
    """Where the form stands, in a few words; part of every tool's answer."""
    instance, definition, evaluation = snapshot.instance, snapshot.definition, snapshot.evaluation
    data: Data = {"form": instance.form_id, "status": instance.status}
    if instance.closed_reason:
        data["reason"] = instance.closed_reason
    if definition is None or evaluation is None:
        return data | ({"reason": snapshot.reason} if snapshot.reason else {})
    step = definition.step(evaluation.open_step or "")
    if instance.awaiting:
        data["waiting"] = _wait_message(definition, instance)
    elif step is not None:
        data["step"] = f"{_number(definition, step)}/{len(definition.steps)} {step.title}"
        data["pending"] = pending_labels(step, evaluation)
        if evaluation.revisit:
            data["go_through_again"] = [one.label for one in _applying(step, evaluation)]
    if instance.rejected:
        data["refused"] = list(instance.rejected.values())
    notes = _notes(instance)
    return data | ({"notes": notes} if notes else {})


def status(snapshot: FormSnapshot) -> Data:
    """Tier 1: the open step in full, and what undo and redo would touch."""
    data = {"instance": snapshot.instance.id, **brief(snapshot)}
    definition, evaluation = snapshot.definition, snapshot.evaluation
    if definition is None or evaluation is None:
        return data
    data["name"] = definition.name
    if definition.conduct:
        data["conduct"] = definition.conduct
    step = definition.step(evaluation.open_step or "")
    if step is not None:
        data.update(step_data(snapshot, step))
        data.pop("pending", None)
    later = [one for one in definition.steps if step and _is_later(one, step, evaluation)]
    if later:
        data["later"] = [_preview(one) for one in later]
    if evaluation.held:
        data["held"] = [definition.fields[one].label for one in evaluation.held]
    for direction in DIRECTIONS:
        field_id = field_to_move(snapshot.instance, direction, definition.field_ids)
        if field_id is not None:
            data[direction] = definition.fields[field_id].label
    return data


def step_data(snapshot: FormSnapshot, step: Step) -> Data:
    """One step with all its fields."""
    data: Data = {"title": step.title}
    if step.ask:
        data["ask"] = step.ask
    data["fields"] = [field_data(snapshot, one) for one in step.fields]
    return data


def field_data(snapshot: FormSnapshot, field: FormField) -> Data:
    """One field: what it takes, how it stands, its answer."""
    state = _field_state(snapshot, field)
    data: Data = {"id": field.id, "label": field.label, "takes": field.takes, "state": state}
    if not field.required:
        data["optional"] = True
    if field.ask and state in ("pending", "invalid"):
        data["ask"] = field.ask
    said = log_of(snapshot.instance, field.id).answer
    if said is not None:
        data["value"] = said.value
    if snapshot.evaluation is not None and field.id in snapshot.evaluation.invalid:
        data["error"] = snapshot.evaluation.invalid[field.id]
    return data


def outline(snapshot: FormSnapshot, definition: FormDefinition) -> Data:
    """Tier 2 without a name: every step and the states of its fields."""
    return {
        **brief(snapshot),
        "steps": [
            {
                "id": step.id,
                "title": step.title,
                "fields": {one.label: _field_state(snapshot, one) for one in step.fields},
            }
            for step in definition.steps
        ],
    }


def field_history(instance: FormInstance, field: FormField) -> Data:
    """Every answer ever given for a field, the newest last, and which is in force."""
    log = log_of(instance, field.id)
    rows: list[Data] = []
    for at, revision in list(enumerate(log.revisions))[-MAX_HISTORY:]:
        row: Data = {"retracted": True} if revision.retracted else {"value": revision.value}
        row |= {"by": revision.source, "at": revision.at}
        if revision.reason:
            row["reason"] = revision.reason
        if at == log.cursor:
            row["in_force"] = True
        rows.append(row)
    return {"field": field.id, "label": field.label, "revisions": rows}


def past_fills(snapshots: Iterable[FormSnapshot]) -> list[Data]:
    """The forms of a scope with the answers that count, the newest last."""
    rows: list[Data] = []
    for one in list(snapshots)[-MAX_HISTORY:]:
        row = {"instance": one.instance.id, **brief(one), "started_at": one.instance.created_at}
        if one.evaluation is not None:
            logs = one.instance.logs
            said = {name: logs[name].answer for name in one.evaluation.answers}
            row["answers"] = {name: was.value for name, was in said.items() if was is not None}
        rows.append(row)
    return rows


def _field_state(snapshot: FormSnapshot, field: FormField) -> FieldState:
    evaluation = snapshot.evaluation
    if evaluation is None or field.id in evaluation.answers:
        return "answered"
    if field.id in evaluation.held:
        return "held"
    if field.id not in evaluation.applicable:
        return "does not apply now"
    return "invalid" if field.id in evaluation.invalid else "pending"


def _notes(instance: FormInstance) -> list[str]:
    """What went wrong behind answers that still stand."""
    return [
        f"{one.hook}: {one.note}"
        for one in instance.ledger
        if one.state == "failed" and one.note and instance.edges[one.hook].high
    ]


def _wait_message(definition: FormDefinition, instance: FormInstance) -> str:
    checkpoint = definition.checkpoint(instance.awaiting[0])
    message = checkpoint.wait_message if checkpoint is not None else None
    return _one_line(message or f"{instance.awaiting[0]} is being decided")


def _is_later(step: Step, now: Step, evaluation: Evaluation) -> bool:
    return step.id != now.id and not evaluation.progress.steps[step.id]


def _applying(step: Step, evaluation: Evaluation) -> list[FormField]:
    return [one for one in step.fields if one.id in evaluation.applicable]


def _number(definition: FormDefinition, step: Step) -> int:
    return 1 + definition.steps.index(step)


def _preview(step: Step) -> str:
    title = _one_line(step.title)
    return f"{title} ({_one_line(step.preview)})" if step.preview else title


def _quoted(title: str) -> str:
    return f'"{_one_line(title)}"'


def _one_line(text: str) -> str:
    return " ".join(text.split())


def labels(definition: FormDefinition, field_ids: Iterable[str]) -> list[str]:
    """Field ids as people call them."""
    return [definition.fields[one].label for one in field_ids]


def catalogue(forms: Mapping[str, FormDefinition]) -> list[Data]:
    """What can be started."""
    return [
        {"form": one.id, "name": one.name, "description": one.description} for one in forms.values()
    ]
