"""The commit gate: tools with side effects wait until the user's turn is committed (DESIGN 5.6)."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

from .cancel import AbortScope, CancelToken
from .errors import AbortError

Committed = asyncio.Event | Awaitable[object] | Callable[[], bool | Awaitable[bool]]
WITHDRAWN = "the user's turn was withdrawn before this could run"


class CommitGate:
    """Opens once. Owned by one request; `token` is that request's own.

    What counts is whether the turn was committed when the request was cut: a speculative request
    that is cut before never runs anything behind the gate, also if its turn is committed later;
    the queued calls of a committed turn go on after a barge-in.

    `committed` is an asyncio.Event, an awaitable (False or a cancelled future means withdrawn), or
    a function asked when the first gated tool comes (True, False or an awaitable of them). At a cut
    only an event, a future, or what a function answered before can be known.
    """

    def __init__(self, committed: Committed | None, token: CancelToken) -> None:
        self._committed = committed
        self._token = token
        self._open: bool | None = True if committed is None else None
        self._lock = asyncio.Lock()
        token.on_abort(self._cut)

    async def passed(self) -> None:
        """Return when committed; raises AbortError when withdrawn or the request was cut."""
        if self._open is None:
            try:
                async with AbortScope(self._token), self._lock:
                    if self._open is None:
                        self._open = await self._ask()
            except AbortError:
                if not self._open:  # else the commit came just before the cut
                    raise
        if not self._open:
            self._token.raise_if_aborted()
            raise AbortError(WITHDRAWN)

    def _cut(self) -> None:
        """The request ends now: what is not committed yet never will be for it."""
        committed = self._committed
        if self._open is not None:
            return
        if isinstance(committed, asyncio.Event):
            self._open = committed.is_set()
        elif isinstance(committed, asyncio.Future) and committed.done():
            failed = committed.cancelled() or committed.exception() is not None
            self._open = not failed and committed.result() is not False
        else:
            self._open = False

    async def _ask(self) -> bool:
        committed = self._committed
        if isinstance(committed, asyncio.Event):
            return await committed.wait()
        answer: object = committed
        if callable(committed) and not inspect.isawaitable(committed):
            answer = committed()
        if isinstance(answer, asyncio.Future):
            self._committed = answer
            # Shielded: a cut request must not cancel the future others share.
            return await _outcome(asyncio.shield(answer))
        if inspect.isawaitable(answer):
            return await _outcome(answer)
        return answer is not False


async def _outcome(answer: Awaitable[object]) -> bool:
    task = asyncio.current_task()
    try:
        return (await answer) is not False
    except asyncio.CancelledError:
        if task is None or task.cancelling():
            raise
        return False  # the future itself was cancelled, not the task that waits for it
