"""The tools a model fills forms with: glove_form_list, _start, _status, _inspect, _fill, _revise,
_abandon, _history (spec core 13.8).

A refusal is an error result that says what to do instead; nothing here raises for what a model
sends. Answers are short: on a call a person waits for the model to read them. Four kinds of
revision share one tool, for the schemas of all tools are sent with every model call.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

from ..messages import ToolResultData
from ..tool import Tool
from .errors import FormRefused
from .evaluation import FormSnapshot
from .fields import FormField
from .render import (
    Data,
    brief,
    catalogue,
    field_data,
    field_history,
    labels,
    outline,
    past_fills,
    status,
    step_data,
)
from .runner import FormChange, FormRunner
from .writing import found

WHICH = "form id, if several are open"
SOURCE = "model"
Wanted = TypeVar("Wanted", bound=BaseModel)


def _compact(schema: dict[str, Any]) -> None:
    """Leave out what a model does not need: the schemas of all tools go with every model call."""
    schema.pop("title", None)
    for one in schema["properties"].values():
        one.pop("title", None)
        if one.get("default", ...) is None:
            del one["default"]


# Written out, for a schema that says nothing ({}) is refused by some providers.
Text = Annotated[str | None, WithJsonSchema({"type": "string"})]
Values = Annotated[
    dict[str, JsonValue], WithJsonSchema({"type": "object", "additionalProperties": True})
]
_KINDS = ("string", "number", "boolean", "object")
_TEXTS = {"type": "array", "items": {"type": "string"}}
Value = Annotated[
    JsonValue, WithJsonSchema({"anyOf": [*({"type": one} for one in _KINDS), _TEXTS]})
]


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra=_compact)


class ListInput(_Input):
    pass


class StartInput(_Input):
    form: str = Field(description="form id")
    values: Values = Field(
        default_factory=dict, description="answers known already, by field id or label"
    )


class WhichInput(_Input):
    form: Text = Field(default=None, description=WHICH)


class InspectInput(WhichInput):
    step: Text = Field(default=None, description="id or title")
    field: Text = Field(default=None, description="id or label")


class FillInput(WhichInput):
    values: Values = Field(description="answers by field id or label, of any step")


class ReviseInput(WhichInput):
    action: Literal["set", "retract", "undo", "redo"]
    field: Text = Field(
        default=None, description="id or label; undo and redo without it: the last answer"
    )
    value: Value = Field(default=None, description="the new answer, for set")
    reason: Text = None


class AbandonInput(WhichInput):
    reason: str = Field(description="why, in a few words")


class HistoryInput(WhichInput):
    field: Text = Field(default=None, description="id or label")


def form_tools(runner: FormRunner, *, prefix: str = "glove_form_") -> tuple[Tool, ...]:
    """The eight tools over one runner, list, start, status, inspect, fill, revise,
    abandon, history in this order."""
    calls = _Calls(runner)
    return (
        _tool(prefix, "list", "List the forms that can be filled in.", ListInput, calls.list),
        _tool(
            prefix,
            "start",
            "Begin a form. Give what the user has said already as values. Keep to the conduct it"
            " returns.",
            StartInput,
            calls.start,
        ),
        _tool(
            prefix,
            "status",
            "Show the current step of the open form in full: fields, what each takes, answers.",
            WhichInput,
            calls.status,
        ),
        _tool(
            prefix,
            "inspect",
            "Show any step or field, or without either the outline of the whole form.",
            InspectInput,
            calls.inspect,
        ),
        _tool(
            prefix,
            "fill",
            "Write down answers as soon as the user gives them, whichever step they belong to. Each"
            " is checked for itself; the result says what was written and what is still missing.",
            FillInput,
            calls.fill,
        ),
        _tool(
            prefix,
            "revise",
            "Change an answer given before: set it anew when the user corrects it, retract it when"
            " it is taken back (never write an empty text), undo or redo the last change.",
            ReviseInput,
            calls.revise,
        ),
        _tool(
            prefix,
            "abandon",
            "Close the form unfinished when the user does not want it any more.",
            AbandonInput,
            calls.abandon,
        ),
        _tool(
            prefix,
            "history",
            "Show every answer given for a field; without a field the forms filled in so far.",
            HistoryInput,
            calls.history,
        ),
    )


class _Calls:
    """One method per tool: a checked input in, data out; FormRefused for a refusal."""

    def __init__(self, runner: FormRunner) -> None:
        self._runner = runner

    async def list(self, wanted: ListInput) -> Data:
        snapshots = await self._runner.instances()
        begun = [brief(one) for one in snapshots if not one.instance.closed]
        data: Data = {"forms": catalogue(self._runner.forms)}
        return data | ({"begun": begun} if begun else {})

    async def start(self, wanted: StartInput) -> Data:
        change = await self._runner.start(wanted.form, wanted.values, source=SOURCE)
        data = {**_report(change), **status(change.snapshot)}
        if change.already_open:
            data["note"] = "this form was begun before; go on with it"
        return data

    async def status(self, wanted: WhichInput) -> Data:
        return status(await self._runner.status(wanted.form))

    async def inspect(self, wanted: InspectInput) -> Data:
        snapshot = await self._runner.status(wanted.form)
        definition = snapshot.definition
        if definition is None:
            return brief(snapshot)
        if wanted.field:
            return field_data(snapshot, found(definition, wanted.field))
        if wanted.step is None:
            return outline(snapshot, definition)
        step = definition.step(definition.step_names.find(wanted.step) or "")
        if step is None:
            near = definition.step_names.suggestions(wanted.step)
            known = [one.id for one in definition.steps]
            raise FormRefused(
                "step_unknown",
                f"The form has no step {wanted.step!r}. Steps: {', '.join(known)}.",
                {"did_you_mean": near},
            )
        return step_data(snapshot, step)

    async def fill(self, wanted: FillInput) -> Data:
        return _answer(await self._runner.fill(wanted.values, form=wanted.form, source=SOURCE))

    async def revise(self, wanted: ReviseInput) -> Data:
        runner, form, field = self._runner, wanted.form, wanted.field
        if wanted.action == "undo":
            return _answer(await runner.undo(field, form=form, source=SOURCE))
        if wanted.action == "redo":
            return _answer(await runner.redo(field, form=form, source=SOURCE))
        if not field:
            raise FormRefused("field_unknown", f"Say which field to {wanted.action} (field).")
        if wanted.action == "retract":
            change = await runner.retract(field, form=form, reason=wanted.reason, source=SOURCE)
            return _answer(change)
        if "value" not in wanted.model_fields_set:
            raise FormRefused("nothing_to_change", "set needs the new answer (value).")
        change = await runner.fill(
            {field: wanted.value}, form=form, reason=wanted.reason, source=SOURCE
        )
        return _answer(change)

    async def abandon(self, wanted: AbandonInput) -> Data:
        return brief((await self._runner.abandon(wanted.reason, form=wanted.form)).snapshot)

    async def history(self, wanted: HistoryInput) -> Data:
        if wanted.field is None:
            snapshots = await self._runner.instances()
            if wanted.form is not None:
                meant = (await self._runner.status(wanted.form)).instance.form_id
                snapshots = [one for one in snapshots if one.instance.form_id == meant]
            return {"forms": past_fills(snapshots)}
        snapshot = await self._runner.status(wanted.form)
        if snapshot.definition is None:
            return brief(snapshot)
        field: FormField = found(snapshot.definition, wanted.field)
        return field_history(snapshot.instance, field)


def _tool(
    prefix: str,
    name: str,
    description: str,
    model: type[Wanted],
    call: Callable[[Wanted], Awaitable[Data]],
) -> Tool:
    async def do(wanted: Wanted) -> ToolResultData:
        try:
            return ToolResultData("success", await call(wanted))
        except FormRefused as refused:
            data = {"code": refused.code, **refused.details}
            return ToolResultData("error", data, str(refused))

    return Tool(
        name=f"{prefix}{name}",
        description=description,
        do=do,
        input_model=model,
        read_only=name in ("list", "status", "inspect", "history"),
    )


def _answer(change: FormChange) -> Data:
    return {**_report(change), **brief(change.snapshot)}


def _report(change: FormChange) -> Mapping[str, object]:
    """What became of the values, in labels; what the form cannot use yet is said to be held."""
    snapshot, report = change.snapshot, change.report
    definition, evaluation = snapshot.definition, snapshot.evaluation
    data: Data = {}
    if definition is None or evaluation is None:
        return data
    written = [*report.accepted, *report.unchanged]
    if written:
        data["written"] = labels(definition, written)
    if change.moved is not None:
        data["changed"] = _moved(snapshot, change.moved)
    held = [one for one in written if one in evaluation.held]
    if held:
        data["held"] = labels(definition, held)
    if report.rejected:
        data["rejected"] = {name: why.as_data() for name, why in report.rejected.items()}
    return data


def _moved(snapshot: FormSnapshot, field_id: str) -> Data:
    if snapshot.definition is None:
        return {}
    row = field_data(snapshot, snapshot.definition.fields[field_id])
    return {key: row[key] for key in ("label", "state", "value") if key in row}
