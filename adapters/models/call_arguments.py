"""A call's arguments between the JSON of a wire and ours. Pure; the same for every vendor.

What a model wrote that is no object stays readable, in both directions: the tool's validation
refuses it, and the model sees its own mistake (spec core 6).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn

from ...core.encoding import json_bytes

UNREAD = "arguments"
"""Where a wire that wants an object gets what was none."""


def parsed_arguments(raw: str) -> object:
    """A call's arguments as a dict, or the raw string when it is no JSON object."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return raw
    return value if isinstance(value, dict) else raw


def arguments_text(arguments: object) -> str:
    """Arguments of a stored call as the JSON text of an object: all that servers take back."""
    if isinstance(arguments, str):
        arguments = parsed_arguments(arguments)
    given = dict(arguments) if isinstance(arguments, Mapping) else {UNREAD: arguments}
    return json_bytes(given).decode()


def arguments_object(arguments: object) -> dict[str, object]:
    """The same for wires that take the object itself."""
    given: dict[str, object] = json.loads(arguments_text(arguments))
    return given


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")
