"""What an agent does of its own accord: wakes for outside events, and compaction.

Background tasks are born in the task group of Agent.running() and nowhere else; without it a wake
is deferred and compaction runs at the end of a request. Owned by the agent.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from .agent_parts import Parts
from .amend import Amendments
from .cancel import CancelToken
from .errors import AbortError, CoreError, UsageError
from .mind import Mind
from .notify import Emitter
from .requests import Wake
from .turn_queue import Hold, TurnQueue

logger = logging.getLogger(__name__)

StartWake = Callable[[Wake, CancelToken], Awaitable[object]]


class Lifetime:
    """What changes while the agent lives: its owner's group, the running request, the end."""

    def __init__(self) -> None:
        self.group: asyncio.TaskGroup | None = None
        self.active: CancelToken | None = None
        self.compaction = CancelToken()
        self.wakes = CancelToken()
        self.closed = False

    def check_open(self) -> None:
        if self.closed:
            raise UsageError("this agent was closed with aclose(); build a new one")

    def open(self, group: asyncio.TaskGroup) -> None:
        """An owner took over."""
        self.group = group
        self.wakes = CancelToken()

    def end(self, reason: str) -> None:
        """Stop background work; a running request is the agent's business."""
        self.group = None
        self.wakes.abort(reason)
        self.compaction.abort(reason)


class Upkeep:
    """Starts wakes and compactions at the moments the agent names."""

    def __init__(
        self,
        parts: Parts,
        mind: Mind,
        queue: TurnQueue,
        amendments: Amendments,
        emitter: Emitter,
        start_wake: StartWake,
    ) -> None:
        self.lifetime = Lifetime()
        self._parts = parts
        self._mind = mind
        self._queue = queue
        self._amendments = amendments
        self._emitter = emitter
        self._start_wake = start_wake

    def wake_now(self) -> bool:
        """Start a turn for pending events that ask for one, if somebody can run it."""
        events, hold, group = self._parts.events, self._queue.current_hold, self.lifetime.group
        if (hold is None and group is None) or not events.take_wake():
            return False
        if hold is not None:
            hold.wake(Wake("event"))
        elif group is not None:
            group.create_task(self._wake_alone(self.lifetime.wakes), name="agent wake")
        return True

    async def compact_after(self, hold: Hold | None, token: CancelToken) -> None:
        """After an answer was delivered: in the background with an owner, else here."""
        if self.lifetime.group is not None:
            self.compact_later(hold)
        elif self._parts.compactor.is_due and not await self._unsettled():
            await self.compact(token)

    def compact_later(self, hold: Hold | None) -> None:
        """Compact in the background if it is due and nothing runs."""
        group, busy = self.lifetime.group, self.lifetime.active is not None
        if group is None or busy or not self._parts.compactor.is_due:
            return
        self.lifetime.compaction = token = CancelToken()
        group.create_task(self._compact_quietly(hold, token), name="compaction")

    async def compact(self, token: CancelToken) -> bool:
        """Summarise now; the caller has the turn queue."""
        model, prompt = self._mind.current()
        return await self._parts.compactor.run(model, prompt, self._emitter, token)

    async def _wake_alone(self, token: CancelToken) -> None:
        try:
            await self._start_wake(Wake("event"), token)
        except AbortError:
            logger.info("wake aborted")
        except CoreError:
            logger.exception("wake failed")

    async def _compact_quietly(self, hold: Hold | None, token: CancelToken) -> None:
        """Gives way: the next request aborts it rather than wait for it."""
        try:
            async with self._queue.turn(hold, token):
                if self._parts.compactor.is_due and not await self._unsettled():
                    await self.compact(token)
        except AbortError:
            logger.info("compaction gave way")
        except CoreError:
            logger.exception("compaction failed")

    async def _unsettled(self) -> bool:
        """Whether a summary now would lose a late result or keep text nobody heard."""
        return bool(self._parts.runs.running) or await self._amendments.any_pending()
