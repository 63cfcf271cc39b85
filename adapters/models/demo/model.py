"""`demo`: a scripted front desk behind the model port. No network, no weights, no randomness.

It answers from the request alone and keeps nothing between calls: the same history on the same
day gives the same answer. It says that it is no language model when asked or when it is lost.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from ....core.cancel import CancelToken
from ....core.events import TextDelta
from ....core.messages import Message, ToolCall
from ....core.model import ModelRequest, ModelResult, Notify
from ....core.usage import Usage
from ..exchange import reported
from .dialogue import next_step
from .history import happened
from .plan import Plan
from .state import Happened, UserSaid

FRONT_DESK = frozenset({"free_tables", "book_table", "find_booking"})
BLIND = "I got your picture, but as a scripted demo I can't see."
_DELTA = re.compile(r"\S+\s*")


class DemoModel:
    """A `core.model.Model`; several agents may share one.

    `clock` gives the restaurant's local date and time, which "tomorrow" is counted from.
    """

    name = "demo"

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        self._clock = clock

    def set_system_prompt(self, prompt: str) -> None:
        """Ignored: the script is fixed."""

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        """Answer once, a word per delta. Raises AbortError when `token` fires."""
        token.raise_if_aborted()
        step = self._step(request)
        for delta in _DELTA.findall(step.text):
            notify(TextDelta(text=delta))
            await asyncio.sleep(0)
            token.raise_if_aborted()
        calls = _numbered(step, request)
        message = Message(sender="agent", text=step.text, tool_calls=calls)
        return reported(message, Usage(), "tool_use" if calls else "end_turn", notify)

    def _step(self, request: ModelRequest) -> Plan:
        tools = frozenset(tool.name for tool in request.tools)
        events = happened(request.messages)
        if not tools >= FRONT_DESK:
            return _without_desk(events, tools)
        step = next_step(events, today=self._clock().date(), tools=tools)
        if _shown(request.messages) and not step.calls:
            step = replace(step, text=f"{BLIND} {step.text}")
        return step


def _shown(messages: Sequence[Message]) -> bool:
    """Whether the newest message is a user turn with a picture."""
    newest = messages[-1] if messages else None
    return newest is not None and any(part.type == "image" for part in newest.content)


def _without_desk(events: list[Happened], tools: frozenset[str]) -> Plan:
    """Another agent's tools: there is no script for them, and it says so."""
    asked = sum(isinstance(event, UserSaid) for event in events)
    if asked <= 1:
        return Plan(
            text="I'm a scripted demo, not a language model. My script only knows the front desk"
            " of a restaurant, and this agent has other tools. Please choose another model."
        )
    named = f" This agent's tools are {', '.join(sorted(tools))}." if tools else ""
    return Plan(text=f"I'm only the scripted demo, so I can't help with that.{named}")


def _numbered(step: Plan, request: ModelRequest) -> tuple[ToolCall, ...]:
    """Calls with ids unique in this history: the position of the message that asks them."""
    made = sum(len(message.tool_calls) for message in request.messages)
    at = f"{len(request.messages)}_{made}"
    return tuple(
        ToolCall(call.name, dict(call.args), id=f"call_demo_{at}_{index}")
        for index, call in enumerate(step.calls)
    )
