"""define_form: what is refused, with the place and the remedy; what follows from a schema."""

from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, PrivateAttr, model_validator

from tests.core.forms.rig import Claimant, Travel, claim
from voxglove.core import UsageError
from voxglove.core.forms import FieldSpec, FormBuilder, define_form

TEXT = {"word": FieldSpec(schema=str)}


async def hook(context: object) -> None: ...


def form(**changed: Any) -> FormBuilder:
    head: dict[str, Any] = {"id": "f", "version": 1, "name": "F", "description": "a form"} | changed
    return define_form(**head)


class WholeModel(BaseModel):
    a: int

    @model_validator(mode="after")
    def rule(self) -> WholeModel:
        return self


class Private(BaseModel):
    a: int
    _b: int = PrivateAttr(default=1)


class Frozen(BaseModel, frozen=True):
    a: int


class Empty(BaseModel):
    pass


REFUSED: list[tuple[str, Callable[[], object], str]] = [
    ("no steps", lambda: form().build(), "has no steps; add one"),
    ("form id", lambda: form(id="a:b").step("s", title="S", fields=TEXT).build(), "'a:b'"),
    ("version", lambda: form(version=0).step("s", title="S", fields=TEXT).build(), "from 1"),
    ("name", lambda: form(name=" ").step("s", title="S", fields=TEXT).build(), "name must not"),
    ("description", lambda: form(description="").step("s", title="S", fields=TEXT).build(), "desc"),
    ("step id", lambda: form().step("a:b", title="S", fields=TEXT), "step 'a:b': an id is"),
    ("title", lambda: form().step("s", title="", fields=TEXT), "step 's': title must not"),
    ("no fields", lambda: form().step("s", title="S", fields=Empty), "has no fields"),
    ("no mapping", lambda: form().step("s", title="S", fields=str), "a mapping of FieldSpec"),  # type: ignore[arg-type]
    ("no spec", lambda: form().step("s", title="S", fields={"a": FieldSpec()}), "FieldSpec(schema"),
    (
        "field id",
        lambda: form().step("s", title="S", fields={"a b": FieldSpec(schema=str)}),
        "field 'a b'",
    ),
    (
        "field not ASCII",
        lambda: form().step("s", title="S", fields={"größe": FieldSpec(schema=str)}),
        "ASCII",
    ),
    (
        "reserved field",
        lambda: form().step("s", title="S", fields={"items": FieldSpec(schema=str)}),
        "field 'items': get, items, keys, values are reserved",
    ),
    (
        "no type",
        lambda: form().step("s", title="S", fields={"a": FieldSpec(schema=object())}),
        "field 'a'",
    ),
    (
        "no JSON type",
        lambda: form().step("s", title="S", fields={"a": FieldSpec(schema=type)}),
        "step 's': its fields have no JSON schema",
    ),
    ("model rules", lambda: form().step("s", title="S", fields=WholeModel), "in a checkpoint"),
    ("private attributes", lambda: form().step("s", title="S", fields=Private), "private"),
    ("frozen", lambda: form().step("s", title="S", fields=Frozen), "drop frozen=True"),
    (
        "async predicate",
        lambda: form().step("s", title="S", fields={"a": FieldSpec(schema=str, when=hook)}),
        "not async",
    ),
    (
        "predicate of three",
        lambda: form().step("s", title="S", fields=TEXT, when=lambda a, b, c: True),
        "(answers, progress), not 3",
    ),
    (
        "double step",
        lambda: (
            form().step("s", title="S", fields=TEXT).step("s", title="T", fields=Claimant).build()
        ),
        "step 's' exists twice",
    ),
    (
        "double field",
        lambda: form().step("s", title="S", fields=TEXT).step("t", title="T", fields=TEXT).build(),
        "field 'word' exists twice",
    ),
    (
        "like names",
        lambda: (
            form()
            .step("s", title="S", fields=TEXT)
            .step("t", title="T", fields={"w_ord": FieldSpec(schema=str)})
            .build()
        ),
        "'word' and 'w_ord' cannot be told apart",
    ),
    (
        "label like an id",
        lambda: (
            form()
            .step("s", title="S", fields={**TEXT, "b": FieldSpec(schema=str, label="Word!")})
            .build()
        ),
        "cannot be told apart",
    ),
    ("checkpoint id", lambda: claim().checkpoint("a b", when=bool, run=hook), "checkpoint 'a b'"),
    ("checkpoint idle", lambda: claim().checkpoint("c", when=lambda a: True), "blocking=True"),
    (
        "wait message",
        lambda: claim().checkpoint("c", when=lambda a: True, run=hook, wait_message="m"),
        "nothing waits here",
    ),
    (
        "double checkpoint",
        lambda: (
            claim()
            .checkpoint("c", when=lambda a: True, run=hook)
            .checkpoint("c", when=lambda a: True, run=hook)
            .build()
        ),
        "checkpoint 'c' exists twice",
    ),
    ("unknown field", lambda: claim().on_fill("emial", hook).build(), "did you mean email"),
    ("double on_fill", lambda: claim().on_fill("mode", hook).on_fill("mode", hook), "already"),
    ("no function", lambda: claim().on_fill("mode", 3), "give a function"),  # type: ignore[arg-type]
    ("double on_complete", lambda: claim().on_complete(hook).on_complete(hook), "set already"),
    (
        "on_fill twice",
        lambda: (
            form()
            .step("s", title="S", fields={"a": FieldSpec(schema=str, on_fill=hook)})
            .on_fill("a", hook)
            .build()
        ),
        "keep one",
    ),
]


