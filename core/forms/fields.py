"""Fields of a form: from pydantic models or FieldSpecs to things that check one answer.

A step always has a pydantic model behind it; an answer is checked as an assignment to that field,
so constraints, field validators and the model's config hold as they do elsewhere. What spans
several fields cannot hold while answers come one by one, so such models are refused when the form
is built. Pure.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from pydantic import BaseModel, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, from_json, to_json

from ..errors import UsageError
from .answers import RESERVED_FIELDS, Condition, Predicate
from .describe import describe
from .effects import HookFunction
from .names import is_identifier

_TRUTH_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "1", "0"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """One field, in a mapping of fields or as metadata of a model's field.

        fields={"miles": FieldSpec(schema=Annotated[int, Field(ge=1)], label="Miles driven")}
        miles: Annotated[int, FieldSpec(when=lambda a: a.mode == "car")] = 0

    schema    the type, with constraints; only in a mapping, a model has it already
    default   makes the field optional; `...` means there is none
    label     what it is called; else the schema's title, else the id in words
    ask       how to ask for it; else the schema's description
    when      whether it applies; an answer to a field that does not is held
    on_fill   runs each time its answer comes to count
    """

    schema: object = None
    default: object = ...
    label: str | None = None
    ask: str | None = None
    when: Predicate | None = None
    on_fill: HookFunction | None = None


class InvalidAnswer(Exception):
    """A value does not fit its field; `hint` says what to send instead, where that is known."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, eq=False, kw_only=True)
class FormField:
    """One field of a built form. `takes` says in words what fits; `required` is derived: a
    field is optional if and only if its schema has a default (an annotation that allows null does
    not make it optional, for null is then an answer)."""

    id: str
    step: str
    label: str
    ask: str | None
    takes: str
    required: bool
    when: Condition | None
    on_fill: HookFunction | None
    model: type[BaseModel]

    def parse(self, value: object) -> object:
        """The value as the model has it. Raises InvalidAnswer; `value` must be JSON."""
        parsed = self._checked(value)
        mistaken = _mistaken_kind(value, parsed)
        if mistaken:
            raise InvalidAnswer(f"expected {self.takes}, got {mistaken}", _send(parsed, value))
        return parsed

    def _checked(self, value: object) -> object:
        try:
            return self._assigned(value)
        except ValidationError as error:
            reasons = "; ".join(_reason(dict(one)) for one in error.errors(include_url=False))
            raise InvalidAnswer(reasons, self._hint(value)) from error
        except Exception as error:  # a validator of the user that broke is no reason to stop
            raise InvalidAnswer(f"could not be checked: {type(error).__name__}") from error

    def _assigned(self, value: object) -> object:
        holder = self.model.model_construct()
        self.model.__pydantic_validator__.validate_assignment(holder, self.id, value)
        return getattr(holder, self.id)

    def _hint(self, value: object) -> str | None:
        if value is None:
            return "to take an answer back, revise it with action retract"
        for other in _respelled(value):
            try:
                self._assigned(other)
            except Exception:  # any failure only means that this spelling is no better
                continue
            return _send(other, value)
        return None


def as_json(value: object) -> object:
    """The value as plain JSON, which is what is stored. Raises InvalidAnswer."""
    try:
        plain: object = from_json(to_json(value))
    except (PydanticSerializationError, ValueError) as error:
        raise InvalidAnswer(f"{type(value).__name__} cannot be written as JSON") from error
    return plain


def step_fields(
    form_id: str, step_id: str, fields: type[BaseModel] | Mapping[str, FieldSpec]
) -> tuple[FormField, ...]:
    """The fields of one step, in order. Raises UsageError naming field and remedy."""
    place = f"form {form_id!r}, step {step_id!r}"
    model = _model_of(place, step_id, fields)
    _refuse_whole_model_rules(place, model)
    try:
        schema = model.model_json_schema(by_alias=False)
    except PydanticUserError as error:
        raise UsageError(f"{place}: its fields have no JSON schema; {error.message}") from error
    specs = fields if isinstance(fields, Mapping) else {}
    found = [
        _field(place, step_id, model, name, specs.get(name) or _annotated_spec(info), schema)
        for name, info in model.model_fields.items()
    ]
    if not found:
        raise UsageError(f"{place}: has no fields; give at least one or drop the step")
    return tuple(found)


