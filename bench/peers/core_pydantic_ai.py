"""pydantic-ai's side of `make corebench` (how and why: docs/bench.md).

Its agent over its FunctionModel, streamed as its pages say for a run with tools: `Agent.run` with
an `event_stream_handler`. `run_stream`, which ends at the first text, is measured as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import core_common
from core_common import ANSWER, CALLS, DELTAS, INSTRUCTIONS, QUESTION, Case, Outcome, case
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

TOOLS = (core_common.add_one, core_common.double, core_common.square)


@dataclass(slots=True)
class Seen:
    """What one request's model was shown last, and what its caller got."""

    messages: list[ModelMessage] = field(default_factory=list)
    text: str = ""
    deltas: int = 0
    history: list[ModelMessage] = field(default_factory=list)

    def outcome(self) -> Outcome:
        assert len(self.history) > 1
        parts = self.messages[-1].parts
        returned = [part.content for part in parts if isinstance(part, ToolReturnPart)]
        return Outcome(self.text, self.deltas, tuple(returned))


class Script:
    """Three calls in one reply if it `asks` and has no results yet, then the answer."""

    def __init__(self, *, asks: bool) -> None:
        self._asks = asks
        self.seen = Seen()

    def _is_first(self, messages: list[ModelMessage]) -> bool:
        self.seen.messages = messages
        return self._asks and len(messages) == 1

    async def whole(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        for _ in DELTAS:
            await asyncio.sleep(0)
        if not self._is_first(messages):
            return ModelResponse([TextPart(ANSWER)])
        return ModelResponse(
            [ToolCallPart(name, {"n": n}, f"call_{at}") for at, (name, n) in enumerate(CALLS)]
        )

    async def streamed(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        if self._is_first(messages):
            for at, (name, n) in enumerate(CALLS):
                await asyncio.sleep(0)
                yield {at: DeltaToolCall(name, f'{{"n": {n}}}', tool_call_id=f"call_{at}")}
            return
        for delta in DELTAS:
            await asyncio.sleep(0)
            yield delta


def request(*, tools: bool, streams: bool, stops: bool = False) -> Case[Seen]:
    script = Script(asks=tools)
    model = FunctionModel(script.whole, stream_function=script.streamed)
    agent = Agent(model, instructions=INSTRUCTIONS, tools=TOOLS if tools else ())

    def prepare() -> Seen:
        script.seen = Seen()
        return script.seen

    async def whole(seen: Seen) -> None:
        result = await agent.run(QUESTION)
        seen.text, seen.history = result.output, result.all_messages()

    async def streamed(seen: Seen) -> None:
        async def count(_: Any, events: AsyncIterable[Any]) -> None:
            async for event in events:
                match event:
                    case PartStartEvent(part=TextPart()) | PartDeltaEvent(delta=TextPartDelta()):
                        seen.deltas += 1

        result = await agent.run(QUESTION, event_stream_handler=count)
        seen.text, seen.history = result.output, result.all_messages()

    async def stopping(seen: Seen) -> None:
        async with agent.run_stream(QUESTION) as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                seen.deltas += 1
            seen.text, seen.history = await result.get_output(), result.all_messages()

    run = (stopping if stops else streamed) if streams else whole
    return case(prepare, run, Seen.outcome, tools=tools, streams=streams)


def cases() -> dict[str, Case[Seen]]:
    found = {}
    for tools in (False, True):
        name = "tools" if tools else "plain"
        found[f"{name} streamed"] = request(tools=tools, streams=True)
        found[f"{name} whole"] = request(tools=tools, streams=False)
        found[f"{name} streamed, run_stream"] = request(tools=tools, streams=True, stops=True)
    return found


if __name__ == "__main__":
    core_common.measure(cases())
