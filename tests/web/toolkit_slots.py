"""Samples of every card of the kit, validated as the tools validate them, for tests of the page."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_jsonable_python

from voxglove.core.toolkit import toolkit

Message = dict[str, Any]

TABLES = [
    {"label": "By the window", "value": "window", "description": "bright, a little louder"},
    {"label": "At the bar", "value": "bar", "description": "quick service"},
    "Garden",
]

SAMPLES: dict[str, dict[str, Any]] = {
    "confirm_action": {
        "title": "Cancel the booking of Anna Smith?",
        "message": "The table on 3 May at 19:30 is given to others at once.",
        "confirm_label": "Cancel it",
        "cancel_label": "Keep it",
        "danger": True,
    },
    "collect_form": {
        "title": "Your details",
        "description": "So that we can reach you when something changes.",
        "fields": [
            {"name": "name", "label": "Full name", "required": True},
            {
                "name": "email",
                "label": "E-mail",
                "type": "email",
                "required": True,
                "help": "For the confirmation, nothing else.",
            },
            {"name": "phone", "label": "Telephone", "type": "tel"},
            {"name": "people", "label": "People", "type": "number", "min": 1, "max": 8},
            {"name": "day", "label": "Day", "type": "date", "min": "2030-01-01"},
            {"name": "table", "label": "Table", "type": "select", "options": TABLES},
            {
                "name": "notes",
                "label": "Notes",
                "type": "textarea",
                "placeholder": "Allergies, high chairs, …",
            },
            {"name": "news", "label": "Send me the newsletter", "type": "checkbox"},
        ],
        "submit_label": "Send details",
    },
    "ask_preference": {"question": "Which table would you like?", "options": TABLES},
    "text_input": {
        "question": "What is the code on your voucher?",
        "placeholder": "VOX-0000",
        "min_length": 3,
    },
    "show_info_card": {
        "title": "Your table is booked",
        "content": "We keep it for fifteen minutes.",
        "variant": "success",
        "facts": [
            {"label": "Name", "value": "Anna Smith"},
            {"label": "When", "value": "3 May, 19:30"},
            {"label": "Where", "value": "12 Harbour Road"},
        ],
    },
    "suggest_options": {
        "question": "What shall we prepare?",
        "options": ["A high chair", "A birthday candle", "A quiet corner"],
        "min_choices": 1,
        "allow_other": True,
    },
    "approve_plan": {
        "title": "Move your booking to Sunday",
        "summary": "Three steps, nothing is lost if one of them fails.",
        "steps": [
            {"title": "Hold a table on Sunday at 19:30"},
            {"title": "Cancel the one on Saturday", "description": "No fee until Friday noon."},
            {"title": "Send a new confirmation"},
        ],
    },
}
"""Renderer -> the input a model gives its tool."""


def slot(renderer: str, id: str | None = None) -> Message:
    """The `slot` message of a tool's card, its props as the tool pushes them."""
    (tool,) = [tool for tool in toolkit() if tool.name == renderer]
    model: Any = tool.input_model
    props = to_jsonable_python(model.model_validate(SAMPLES[renderer]))
    return {
        "t": "slot",
        "id": id or renderer,
        "renderer": renderer,
        "input": props,
        "strategy": "hide-on-complete",
    }


def removed(id: str) -> Message:
    """The server took it."""
    return {"t": "slot_removed", "id": id}


def refused(id: str, *problems: tuple[str, str]) -> Message:
    """The server did not take the answer."""
    return {
        "t": "error",
        "code": "bad_answer",
        "id": id,
        "field": problems[0][0],
        "message": "; ".join(f"{field}: {why}" for field, why in problems),
        "problems": [{"field": field, "message": why} for field, why in problems],
    }
