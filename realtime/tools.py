"""The tool path of a session: calls of the provider through the agent's executor, and back.

Each call gets exactly one result, which is in the store before the provider hears of it; what a
tool changed of the agent is told first, and one response is asked when all calls of a response have
theirs (spec/voice 18.6, 18.11b; rows 81 to 83; DESIGN 5.6). Owned by one run of a session; every
batch is a task of its group.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass

from ..core.live import LiveConversation
from ..core.messages import Message, ToolResult, ToolResultData, result_text
from .commands import AppendContext, SendToolResults, ToolOutput
from .events import ToolCalls
from .feed import Feed, Tell
from .floor import Floor
from .history import Ledger

WORDS_S = 1.0
"""How long a call waits for the words of the turn it belongs to, so that history has them first."""
WITHDRAWN = "the provider withdrew the call"
LATE = "[The result of {name} has come: it was called before the connection changed.]\n{text}"
NOT_RUN = "It was not run: the conversation could not be stored."
CANCELLED = "[{name} finished although its call was withdrawn.]\n{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolParts:
    """What the path works with. `connection` numbers the connection now open; `respond` says
    whether the model may go on at once; `owe` notes that an answer is due at the next pause, and
    `owed` says whether one is due at all; `failed` is told of what the store refused."""

    live: LiveConversation
    ledger: Ledger
    feed: Feed
    floor: Floor
    tell: Tell
    spawn: Callable[[Coroutine[None, None, None]], object]
    connection: Callable[[], int]
    respond: Callable[[], bool]
    owe: Callable[[], None]
    owed: Callable[[], bool]
    failed: Callable[[Exception], None]


@dataclass(frozen=True, slots=True)
class _Batch:
    """One ToolCalls event: what called, as which message, on which connection."""

    event: ToolCalls
    message_id: str
    connection: int

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(call.id for call in self.event.calls)


class ToolPath:
    """See the module."""

    def __init__(self, parts: ToolParts) -> None:
        self._parts = parts
        self._batches: list[_Batch] = []
        self._withdrawn: set[str] = set()
        self._seeded: set[str] = set()
        self._changing = False
        self._came: list[tuple[_Batch, tuple[ToolResult, ...]]] = []
        """Results that came between a seed and the connection that was begun with it."""

    @property
    def running(self) -> bool:
        return self._parts.floor.tools_run

    def called(self, event: ToolCalls) -> None:
        """The provider waits for the results of these."""
        parts = self._parts
        batch = _Batch(event, parts.live.new_id("msg"), parts.connection())
        self._batches.append(batch)
        parts.floor.tools(+1)
        parts.spawn(self._serve(batch))

    def cancelled(self, call_ids: Sequence[str]) -> None:
        """The provider takes no results for these any more: abortable tools stop (18.11b)."""
        running = {call_id for batch in self._batches for call_id in batch.ids}
        self._withdrawn |= running.intersection(call_ids)
        self._parts.live.abort_calls(call_ids, WITHDRAWN)

    def seeded(self, history: Sequence[Message], outstanding: frozenset[str]) -> None:
        """A new connection was given this history while these calls (ids in the store) still ran.
        What else comes of calls before it has to be told when it comes."""
        self._changing, self._came = True, []
        self._seeded = {
            result.call_id
            for message in history
            for result in message.tool_results
            if result.call_id not in outstanding
        }

    def introduced(self) -> None:
        """The connection that was begun with that history is told what came meanwhile."""
        self._changing, came = False, self._came
        self._came = []
        for batch, results in came:
            if batch.connection != self._parts.connection():
                self._tell_late(batch, results)

    async def _serve(self, batch: _Batch) -> None:
        """Task of the session's group: one batch."""
        parts = self._parts
        try:
            await self._attempt(parts.ledger.written(WORDS_S))
            results = await self._run(batch)
            await self._attempt(parts.feed.after_tools())
            self._answer(batch, results)
        finally:
            self._batches.remove(batch)
            self._withdrawn -= batch.ids
            parts.floor.tools(-1)

    async def _attempt(self, work: Awaitable[None]) -> None:
        """What fails beside the calls is told; the provider waits for their results."""
        try:
            await work
        except Exception as error:
            self._parts.failed(error)

    async def _run(self, batch: _Batch) -> tuple[ToolResult, ...]:
        event = batch.event
        work = self._parts.live.run_calls(
            event.calls, message_id=batch.message_id, run_id=event.response_id
        )
        withdrawn = self._withdrawn & batch.ids
        if withdrawn:
            self._parts.live.abort_calls(withdrawn, WITHDRAWN)
        try:
            return await work
        except Exception as error:
            self._parts.failed(error)
            refused = ToolResultData("error", None, NOT_RUN)
            return tuple(ToolResult(call.tool_name, call.id, refused) for call in event.calls)

    def _answer(self, batch: _Batch, results: tuple[ToolResult, ...]) -> None:
        """Tell what came of them, each once, to whoever is connected now."""
        parts, calls = self._parts, batch.event.calls
        if self._changing:
            self._came.append((batch, results))
        if batch.connection != parts.connection():
            if not self._changing:
                self._tell_late(batch, results)
            return
        outputs = tuple(
            ToolOutput(call.id, call.tool_name, result_text(result.result), result.result.status)
            for call, result in zip(calls, results, strict=True)
            if call.id not in self._withdrawn
        )
        respond = parts.respond()
        if outputs and parts.tell(SendToolResults(outputs, respond)):
            parts.ledger.tell_known(frozenset((batch.message_id,)))
            if respond:  # what joined before the results is part of what is answered now
                parts.feed.take_joined()
            else:
                parts.owe()
        for call, result in zip(calls, results, strict=True):
            if call.id in self._withdrawn and result.result.status != "aborted":
                text = CANCELLED.format(name=call.tool_name, text=result_text(result.result))
                parts.tell(AppendContext(text))

    def _tell_late(self, batch: _Batch, results: Sequence[ToolResult]) -> None:
        """The connection that asked is gone; the next one may know the result from its seed."""
        parts = self._parts
        for result in results:
            if result.call_id not in self._seeded:
                text = LATE.format(name=result.tool_name, text=result_text(result.result))
                if parts.tell(AppendContext(text)):
                    parts.ledger.tell_known(frozenset((batch.message_id,)))
                    parts.owe()
            elif parts.owed():
                parts.owe()
