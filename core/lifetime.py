"""The life of one agent: who owns its tasks, what runs now, and how both end.

Owned by the agent. The only place that opens the agent's task group; it starts no request and no
tool, it stops them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .cancel import CancelToken
from .errors import UsageError
from .notify import Notifier
from .runs import ToolRuns


class Lifetime:
    """What changes while the agent lives.

    group       the owner's task group, inside owned() only
    active      the token of the request that runs now
    compaction  fires when background compaction must give way
    wakes       fires when wakes that run alone must end
    closed      set for good by close()
    """

    def __init__(self, runs: ToolRuns, notifier: Notifier, close_timeout_s: float) -> None:
        self.group: asyncio.TaskGroup | None = None
        self.active: CancelToken | None = None
        self.compaction = CancelToken()
        self.wakes = CancelToken()
        self.closed = False
        self._runs = runs
        self._notifier = notifier
        self._close_timeout_s = close_timeout_s

    def check_open(self) -> None:
        if self.closed:
            raise UsageError("this agent was closed with aclose(); build a new one")

    @asynccontextmanager
    async def owned(self, survivors: asyncio.TaskGroup | None) -> AsyncIterator[None]:
        """Hold the agent's task group open; see Agent.running."""
        self.check_open()
        if self.group is not None:
            raise UsageError("running(): the agent is running already")
        failure: Exception | None = None
        async with self._notifier.running(), asyncio.TaskGroup() as group:
            self.group, self.wakes = group, CancelToken()
            self._runs.group = survivors or group
            try:
                yield
            except Exception as error:
                failure = error  # a TaskGroup would wrap it
            finally:
                # From here on nothing new enters the group: late batches end with their request.
                self.group = self._runs.group = None
                self._stop("the call ended")
            await self._runs.settle(self._close_timeout_s)
        if failure is not None:
            raise failure

    def interrupt(self, reason: str) -> None:
        """End the running request and every abortable tool; what is queued never starts."""
        if self.active is not None:
            self.active.abort(reason, tools=True)
        self._runs.abort(reason)

    async def close(self) -> None:
        """See Agent.aclose."""
        self.closed = True
        self._stop("the agent was closed")
        await self._runs.settle(self._close_timeout_s)
        await self._notifier.flush()

    def _stop(self, reason: str) -> None:
        self.wakes.abort(reason)
        self.compaction.abort(reason)
        self.interrupt(reason)
