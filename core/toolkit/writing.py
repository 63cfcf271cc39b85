"""collect_form and text_input: a person fills in fields, or writes one answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Annotated, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    create_model,
    model_validator,
)

from ..messages import ToolResultData
from ..tool import Tool, ToolContext
from .asking import ASK_ALOUD, Body, CardInput, Label, Title, ask, named
from .form_fields import MOST_CHARACTERS, FormField, check_field


class CollectForm(CardInput):
    title: Title = Field(description="what the form is for")
    description: Body = Field(default="", description="a sentence above the fields")
    fields: list[FormField] = Field(min_length=1, max_length=20, description="top to bottom")
    submit_label: Label = Field(default="Send", description="the button")

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [field.name for field in self.fields]
        if len(set(names)) < len(names):
            raise ValueError("fields: give each field a name of its own")
        return self

    @property
    def asked(self) -> str:
        return self.title


class TextInput(CardInput):
    question: Title = Field(description="the question as the user reads it")
    placeholder: Annotated[str, Field(max_length=120)] = ""
    multiline: bool = Field(default=False, description="true for more than a line")
    min_length: int = Field(default=1, ge=1, le=MOST_CHARACTERS, description="fewest characters")
    max_length: int = Field(default=500, ge=1, le=MOST_CHARACTERS, description="most characters")

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError("min_length: is above max_length")
        return self

    @property
    def asked(self) -> str:
        return self.question


def collect_form() -> Tool:
    """A form of up to twenty fields. The answer is an object by field name, each value checked:
    words, a number, an ISO date, an option's value, true or false; null where left empty."""
    return Tool(
        name="collect_form",
        description=(
            "Ask the user on the display to fill in a form: names, numbers, addresses, dates and"
            f" whatever is hard to get right by voice. {ASK_ALOUD}"
        ),
        do=_collect,
        input_model=CollectForm,
        read_only=True,
    )


def text_input() -> Tool:
    """One answer in the user's own written words. The answer is a text, spaces around it cut."""
    return Tool(
        name="text_input",
        description=(
            "Ask the user on the display to write something, such as an address or a code that is"
            f" hard to say. {ASK_ALOUD}"
        ),
        do=_write,
        input_model=TextInput,
        read_only=True,
    )


async def _collect(form: CollectForm, ctx: ToolContext) -> ToolResultData:
    def tell(answer: FormAnswers) -> str:
        values = answer.by_name()
        told = "; ".join(_told(field, values[field.name]) for field in form.fields)
        return f'The user filled in "{form.title}": {told}.'

    return await ask(ctx, "collect_form", form, form_answers(form.fields), tell)


async def _write(wish: TextInput, ctx: ToolContext) -> ToolResultData:
    field = FormField(
        name="text",
        label="Answer",
        type="textarea" if wish.multiline else "text",
        required=True,
        min=wish.min_length,
        max=wish.max_length,
    )

    def tell(text: str) -> str:
        return f'Asked "{wish.question}", the user wrote: {text}'

    answers: TypeAdapter[str] = TypeAdapter(
        Annotated[str, PlainValidator(partial(check_field, field))]
    )
    return await ask(ctx, "text_input", wish, answers, tell)


class FormAnswers(BaseModel):
    """Base of the answers to one form: a missing field is an empty one."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _missing_is_empty(cls, raw: object) -> object:
        names = [field.alias for field in cls.model_fields.values()]
        return {**dict.fromkeys(names), **raw} if isinstance(raw, Mapping) else raw

    def by_name(self) -> dict[str, object]:
        """The parsed value of each field, in the form's order."""
        return self.model_dump(by_alias=True)


def form_answers(fields: list[FormField]) -> type[FormAnswers]:
    """The model of a form's answers. The fields' names are its aliases: a field may be called what
    no attribute of a model can be called."""
    shapes = {
        f"field_{at}": (
            Annotated[object, PlainValidator(partial(check_field, field))],
            Field(alias=field.name),
        )
        for at, field in enumerate(fields)
    }
    made: type[FormAnswers] = create_model("Answers", __base__=FormAnswers, **shapes)  # type: ignore[call-overload]
    return made


def _told(field: FormField, value: object) -> str:
    match value:
        case None:
            return f"{field.label} was left empty"
        case bool():
            return f"{field.label} is {'ticked' if value else 'not ticked'}"
        case date():
            return f"{field.label} is {value.isoformat()}"
        case str() if field.type == "select":
            return f"{field.label} is {named(field.options, value)}"
        case _:
            return f"{field.label} is {value}"
