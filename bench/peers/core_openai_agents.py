"""openai-agents' side of `make corebench` (how and why: docs/bench.md).

Its Runner over a Model of ours, the seam its own test model uses. The model's events are made
beforehand, so nothing but the framework costs time. No session and no tracing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import core_common
from agents import (
    Agent,
    Model,
    ModelResponse,
    ModelSettings,
    RunConfig,
    Runner,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from core_common import ANSWER, CALLS, DELTAS, INSTRUCTIONS, QUESTION, Case, Outcome, case
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

OUTPUT_TYPE = "function_call_output"
TOOLS = [function_tool(do) for do in (core_common.add_one, core_common.double, core_common.square)]
CONFIG = RunConfig(tracing_disabled=True)


def answer() -> ResponseOutputMessage:
    content = ResponseOutputText(annotations=[], text=ANSWER, type="output_text", logprobs=[])
    return ResponseOutputMessage(
        id="msg_1", content=[content], role="assistant", status="completed", type="message"
    )


def calls() -> list[ResponseFunctionToolCall]:
    return [
        ResponseFunctionToolCall(
            arguments=f'{{"n": {n}}}', call_id=f"call_{at}", name=name, type="function_call"
        )
        for at, (name, n) in enumerate(CALLS)
    ]


def completed(output: Sequence[Any], number: int) -> ResponseCompletedEvent:
    response = Response(
        id="resp_1",
        created_at=0,
        model="fixed",
        object="response",
        output=list(output),
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
    )
    return ResponseCompletedEvent(
        type="response.completed", response=response, sequence_number=number
    )


def stream_of(output: Sequence[Any], deltas: Sequence[str]) -> list[Any]:
    """The events of one reply that its runner looks at."""
    events: list[Any] = [
        ResponseTextDeltaEvent(
            content_index=0,
            delta=delta,
            item_id="msg_1",
            output_index=0,
            type="response.output_text.delta",
            sequence_number=at,
            logprobs=[],
        )
        for at, delta in enumerate(deltas)
    ]
    events += [
        ResponseOutputItemDoneEvent(
            item=item,
            output_index=at,
            type="response.output_item.done",
            sequence_number=len(deltas) + at,
        )
        for at, item in enumerate(output)
    ]
    return [*events, completed(output, len(events))]


@dataclass(slots=True)
class Seen:
    """What one request's model was shown last, and what its caller got."""

    input: Any = None
    text: str = ""
    deltas: int = 0
    history: list[Any] = field(default_factory=list)

    def outcome(self) -> Outcome:
        assert len(self.history) > 1
        items = self.input if isinstance(self.input, list) else []
        outputs = [item["output"] for item in items if item.get("type") == OUTPUT_TYPE]
        return Outcome(self.text, self.deltas, tuple(int(one) for one in outputs))


class FixedModel(Model):
    """Three calls in one reply if it `asks` and has no results yet, then the answer."""

    def __init__(self, *, asks: bool) -> None:
        self._asks = asks
        self._last = [answer()]
        self._last_events = stream_of(self._last, DELTAS)
        self._calls = calls()
        self._calls_events = stream_of(self._calls, ())
        self.seen = Seen()

    def _is_first(self, given: Any) -> bool:
        self.seen.input = given
        last = given[-1] if isinstance(given, list) else {}
        return self._asks and last.get("type") != OUTPUT_TYPE

    async def get_response(
        self, system_instructions: Any, input: Any, *_: Any, **__: Any
    ) -> ModelResponse:
        for _ in DELTAS:
            await asyncio.sleep(0)
        output = self._calls if self._is_first(input) else self._last
        return ModelResponse(output=list(output), usage=Usage(), response_id="resp_1")

    async def stream_response(
        self, system_instructions: Any, input: Any, *_: Any, **__: Any
    ) -> AsyncIterator[Any]:
        for event in self._calls_events if self._is_first(input) else self._last_events:
            await asyncio.sleep(0)
            yield event


def request(*, tools: bool, streams: bool) -> Case[Seen]:
    model = FixedModel(asks=tools)
    agent = Agent(
        name="bench",
        instructions=INSTRUCTIONS,
        model=model,
        model_settings=ModelSettings(),
        tools=list(TOOLS) if tools else [],
    )

    def prepare() -> Seen:
        model.seen = Seen()
        return model.seen

    async def whole(seen: Seen) -> None:
        result = await Runner.run(agent, QUESTION, run_config=CONFIG)
        seen.text, seen.history = result.final_output, result.to_input_list()

    async def streamed(seen: Seen) -> None:
        result = Runner.run_streamed(agent, QUESTION, run_config=CONFIG)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and isinstance(
                event.data, ResponseTextDeltaEvent
            ):
                seen.deltas += 1
        seen.text, seen.history = result.final_output, result.to_input_list()

    run = streamed if streams else whole
    return case(prepare, run, Seen.outcome, tools=tools, streams=streams)


if __name__ == "__main__":
    set_tracing_disabled(True)
    core_common.measure(
        {
            f"{'tools' if tools else 'plain'} {'streamed' if streams else 'whole'}": request(
                tools=tools, streams=streams
            )
            for tools in (False, True)
            for streams in (True, False)
        }
    )
