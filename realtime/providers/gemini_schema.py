"""A tool's JSON schema as the Gemini Live wire takes it: a small part of OpenAPI, and strict.

What the wire does not know closes the connection (1007), so this is a list of what may stand, not
of what must go. What is lost is said in words in the description; the tool validates against its
own schema in any case. Pure, total: it never raises, whatever a tool calls its schema.
Source: spec/voice 18.10, 18.12, row 93; protocols/gemini-live 3; `google-genai` types.Schema.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping

Json = dict[str, object]

DEEPEST = 24
"""Levels of a schema; what lies deeper is any text."""
MOST = 2_000
"""Schemas in one declaration: links inside links can ask for more than a memory holds."""
REPEATED = 2
"""How often one link may stand inside itself before it is cut to a plain object."""

_KINDS = {
    "object": "OBJECT",
    "array": "ARRAY",
    "string": "STRING",
    "integer": "INTEGER",
    "number": "NUMBER",
    "boolean": "BOOLEAN",
}
_BOUNDS: dict[str, tuple[str, ...]] = {
    "OBJECT": ("minProperties", "maxProperties"),
    "ARRAY": ("minItems", "maxItems"),
    "STRING": ("minLength", "maxLength"),
    "INTEGER": ("minimum", "maximum"),
    "NUMBER": ("minimum", "maximum"),
}
_FORMATS: dict[str, tuple[str, ...]] = {
    "STRING": ("date-time",),
    "INTEGER": ("int32", "int64"),
    "NUMBER": ("float", "double"),
}
_SAID = ("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems", "default")
"""Constraints that become words."""
_UNIONS = ("anyOf", "oneOf")


def gemini_schema(parameters: Mapping[str, object]) -> Json | None:
    """`parameters` of a function declaration; None for a function without any."""
    schema = _Projection(parameters).root()
    return schema if schema.get("properties") else None


class _Projection:
    """One declaration in the making; `root` may be asked once."""

    def __init__(self, parameters: object) -> None:
        self._root: Mapping[str, object] = parameters if isinstance(parameters, Mapping) else {}
        self._left = MOST

    def root(self) -> Json:
        """An object at the root, where the wire demands one: branches of a union are laid
        together, and only what all of them require is required."""
        flat, path = self._flat(self._root, ())
        branches = [self._flat(one, path)[0] for one in _union(flat)]
        if branches:
            properties: dict[str, object] = {}
            for branch in (flat, *branches):
                properties |= _mapping(branch.get("properties"))
            required = [_names(branch.get("required")) for branch in branches]
            common = [name for name in required[0] if all(name in one for one in required)]
            common += _names(flat.get("required"))
            kept = {key: value for key, value in flat.items() if key not in _UNIONS}
            flat = {**kept, "properties": properties, "required": common}
        return self._typed({**flat, "type": "object"}, "OBJECT", path)

    def _node(self, schema: object, path: tuple[str, ...]) -> Json:
        """Any schema below the root. `path` has a step for every level and every link to here."""
        self._left -= 1
        if not isinstance(schema, Mapping) or self._left < 0 or len(path) > DEEPEST:
            return {"type": "STRING"}
        flat, path = self._flat(schema, path)
        kinds = _names(flat.get("type")) or _names([flat.get("type")])
        branches = _union(flat) or ([{"type": kind} for kind in kinds] if len(kinds) > 1 else [])
        if branches:
            return self._one_of(flat, branches, path)
        if kinds == ["null"]:
            return {"type": "STRING", "nullable": True}
        kind = _KINDS.get(kinds[0].lower()) if kinds else None
        return self._typed(flat, kind or _guessed(flat), path)

    def _one_of(
        self, flat: Mapping[str, object], branches: list[object], path: tuple[str, ...]
    ) -> Json:
        """A choice of schemas. Beside `anyOf` nothing may stand, so its surroundings go into every
        branch; "or null" is `nullable`."""
        outer = {key: value for key, value in flat.items() if key not in _UNIONS}
        if not isinstance(outer.get("type"), str):
            outer.pop("type", None)
        real = [one for one in branches if not self._is_null(one, path)]
        shown = [self._node(_within(outer, _mapping(one)), (*path, "")) for one in real]
        shown = shown or [{"type": "STRING"}]
        if len(real) < len(branches) or flat.get("nullable") is True:
            for one in shown:
                _make_nullable(one)
        return shown[0] if len(shown) == 1 else {"anyOf": _flattened(shown)}

    def _typed(self, flat: Mapping[str, object], kind: str, path: tuple[str, ...]) -> Json:
        """A schema of one kind, with the keys that the wire takes for that kind."""
        out: Json = {"type": kind}
        title = flat.get("title")
        if isinstance(title, str) and title:
            out["title"] = title
        said = [f"{key}: {_json(flat[key])}" for key in _SAID if not _is_nothing(flat.get(key))]
        said += [*_bounded(out, flat, kind), *_chosen(out, flat, kind)]
        if flat.get("nullable") is True:
            out["nullable"] = True
        if kind == "OBJECT":
            self._members(out, flat, path)
        elif kind == "ARRAY":
            out["items"] = self._items(flat, path)
        words = [str(flat["description"])] if isinstance(flat.get("description"), str) else []
        words += [f"({'; '.join(said)})"] if said else []
        if words:
            out["description"] = " ".join(words)
        return out

    def _members(self, out: Json, flat: Mapping[str, object], path: tuple[str, ...]) -> None:
        members = _mapping(flat.get("properties"))
        if not members:
            return
        out["properties"] = {
            str(name): self._node(one, (*path, "")) for name, one in members.items()
        }
        required = [name for name in _names(flat.get("required")) if name in members]
        if required:
            out["required"] = list(dict.fromkeys(required))
        ordering = _names(flat.get("propertyOrdering"))
        if ordering and set(ordering) == set(members):
            out["propertyOrdering"] = ordering

    def _items(self, flat: Mapping[str, object], path: tuple[str, ...]) -> Json:
        """A list must say what is in it; a tuple may hold any of its kinds anywhere."""
        places = flat.get("prefixItems")
        if isinstance(places, list) and places:
            return self._node({"anyOf": places}, (*path, ""))
        return self._node(flat.get("items"), (*path, ""))

    def _flat(
        self, schema: object, path: tuple[str, ...]
    ) -> tuple[Mapping[str, object], tuple[str, ...]]:
        """`schema` with its links followed and `allOf` laid together."""
        flat = _mapping(schema)
        self._left -= 1
        if self._left < 0:
            return {}, path
        while isinstance(link := flat.get("$ref"), str):
            beside = {key: value for key, value in flat.items() if key != "$ref"}
            if path.count(link) >= REPEATED or len(path) > DEEPEST:
                return {"type": "object", **beside}, path
            path = (*path, link)
            flat = {**self._linked(link), **beside}
        parts = flat.get("allOf")
        if not isinstance(parts, list) or len(path) > DEEPEST:
            return flat, path
        together: Json = {}
        for part in (*parts, {key: value for key, value in flat.items() if key != "allOf"}):
            own = self._flat(part, (*path, ""))[0]
            properties = {**_mapping(together.get("properties")), **_mapping(own.get("properties"))}
            required = [*_names(together.get("required")), *_names(own.get("required"))]
            together = {**together, **own}
            together |= {"properties": properties} if properties else {}
            together |= {"required": required} if required else {}
        return together, path

    def _linked(self, link: str) -> Mapping[str, object]:
        """What a link points at; nothing for one into the void."""
        found: object = self._root
        for step in link.removeprefix("#").strip("/").split("/") if link != "#" else ():
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        return _mapping(found)

    def _is_null(self, schema: object, path: tuple[str, ...]) -> bool:
        flat = self._flat(schema, path)[0]
        return flat.get("type") in ("null", ["null"]) or ("const" in flat and flat["const"] is None)


def _bounded(out: Json, flat: Mapping[str, object], kind: str) -> list[str]:
    """Put bounds, pattern and format into `out`; gives what has to be said instead."""
    out |= {key: flat[key] for key in _BOUNDS.get(kind, ()) if _is_number(flat.get(key))}
    pattern, form = flat.get("pattern"), flat.get("format")
    if kind == "STRING" and isinstance(pattern, str):
        out["pattern"] = pattern
    if isinstance(form, str) and form in _FORMATS.get(kind, ()):
        out["format"] = form
        return []
    return [f"format: {form}"] if isinstance(form, str) else []


def _chosen(out: Json, flat: Mapping[str, object], kind: str) -> list[str]:
    """Put `enum` and `const` into `out`, which only strings have; gives what has to be said
    instead."""
    given = flat.get("enum", [flat["const"]] if "const" in flat else None)
    if not isinstance(given, list | tuple):
        return []
    choices = [one for one in given if one is not None]
    if len(choices) < len(given):
        out["nullable"] = True
    if kind == "STRING" and choices and all(isinstance(one, str) and one for one in choices):
        out["enum"] = choices
        return []
    return [f"one of: {', '.join(_json(one) for one in choices)}"] if choices else []


def _within(outer: Mapping[str, object], branch: Mapping[str, object]) -> Json:
    """A branch of a choice with what stands around the choice. A link stays one, so that a circle
    is still seen, and takes only words along; words of both are kept."""
    words = [one.get("description") for one in (outer, branch)]
    said = list(dict.fromkeys(one for one in words if isinstance(one, str) and one))
    around = outer if "$ref" not in branch else {}
    return {**around, **branch, **({"description": " ".join(said)} if said else {})}


def _union(flat: Mapping[str, object]) -> list[object]:
    return [
        one
        for key in _UNIONS
        for one in (flat[key] if isinstance(flat.get(key), list) else ())  # type: ignore[attr-defined]
    ]


def _flattened(shown: Iterable[Json]) -> list[object]:
    """Choices of choices as one list."""
    out: list[object] = []
    for one in shown:
        inner = one.get("anyOf")
        out.extend(inner if isinstance(inner, list) else [one])
    return out


def _make_nullable(schema: Json) -> None:
    inner = schema.get("anyOf")
    for one in inner if isinstance(inner, list) else [schema]:
        one["nullable"] = True


def _guessed(flat: Mapping[str, object]) -> str:
    """The kind of a schema that does not say it."""
    if "properties" in flat or "additionalProperties" in flat:
        return "OBJECT"
    if "items" in flat or "prefixItems" in flat:
        return "ARRAY"
    choices = flat.get("enum", [flat.get("const")])
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, bool):
        return "BOOLEAN"
    if isinstance(first, int | float):
        return "INTEGER" if isinstance(first, int) else "NUMBER"
    return "STRING"


def _is_nothing(value: object) -> bool:
    """A default of nothing is not worth a word; 0 is something."""
    return value is None or value is False or (isinstance(value, str | list | dict) and not value)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _names(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []


def _json(value: object) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return "?"
