"""Abort by token: CancelToken and the scope that turns a fired token into AbortError.

A token has two scopes (DESIGN 5.6). `abort(reason)` ends the *generation*: the model call and the
waiting of process_request. `abort(reason, tools=True)` also ends abortable *tools*; barge-in uses
the first, interrupt(), a stop word and hang-up the second. A tool is handed `token.tools`, a token
that fires only for the wider scope. Owned by whoever started the work; never cancels a task that
it was not asked to watch.
"""

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TypeVar

from .errors import AbortError, CancelledElsewhere

T = TypeVar("T")
Unsubscribe = Callable[[], None]


class CancelToken:
    """One stop request. Safe to share; all methods must be called on the event loop's thread."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._event: asyncio.Event | None = None
        self._callbacks: dict[object, Callable[[], None]] = {}
        # Weak, so that a call-long parent does not collect one child per request.
        self._children: weakref.WeakSet[CancelToken] = weakref.WeakSet()
        self._tools: CancelToken | None = None
        self._parent: CancelToken | None = None

    @property
    def aborted(self) -> bool:
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Why it was aborted; the first reason wins."""
        return self._reason

    @property
    def tools(self) -> "CancelToken":
        """The token tools watch: fires only when abort(..., tools=True) is called."""
        if self._tools is None:
            self._tools = CancelToken()
        return self._tools

    def abort(self, reason: str = "aborted", *, tools: bool = False) -> None:
        """Fire the token and its children. Idempotent; a later tools=True widens the scope."""
        if tools:
            self.tools.abort(reason)
        if self._reason is None:
            self._reason = reason
            if self._event is not None:
                self._event.set()
            callbacks, self._callbacks = list(self._callbacks.values()), {}
            for callback in callbacks:
                callback()
        for child in list(self._children):
            child.abort(reason, tools=tools)

    def raise_if_aborted(self) -> None:
        if self._reason is not None:
            raise AbortError(self._reason)

    async def wait(self) -> str:
        """Return the reason once fired. A cancelled wait leaves nothing behind."""
        if self._event is None:
            self._event = asyncio.Event()
        if self._reason is None:
            await self._event.wait()
        return self._reason or "aborted"

    def on_abort(self, callback: Callable[[], None]) -> Unsubscribe:
        """Call back synchronously on abort, at once if it already fired. Must not raise."""
        if self._reason is not None:
            callback()
            return lambda: None
        key = object()
        self._callbacks[key] = callback
        return lambda: self._drop(key)

    def child(self) -> "CancelToken":
        """A token that fires when this one does, in both scopes, and never the other way."""
        child = CancelToken()
        child._parent = self  # keeps intermediate tokens alive while a descendant is used
        self._children.add(child)
        self.tools._children.add(child.tools)
        if self._tools is not None and self._tools._reason is not None:
            child.tools.abort(self._tools._reason)
        if self._reason is not None:
            child.abort(self._reason)
        return child

    def _drop(self, key: object) -> None:
        self._callbacks.pop(key, None)


class AbortScope:
    """`async with AbortScope(token):` raises AbortError inside the block when the token fires.

    Works like asyncio.timeout(): the running task is cancelled once and the CancelledError is
    turned into AbortError at the block's end, so no helper task is born. A cancellation from
    outside that arrives in the same moment wins and stays a CancelledError.
    """

    def __init__(self, token: CancelToken) -> None:
        self._token = token
        self._task: asyncio.Task[object] | None = None
        self._before = 0
        self._fired = False
        self._unsubscribe: Unsubscribe = lambda: None

    async def __aenter__(self) -> None:
        self._token.raise_if_aborted()
        self._task = asyncio.current_task()
        if self._task is None:
            raise RuntimeError("AbortScope needs a running task")
        self._before = self._task.cancelling()
        self._unsubscribe = self._token.on_abort(self._fire)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._unsubscribe()
        if not self._fired or self._task is None:
            return
        if not isinstance(error, asyncio.CancelledError):
            await self._swallow_own_cancel()
        if self._task.uncancel() > self._before:
            # Somebody else cancelled the task as well: that one must not be lost.
            raise asyncio.CancelledError from error
        raise AbortError(self._token.reason or "aborted") from error

    def _fire(self) -> None:
        self._fired = True
        if self._task is not None:
            self._task.cancel()

    @staticmethod
    async def _swallow_own_cancel() -> None:
        """Take delivery of the cancellation this scope asked for.

        Until Python 3.13 uncancel() does not withdraw a cancellation that was requested but not
        yet delivered; without this it would hit an innocent await after the block.
        """
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            return


async def to_the_end(work: Callable[[], Awaitable[None]], limit_s: float) -> None:
    """Clean up, although the task is cancelled once more meanwhile.

    `work` is begun anew after a cancellation, so it must be safe to repeat; the cancellation comes
    out when it is done, or after the fourth. Raises TimeoutError when `limit_s` is over.
    """
    until = asyncio.get_running_loop().time() + limit_s
    stopped: asyncio.CancelledError | None = None
    for _ in range(4):
        try:
            async with asyncio.timeout_at(until):
                await work()
            break
        except asyncio.CancelledError as error:
            stopped = error
    if stopped is not None:
        raise stopped


async def contained(work: Awaitable[T]) -> T:
    """Await foreign code. Its failure is its own: a CancelledError that nobody asked of this task,
    as of a client whose connection was closed, becomes CancelledElsewhere."""
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise CancelledElsewhere("it awaited what was cancelled elsewhere") from error
