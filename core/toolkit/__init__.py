"""Ready-made tools that ask or show something on the display (seed: tool registry).

Each factory returns a Tool to fold; `toolkit()` returns all that a page needs. They keep no state
and may be folded on many agents. What they share stands in asking.py; the page that draws them is
web/static/slot-*.js, and any other page gets their props and answers from these models.
"""

from ..tool import Tool
from .choosing import AskPreference, Chosen, SuggestOptions, ask_preference, suggest_options
from .confirming import ApprovePlan, ConfirmAction, PlanAnswer, approve_plan, confirm_action
from .form_fields import FormField
from .showing import ShowInfoCard, close_question, show_info_card
from .writing import CollectForm, TextInput, collect_form, form_answers, text_input

__all__ = [
    "ApprovePlan",
    "AskPreference",
    "Chosen",
    "CollectForm",
    "ConfirmAction",
    "FormField",
    "PlanAnswer",
    "ShowInfoCard",
    "SuggestOptions",
    "TextInput",
    "approve_plan",
    "ask_preference",
    "close_question",
    "collect_form",
    "confirm_action",
    "form_answers",
    "show_info_card",
    "suggest_options",
    "text_input",
    "toolkit",
]


def toolkit() -> tuple[Tool, ...]:
    """All seven that show or ask. On a call fold `close_question()` as well."""
    return (
        confirm_action(),
        collect_form(),
        ask_preference(),
        text_input(),
        show_info_card(),
        suggest_options(),
        approve_plan(),
    )
