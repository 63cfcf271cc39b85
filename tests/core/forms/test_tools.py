"""The eight tools: every refusal is a result that says what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from tests.core.forms.rig import ALL, claim, runner, values
from voxglove.core import ToolResultData, UsageError
from voxglove.core.forms import (
    FieldSpec,
    FormDefinition,
    FormRunner,
    MemoryFormAdapter,
    define_form,
    form_tools,
)
from voxglove.core.schema import InvalidInput, validate_input


def visit() -> FormDefinition:
    form = define_form(id="visit", version=1, name="Visit", description="Who comes when.")
    return form.step("s", title="S", fields={"day": FieldSpec(schema=str)}).build()


class Model:
    """Calls tools as an executor would: JSON in, validated, a result out."""

    def __init__(self, forms: FormRunner) -> None:
        self.forms = forms
        self.tools = {one.name.removeprefix("glove_form_"): one for one in form_tools(forms)}

    async def call(self, name: str, **args: Any) -> ToolResultData:
        tool = self.tools[name]
        assert isinstance(tool.input_model, type) and issubclass(tool.input_model, BaseModel)
        result = await tool.do(validate_input(tool.input_model, args))  # type: ignore[misc]
        assert isinstance(result, ToolResultData)
        return result

    async def ok(self, name: str, **args: Any) -> dict[str, Any]:
        result = await self.call(name, **args)
        assert result.status == "success", result
        assert isinstance(result.data, dict)
        return result.data

    async def refused(self, name: str, code: str, **args: Any) -> dict[str, Any]:
        result = await self.call(name, **args)
        assert result.status == "error" and result.message
        assert isinstance(result.data, dict) and result.data["code"] == code
        return result.data


def model(*forms: FormDefinition, adapter: MemoryFormAdapter | None = None) -> Model:
    return Model(runner(*(forms or (claim().build(), visit())), adapter=adapter))


def test_names_order_and_which_only_read() -> None:
    tools = form_tools(runner())
    assert [one.name for one in tools] == [
        f"glove_form_{name}"
        for name in (
            "list",
            "start",
            "status",
            "inspect",
            "fill",
            "revise",
            "abandon",
            "history",
        )
    ]
    reading = {one.name.rpartition("_")[2] for one in tools if one.read_only}
    assert reading == {"list", "status", "inspect", "history"}


def test_schemas_are_small_whole_and_hold_no_empty_one() -> None:
    """They go with every model call; a schema that says nothing is refused by some providers."""
    specs = [tool.spec for tool in form_tools(runner())]
    for spec in specs:
        schema = dict(spec.parameters)
        assert schema["type"] == "object" and schema["additionalProperties"] is False
        assert "$defs" not in schema and "title" not in schema
        properties = schema["properties"]
        assert isinstance(properties, dict)
        assert all({"type", "anyOf"} & one.keys() for one in properties.values())
    assert sum(len(one.description) + len(json.dumps(one.parameters)) for one in specs) < 3700


async def test_list_shows_what_can_be_started_and_what_is_begun() -> None:
    asked = model()
    shown = await asked.ok("list")
    assert [one["form"] for one in shown["forms"]] == ["claim", "visit"]
    assert "begun" not in shown
    await asked.ok("start", form="visit")
    assert [one["form"] for one in (await asked.ok("list"))["begun"]] == ["visit"]


async def test_start_takes_what_is_known_and_shows_the_first_step() -> None:
    shown = await model().ok("start", form="Claim", values={"Full name": "Ada", "emial": "a"})
    assert shown["written"] == ["Full name"]
    assert shown["rejected"]["emial"]["did_you_mean"][0] == "email"
    assert shown["conduct"] and shown["step"] == "1/2 Claimant"


async def test_start_of_an_open_form_goes_on_with_it() -> None:
    asked = model()
    first = await asked.ok("start", form="claim", values={"mode": "car"})
    second = await asked.ok("start", form="claim", values={"total": 3})
    assert second["instance"] == first["instance"] and "go on" in second["note"]
    assert await values(asked.forms) == {"mode": "car", "total": 3.0}
    assert "note" in await asked.ok("start", form="claim")


async def test_an_unknown_form_is_answered_with_those_there_are() -> None:
    data = await model().refused("start", "form_unknown", form="clam")
    assert data["did_you_mean"] == ["claim"] and data["forms"] == ["claim", "visit"]


async def test_fill_reports_each_value_and_what_is_pending() -> None:
    asked = model()
    await asked.ok("start", form="claim")
    shown = await asked.ok("fill", values={"full_name": "Ada", "miles": 4, "total": "3"})
    assert shown["written"] == ["Full name", "Miles"]
    assert shown["held"] == ["Miles"]
    assert shown["rejected"]["total"]["hint"] == 'send 3.0 instead of "3"'
    assert shown["pending"] == ["Work email"]


async def test_fill_where_nothing_fits_is_an_error_with_reasons() -> None:
    asked = model()
    await asked.ok("start", form="claim")
    data = await asked.refused("fill", "values_rejected", values={"total": "x"})
    assert "total" in data["rejected"]


@pytest.mark.parametrize("tool", ["status", "inspect", "fill", "revise", "abandon"])
async def test_without_an_open_form_every_tool_says_so(tool: str) -> None:
    args: dict[str, dict[str, Any]] = {
        "fill": {"values": {"a": 1}},
        "revise": {"action": "undo"},
        "abandon": {"reason": "r"},
    }
    data = await model().refused(tool, "form_not_open", **args.get(tool, {}))
    assert data["forms"] == ["claim", "visit"]
    await model().refused(tool, "form_not_open", form="visit", **args.get(tool, {}))


async def test_with_several_open_forms_one_must_be_named() -> None:
    asked = model()
    await asked.ok("start", form="claim")
    await asked.ok("start", form="visit")
    data = await asked.refused("fill", "form_ambiguous", values={"day": "Monday"})
    assert data["open"] == ["claim", "visit"]
    assert (await asked.ok("fill", form="visit", values={"day": "Monday"}))["status"] == "complete"
    assert (await asked.ok("status"))["form"] == "claim"


async def test_revise_sets_retracts_undoes_and_redoes() -> None:
    asked = model()
    await asked.ok("start", form="claim", values=ALL)
    assert (await asked.ok("revise", action="set", field="Mode", value="air"))["written"] == [
        "Mode"
    ]
    shown = await asked.ok("revise", action="undo")
    assert shown["changed"] == {"label": "Mode", "state": "answered", "value": "rail"}
    assert (await asked.ok("revise", action="redo"))["changed"]["value"] == "air"
    shown = await asked.ok("revise", action="retract", field="mode", reason="took it back")
    assert shown["changed"] == {"label": "Mode", "state": "pending"}
    assert shown["status"] == "open"


REVISIONS: list[tuple[dict[str, Any], str]] = [
    ({"action": "set", "field": "mode"}, "nothing_to_change"),
    ({"action": "set", "value": 3}, "field_unknown"),
    ({"action": "retract"}, "field_unknown"),
    ({"action": "retract", "field": "mode"}, "nothing_to_change"),
    ({"action": "retract", "field": "moody"}, "field_unknown"),
    ({"action": "set", "field": "moody", "value": 1}, "values_rejected"),
    ({"action": "set", "field": "total", "value": None}, "values_rejected"),
    ({"action": "undo"}, "nothing_to_change"),
    ({"action": "redo", "field": "mode"}, "nothing_to_change"),
]


@pytest.mark.parametrize(("args", "code"), REVISIONS)
async def test_a_revision_that_cannot_be_is_refused(args: dict[str, Any], code: str) -> None:
    asked = model()
    await asked.ok("start", form="claim")
    await asked.refused("revise", code, **args)


async def test_inspect_shows_outline_step_and_field() -> None:
    asked = model()
    await asked.ok("start", form="claim")
    outline = await asked.ok("inspect")
    assert [one["id"] for one in outline["steps"]] == ["claimant", "travel"]
    assert (await asked.ok("inspect", step="Travel"))["fields"][1]["state"] == "does not apply now"
    assert (await asked.ok("inspect", field="work email"))["takes"].startswith("text, like")
    assert (await asked.refused("inspect", "step_unknown", step="travle"))["did_you_mean"] == [
        "travel"
    ]
    await asked.refused("inspect", "field_unknown", field="emial")


async def test_a_blocked_form_says_what_to_say() -> None:
    form = claim().checkpoint(
        "cap", when=lambda a: bool(a.total), blocking=True, wait_message="Finance looks at it."
    )
    asked = model(form.build())
    shown = await asked.ok("start", form="claim", values={"total": 1})
    assert (shown["status"], shown["waiting"]) == ("awaiting", "Finance looks at it.")
    data = await asked.refused("fill", "form_blocked", values={"mode": "car"})
    assert data["say"] == "Finance looks at it."


async def test_abandon_closes_and_a_closed_form_refuses() -> None:
    asked = model()
    await asked.ok("start", form="claim", values={"mode": "car"})
    shown = await asked.ok("abandon", reason="changed their mind")
    assert (shown["status"], shown["reason"]) == ("abandoned", "changed their mind")
    await asked.refused("fill", "form_closed", values={"mode": "rail"})
    await asked.refused("abandon", "form_closed", reason="again")


async def test_history_shows_revisions_of_a_field_and_forms_of_the_scope() -> None:
    asked = model()
    await asked.ok("start", form="claim", values={"mode": "car"})
    await asked.ok("revise", action="retract", field="mode")
    revisions = (await asked.ok("history", field="mode"))["revisions"]
    assert [one.get("value", "retracted") for one in revisions] == ["car", "retracted"]
    await asked.ok("abandon", reason="r")
    await asked.ok("start", form="visit", values={"day": "Monday"})
    rows = (await asked.ok("history"))["forms"]
    assert [(one["form"], one["status"]) for one in rows] == [
        ("claim", "abandoned"),
        ("visit", "complete"),
    ]
    assert rows[1]["answers"] == {"day": "Monday"}
    only = (await asked.ok("history", form="claim"))["forms"]
    assert [one["form"] for one in only] == ["claim"]


async def test_a_stale_form_is_shown_as_such_by_every_reading_tool() -> None:
    adapter = MemoryFormAdapter()
    await runner(adapter=adapter).start("claim", {"mode": "car"})
    asked = model(claim(version=2).build(), adapter=adapter)
    for tool, args in (("status", {}), ("inspect", {}), ("history", {"field": "mode"})):
        assert (await asked.ok(tool, **args))["status"] == "stale"
    await asked.refused("fill", "form_stale", values={"mode": "rail"})


async def test_input_that_is_not_of_the_schema_never_reaches_a_form() -> None:
    with pytest.raises(InvalidInput, match="surprise"):
        await model().call("fill", values={}, surprise=1)


def test_a_runner_without_forms_or_scope_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one form"):
        FormRunner([], scope="s")
    with pytest.raises(UsageError, match="two are called 'claim'"):
        FormRunner([claim().build(), claim().build()], scope="s")
    with pytest.raises(UsageError, match="scope"):
        FormRunner([claim().build()], scope="")
    with pytest.raises(UsageError, match="hook_timeout_s"):
        FormRunner([claim().build()], scope="s", hook_timeout_s=0)
