"""An agent that shows on demand what the kit can: the word typed names the tool that it calls, with
the sample of tests/web/toolkit_slots.py, and it says what the tool told it. Served as
`toolkit_desk:factory`; `SAMPLES` is a JSON file of name -> input.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from voxglove.core import (
    Agent,
    CallInfo,
    CancelToken,
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
from voxglove.core.toolkit import close_question, toolkit


class NamesTools:
    """A model that calls the tool a user names."""

    name = "names-tools"

    def __init__(self) -> None:
        self._samples = json.loads(Path(os.environ["SAMPLES"]).read_text())
        self._calls = 0

    def set_system_prompt(self, prompt: str) -> None:
        return None

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        messages = list(request.messages)
        turn = max(at for at, message in enumerate(messages) if message.is_user_turn)
        told = [one.result for message in messages[turn:] for one in message.tool_results]
        if told:
            return self._say(str(told[-1].data or told[-1].message), notify)
        wanted = messages[turn].text.split()[-1]  # typed on before an answer came: one turn
        if wanted not in {tool.name for tool in request.tools}:
            return self._say("Name a tool.", notify)
        self._calls += 1
        call = ToolCall(wanted, self._samples.get(wanted, {}), f"call_{self._calls}")
        notify(ToolUse(id=call.id, name=call.tool_name, input=call.input_args))
        notify(ModelResponseComplete(text="", tool_calls=(call,)))
        message = Message(sender="agent", tool_calls=(call,))
        return ModelResult(messages=(message,), usage=Usage(1, 1))

    @staticmethod
    def _say(text: str, notify: Notify) -> ModelResult:
        notify(TextDelta(text=text))
        notify(ModelResponseComplete(text=text))
        return ModelResult(messages=(Message(sender="agent", text=text),), usage=Usage(1, 1))


def factory(info: CallInfo) -> Agent:
    """The agent of one call."""
    builder = Glove(model=NamesTools())
    for tool in (*toolkit(), close_question()):
        builder.fold(tool)
    return builder.build()
