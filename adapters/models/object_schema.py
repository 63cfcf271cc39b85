"""A tool's JSON schema with an object at its root, for wires that demand one there.

A pydantic union or a model that contains itself has `anyOf` or `$ref` at the root; the vendors
refuse both for a tool's parameters. What the model sends is validated against the tool's own schema
afterwards, so a wider one here lets nothing through. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

UNIONS = ("anyOf", "oneOf", "allOf")
_DEEP = 16
"""Links followed from the root: a circle of nothing but links ends there."""


def object_schema(parameters: Mapping[str, object]) -> dict[str, object]:
    """`parameters` with `type: object` and `properties`; unions of objects are laid together."""
    branches = list(_objects(parameters, parameters, _DEEP))
    schema = {key: value for key, value in parameters.items() if key not in (*UNIONS, "$ref")}
    plain = len(branches) == 1 and branches[0] is parameters
    if not plain:
        schema |= _together(branches)
    schema["type"] = "object"
    schema.setdefault("properties", {})
    return schema


def _together(branches: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Every property of any branch; required is what all of them require."""
    properties: dict[str, object] = {}
    required: list[str] | None = None
    for branch in branches:
        own = branch.get("properties")
        if isinstance(own, Mapping):
            properties = {**own, **properties}
        names = branch.get("required")
        wanted = [str(name) for name in names] if isinstance(names, list) else []
        required = wanted if required is None else [name for name in required if name in wanted]
    return {"properties": properties, **({"required": required} if required else {})}


def _objects(
    schema: Mapping[str, object], root: Mapping[str, object], depth: int
) -> Iterator[Mapping[str, object]]:
    """The object schemas that `schema` is made of."""
    target = schema.get("$ref")
    if isinstance(target, str) and depth:
        yield from _objects(_linked(target, root), root, depth - 1)
        return
    alternatives = [one for key in UNIONS for one in _list(schema.get(key))]
    if not alternatives or not depth:
        yield schema
        return
    for one in alternatives:
        if isinstance(one, Mapping):
            yield from _objects(one, root, depth - 1)


def _linked(target: str, root: Mapping[str, object]) -> Mapping[str, object]:
    found: object = root
    for step in target.removeprefix("#").strip("/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) and found is not root else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
