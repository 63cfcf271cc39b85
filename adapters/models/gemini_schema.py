"""A tool's JSON schema as Gemini takes it in `parametersJsonSchema`.

Gemini knows a part of JSON Schema. What it does not know is said in words in the description, so
that the model still reads it; the tool validates against its own schema in any case. Pure.
Source: `google-genai` types.FunctionDeclaration, types.GenerateContentConfig.response_json_schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from .object_schema import object_schema

_AS_IT_IS = frozenset(
    {
        "$id",
        "$anchor",
        "type",
        "format",
        "title",
        "description",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "required",
        "propertyOrdering",
    }
)
_ONE = frozenset({"items", "additionalProperties"})
_MANY = frozenset({"anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"properties", "$defs"})
_SAID = (
    "pattern",
    "minLength",
    "maxLength",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "uniqueItems",
    "default",
    "examples",
)
"""Constraints that become words."""


def gemini_schema(parameters: Mapping[str, object]) -> dict[str, object] | None:
    """The parameters of a function; None for one without any, which is left out."""
    schema = object_schema(parameters)
    if not schema["properties"] and not schema.get("additionalProperties"):
        return None
    return _projected(schema)


def _projected(schema: Mapping[str, object]) -> dict[str, object]:
    if "$ref" in schema:
        # Beside a link nothing else may stand.
        return {"$ref": schema["$ref"]}
    schema = _unwrapped(schema)
    out: dict[str, object] = {}
    for key, value in schema.items():
        if key in _AS_IT_IS:
            out[key] = value
        elif key in _ONE:
            out[key] = _below(value)
        elif key in _MANY and isinstance(value, list):
            out[key] = [_below(one) for one in value]
        elif key in _NAMED and isinstance(value, Mapping):
            out[key] = {name: _below(one) for name, one in value.items()}
    choices = _choices(schema)
    if choices:
        out["enum"] = choices
    said = "; ".join(f"{key}: {json.dumps(schema[key])}" for key in _SAID if key in schema)
    if said:
        out["description"] = f"{out.get('description', '')} ({said})".strip()
    return out


def _unwrapped(schema: Mapping[str, object]) -> Mapping[str, object]:
    """`allOf` of one schema is that schema."""
    inner = schema.get("allOf")
    if isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], Mapping):
        return {**inner[0], **{key: value for key, value in schema.items() if key != "allOf"}}
    return schema


def _choices(schema: Mapping[str, object]) -> list[object]:
    """`enum` and `const`; only strings and numbers can be told apart there."""
    given = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if not isinstance(given, list):
        return []
    return [
        one
        for one in given
        if isinstance(one, (str, int, float)) and one is not True and one is not False
    ]


def _below(value: object) -> object:
    return _projected(value) if isinstance(value, Mapping) else value
