"""An agent that plans, asks the manager, shows a card and summarises, each when one word tells it
to. Served as `manager_desk:factory`; what it says of an answer is the answer.
"""

from __future__ import annotations

import asyncio

from voxglove.core import (
    Agent,
    AgentConfig,
    CallInfo,
    CancelToken,
    CompactionConfig,
    Glove,
    Message,
    ModelRequest,
    ModelResponseComplete,
    ModelResult,
    Notify,
    TextDelta,
    ToolCall,
    ToolUse,
    Usage,
)
from voxglove.core.toolkit import toolkit

SUMMARY = "SECRET SUMMARY"
SUMMARY_S = 1.5
LIMIT = 1_000
STEPS = ("Find a free table", "Ask the manager", "Book the table")


def todos(done: int) -> list[dict[str, str]]:
    """The plan with `done` steps behind it."""
    status = ["completed"] * done + ["in_progress"] + ["pending"] * len(STEPS)
    return [
        {"content": step, "activeForm": f"{step} now", "status": state}
        for step, state in zip(STEPS, status, strict=False)
    ]


TOOLS: dict[str, tuple[str, dict[str, object]]] = {
    "plan": ("glove_update_tasks", {"todos": todos(0)}),
    "further": ("glove_update_tasks", {"todos": todos(1)}),
    "dog": (
        "glove_post_to_inbox",
        {"tag": "manager", "request": "May a guest bring a dog?", "blocking": True},
    ),
    "card": ("show_info_card", {"title": "The house", "content": "Open from noon."}),
}


class TakesOneWord:
    """A model that does what the last word of the caller names."""

    name = "takes-one-word"

    def __init__(self) -> None:
        self._calls = 0

    def set_system_prompt(self, prompt: str) -> None:
        return None

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        stored = [one for one in request.messages if one.id not in ("inbox_reminder", "runtime")]
        last = stored[-1]
        if last.is_compaction_request:
            await asyncio.sleep(SUMMARY_S)
            return self._say(SUMMARY, notify)
        if last.framework_context == "inbox":
            said = last.text.split('Response: "')[-1].split('" (resolved')[0]
            return self._say(f"The manager says {said}.", notify)
        if last.tool_results:
            return self._say("That is done.", notify)
        word = last.text.split()[-1].strip(".").lower()
        if word in TOOLS:
            return self._call(word, notify)
        tokens = 2 * LIMIT if word == "summarise" else 1
        return self._say(f"You said {word}.", notify, tokens)

    def _call(self, word: str, notify: Notify) -> ModelResult:
        self._calls += 1
        name, args = TOOLS[word]
        call = ToolCall(name, args, f"call_{self._calls}")
        text = "One moment." if word == "card" else ""
        if text:
            notify(TextDelta(text=text))
        notify(ToolUse(id=call.id, name=call.tool_name, input=call.input_args))
        notify(ModelResponseComplete(text=text, tool_calls=(call,)))
        message = Message(sender="agent", text=text, tool_calls=(call,))
        return ModelResult(messages=(message,), usage=Usage(1, 1))

    @staticmethod
    def _say(text: str, notify: Notify, tokens: int = 1) -> ModelResult:
        notify(TextDelta(text=text))
        notify(ModelResponseComplete(text=text))
        return ModelResult(messages=(Message(sender="agent", text=text),), usage=Usage(tokens, 1))


def factory(info: CallInfo) -> Agent:
    """The agent of one call, in the call's store."""
    config = AgentConfig(compaction=CompactionConfig(context_limit=LIMIT))
    builder = Glove(model=TakesOneWord(), store=info.store, config=config)
    for tool in toolkit():
        builder.fold(tool)
    return builder.build()
