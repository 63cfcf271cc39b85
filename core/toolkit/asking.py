"""How each tool of the kit puts its card up and words what became of it.

The rules are the same for all: without a display the model is told to ask aloud; a dismissal is an
outcome, not a failure; `data` is a sentence that reads well aloud; `render_data` draws the finished
card from history. All are read-only: they only show. None is un-abortable: before its answer a
question has done nothing, so an abort leaves nothing half done, and it must take the card away.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic_core import to_json

from ..display import SLOT_REMOVED
from ..errors import SlotRejected
from ..messages import ToolResultData
from ..renderers import finished_card
from ..tool import ToolContext

R = TypeVar("R")

MOST_PROPS_BYTES = 32_000
"""Of one card. A page's message holds 64 KiB, and a question that cannot be sent waits for ever."""

ASK_ALOUD = (
    "Say the question aloud in the same reply; the user may answer on the display or by voice."
)

Title = Annotated[str, Field(min_length=1, max_length=200)]
Label = Annotated[str, Field(min_length=1, max_length=120)]
Body = Annotated[str, Field(max_length=2_000)]


class CardInput(BaseModel):
    """Base of each input: strict about names, lenient about spaces around words."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    @property
    @abstractmethod
    def asked(self) -> str:
        """What the card is about, for a sentence."""


class Option(BaseModel):
    """One thing to choose. A bare text is taken for label and value."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    label: Label = Field(description="what the user reads")
    value: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="what you are told when it is chosen"
    )
    description: Annotated[str, Field(max_length=300)] = Field(
        default="", description="one more line under the label"
    )


def _from_text(raw: object) -> object:
    return {"label": raw, "value": raw} if isinstance(raw, str) else raw


Choice = Annotated[Option, BeforeValidator(_from_text)]


def unique_values(options: list[Option]) -> list[Option]:
    """The same options; ValueError when two share a value and could not be told apart."""
    values = [option.value for option in options]
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise ValueError(f"give each option a value of its own; {', '.join(twice)} comes twice")
    return options


def named(options: list[Option], value: str) -> str:
    """An option's label, and its value where that is another word."""
    (label,) = [option.label for option in options if option.value == value]
    return label if label == value else f"{label} ({value})"


async def ask(
    ctx: ToolContext,
    renderer: str,
    asked: CardInput,
    answers: type[R] | TypeAdapter[R],
    tell: Callable[[R], str],
) -> ToolResultData:
    """Show the question and wait; `tell` words the parsed answer for the model.

    AbortError passes through: the tool was stopped, and the card is gone.
    """
    refused = not_shown(ctx, asked)
    if refused is not None:
        return refused
    try:
        answer = await ctx.display.push_and_wait(
            renderer, asked, answers=answers, strategy="hide-on-complete"
        )
    except SlotRejected as error:
        return ToolResultData(
            "success", _unanswered(asked, error), render_data=finished_card(renderer, asked)
        )
    return ToolResultData(
        "success", tell(answer), render_data=finished_card(renderer, asked, answer)
    )


def not_shown(ctx: ToolContext, asked: CardInput) -> ToolResultData | None:
    """The error to give back when the card would reach nobody, and what to do instead."""
    if not ctx.display.has_audience:
        why = "Nobody looks at a display on this line. Say it aloud, and ask by voice"
        return ToolResultData("error", None, f'{why}: "{asked.asked}".')
    size = len(to_json(asked))
    if size > MOST_PROPS_BYTES:
        why = f"The card has {size} bytes; a display takes {MOST_PROPS_BYTES}"
        return ToolResultData("error", None, f"{why}. Ask for less at a time.")
    return None


def _unanswered(asked: CardInput, error: SlotRejected) -> str:
    if str(error) == SLOT_REMOVED:
        return f'"{asked.asked}" was taken off the display before it was answered there.'
    return f'The user dismissed "{asked.asked}" without an answer.'
