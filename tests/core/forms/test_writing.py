"""Answers into a form: names, checks per field, hints, what is kept."""

from __future__ import annotations

import enum
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, BeforeValidator, Field, field_validator

from tests.core.forms.rig import ALL, held, runner, state, values
from voxglove.core.forms import FieldSpec, FormRefused, FormRunner, define_form


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


def only(schema: object) -> FormRunner:
    form = define_form(id="f", version=1, name="F", description="d")
    return runner(form.step("s", title="S", fields={"answer": FieldSpec(schema=schema)}).build())


@pytest.mark.parametrize(
    "name", ["full_name", "Full name", "fullName", "FULL-NAME", " full  name "]
)
async def test_a_name_is_found_however_it_is_spelled(name: str) -> None:
    forms = runner()
    change = await forms.start("claim", {name: "Ada"})
    assert change.report.accepted == ("full_name",)


async def test_a_label_names_its_field() -> None:
    change = await runner().start("claim", {"work email": "a@b"})
    assert change.report.accepted == ("email",)


async def test_an_unknown_name_comes_back_with_near_ones() -> None:
    change = await runner().start("claim", {"emial": "a@b", "mileage": 3, "xyz": 1})
    assert change.report.rejected["emial"].did_you_mean[0] == "email"
    assert change.report.rejected["mileage"].did_you_mean[0] == "miles"
    assert change.report.rejected["xyz"].did_you_mean == ()


async def test_a_bad_value_does_not_lose_the_good_ones() -> None:
    forms = runner()
    change = await forms.start("claim", {"full_name": "A", "email": "a@b", "total": "much"})
    assert change.report.accepted == ("email",)
    assert set(change.report.rejected) == {"full_name", "total"}
    assert await values(forms) == {"email": "a@b"}


async def test_only_bad_values_are_a_refusal_that_writes_nothing() -> None:
    forms = runner()
    before = (await forms.start("claim")).snapshot.instance
    with pytest.raises(FormRefused) as caught:
        await forms.fill({"full_name": "A"})
    assert caught.value.code == "values_rejected"
    assert "full_name" in str(caught.value.details)
    assert (await forms.status()).instance == before


async def test_no_values_are_a_refusal() -> None:
    forms = runner()
    await forms.start("claim")
    with pytest.raises(FormRefused, match="No values"):
        await forms.fill({})


async def test_steps_never_gate_a_write() -> None:
    forms = runner()
    await forms.start("claim", {"total": 3})
    assert await values(forms) == {"total": 3.0}


async def test_the_same_answer_again_adds_nothing() -> None:
    forms = runner()
    await forms.start("claim", {"full_name": "Ada"})
    change = await forms.fill({"full_name": "Ada"})
    assert change.report.unchanged == ("full_name",)
    assert len(change.snapshot.instance.logs["full_name"].revisions) == 1


HINTS: list[tuple[object, object, str]] = [
    (int, "42", 'send 42 instead of "42"'),
    (float, "1.5", 'send 1.5 instead of "1.5"'),
    (bool, "yes", 'send true instead of "yes"'),
    (bool, 1, "send true instead of 1"),
    (int, True, "send 1 instead of true"),
    (str, 42, 'send "42" instead of 42'),
    (list[int], "[1, 2]", 'send [1, 2] instead of "[1, 2]"'),
    (str, None, "to take an answer back, revise it with action retract"),
]


@pytest.mark.parametrize(("schema", "value", "hint"), HINTS)
async def test_a_value_of_the_wrong_kind_comes_back_with_a_hint(
    schema: object, value: object, hint: str
) -> None:
    change = await only(schema).start("f", {"answer": value})
    assert change.report.accepted == ()
    assert change.report.rejected["answer"].hint == hint


