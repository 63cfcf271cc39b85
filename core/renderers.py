"""What each renderer takes as props and gives as answer, and the words for what does not fit.

Owned by one DisplayStack; it draws nothing and knows no slot. Props are checked before any listener
hears of a slot: a tool that shows nonsense learns so itself. An answer is checked before it settles
a wait: a person may try again (spec core 8, row 40).
"""

import logging
from dataclasses import dataclass
from typing import Protocol, TypedDict, TypeVar

from pydantic import BaseModel, ConfigDict, StrictBool, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from .errors import CoreError, UsageError

logger = logging.getLogger(__name__)

P = TypeVar("P")
R = TypeVar("R")

WHOLE = "value"
"""The field of a problem that the value as a whole has; the key an answer has on the wire."""
MOST_PROBLEMS = 30
MOST_FIELD_CHARACTERS = 200


class Parser(Protocol):
    """A pydantic TypeAdapter of whatever type; raises pydantic's ValidationError."""

    def validate_python(self, raw: object, /) -> object: ...


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that does not fit: a dotted path, and what would fit in words for people."""

    field: str
    message: str


class InvalidAnswer(CoreError):
    """A person's answer does not fit its slot, which stays open and waits for another.

    `problems` has at least one entry; `field` is that of the first.
    """

    def __init__(self, slot_id: str, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(_words(problem) for problem in problems))
        self.slot_id = slot_id
        self.problems = problems

    @property
    def field(self) -> str:
        return self.problems[0].field


@dataclass(frozen=True, slots=True)
class Renderer:
    """A renderer's two shapes; None takes anything."""

    name: str
    props: Parser | None = None
    resolve: Parser | None = None


class FinishedCard(TypedDict):
    """`render_data` of a tool that showed something: enough to draw its card from history.

    `value` is the answer as JSON; None where nobody answered, and on a card that asks nothing.
    """

    renderer: str
    input: object
    value: object


class PermissionProps(BaseModel):
    """Props of `permission_request`; the names are those of the seed's pages."""

    model_config = ConfigDict(extra="allow")

    renderer: str = "permission_request"
    toolName: str  # noqa: N815 - a wire name
    toolInput: object = None  # noqa: N815 - a wire name


PERMISSION_REQUEST = Renderer(
    "permission_request",
    TypeAdapter(PermissionProps),
    # Strict: "no" and 1 are no consent.
    TypeAdapter(StrictBool),
)


class Renderers:
    """The renderers that a display knows shapes of. Others take any props and any answer."""

    def __init__(self) -> None:
        self._known = {PERMISSION_REQUEST.name: PERMISSION_REQUEST}

    def register(
        self,
        name: str,
        *,
        props: type[P] | TypeAdapter[P] | None = None,
        resolve: type[R] | TypeAdapter[R] | None = None,
    ) -> Renderer:
        """Say what `name` takes and gives, from the next slot on; replaces what was said before."""
        if not name:
            raise UsageError("name: name the renderer, for instance 'seat_map'")
        made = Renderer(name, parser_of(props), parser_of(resolve))
        self._known[name] = made
        return made

    def get(self, name: str) -> Renderer:
        """The renderer, one without shapes where none is registered."""
        return self._known.get(name) or Renderer(name)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._known)


def parser_of(schema: type[P] | TypeAdapter[P] | None) -> Parser | None:
    """What checks values of a type, such as a pydantic model or `bool`; None checks nothing.
    Raises UsageError for a value that pydantic knows no validation of."""
    if schema is None or isinstance(schema, TypeAdapter):
        return schema
    try:
        return TypeAdapter(schema)
    except Exception as error:
        raise UsageError(
            f"{schema!r} is no type that pydantic can check; give a model, a type or a TypeAdapter"
        ) from error


def checked_props(renderer: str, parser: Parser | None, raw: object) -> object:
    """`raw` as JSON props, defaults filled in; UsageError names each field that does not fit."""
    plain = to_jsonable_python(raw, by_alias=True) if isinstance(raw, BaseModel) else raw
    if parser is None:
        return plain
    try:
        parsed = parser.validate_python(plain)
    except ValidationError as error:
        told = "; ".join(_words(problem) for problem in problems_of(error))
        raise UsageError(f"props of {renderer!r} do not fit: {told}") from error
    return to_jsonable_python(parsed, by_alias=True)


def checked_answer(slot_id: str, parser: Parser | None, raw: object) -> object:
    """The parsed answer; raises InvalidAnswer."""
    if parser is None:
        return raw
    try:
        return parser.validate_python(raw)
    except ValidationError as error:
        raise InvalidAnswer(slot_id, problems_of(error)) from error
    except Exception as error:  # a tool's own validator broke: no reason to lose the line
        logger.exception("answer not checked", extra={"slot": slot_id})
        unknown = Problem(WHOLE, "This could not be checked.")
        raise InvalidAnswer(slot_id, (unknown,)) from error


def problems_of(error: ValidationError) -> tuple[Problem, ...]:
    """What pydantic found, in our words; never with the value, which may be private. Bounded,
    because a page may send any number of keys that nobody asked for."""
    found = error.errors(include_url=False, include_input=False)[:MOST_PROBLEMS]
    return tuple(
        Problem(_path(one["loc"])[:MOST_FIELD_CHARACTERS] or WHOLE, _message(one)) for one in found
    )


def finished_card(renderer: str, input: object, value: object = None) -> FinishedCard:
    """What a page draws the finished card of. Both parts are turned into JSON here."""
    return FinishedCard(
        renderer=renderer,
        input=to_jsonable_python(input, by_alias=True),
        value=to_jsonable_python(value, by_alias=True),
    )


def _message(found: object) -> str:
    """A validator's own words without pydantic's prefix."""
    match found:
        case {"type": "value_error", "ctx": {"error": ValueError() as own}}:
            return str(own)
        case {"msg": str(text)}:
            return text
    return "does not fit"


def _path(location: tuple[int | str, ...]) -> str:
    return ".".join(str(step) for step in location)


def _words(problem: Problem) -> str:
    return f"{problem.field}: {problem.message}"
