"""Running tools: batches of calls that may outlive the request that asked for them.

One batch = the calls of one model reply. With an owner (Agent.running) its task lives in the
owner's task group: barge-in ends the request, the batch goes on as *outstanding*. Without one the
request itself runs the batch and an abort of any scope stops its abortable tools. Whatever ends a
batch, each of its calls has exactly one terminal result in the store (DESIGN 5.6).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from .cancel import AbortScope, CancelToken, to_the_end
from .errors import AbortError, CoreError
from .events import SubscriberEvent, ToolSettledIdle, ToolStarted, ToolUseResult
from .executor import CallScope, Executor
from .history import History
from .messages import (
    Message,
    ResultStatus,
    ToolCall,
    ToolResult,
    ToolResultData,
    aborted_result,
)
from .toolset import find_tool
from .view import RESULTS_TEXT

logger = logging.getLogger(__name__)

Emit = Callable[[SubscriberEvent], None]
CLEAN_UP_S = 2.0


@dataclass(frozen=True, slots=True)
class Batch:
    """The calls of one reply.

    done       set when each has its result in the store
    withdrawn  calls, by id, that were aborted before the batch began, and why
    results    those it has, by call id
    """

    results_id: str
    calls: tuple[ToolCall, ...]
    scope: CallScope
    emit: Emit
    done: asyncio.Event
    withdrawn: Mapping[str, str] = field(default_factory=dict)
    results: dict[str, ToolResult] = field(default_factory=dict)


@dataclass(slots=True)
class _Outstanding:
    """A call without a terminal result. `scope` has tokens of its own, so that it can be stopped
    alone; `taken_up`: the executor has it."""

    call: ToolCall
    scope: CallScope
    taken_up: bool = False

    @property
    def survives(self) -> bool:
        """Whether it runs on, whatever is aborted."""
        tool = find_tool(self.scope.tools, self.call.tool_name)
        return self.taken_up and tool is not None and tool.un_abortable


@dataclass(frozen=True, slots=True)
class _Unseen:
    """A result that no model request has shown yet."""

    tool_name: str
    status: ResultStatus
    results_id: str


class ToolRuns:
    """Every call without a terminal result, and results no model has seen yet."""

    def __init__(self, history: History, executor: Executor, emit: Emit) -> None:
        self._history = history
        self._executor = executor
        self._emit = emit
        self._batches: dict[str, Batch] = {}
        self._running: dict[str, _Outstanding] = {}
        self._tasks: dict[asyncio.Task[object], Batch] = {}
        self._awaited: set[str] = set()
        self._starting: set[CancelToken] = set()
        self._unseen: dict[str, _Unseen] = {}
        self.group: asyncio.TaskGroup | None = None
        self.quiet = True

    @property
    def running(self) -> frozenset[str]:
        """Ids of calls without a terminal result."""
        return frozenset(self._running)

    def calls_of(self, tool_name: str) -> set[str]:
        """Ids of calls of one tool without a terminal result."""
        wanted = tool_name.lower()
        calls = [one.call for one in self._running.values()]
        return {call.id for call in calls if call.tool_name.lower() == wanted}

    @property
    def idle(self) -> bool:
        """No call is without a terminal result, and none is on its way into the store."""
        return not self._running and not self._starting

    @contextmanager
    def starting(self, token: CancelToken) -> Iterator[None]:
        """Calls are on their way into the store: abort() already reaches `token`, their scope's."""
        self._starting.add(token)
        try:
            yield
        finally:
            self._starting.discard(token)

    async def reserve(self, asked: Message, emit: Emit) -> None:
        """Store a call message with the reserved message of its results.

        Nothing may be awaited between this and run(): a call that is stored must always have
        somebody who owes its result. If it is cancelled or fails, that result is `aborted`.
        """
        reserved = Message(
            sender="user", id=results_id(asked), text=RESULTS_TEXT, is_tool_results=True
        )
        try:
            await self._history.append_calls(asked, reserved)
        except BaseException:
            for call in asked.tool_calls:
                data = aborted_result("not started")
                emit(
                    ToolUseResult(
                        call_id=call.id, tool_name=call.tool_name, result=data, duration_ms=0.0
                    )
                )
            raise

    async def run(self, batch: Batch, token: CancelToken) -> None:
        """Run a batch; raises AbortError when `token` (the request's) fires first.

        After AbortError the batch goes on in the owner's group, or is complete without an owner.
        """
        self._batches[batch.results_id] = batch
        self._running.update({call.id: _outstanding(call, batch.scope) for call in batch.calls})
        for call_id, reason in batch.withdrawn.items():
            self.abort_calls([call_id], reason)
        self._awaited.add(batch.results_id)
        try:
            await self._run(batch, token)
        finally:
            self._awaited.discard(batch.results_id)

    async def answers(self, batch: Batch, token: CancelToken) -> tuple[ToolResult, ...]:
        """run() for somebody who tells the results to a model himself: in the order of the calls.

        If it raises, what has settled and what will is announced as for nobody.
        """
        try:
            await self.run(batch, token)
        except BaseException:
            if self.quiet:
                self.announce()
            raise
        self.seen([call.id for call in batch.calls])
        return tuple(batch.results.get(call.id) or _not_kept(call) for call in batch.calls)

    def tokens(self, token: CancelToken) -> tuple[CancelToken, CancelToken]:
        """`token` and `stop` of a batch's scope, for the token of who asks for it.

        With an owner only the wider scope reaches tools; without one nobody could wait for them.
        """
        if self.group is not None:
            tools = token.tools.child()
            return tools, tools
        tools = token.child()
        return tools, tools.tools

    @property
    def awaits_this_task(self) -> bool:
        """Whether the present task runs a tool that a request waits for."""
        task = asyncio.current_task()
        batch = None if task is None else self._tasks.get(task)
        return batch is not None and batch.results_id in self._awaited

    async def _run(self, batch: Batch, token: CancelToken) -> None:
        if self.group is None:
            await self._work(batch)
            token.raise_if_aborted()
            return
        work = self._owned(batch)
        try:
            self.group.create_task(work, name=f"tools {batch.results_id}")
        except RuntimeError:  # the owner's group is shutting down
            work.close()
            await self._close(batch)
            raise AbortError("the agent's owner is shutting down") from None
        async with AbortScope(token):
            await batch.done.wait()

    async def join(self, limit_s: float, token: CancelToken, asking: Collection[str] = ()) -> None:
        """Wait for outstanding calls, at most `limit_s` (CONTRACTS E, last row).

        `asking` are calls that wait for a person's answer: no time of ours would finish them.
        """
        waits = [
            batch
            for batch in self._batches.values()
            if not any(call.id in asking for call in batch.calls)
        ]
        if not waits:
            return
        try:
            async with asyncio.timeout(limit_s), AbortScope(token):
                for batch in waits:
                    await batch.done.wait()
        except TimeoutError:
            logger.info("asking with tools outstanding", extra={"count": len(self._running)})

    def abort(self, reason: str) -> None:
        """Stop every abortable outstanding tool and all that is queued; a running un_abortable one
        finishes."""
        for token in [*self._starting, *(batch.scope.token for batch in self._batches.values())]:
            token.abort(reason, tools=True)

    def abort_calls(self, call_ids: Collection[str], reason: str) -> None:
        """The same for single calls; unknown ids, and those with a result, are left alone."""
        for call_id in call_ids:
            if (one := self._running.get(call_id)) is not None:
                one.scope.token.abort(reason, tools=True)
                one.scope.stop.abort(reason)

    async def settle(self, limit_s: float) -> None:
        """After abort(): wait until the batches without a running un_abortable tool are over."""
        for batch in list(self._batches.values()):
            left = [self._running[call.id] for call in batch.calls if call.id in self._running]
            if any(one.survives for one in left):
                continue
            try:
                async with asyncio.timeout(limit_s):
                    await batch.done.wait()
            except TimeoutError:
                logger.warning("tool ignores its abort", extra={"calls": len(batch.calls)})

    @property
    def unseen(self) -> frozenset[str]:
        """Ids of results that no model request has shown yet."""
        return frozenset(self._unseen)

    def seen(self, call_ids: Collection[str]) -> None:
        """These results are in a model request now."""
        for call_id in call_ids:
            self._unseen.pop(call_id, None)

    def announce(self) -> None:
        """No request runs: report results no model has seen (called at a request's end too), but
        those of a batch that somebody awaits."""
        for call_id, one in list(self._unseen.items()):
            if one.results_id not in self._awaited:
                del self._unseen[call_id]
                self._emit(
                    ToolSettledIdle(call_id=call_id, tool_name=one.tool_name, status=one.status)
                )

    async def _owned(self, batch: Batch) -> None:
        """A batch in a shared group: its own failure must not end its neighbours."""
        try:
            await self._work(batch)
        except Exception:
            logger.exception("tool batch failed", extra={"results": batch.results_id})

    async def _work(self, batch: Batch) -> None:
        try:
            for group in _parallel_groups(batch):
                if len(group) == 1:
                    await self._one(batch, group[0])
                else:
                    async with asyncio.TaskGroup() as tasks:
                        for call in group:
                            tasks.create_task(self._one(batch, call), name=call.tool_name)
        finally:
            await self._close(batch)

    async def _one(self, batch: Batch, call: ToolCall) -> None:
        outstanding = self._running[call.id]
        outstanding.taken_up = True
        batch.emit(ToolStarted(call_id=call.id, tool_name=call.tool_name, input=call.input_args))
        with self._noted(batch):
            result = await self._executor.run(call, outstanding.scope)
        await self._record(batch, result)

    @contextmanager
    def _noted(self, batch: Batch) -> Iterator[None]:
        task = asyncio.current_task()
        if task is None or task in self._tasks:
            yield
            return
        self._tasks[task] = batch
        try:
            yield
        finally:
            del self._tasks[task]

    async def _record(self, batch: Batch, result: ToolResult) -> None:
        result = await self._history.add_result(batch.results_id, result)
        batch.results[result.call_id] = result
        if self._running.pop(result.call_id, None) is None:
            return
        data = result.result
        if data.status != "aborted":
            self._unseen[result.call_id] = _Unseen(result.tool_name, data.status, batch.results_id)
        batch.emit(
            ToolUseResult(
                call_id=result.call_id,
                tool_name=result.tool_name,
                result=data,
                duration_ms=result.duration_ms,
            )
        )
        if self.quiet:
            self.announce()

    async def _close(self, batch: Batch) -> None:
        """Give each call that has no result yet an aborted one, then let the batch go."""
        left = [self._running[call.id] for call in batch.calls if call.id in self._running]

        async def abort() -> None:
            for one in left:
                data = aborted_result(one.scope.token.reason)
                await self._record(batch, ToolResult(one.call.tool_name, one.call.id, data))
            await self._history.rewrite_results(batch.results_id)

        try:
            if left:
                await to_the_end(abort, CLEAN_UP_S)
        except (TimeoutError, CoreError):
            logger.exception("results not stored", extra={"results": batch.results_id})
        finally:
            for call in batch.calls:
                self._running.pop(call.id, None)
            self._history.close_results(batch.results_id)
            self._batches.pop(batch.results_id, None)
            batch.done.set()


def results_id(asked: Message) -> str:
    """The id of the message reserved for the results of a call message."""
    return f"{asked.id}_results"


def _not_kept(call: ToolCall) -> ToolResult:
    """What is known of a call whose result the store refused: it may have run."""
    data = ToolResultData("error", None, "Its result could not be stored.")
    return ToolResult(call.tool_name, call.id, data)


def _outstanding(call: ToolCall, scope: CallScope) -> _Outstanding:
    own = replace(scope, token=scope.token.child(), stop=scope.stop.child())
    return _Outstanding(call, own)


def _parallel_groups(batch: Batch) -> Iterator[Sequence[ToolCall]]:
    """Calls in order; neighbours whose tools are all `parallel` run as one group."""
    group: list[ToolCall] = []
    for call in batch.calls:
        tool = find_tool(batch.scope.tools, call.tool_name)
        if tool is not None and tool.parallel:
            group.append(call)
            continue
        if group:
            yield group
            group = []
        yield (call,)
    if group:
        yield group
