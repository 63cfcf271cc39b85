"""A tiny scripted model and the checks every model request of a core test must pass."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from voxglove.core import (
    Agent,
    AgentConfig,
    BuiltinTool,
    CancelToken,
    DisplayStack,
    Glove,
    MemoryStore,
    Message,
    MessagePatch,
    ModelRequest,
    ModelResponse,
    ModelResponseComplete,
    ModelResult,
    Notify,
    SubscriberEvent,
    TextDelta,
    Tool,
    ToolCall,
    ToolResult,
    ToolUse,
    Usage,
)

Step = Callable[[ModelRequest, Notify, CancelToken], Awaitable[ModelResult]]


def assert_valid(request: ModelRequest) -> None:
    """Every call is directly followed by exactly one result; no result stands elsewhere."""
    assert request.messages, "a request must not be empty"
    messages = list(request.messages)
    seen: set[str] = set()
    for at, message in enumerate(messages):
        assert message.text or message.content or message.tool_calls or message.tool_results
        if message.tool_calls:
            assert at + 1 < len(messages), "calls without results at the end"
            wanted = [call.id for call in message.tool_calls]
            assert [one.call_id for one in messages[at + 1].tool_results] == wanted
            assert not seen & set(wanted), "a call id was used twice"
            seen |= set(wanted)
        if message.tool_results:
            assert at > 0 and messages[at - 1].tool_calls, "results that nobody asked for"
            for one in message.tool_results:
                assert one.result.render_data is None
    assert messages[-1].sender == "user"


class ScriptedModel:
    """Plays its steps in order, keeps every request, refuses to be asked more often."""

    def __init__(self, *steps: Step | str, name: str = "scripted", stream: bool = True) -> None:
        self.name = name
        self.steps: list[Step] = []
        self.then(*steps, stream=stream)
        self.requests: list[ModelRequest] = []
        self.prompts: list[str] = []
        self.cancelled = 0

    def then(self, *steps: Step | str, stream: bool = True) -> None:
        """Go on with these steps; a text is an answer."""
        self.steps += [say(one, stream=stream) if isinstance(one, str) else one for one in steps]

    def set_system_prompt(self, prompt: str) -> None:
        self.prompts.append(prompt)

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        assert_valid(request)
        self.requests.append(request)
        assert self.steps, f"{self.name}: no step left for request {len(self.requests)}"
        step = self.steps.pop(0)
        try:
            return await step(request, notify, token)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


def _usage() -> Usage:
    return Usage(10, 5)


def say(text: str, *, stream: bool = True, usage: Usage | None = None) -> Step:
    """Answer with text, streamed word by word."""

    async def step(request: ModelRequest, notify: Notify, token: CancelToken) -> ModelResult:
        if stream:
            for word in text.split(" "):
                notify(TextDelta(text=word if word == text.split(" ")[0] else f" {word}"))
            notify(ModelResponseComplete(text=text))
        else:
            notify(ModelResponse(text=text))
        return ModelResult(messages=(Message(sender="agent", text=text),), usage=usage or _usage())

    return step


def call(*calls: tuple[str, Any], text: str = "", ids: list[str] | None = None) -> Step:
    """Ask for tools: call(("get_time", {}), …)."""

    async def step(request: ModelRequest, notify: Notify, token: CancelToken) -> ModelResult:
        names = ids or [f"c{len(request.messages)}_{at}" for at in range(len(calls))]
        wanted = tuple(
            ToolCall(name, args, one) for (name, args), one in zip(calls, names, strict=True)
        )
        if text:
            notify(TextDelta(text=text))
        for one in wanted:
            notify(ToolUse(id=one.id, name=one.tool_name, input=one.input_args))
        notify(ModelResponseComplete(text=text, tool_calls=wanted))
        return ModelResult(
            messages=(Message(sender="agent", text=text, tool_calls=wanted),), usage=_usage()
        )

    return step


def hang(partial: str = "") -> Step:
    """Say something, then never finish."""

    async def step(request: ModelRequest, notify: Notify, token: CancelToken) -> ModelResult:
        if partial:
            notify(TextDelta(text=partial))
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    return step


def fail(error: Exception, partial: str = "") -> Step:
    async def step(request: ModelRequest, notify: Notify, token: CancelToken) -> ModelResult:
        if partial:
            notify(TextDelta(text=partial))
        raise error

    return step


NO_INPUT = {"type": "object", "properties": {}}


def make_tool(do: Callable[..., Any], name: str = "act", **options: Any) -> Tool:
    """A tool with an empty json schema unless an input_model is given."""
    if "input_model" not in options:
        options.setdefault("json_schema", NO_INPUT)
    return Tool(name=name, description=f"does {name}", do=do, **options)


def make_agent(
    model: ScriptedModel,
    *tools: Tool,
    store: MemoryStore | None = None,
    display: DisplayStack | None = None,
    system_prompt: str = "You are a test.",
    builtin_tools: tuple[BuiltinTool, ...] = (),
    **config: Any,
) -> Agent:
    """An agent with these tools alone, unless `builtin_tools` asks for its own."""
    glove = Glove(
        model=model,
        system_prompt=system_prompt,
        store=store,
        display=display,
        config=AgentConfig(builtin_tools=builtin_tools, **config),
    )
    for one in tools:
        glove.fold(one)
    return glove.build()


class SlowStore(MemoryStore):
    """Takes time before and after every read and write, as a database does."""

    delay_s = 0.06

    async def get_messages(self) -> list[Message]:
        await asyncio.sleep(self.delay_s)
        messages = await super().get_messages()
        await asyncio.sleep(self.delay_s)
        return messages

    async def append_messages(self, messages: Sequence[Message]) -> None:
        await asyncio.sleep(self.delay_s)
        await super().append_messages(messages)
        await asyncio.sleep(self.delay_s)

    async def amend_message(self, message_id: str, patch: MessagePatch) -> Message:
        await asyncio.sleep(self.delay_s)
        message = await super().amend_message(message_id, patch)
        await asyncio.sleep(self.delay_s)
        return message

    async def consume_inbox_items(self, item_ids: Sequence[str], message: Message) -> None:
        await asyncio.sleep(self.delay_s)
        await super().consume_inbox_items(item_ids, message)
        await asyncio.sleep(self.delay_s)


class Recorder:
    """A subscriber that keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[SubscriberEvent] = []

    def record(self, event: SubscriberEvent) -> None:
        self.events.append(event)

    @property
    def wires(self) -> list[str]:
        return [event.wire for event in self.events]

    def of(self, wire: str) -> list[Any]:
        return [event for event in self.events if event.wire == wire]


async def stored(agent: Agent) -> list[Message]:
    return await agent.store.get_messages()


async def results(agent: Agent) -> dict[str, ToolResult]:
    """Stored results by call id; fails on a double one."""
    found: dict[str, ToolResult] = {}
    for message in await stored(agent):
        for one in message.tool_results:
            assert one.call_id not in found, "a call has two results"
            found[one.call_id] = one
    return found


async def until(condition: Callable[[], bool], tries: int = 1000) -> None:
    """Let other tasks run until `condition` holds."""
    for _ in range(tries):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never held")
