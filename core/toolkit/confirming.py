"""confirm_action and approve_plan: a yes or a no before something is done."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictBool, TypeAdapter

from ..messages import ToolResultData
from ..tool import Tool, ToolContext
from .asking import ASK_ALOUD, Body, CardInput, Label, Title, ask


class ConfirmAction(CardInput):
    title: Title = Field(description="the action as a short question")
    message: Body = Field(
        default="", description="what it means for the user, in a sentence or two"
    )
    confirm_label: Label = Field(default="Yes", description="the button that agrees")
    cancel_label: Label = Field(default="No", description="the button that refuses")
    danger: bool = Field(default=False, description="true when it cannot be undone")

    @property
    def asked(self) -> str:
        return self.title


class Step(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    title: Title = Field(description="what is done in this step")
    description: Body = Field(default="", description="details, where they help to decide")


class ApprovePlan(CardInput):
    title: Title = Field(description="what the plan is for")
    summary: Body = Field(default="", description="the plan in a sentence")
    steps: list[Step] = Field(min_length=1, max_length=20, description="in the order they are done")

    @property
    def asked(self) -> str:
        return self.title


class PlanAnswer(BaseModel):
    """What a person said to a plan; `comment` may hold wishes either way."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    approved: StrictBool
    comment: Annotated[str, Field(max_length=2_000)] = ""


YES_OR_NO = TypeAdapter(StrictBool)


def confirm_action() -> Tool:
    """Yes or no to one action. The answer is a boolean."""
    return Tool(
        name="confirm_action",
        description=(
            "Ask the user on the display to confirm or refuse one action before you do it."
            f" {ASK_ALOUD}"
        ),
        do=_confirm,
        input_model=ConfirmAction,
        read_only=True,
    )


def approve_plan() -> Tool:
    """Approval of several steps, with room for a comment. The answer is a PlanAnswer."""
    return Tool(
        name="approve_plan",
        description=(
            "Show the user a plan of several steps on the display and wait until it is approved or"
            f" sent back with a comment. Do nothing of the plan before. {ASK_ALOUD}"
        ),
        do=_approve,
        input_model=ApprovePlan,
        read_only=True,
    )


async def _confirm(wish: ConfirmAction, ctx: ToolContext) -> ToolResultData:
    def tell(agreed: bool) -> str:
        return f'The user {"confirmed" if agreed else "refused"}: "{wish.title}".'

    return await ask(ctx, "confirm_action", wish, YES_OR_NO, tell)


async def _approve(plan: ApprovePlan, ctx: ToolContext) -> ToolResultData:
    def tell(answer: PlanAnswer) -> str:
        verb = "approved" if answer.approved else "did not approve"
        comment = f" The user commented: {answer.comment}" if answer.comment else ""
        return f'The user {verb} the plan "{plan.title}".{comment}'

    return await ask(ctx, "approve_plan", plan, PlanAnswer, tell)