@pytest.mark.parametrize(
    ("make", "words"), [one[1:] for one in REFUSED], ids=[o[0] for o in REFUSED]
)
def test_a_mistake_is_refused_with_place_and_remedy(make: Callable[[], object], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert words in str(caught.value)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


OPTIONAL: list[tuple[str, FieldSpec, bool]] = [
    ("plain", FieldSpec(schema=str), True),
    ("may be null", FieldSpec(schema=str | None), True),
    ("default", FieldSpec(schema=str, default=""), False),
    ("null by default", FieldSpec(schema=str | None, default=None), False),
    ("default in the schema", FieldSpec(schema=Annotated[str, Field(default="x")]), False),
    ("default factory", FieldSpec(schema=list[str], default=Field(default_factory=list)), False),
]


@pytest.mark.parametrize(
    ("spec", "required"), [o[1:] for o in OPTIONAL], ids=[o[0] for o in OPTIONAL]
)
def test_a_field_is_optional_only_by_a_default(spec: FieldSpec, required: bool) -> None:
    built = form().step("s", title="S", fields={"a": spec}).build()
    assert built.fields["a"].required is required


WORDS: list[tuple[object, str]] = [
    (str, "text"),
    (Annotated[str, Field(min_length=2, max_length=9)], "text, at least 2 characters, at most 9"),
    (Annotated[str, Field(min_length=4, max_length=4)], "text, exactly 4 characters"),
    (Annotated[int, Field(ge=1, lt=10)], "integer >= 1 < 10"),
    (float, "number"),
    (bool, "true or false"),
    (date, "date, YYYY-MM-DD"),
    (Literal["car", "rail"], "one of: car | rail"),
    (Literal["car"], "exactly car"),
    (Colour, "one of: red | blue"),
    (Colour | None, "one of: red | blue"),
    (int | str, "integer or text"),
    (list[date], "list of date, YYYY-MM-DD"),
    (dict[str, int], "object"),
    (Claimant, "object with full_name, email"),
    (Decimal, "number or text"),
    (None, "null"),
    (Any, "any value"),
]


@pytest.mark.parametrize(("schema", "words"), WORDS)
def test_what_a_field_takes_is_said_in_words(schema: object, words: str) -> None:
    spec = FieldSpec(schema=schema if schema is not None else type(None))
    built = form().step("s", title="S", fields={"a": spec}).build()
    assert built.fields["a"].takes.startswith(words)


def test_labels_and_asks_come_from_the_spec_then_the_schema_then_the_id() -> None:
    fields = form().step("c", title="C", fields=Claimant).step("t", title="T", fields=Travel)
    built = fields.build().fields
    assert [one.label for one in built.values()][:3] == ["Full name", "Work email", "Mode"]
    assert built["mode"].ask == "How did they travel?"
    assert built["mode"].step == "t"
