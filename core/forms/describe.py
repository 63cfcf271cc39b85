"""A JSON schema in the few words a model needs to send a fitting value.

The words name what the schema accepts and nothing friendlier: a model told "yes or no" sends the
text "yes" where the schema wants true. Pure.
"""

import json
from collections.abc import Mapping, Sequence

_FORMATS = {
    "date": "date, YYYY-MM-DD",
    "date-time": "date and time, ISO 8601",
    "time": "time, HH:MM:SS",
    "duration": "duration, ISO 8601",
    "email": "email address",
    "uri": "web address",
    "uuid": "UUID",
}
_BOUNDS = (
    ("minimum", ">= {}"),
    ("exclusiveMinimum", "> {}"),
    ("maximum", "<= {}"),
    ("exclusiveMaximum", "< {}"),
    ("multipleOf", "a multiple of {}"),
)
_MAX_DEPTH = 4

Schema = Mapping[str, object]


def describe(schema: Schema, definitions: Schema | None = None, depth: int = 0) -> str:
    """For instance `integer >= 1`, `one of: car | rail`, `list of date, YYYY-MM-DD`."""
    known = definitions or {}
    schema = _resolved(schema, known)
    if "const" in schema:
        return f"exactly {_literal(schema['const'])}"
    options = schema.get("enum")
    if isinstance(options, Sequence):
        return f"one of: {' | '.join(_literal(one) for one in options)}"
    variants = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(variants, Sequence):
        return _variants(variants, known, depth)
    match schema.get("type"):
        case "boolean":
            return "true or false"
        case "integer" | "number" as kind:
            return " ".join([str(kind), *_bounds(schema)])
        case "string":
            return _text(schema)
        case "array":
            return _list(schema, known, depth)
        case "object":
            return _object(schema)
        case "null":
            return "null"
    return "any value"


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        found = definitions.get(reference.rpartition("/")[2])
        return found if isinstance(found, Mapping) else {}
    return schema


def _variants(variants: Sequence[object], definitions: Schema, depth: int) -> str:
    if depth >= _MAX_DEPTH:
        return "any of several kinds"
    kinds = [
        describe(one, definitions, depth + 1)
        for one in variants
        if isinstance(one, Mapping) and one.get("type") != "null"
    ]
    return " or ".join(dict.fromkeys(kinds)) or "null"


def _bounds(schema: Schema) -> list[str]:
    return [words.format(schema[key]) for key, words in _BOUNDS if key in schema]


def _text(schema: Schema) -> str:
    words = _FORMATS.get(str(schema.get("format")), "text")
    least, most = schema.get("minLength"), schema.get("maxLength")
    if least and least == most:
        words += f", exactly {least} characters"
    else:
        words += f", at least {least} characters" if least else ""
        words += f", at most {most} characters" if most else ""
    pattern = schema.get("pattern")
    return f"{words}, like {pattern}" if pattern else words


def _list(schema: Schema, definitions: Schema, depth: int) -> str:
    items = schema.get("items")
    if not isinstance(items, Mapping) or depth >= _MAX_DEPTH:
        return "list"
    return f"list of {describe(items, definitions, depth + 1)}"


def _object(schema: Schema) -> str:
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and properties:
        return f"object with {', '.join(properties)}"
    return "object"


def _literal(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
