"""Runs one tool call and turns whatever happens into its one terminal result.

Order per call (spec core 3 with section 19): abort check, lookup, validation, commit gate,
permission, run with deadline and opt-in retries, summary. Owned by the agent; it writes nothing,
emits nothing and never raises except for the cancellation of its own task.
"""

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import Executor as ThreadPool
from dataclasses import dataclass, replace

from .cancel import AbortScope, CancelToken
from .commit import CommitGate
from .display import DisplayStack, ToolDisplay
from .errors import AbortError
from .messages import ToolCall, ToolResult, ToolResultData, aborted_result
from .permissions import PermissionPolicy, Permissions
from .schema import InvalidInput, validate_input
from .tool import Tool, ToolContext, ToolHost, wrap_result
from .toolset import find_tool, unknown_tool_text

logger = logging.getLogger(__name__)

TOOL_INPUT_INVALID = "TOOL_INPUT_INVALID"


@dataclass(frozen=True, slots=True)
class CallScope:
    """What one batch of calls runs with.

    token    the one tools watch: fires when abortable tools must end
    stop     fires for a stop word, a hang-up, interrupt(): nothing that is queued starts any more,
             un_abortable or not. Fires never without `token`
    retries  bounds each tool's own; None leaves them
    policy   stands in for the agent's permission policy
    """

    host: ToolHost
    tools: tuple[Tool, ...]
    token: CancelToken
    stop: CancelToken
    gate: CommitGate
    retries: int | None = None
    policy: PermissionPolicy | None = None

    def refuses(self, tool: Tool) -> CancelToken:
        """What keeps a call of this tool from starting, once fired."""
        return self.stop if tool.un_abortable else self.token

    def attempts(self, tool: Tool) -> int:
        """How often a call of this tool may be tried."""
        return 1 + (tool.retries if self.retries is None else min(self.retries, tool.retries))


class Executor:
    """Stateless between calls, so nothing of a failed call can leak into the next (19.1)."""

    def __init__(
        self,
        permissions: Permissions,
        display: Callable[[], DisplayStack],
        *,
        un_abortable_timeout_s: float,
        threads: ThreadPool | None = None,
    ) -> None:
        self._permissions = permissions
        self._display = display
        self._un_abortable_timeout_s = un_abortable_timeout_s
        self._threads = threads

    async def run(self, call: ToolCall, scope: CallScope) -> ToolResult:
        """The terminal result. After cancellation of the task there is none: the batch records
        `aborted` for it."""
        clock = asyncio.get_running_loop().time
        started = clock()
        data = await self._outcome(call, scope)
        return ToolResult(call.tool_name, call.id, data, (clock() - started) * 1000.0)

    async def _outcome(self, call: ToolCall, scope: CallScope) -> ToolResultData:
        tool = find_tool(scope.tools, call.tool_name)
        refused = scope.token if tool is None else scope.refuses(tool)
        if refused.aborted:
            return aborted_result(refused.reason)
        if tool is None:
            return _error(unknown_tool_text(scope.tools, call.tool_name))
        try:
            return await self._checked(tool, call, scope)
        except AbortError as error:
            return aborted_result(error.reason)
        except InvalidInput as error:
            return ToolResultData("error", str(error), TOOL_INPUT_INVALID)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return _error(f"{tool.name} cancelled itself")
        except Exception as error:
            logger.warning("tool failed", exc_info=error, extra={"tool": tool.name})
            return _error(f"{type(error).__name__}: {error}")

    async def _checked(self, tool: Tool, call: ToolCall, scope: CallScope) -> ToolResultData:
        value = call.input_args
        if tool.input_model is not None:
            value = validate_input(tool.input_model, value)
        if not tool.read_only:
            await scope.gate.passed()
        decision = await self._permissions.check(
            tool, value, call.id, scope.refuses(tool), scope.policy
        )
        if not decision.allowed:
            return _error(f"Permission denied for tool {tool.name}: {decision.reason}.")
        # The stop may have come while gate and permission were asked; from here on it is running.
        scope.stop.raise_if_aborted()
        return await self._attempts(tool, value, call, scope)

    async def _attempts(
        self, tool: Tool, value: object, call: ToolCall, scope: CallScope
    ) -> ToolResultData:
        attempts = scope.attempts(tool)
        for attempt in range(attempts):
            try:
                return await self._with_summary(tool, await self._attempt(tool, value, call, scope))
            except AbortError:
                raise
            except Exception as error:
                stopped = scope.token.aborted and not tool.un_abortable
                if attempt + 1 == attempts or stopped:
                    tries = f" (after {attempt + 1} attempts)" if attempt else ""
                    logger.warning("tool failed", exc_info=error, extra={"tool": tool.name})
                    return _error(f"{type(error).__name__}: {error}{tries}")
        raise AssertionError("unreachable: the last attempt returns")

    async def _attempt(
        self, tool: Tool, value: object, call: ToolCall, scope: CallScope
    ) -> ToolResultData:
        # An un_abortable tool's question stays open too, until its deadline.
        waits = CancelToken() if tool.un_abortable else scope.token
        display = ToolDisplay(self._display, call.id, tool.name, waits)
        context = ToolContext(display, scope.host, scope.token, call.id, tool.name)
        seconds = tool.timeout_s
        if seconds is None and tool.un_abortable:
            seconds = self._un_abortable_timeout_s
        try:
            async with asyncio.timeout(seconds) as deadline:
                if tool.un_abortable:
                    return wrap_result(await self._invoke(tool, value, context))
                async with AbortScope(scope.token):
                    return wrap_result(await self._invoke(tool, value, context))
        except TimeoutError:
            if not deadline.expired():
                raise
            return _error(f"{tool.name} did not finish within {seconds:g} s")

    async def _invoke(self, tool: Tool, value: object, context: ToolContext) -> object:
        if tool.is_async:
            outcome = tool.call(value, context)
        else:
            # A thread cannot be stopped: after an abort its late result is simply not looked at.
            loop = asyncio.get_running_loop()
            run = contextvars.copy_context().run
            outcome = await loop.run_in_executor(self._threads, run, tool.call, value, context)
        return await outcome if inspect.isawaitable(outcome) else outcome

    @staticmethod
    async def _with_summary(tool: Tool, data: ToolResultData) -> ToolResultData:
        """Fill `summary`; its failure costs the summary, never the result (19.8)."""
        if tool.generate_summary is None or data.generate_summary_args is None:
            return data
        try:
            summary = tool.generate_summary(data.generate_summary_args)
            text = await summary if inspect.isawaitable(summary) else summary
        except Exception:
            logger.exception("tool summary failed", extra={"tool": tool.name})
            return data
        return replace(data, summary=text)


def _error(message: str) -> ToolResultData:
    return ToolResultData("error", None, message)
