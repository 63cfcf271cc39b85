"""Chat in the terminal: streamed answers, tools, and a question before money moves.

    python chat_in_terminal.py                      a script that needs no key
    python chat_in_terminal.py openai               a provider, its key in OPENAI_API_KEY
    python chat_in_terminal.py ollama llama3.2      a provider and a model

An empty line ends it.
"""

import asyncio
import sys

from voxglove.adapters.models.create import create_adapter, get_available_providers
from voxglove.adapters.models.scripted import Call, ScriptedModel, say
from voxglove.core import (
    AgentConfig,
    Glove,
    Model,
    ModelError,
    ModelResponse,
    PermissionRequest,
    SubscriberEvent,
    TextDelta,
    ToolStarted,
    ToolUseResult,
    tool,
)

PROMPT = "You work for a shop's customers. Be brief. Look an order up before you refund it."
ORDERS = {"17": 42.0, "18": 9.5}


@tool(read_only=True)
def look_up(order: str) -> str:
    """What an order cost."""
    return f"{ORDERS[order]:.2f} euros" if order in ORDERS else "There is no such order."


@tool(requires_permission=lambda wish: wish.euros > 5)
def refund(order: str, euros: float) -> str:
    """Pay back all of an order, or a part of it."""
    ORDERS[order] -= euros
    return f"{euros:.2f} euros are on their way."


async def permission(request: PermissionRequest) -> bool:
    """Asked for every gated call. The terminal waits in a thread; the agent's loop goes on."""
    answer = await asyncio.to_thread(input, f"  may it {request.tool} ({request.input})? y/n: ")
    return answer.strip().lower() == "y"


def show(event: SubscriberEvent) -> None:
    """What the person sees while the agent works."""
    match event:
        case TextDelta(phase="answer"):
            print(event.text, end="", flush=True)
        case ModelResponse():  # of a model that does not stream
            print(event.text, end="", flush=True)
        case ToolStarted():
            print(f"\n  [{event.tool_name} {event.input}]", flush=True)
        case ToolUseResult(result=result):
            print(f"  [{result.status}: {result.data or result.message}]", flush=True)


def chosen_model() -> Model:
    """The provider of the command line, else a script for two questions."""
    if len(sys.argv) > 1:
        return create_adapter(*sys.argv[1:3])
    ready = [one.name for one in get_available_providers() if one.available]
    print(f"No provider named, so this is a script. Ready here: {', '.join(ready)}")
    return ScriptedModel(
        [
            say("Let me look. ", Call("look_up", {"order": "17"})),
            say(Call("refund", {"order": "17", "euros": 10})),
            "The 10 euros are on their way.",
            "You are welcome.",
        ]
    )


async def main() -> None:
    config = AgentConfig(permissions=permission)
    agent = Glove(model=chosen_model(), system_prompt=PROMPT, config=config).build()
    agent.fold(look_up).fold(refund)
    while words := (await asyncio.to_thread(read_line)).strip():
        try:
            await agent.process_request(words, subscriber=show)
        except ModelError as error:
            print(f"[{error.code}] {error}", end="")
        print()


def read_line() -> str:
    """A line, or nothing at the end of the input."""
    try:
        return input("> ")
    except EOFError:
        return ""


if __name__ == "__main__":
    asyncio.run(main())
