"""Running tools: batches of calls that may outlive the request that asked for them.

One batch = the calls of one model reply. With an owner (Agent.running) its task lives in the
owner's task group: barge-in ends the request, the batch goes on as *outstanding*. Without one the
request itself runs the batch and an abort of any scope stops its abortable tools. Whatever ends a
batch, each of its calls has exactly one terminal result in the store (DESIGN 5.6).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .cancel import AbortScope, CancelToken, to_the_end
from .errors import AbortError, CoreError
from .events import SubscriberEvent, ToolSettledIdle, ToolStarted, ToolUseResult
from .executor import CallScope, Executor
from .history import History
from .messages import ResultStatus, ToolCall, ToolResult, aborted_result
from .toolset import find_tool

logger = logging.getLogger(__name__)

Emit = Callable[[SubscriberEvent], None]
CLEAN_UP_S = 2.0


@dataclass(frozen=True, slots=True)
class Batch:
    """The calls of one reply. `done` is set when each has its result in the store."""

    results_id: str
    calls: tuple[ToolCall, ...]
    scope: CallScope
    emit: Emit
    done: asyncio.Event


class ToolRuns:
    """Every call without a terminal result, and results no model has seen yet."""

    def __init__(self, history: History, executor: Executor, emit: Emit) -> None:
        self._history = history
        self._executor = executor
        self._emit = emit
        self._batches: dict[str, Batch] = {}
        self._running: dict[str, ToolCall] = {}
        self._taken_up: set[str] = set()
        self._tasks: dict[asyncio.Task[object], Batch] = {}
        self._awaited: set[str] = set()
        self._unseen: dict[str, tuple[str, ResultStatus]] = {}
        self.group: asyncio.TaskGroup | None = None
        self.quiet = True

    @property
    def running(self) -> frozenset[str]:
        """Ids of calls without a terminal result."""
        return frozenset(self._running)

    def calls_of(self, tool_name: str) -> set[str]:
        """Ids of calls of one tool without a terminal result."""
        wanted = tool_name.lower()
        return {one.id for one in self._running.values() if one.tool_name.lower() == wanted}

    async def run(self, batch: Batch, token: CancelToken) -> None:
        """Run a batch; raises AbortError when `token` (the request's) fires first.

        After AbortError the batch goes on in the owner's group, or is complete without an owner.
        """
        self._batches[batch.results_id] = batch
        self._running.update({call.id: call for call in batch.calls})
        self._awaited.add(batch.results_id)
        try:
            await self._run(batch, token)
        finally:
            self._awaited.discard(batch.results_id)

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
        for batch in list(self._batches.values()):
            batch.scope.token.abort(reason, tools=True)

    async def settle(self, limit_s: float) -> None:
        """After abort(): wait until the batches without a running un_abortable tool are over."""
        for batch in list(self._batches.values()):
            if any(self._survives(batch, call) for call in batch.calls):
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
        """No request runs: report results no model has seen (called at a request's end too)."""
        unseen, self._unseen = self._unseen, {}
        for call_id, (name, status) in unseen.items():
            self._emit(ToolSettledIdle(call_id=call_id, tool_name=name, status=status))

    def _survives(self, batch: Batch, call: ToolCall) -> bool:
        tool = find_tool(batch.scope.tools, call.tool_name)
        return call.id in self._taken_up and tool is not None and tool.un_abortable

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
        self._taken_up.add(call.id)
        batch.emit(ToolStarted(call_id=call.id, tool_name=call.tool_name, input=call.input_args))
        with self._noted(batch):
            result = await self._executor.run(call, batch.scope)
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
        self._taken_up.discard(result.call_id)
        if self._running.pop(result.call_id, None) is None:
            return
        data = result.result
        if data.status != "aborted":
            self._unseen[result.call_id] = (result.tool_name, data.status)
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
        unfinished = [call for call in batch.calls if call.id in self._running]

        async def abort() -> None:
            for call in unfinished:
                data = aborted_result(batch.scope.token.reason)
                await self._record(batch, ToolResult(call.tool_name, call.id, data))
            await self._history.rewrite_results(batch.results_id)

        try:
            if unfinished:
                await to_the_end(abort, CLEAN_UP_S)
        except (TimeoutError, CoreError):
            logger.exception("results not stored", extra={"results": batch.results_id})
        finally:
            for call in batch.calls:
                self._running.pop(call.id, None)
                self._taken_up.discard(call.id)
            self._history.close_results(batch.results_id)
            self._batches.pop(batch.results_id, None)
            batch.done.set()


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