def _model_of(
    place: str, step_id: str, fields: type[BaseModel] | Mapping[str, FieldSpec]
) -> type[BaseModel]:
    if isinstance(fields, type) and issubclass(fields, BaseModel):
        return fields
    if not isinstance(fields, Mapping):
        raise UsageError(f"{place}: fields is a pydantic model class or a mapping of FieldSpec")
    columns: dict[str, tuple[object, object]] = {}
    for name, spec in fields.items():
        where = f"{place}, field {name!r}"
        if not name.isidentifier() or name.startswith("_"):
            raise UsageError(f"{where}: a field id is letters, digits and _ (the label is free)")
        if not isinstance(spec, FieldSpec) or spec.schema is None:
            raise UsageError(f"{where}: give FieldSpec(schema=<type>, …)")
        try:
            columns[name] = (spec.schema, _default(spec))
            _model({name: columns[name]}, name)
        except PydanticUserError as error:
            raise UsageError(f"{where}: pydantic knows no such type; {error.message}") from error
    return _model(columns, step_id)


def _default(spec: FieldSpec) -> object:
    """The field's default, which may stand in the schema: Annotated[str, Field(default="")]."""
    if spec.default is not ...:
        return spec.default
    own = FieldInfo.from_annotation(spec.schema)  # type: ignore[arg-type]
    if own.is_required():
        return ...
    return (
        own.default
        if own.default_factory is None
        else FieldInfo(default_factory=own.default_factory)
    )


def _model(columns: Mapping[str, tuple[object, object]], step_id: str) -> type[BaseModel]:
    model: type[BaseModel] = create_model(f"Answers_{step_id}", **columns)  # type: ignore[call-overload]
    return model


def _refuse_whole_model_rules(place: str, model: type[BaseModel]) -> None:
    rules = model.__pydantic_decorators__
    name = model.__name__
    if rules.model_validators or model.__pydantic_post_init__ is not None:
        raise UsageError(
            f"{place}: {name} has rules over the whole model (model_validator, model_post_init,"
            " private attributes); answers come one by one, so put such a rule in a checkpoint"
        )
    frozen = [key for key, info in model.model_fields.items() if info.frozen]
    if model.model_config.get("frozen") or frozen:
        raise UsageError(f"{place}: {name} is frozen; answers are assigned, so drop frozen=True")


def _annotated_spec(info: FieldInfo) -> FieldSpec:
    return next((one for one in info.metadata if isinstance(one, FieldSpec)), FieldSpec())


def _field(
    place: str,
    step_id: str,
    model: type[BaseModel],
    name: str,
    spec: FieldSpec,
    schema: Mapping[str, object],
) -> FormField:
    where = f"{place}, field {name!r}"
    if name in RESERVED_FIELDS:
        taken = ", ".join(sorted(RESERVED_FIELDS))
        raise UsageError(f"{where}: {taken} are reserved; choose another id, the label may stay")
    if not is_identifier(name):
        raise UsageError(f"{where}: an id is an ASCII letter, then letters, digits, _ or -")
    info = model.model_fields[name]
    return FormField(
        id=name,
        step=step_id,
        label=spec.label or info.title or name.replace("_", " ").strip().capitalize(),
        ask=spec.ask or info.description,
        takes=_type_words(schema, name),
        required=info.is_required(),
        when=Condition.of(f"{where}, when", spec.when),
        on_fill=spec.on_fill,
        model=model,
    )


def _type_words(schema: Mapping[str, object], name: str) -> str:
    properties, definitions = schema.get("properties"), schema.get("$defs")
    own = properties.get(name) if isinstance(properties, Mapping) else None
    known = definitions if isinstance(definitions, Mapping) else {}
    return describe(own, known) if isinstance(own, Mapping) else "any value"


def _mistaken_kind(value: object, parsed: object) -> str | None:
    """What is wrong with a value that pydantic was lenient about, or None.

    A quoted number may have been meant as text ("0012"), so it is sent again rather than guessed;
    a validator that turns other words into numbers is left alone.
    """
    truth = isinstance(parsed, bool)
    number = isinstance(parsed, int | float) and not truth and not isinstance(parsed, Enum)
    if isinstance(value, bool):
        return "true or false" if number else None
    if isinstance(value, int | float):
        return "a number" if truth else None
    if not isinstance(value, str):
        return None
    if truth and value.strip().casefold() in _TRUTH_WORDS:
        return "text"
    return "a quoted number" if number and _is_number(value) else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _respelled(value: object) -> Iterator[object]:
    """Other JSON values that the sender may have meant."""
    if isinstance(value, str):
        try:
            yield json.loads(value)
        except ValueError:
            return
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield json.dumps(value)


def _send(better: object, value: object) -> str:
    return f"send {json.dumps(better, default=str)} instead of {json.dumps(value, default=str)}"


def _reason(error: Mapping[str, object]) -> str:
    location = error.get("loc")
    path = [str(part) for part in location[1:]] if isinstance(location, tuple) else []
    message = str(error.get("msg", "invalid")).removeprefix("Value error, ")
    return f"{'.'.join(path)}: {message}" if path else message
