"""The tool path of a session: calls of the provider through the agent's executor, and back.

Each call gets exactly one result, which is in the store before the provider hears of it; what a
tool changed of the agent is told first, and one response is asked when all calls of a response have
theirs (spec/voice 18.6, 18.11b; rows 81 to 83; DESIGN 5.6). Owned by one run of a session; every
batch is a task of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass

from ..core.live import LiveConversation
from ..core.messages import Message, ToolCall, ToolResult, result_text
from .commands import AppendContext, SendToolResults, ToolOutput
from .events import ToolCalls
from .feed import Feed, Tell
from .floor import Floor
from .history import Ledger

WORDS_S = 1.0
"""How long a call waits for the words of the turn it belongs to, so that history has them first."""
WITHDRAWN = "the provider withdrew the call"
LATE = "[The result of {name} has come: it was called before the connection changed.]\n{text}"
CANCELLED = "[{name} finished although its call was withdrawn.]\n{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolParts:
    """What the path works with. `connection` numbers the connection now open; `respond` says
    whether the model may go on at once; `owe` notes that an answer is due at the next pause."""

    live: LiveConversation
    ledger: Ledger
    feed: Feed
    floor: Floor
    tell: Tell
    spawn: Callable[[Coroutine[None, None, None]], object]
    connection: Callable[[], int]
    respond: Callable[[], bool]
    owe: Callable[[], None]


class ToolPath:
    """See the module."""

    def __init__(self, parts: ToolParts) -> None:
        self._parts = parts
        self._withdrawn: set[str] = set()
        self._seeded: set[str] = set()

    @property
    def running(self) -> bool:
        return self._parts.floor.tools_run

    def called(self, event: ToolCalls) -> None:
        """The provider waits for the results of these."""
        self._parts.floor.tools(+1)
        self._parts.spawn(self._serve(event, self._parts.connection()))

    def cancelled(self, call_ids: Sequence[str]) -> None:
        """The provider takes no results for these any more: abortable tools stop (18.11b)."""
        self._withdrawn.update(call_ids)
        self._parts.live.abort_calls(call_ids, WITHDRAWN)

    def seeded(self, history: Sequence[Message], outstanding: frozenset[str]) -> None:
        """A new connection was given this history while these calls (ids in the store) still ran.
        What else comes of calls before it has to be told when it comes."""
        self._seeded = {
            result.call_id
            for message in history
            for result in message.tool_results
            if result.call_id not in outstanding
        }

    async def _serve(self, event: ToolCalls, connection: int) -> None:
        """Task of the session's group: one batch."""
        parts = self._parts
        try:
            await parts.ledger.written(WORDS_S)
            results = await self._run(event)
            await parts.feed.after_tools()
            self._answer(event.calls, results, connection)
        finally:
            parts.floor.tools(-1)

    async def _run(self, event: ToolCalls) -> tuple[ToolResult, ...]:
        work = self._parts.live.run_calls(event.calls, run_id=event.response_id)
        withdrawn = self._withdrawn.intersection(call.id for call in event.calls)
        if withdrawn:
            self._parts.live.abort_calls(withdrawn, WITHDRAWN)
        return await work

    def _answer(
        self, calls: Sequence[ToolCall], results: Sequence[ToolResult], connection: int
    ) -> None:
        """Tell what came of them, each once, to whoever is connected now."""
        parts = self._parts
        if connection != parts.connection():
            self._tell_late(results)
            return
        outputs = tuple(
            ToolOutput(call.id, call.tool_name, result_text(result.result), result.result.status)
            for call, result in zip(calls, results, strict=True)
            if call.id not in self._withdrawn
        )
        respond = parts.respond()
        if outputs and parts.tell(SendToolResults(outputs, respond)):
            if respond:  # what joined before the results is part of what is answered now
                parts.feed.take_joined()
            else:
                parts.owe()
        for call, result in zip(calls, results, strict=True):
            if call.id in self._withdrawn:
                self._withdrawn.discard(call.id)
                if result.result.status != "aborted":
                    text = CANCELLED.format(name=call.tool_name, text=result_text(result.result))
                    parts.tell(AppendContext(text))

    def _tell_late(self, results: Sequence[ToolResult]) -> None:
        """The connection that asked is gone; the next one may know the result from its seed."""
        parts = self._parts
        for result in results:
            if result.call_id not in self._seeded:
                text = LATE.format(name=result.tool_name, text=result_text(result.result))
                if parts.tell(AppendContext(text)):
                    parts.owe()