@pytest.mark.parametrize(
    ("schema", "value"), [(int, "many"), (date, "tomorrow"), (Literal["a", "b"], "c")]
)
async def test_a_value_nobody_can_read_comes_back_without_one(schema: object, value: str) -> None:
    change = await only(schema).start("f", {"answer": value})
    assert change.report.rejected["answer"].error
    assert change.report.rejected["answer"].hint is None


WORDS = {"twelve": 12}
GOOD: list[tuple[object, object, object]] = [
    (int, 42, 42),
    (int, 3.0, 3),
    (float, 3, 3.0),
    (date, "2030-05-01", date(2030, 5, 1)),
    (date, date(2030, 5, 1), date(2030, 5, 1)),
    (Decimal, "1.50", Decimal("1.50")),
    (Decimal, 2, Decimal(2)),
    (Size, 2, Size.LARGE),
    (str | None, None, None),
    (list[date], ["2030-05-01"], [date(2030, 5, 1)]),
    (Annotated[int, BeforeValidator(lambda v: WORDS.get(str(v), v))], "twelve", 12),
]


@pytest.mark.parametrize(("schema", "value", "parsed"), GOOD)
async def test_a_fitting_value_is_used_as_its_type_and_survives_storage(
    schema: object, value: object, parsed: object
) -> None:
    forms = only(schema)
    assert (await forms.start("f", {"answer": value})).report.accepted == ("answer",)
    assert (await values(forms))["answer"] == parsed


class Checked(BaseModel, str_strip_whitespace=True):
    code: str = Field(alias="theCode")

    @field_validator("code")
    @classmethod
    def known(cls, code: str) -> str:
        if code == "boom":
            raise RuntimeError("no such table")
        if not code.startswith("X"):
            raise ValueError("codes start with X")
        return code.lower()


async def test_validators_and_config_of_the_model_hold() -> None:
    form = define_form(id="f", version=1, name="F", description="d")
    forms = runner(form.step("s", title="S", fields=Checked).build())
    refused = (await forms.start("f", {"code": "Y1"})).report.rejected
    assert refused["code"].error == "codes start with X"
    await forms.fill({"code": " X1 "})
    assert await values(forms) == {"code": "x1"}


async def test_a_validator_that_breaks_refuses_its_value_only() -> None:
    form = define_form(id="f", version=1, name="F", description="d")
    forms = runner(form.step("s", title="S", fields=Checked).build())
    refused = (await forms.start("f", {"code": "boom"})).report.rejected
    assert refused["code"].error == "could not be checked: RuntimeError"


@pytest.mark.parametrize("value", ["\ud800", object(), {1: object()}])
async def test_what_is_no_json_is_refused_and_the_rest_kept(value: object) -> None:
    forms = runner()
    change = await forms.start("claim", {"full_name": value, "email": "a@b"})
    assert change.report.accepted == ("email",)
    assert "cannot be written as JSON" in change.report.rejected["full_name"].error


async def test_an_answer_to_what_does_not_apply_is_held_and_comes_back() -> None:
    forms = runner()
    await forms.start("claim", {"miles": 40})
    assert await held(forms) == ("miles",)
    assert await values(forms) == {}
    await forms.fill({"mode": "car"})
    assert await values(forms) == {"mode": "car", "miles": 40}
    await forms.fill({"mode": "rail"})
    assert await held(forms) == ("miles",)


async def test_a_held_field_is_not_needed_and_not_given_to_the_complete_form() -> None:
    forms = runner()
    await forms.start("claim", {**ALL, "miles": 40})
    assert await state(forms) == "complete"
    assert "miles" not in await values(forms)


async def test_a_field_that_applies_is_needed() -> None:
    forms = runner()
    await forms.start("claim", {**ALL, "mode": "car"})
    assert await state(forms) == "open"
    await forms.fill({"miles": 3})
    assert await state(forms) == "complete"


async def test_optional_fields_are_not_needed() -> None:
    forms = runner()
    await forms.start("claim", ALL)
    assert await state(forms) == "complete"
