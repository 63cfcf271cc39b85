"""The projection of a tool's schema for Gemini Live: what may stand, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import pytest
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tests.simulators.gemini_live_setup import check_schema
from voxglove.realtime.providers.gemini_schema import DEEPEST, MOST, gemini_schema

Json = dict[str, object]


class Leg(BaseModel):
    """One leg of a journey."""

    to: str
    seat: Literal["window", "aisle"] = "window"
    legs: list[Leg] = []


class Journey(BaseModel):
    first: Leg | None = Field(None, description="where it begins")
    places: int | str
    extras: dict[str, int] = {}
    pair: tuple[int, str]
    kind: Literal["rail"]
    anything: object


def property_of(schema: Mapping[str, object]) -> Json:
    """How the schema of one property comes out."""
    whole = gemini_schema({"type": "object", "properties": {"p": schema}})
    assert whole is not None
    properties = whole["properties"]
    assert isinstance(properties, dict)
    shown = properties["p"]
    assert isinstance(shown, dict)
    return shown


@pytest.mark.parametrize(
    ("given_schema", "shown"),
    [
        ({"const": "rail"}, {"type": "STRING", "enum": ["rail"]}),
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
        ({"$schema": "x", "type": "string", "additionalProperties": False}, {"type": "STRING"}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "INTEGER", "nullable": True}),
        (
            {"type": ["integer", "string"]},
            {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}]},
        ),
        (
            {"oneOf": [{"type": "number"}, {"type": "boolean"}], "description": "either"},
            {
                "anyOf": [
                    {"type": "NUMBER", "description": "either"},
                    {"type": "BOOLEAN", "description": "either"},
                ]
            },
        ),
        ({"type": "array"}, {"type": "ARRAY", "items": {"type": "STRING"}}),
        (
            {"type": "string", "format": "uuid", "default": "x", "description": "An id."},
            {"type": "STRING", "description": 'An id. (default: "x"; format: uuid)'},
        ),
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
        (
            {"type": "integer", "enum": [1, 2], "exclusiveMinimum": 0},
            {"type": "INTEGER", "description": "(exclusiveMinimum: 0; one of: 1, 2)"},
        ),
        ({"enum": ["a", None]}, {"type": "STRING", "nullable": True, "enum": ["a"]}),
        ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, {"type": "INTEGER", "minimum": 1}),
        ({"type": "number", "minimum": float("nan")}, {"type": "NUMBER"}),
        ({}, {"type": "STRING"}),
        ({"type": "object", "required": ["gone"]}, {"type": "OBJECT"}),
        ({"$ref": "#/$defs/Nowhere"}, {"type": "STRING"}),
    ],
)
def test_voice_row_093_what_the_wire_does_not_know_is_said_or_dropped(
    given_schema: Json, shown: Json
) -> None:
    assert property_of(given_schema) == shown


def test_voice_row_093_a_model_of_pydantic_passes_the_strictest_reader() -> None:
    schema = gemini_schema(Journey.model_json_schema())
    check_schema("parameters", schema)
    types.Schema.model_validate(schema)
    assert schema is not None
    assert schema["required"] == ["places", "pair", "kind", "anything"]


def test_a_link_inside_itself_ends_as_a_plain_object() -> None:
    depth = list(_levels(gemini_schema(Leg.model_json_schema())))
    assert depth.count("to") == 2, "the link is followed twice"


def test_words_around_a_choice_reach_its_branches() -> None:
    first = property_of(
        {"anyOf": [{"type": "string", "description": "a name"}], "description": "who"}
    )
    assert first == {"type": "STRING", "description": "who a name"}


@pytest.mark.parametrize(
    "nothing", [{}, {"type": "object"}, {"type": "object", "properties": {}}, {"anyOf": []}]
)
def test_a_function_without_parameters_has_none(nothing: Json) -> None:
    assert gemini_schema(nothing) is None


def test_a_choice_at_the_root_is_laid_together() -> None:
    one: Json = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    two: Json = {"properties": {"a": {}, "b": {"type": "integer"}}, "required": ["a", "b"]}
    schema = gemini_schema({"$ref": "#/$defs/C", "$defs": {"C": {"oneOf": [one, two]}}})
    assert schema is not None
    assert schema["type"] == "OBJECT"
    assert schema["required"] == ["a"]
    assert list(_levels(schema)) == ["a", "b"]


def test_links_inside_links_do_not_grow_without_end() -> None:
    wide = {f"p{at}": {"$ref": f"#/$defs/D{(at * 7) % 9}"} for at in range(9)}
    definitions = {f"D{at}": {"type": "object", "properties": wide} for at in range(9)}
    schema = gemini_schema({"type": "object", "properties": wide, "$defs": definitions})
    assert 0 < sum(1 for _ in _levels(schema)) <= MOST * 10
    deep: Json = {"type": "string"}
    for _ in range(500):
        deep = {"type": "array", "items": deep}
    assert len(str(property_of(deep))) < 100 * DEEPEST


_KEYS = st.sampled_from(
    ["type", "anyOf", "oneOf", "allOf", "properties", "items", "enum", "const", "required", "$ref"]
    + ["$defs", "format", "nullable", "description", "prefixItems", "minimum", "x-own", "title"]
)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from(["string", "null", "object", "array", "#", "#/$defs/a", "enum", ""]),
)
_SCHEMAS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=5)),
    max_leaves=20,
)


@settings(max_examples=60)
@given(st.dictionaries(_KEYS, _SCHEMAS, max_size=6))
def test_any_schema_at_all_becomes_one_that_the_wire_takes(schema: Json) -> None:
    shown = gemini_schema(schema)
    if shown is not None:
        check_schema("parameters", shown)
        types.Schema.model_validate(shown)


def _levels(schema: object) -> Iterator[str]:
    """Names of all properties, at every level."""
    if isinstance(schema, list):
        for one in schema:
            yield from _levels(one)
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    for name, one in properties.items() if isinstance(properties, dict) else ():
        yield str(name)
        yield from _levels(one)
    yield from _levels(schema.get("items"))
    yield from _levels(schema.get("anyOf"))
