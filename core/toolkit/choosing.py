"""ask_preference and suggest_options: one of a few, or some of a few and own words."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from ..messages import ToolResultData
from ..tool import Tool, ToolContext
from .asking import ASK_ALOUD, CardInput, Choice, Option, Title, ask, named, unique_values

Value = Annotated[str, Field(max_length=200)]


class AskPreference(CardInput):
    question: Title = Field(description="the question as the user reads it")
    options: Annotated[list[Choice], AfterValidator(unique_values)] = Field(
        min_length=2, max_length=12, description="what the user chooses from"
    )

    @property
    def asked(self) -> str:
        return self.question


class SuggestOptions(CardInput):
    question: Title = Field(description="what the suggestions are for")
    options: Annotated[list[Choice], AfterValidator(unique_values)] = Field(
        min_length=1, max_length=12, description="your suggestions"
    )
    min_choices: int = Field(default=0, ge=0, le=12, description="how many must be chosen")
    max_choices: int | None = Field(
        default=None, ge=1, le=12, description="how many may be chosen; leave out for any number"
    )
    allow_other: bool = Field(
        default=False, description="true: the user may also write something else"
    )

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        most = len(self.options) if self.max_choices is None else self.max_choices
        if self.min_choices > min(most, len(self.options)):
            raise ValueError("min_choices is more than can be chosen; lower it or add options")
        return self

    @property
    def asked(self) -> str:
        return self.question


class Chosen(BaseModel):
    """What a person picked of suggestions: values in the order of the answer, and own words."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    selected: Annotated[list[Value], Field(max_length=12)] = []
    other: Annotated[str, Field(max_length=500)] = ""


def ask_preference() -> Tool:
    """One of two to twelve options. The answer is the option's value."""
    return Tool(
        name="ask_preference",
        description=(
            "Ask the user on the display to choose exactly one of a few options."
            f" {ASK_ALOUD} Name the options too."
        ),
        do=_prefer,
        input_model=AskPreference,
        read_only=True,
    )


def suggest_options() -> Tool:
    """Several of a few suggestions, and own words where allowed. The answer is a Chosen."""
    return Tool(
        name="suggest_options",
        description=(
            "Show suggestions on the display of which the user may choose several, or none."
            f" {ASK_ALOUD}"
        ),
        do=_suggest,
        input_model=SuggestOptions,
        read_only=True,
    )


async def _prefer(wish: AskPreference, ctx: ToolContext) -> ToolResultData:
    def known(value: str) -> str:
        _must_be_offered(wish.options, [value])
        return value

    def tell(value: str) -> str:
        return f'Asked "{wish.question}", the user chose {named(wish.options, value)}.'

    answers: TypeAdapter[str] = TypeAdapter(Annotated[str, AfterValidator(known)])
    return await ask(ctx, "ask_preference", wish, answers, tell)


async def _suggest(wish: SuggestOptions, ctx: ToolContext) -> ToolResultData:
    def allowed(chosen: Chosen) -> Chosen:
        _must_be_offered(wish.options, chosen.selected)
        if len(set(chosen.selected)) < len(chosen.selected):
            raise ValueError("Choose each option once.")
        if chosen.other and not wish.allow_other:
            raise ValueError("Choose from the options; other words are not asked for.")
        count = len(chosen.selected) + bool(chosen.other)
        if count < wish.min_choices:
            raise ValueError(f"Choose at least {wish.min_choices}.")
        if wish.max_choices is not None and count > wish.max_choices:
            raise ValueError(f"Choose at most {wish.max_choices}.")
        return chosen

    def tell(chosen: Chosen) -> str:
        picked = [named(wish.options, value) for value in chosen.selected]
        if chosen.other:
            picked.append(f"in own words: {chosen.other}")
        return f'Asked "{wish.question}", the user chose {"; ".join(picked) or "none of them"}.'

    answers: TypeAdapter[Chosen] = TypeAdapter(Annotated[Chosen, AfterValidator(allowed)])
    return await ask(ctx, "suggest_options", wish, answers, tell)


def _must_be_offered(options: list[Option], values: list[str]) -> None:
    if not set(values) <= {option.value for option in options}:
        offered = ", ".join(option.value for option in options)
        raise ValueError(f"Choose from the options: {offered}.")
