"""Tool input: JSON schemas for models, validation for tools, canonical JSON for permissions."""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import get_type_hints
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic_core import to_jsonable_python

from .errors import UsageError

InputModel = type[BaseModel] | TypeAdapter[object]


class InvalidInput(Exception):
    """A model's arguments do not fit the tool's schema; str() is the text the model is told."""


_SCHEMAS: WeakKeyDictionary[InputModel, dict[str, object]] = WeakKeyDictionary()
"""Pydantic takes half a millisecond for one, which each new agent's own tools would cost again.
Weak: what was made for one call goes with it."""


def json_schema_of(model: InputModel) -> dict[str, object]:
    """The JSON schema (2020-12) a model is shown. One for each model, so nobody may change it."""
    known = _SCHEMAS.get(model)
    if known is None:
        known = _SCHEMAS[model] = _schema(model)
    return known


def _schema(model: InputModel) -> dict[str, object]:
    if isinstance(model, TypeAdapter):
        return model.json_schema()
    return model.model_json_schema()


def validate_input(model: InputModel, raw: object) -> object:
    """The parsed input, defaults applied; raises InvalidInput with one line per fault.

    JSON text is accepted too: adapters pass malformed arguments on as the raw string.
    """
    try:
        if isinstance(model, TypeAdapter):
            return model.validate_json(raw) if isinstance(raw, str) else model.validate_python(raw)
        if isinstance(raw, str):
            return model.model_validate_json(raw)
        return model.model_validate(raw)
    except ValidationError as error:
        lines = [f"{_path(item['loc'])}: {item['msg']}" for item in error.errors()]
        raise InvalidInput("\n".join(lines)) from error


def canonical_json(value: object) -> str:
    """One text per value, whatever the order of its keys (spec core 19.25)."""
    plain = to_jsonable_python(value, fallback=str)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def model_of_function(function: Callable[..., object], skip: set[str]) -> type[BaseModel]:
    """A pydantic model of a function's parameters; unknown arguments are refused."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, tuple[object, object]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in skip:
            continue
        if name not in hints:
            raise UsageError(f"@tool {function.__name__}: parameter {name!r} needs a type")
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UsageError(f"@tool {function.__name__}: *args and **kwargs have no schema")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (hints[name], default)
    return _create(function.__name__, fields)


def fields_of(value: BaseModel) -> Mapping[str, object]:
    """The validated fields as keyword arguments, nested models kept as they are."""
    return {name: getattr(value, name) for name in type(value).model_fields}


def _create(name: str, fields: Mapping[str, tuple[object, object]]) -> type[BaseModel]:
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    model: type[BaseModel] = create_model(name, __config__=config, **fields)  # type: ignore[call-overload]
    return model


def _path(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "input"
