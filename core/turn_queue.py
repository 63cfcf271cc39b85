"""The turn queue: one request at a time, first come first served, and holds for calls.

A hold keeps the queue for as long as a call lives; requests that carry the hold run inside it, one
at a time, everyone else waits (spec core 10.4). Waiting honours a CancelToken and touches nothing.
Owned by one agent.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from .cancel import AbortScope, CancelToken
from .errors import UsageError
from .requests import Wake

logger = logging.getLogger(__name__)

WakeListener = Callable[[Wake], None]
WAITS_FOR_ITSELF = (
    "this would wait for itself: it was called inside a turn of the same agent (a hook, a preparer,"
    " a tool); start it in a task of its own, or use emit_event"
)


class Hold:
    """The right to run requests while the queue is closed to others.

    keeps_context  the holder's model has its own copy of the conversation (Agent.live): only the
                   holder compacts
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.released = False
        self.keeps_context = False
        self.lock = asyncio.Lock()
        self._listener: WakeListener | None = None
        self._missed: Wake | None = None

    def on_wake(self, listener: WakeListener) -> None:
        """Be told synchronously when the agent wants a turn without the user, for instance after
        emit_event. The holder chooses the moment and answers with
        process_request(wake, hold=hold). One wake missed before this call is delivered now."""
        self._listener = listener
        missed, self._missed = self._missed, None
        if missed is not None:
            self.wake(missed)

    def wake(self, wake: Wake) -> None:
        """Hand a wake to the holder; a raising listener is logged."""
        if self._listener is None:
            self._missed = wake
            return
        try:
            self._listener(wake)
        except Exception:
            logger.exception("wake listener failed", extra={"owner": self.owner})


class TurnQueue:
    """FIFO; `async with turn_queue.hold("call 7") as hold:` for a call's whole life."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._hold: Hold | None = None
        self._holder: asyncio.Task[object] | None = None
        self._serving: set[asyncio.Task[object]] = set()
        self._waiting = 0

    @property
    def current_hold(self) -> Hold | None:
        return self._hold

    @property
    def waiting(self) -> int:
        """Requests and holds that wait for their turn."""
        return self._waiting

    @asynccontextmanager
    async def hold(self, owner: str, token: CancelToken | None = None) -> AsyncIterator[Hold]:
        """Wait for the queue and keep it; raises AbortError when `token` fires while waiting, and
        UsageError inside a turn or a hold of the same task."""
        task = self._waiting_task(None)
        await self._acquire(self._lock, token)
        hold, self._holder = Hold(owner), task
        self._hold = hold
        try:
            yield hold
        finally:
            hold.released = True
            self._hold = self._holder = None
            self._lock.release()

    @asynccontextmanager
    async def turn(
        self, hold: Hold | None = None, token: CancelToken | None = None
    ) -> AsyncIterator[None]:
        """One request's turn; raises AbortError when `token` fires while it waits, and UsageError
        when it would wait for the task that asks."""
        if hold is not None and (hold.released or hold is not self._hold):
            raise UsageError("hold: this hold is released or belongs to another agent's turn queue")
        task = self._waiting_task(hold)
        lock = self._lock if hold is None else hold.lock
        await self._acquire(lock, token)
        if task is not None:
            self._serving.add(task)
        try:
            yield
        finally:
            if task is not None:
                self._serving.discard(task)
            lock.release()

    def _waiting_task(self, hold: Hold | None) -> asyncio.Task[object] | None:
        """The task that is about to wait, unless its wait could never end."""
        task = asyncio.current_task()
        if task in self._serving:
            raise UsageError(WAITS_FOR_ITSELF)
        if task is not None and hold is None and task is self._holder:
            raise UsageError("hold: this task holds the turn queue; pass hold= to run inside it")
        return task

    async def _acquire(self, lock: asyncio.Lock, token: CancelToken | None) -> None:
        self._waiting += 1
        try:
            if token is None:
                await lock.acquire()
                return
            async with AbortScope(token):
                await lock.acquire()
        finally:
            self._waiting -= 1
