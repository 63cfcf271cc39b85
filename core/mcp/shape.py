"""A JSON schema in one short line, for the description of a tool: what it gives back. Pure.

    {id: string, tags: string[], state: "open" | "closed", owner?: {name: string}}

A hint for a model, not a schema: bounded in depth and fields, whatever a server sends.
"""

from collections.abc import Mapping, Sequence

from ..messages import data_text
from ..outside import one_line

MOST_FIELDS = 24
MOST_DEPTH = 4
MOST_CHOICES = 12
MOST_NAME_CHARS = 60
MOST_NESTED = 4 * MOST_DEPTH
"""Of what adds no depth to the line: alternatives within alternatives."""

Schema = Mapping[str, object]


def shape_of(schema: Schema | None) -> str:
    """The line; empty where the schema says nothing."""
    if not schema:
        return ""
    shape = _Shape(schema).of(schema, 1)
    return "" if shape in ("any", "object", "{}") else shape


class _Shape:
    """One rendering: counts fields and follows references within `root`."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._fields = 0
        self._nested = 0

    def of(self, schema: object, depth: int) -> str:
        """The shape of one schema at `depth`, 1 for the outermost."""
        if not isinstance(schema, Mapping):
            return "any"
        if depth > MOST_DEPTH or self._nested >= MOST_NESTED:
            return "…"
        self._nested += 1
        try:
            return self._matched(schema, depth)
        finally:
            self._nested -= 1

    def _matched(self, schema: Schema, depth: int) -> str:
        match schema:
            case {"$ref": str(reference)}:
                return self.of(self._referred(reference), depth + 1)
            case {"const": value}:
                return _literal(value)
            case {"enum": [*values]} if values:
                return _choices([_literal(value) for value in values[: MOST_CHOICES + 1]])
            case {"anyOf": [*options]} | {"oneOf": [*options]} if options:
                return self._any_of(options, depth)
            case {"allOf": [only]}:
                return self.of(only, depth + 1)
        return self._typed(schema, depth)

    def _typed(self, schema: Schema, depth: int) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            kinds = [{**schema, "type": one} for one in kind if one != "null"]
            return self._any_of(kinds, depth) if kinds else "null"
        if kind == "array" or (kind is None and "items" in schema):
            items = schema.get("items")
            inner = self.of(items, depth + 1)
            one = " | " not in inner or (isinstance(items, Mapping) and "properties" in items)
            return f"{inner}[]" if one else f"({inner})[]"
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, depth)
        return one_line(kind) if isinstance(kind, str) else "any"

    def _object(self, schema: Schema, depth: int) -> str:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            return "object"
        required = schema.get("required")
        needed = required if isinstance(required, list) else []
        parts: list[str] = []
        for name, value in properties.items():
            if self._fields >= MOST_FIELDS:
                parts.append("…")
                break
            self._fields += 1
            mark = "" if name in needed else "?"
            parts.append(f"{_short(str(name))}{mark}: {self.of(value, depth + 1)}")
        return "{" + ", ".join(parts) + "}"

    def _any_of(self, options: Sequence[object], depth: int) -> str:
        """Null is left out: that a value may be missing says nothing about it."""
        told = [one for one in options if not (isinstance(one, Mapping) and _is_null(one))]
        if not told:
            return "null"
        return _choices([self.of(one, depth) for one in told[: MOST_CHOICES + 1]])

    def _referred(self, reference: str) -> object:
        """What `#/a/b` points at in this schema; None for anything else."""
        at: object = self._root
        if not reference.startswith("#/"):
            return None
        for step in reference.removeprefix("#/").split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            at = at.get(key) if isinstance(at, Mapping) else None
        return at


def _is_null(schema: Schema) -> bool:
    return schema.get("type") == "null" or ("const" in schema and schema["const"] is None)


def _choices(shapes: list[str]) -> str:
    different = list(dict.fromkeys(shapes))
    more = [*different[:MOST_CHOICES], "…"] if len(different) > MOST_CHOICES else different
    return " | ".join(more)


def _literal(value: object) -> str:
    return f'"{_short(value)}"' if isinstance(value, str) else _short(data_text(value))


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= MOST_NAME_CHARS else f"{line[:MOST_NAME_CHARS]}…"
