"""Core's messages as the events of a dialogue. Reads a model request, writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from ....core.messages import Message, ToolCall, ToolResult
from ....core.view import INTERRUPTED, NO_RESULT, NOTHING_HEARD, STILL_RUNNING
from .state import AgentSaid, Happened, Outcome, ToolRan, UserSaid


def happened(messages: Sequence[Message]) -> list[Happened]:
    """The events in order; user turns that no answer separates are joined into one."""
    results = {result.call_id: result for one in messages for result in one.tool_results}
    events: list[Happened] = []
    for message in messages:
        for event in _events(message, results):
            last = events[-1] if events else None
            if isinstance(event, UserSaid) and isinstance(last, UserSaid):
                events[-1] = UserSaid(f"{last.text} {event.text}")
            else:
                events.append(event)
    return events


def _events(message: Message, results: Mapping[str, ToolResult]) -> Iterator[Happened]:
    if message.sender == "user":
        text = message.text.replace(NOTHING_HEARD, " ").strip()
        if message.is_user_turn and text:
            yield UserSaid(text)
        return
    text = message.text.strip()
    if text:
        cut = text.endswith(INTERRUPTED)
        yield AgentSaid(text.removesuffix(INTERRUPTED).rstrip(), interrupted=cut)
    for call in message.tool_calls:
        yield _ran(call, results.get(call.id))


def _ran(call: ToolCall, result: ToolResult | None) -> ToolRan:
    args = _mapping(call.input_args)
    if result is None:
        return ToolRan(call.tool_name, args, "lost")
    outcome: Outcome = "ok" if result.result.status == "success" else "error"
    if result.result.status == "aborted" or result.result.data == NO_RESULT:
        outcome = "lost"
    elif result.result.data == STILL_RUNNING:
        outcome = "running"
    data, message = _mapping(result.result.data), result.result.message or ""
    return ToolRan(call.tool_name, args, outcome, data, message)


def _mapping(value: object) -> Mapping[str, object]:
    """A JSON object, given as one or as its text; anything else is empty."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}
