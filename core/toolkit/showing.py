"""show_info_card, which asks nothing, and close_question, for an answer that came by voice."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..messages import ToolResultData
from ..renderers import finished_card
from ..tool import Tool, ToolContext
from .asking import Body, CardInput, Label, Title, not_shown

QUESTIONS = frozenset(
    {
        "confirm_action",
        "collect_form",
        "ask_preference",
        "text_input",
        "suggest_options",
        "approve_plan",
    }
)
"""Renderers of this kit that wait for an answer. Not `permission_request`: no voice grants that."""


class Fact(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    label: Label
    value: Annotated[str, Field(max_length=500)]


class ShowInfoCard(CardInput):
    title: Title = Field(description="heading of the card")
    content: Body = Field(default="", description="a few sentences")
    variant: Literal["info", "success", "warning"] = "info"
    facts: list[Fact] = Field(
        default=[], max_length=20, description="details as pairs, such as Date and 3 May"
    )

    @property
    def asked(self) -> str:
        return self.title


class CloseQuestion(BaseModel):
    model_config = ConfigDict(extra="forbid")


def show_info_card() -> Tool:
    """Something to read or to keep. The tool does not wait."""
    return Tool(
        name="show_info_card",
        description=(
            "Put a card with facts on the user's display: a confirmation, an address, a list."
            " It asks nothing and you go on at once; say the gist aloud."
        ),
        do=_show,
        input_model=ShowInfoCard,
        read_only=True,
    )


def close_question() -> Tool:
    """Takes the kit's open questions off the display. For calls, where a person may answer by
    voice while a question waits; its tool then ends with `was taken off the display`."""
    return Tool(
        name="close_question",
        description=(
            "Take your open question off the display. Use it when the user has answered it by"
            " voice, or went on to something else, while its tool is still running."
        ),
        do=_close,
        input_model=CloseQuestion,
    )


async def _show(card: ShowInfoCard, ctx: ToolContext) -> ToolResultData:
    refused = not_shown(ctx, card)
    if refused is not None:
        return refused
    ctx.display.push_and_forget("show_info_card", card)
    told = f'The card "{card.title}" is on the display.'
    return ToolResultData("success", told, render_data=finished_card("show_info_card", card))


async def _close(wish: CloseQuestion, ctx: ToolContext) -> ToolResultData:
    display = ctx.display
    open_ids = [
        slot.id
        for slot in display.stack
        if slot.id in display.pending_ids and slot.renderer in QUESTIONS
    ]
    for slot_id in open_ids:
        display.remove_slot(slot_id)
    if not open_ids:
        return ToolResultData("success", "No question is open on the display.")
    return ToolResultData("success", "The question is off the display.")
