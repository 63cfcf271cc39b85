"""The worker of a session: what must wait for something is done one by one, in order.

Owned by one run of a session, in whose group `run` is a task. It also looks by itself when
something is overdue. What a job does is not its business; one that fails is told and ends nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

Job = Callable[[], Awaitable[None]]

log = logging.getLogger(__name__)

MAX_JOBS = 4_096
"""Work that may wait. A session that is so far behind its provider is beyond help."""


class Worker:
    """`due_at` tells when `overdue` is to be done although nobody ordered it; `failed` is told of
    a job that raised, `full` when more waits than ever should."""

    def __init__(
        self,
        *,
        due_at: Callable[[], float | None],
        overdue: Job,
        failed: Callable[[Exception], None],
        full: Callable[[], None],
    ) -> None:
        self._due_at = due_at
        self._overdue = overdue
        self._failed = failed
        self._full = full
        self._jobs: asyncio.Queue[Job] = asyncio.Queue(MAX_JOBS)
        self._runs = False

    def later(self, job: Job) -> None:
        """Do this behind all that was ordered before."""
        try:
            self._jobs.put_nowait(job)
        except asyncio.QueueFull:
            self._full()

    async def run(self) -> None:
        """Work until cancelled."""
        self._runs = True
        while True:
            try:
                async with asyncio.timeout_at(self._due_at()):
                    job = await self._jobs.get()
            except TimeoutError:
                job = self._overdue
            await self.safely(job())

    async def worked_off(self) -> None:
        """All that was ordered before now is done; at once if nobody works."""
        if not self._runs:
            return
        over = asyncio.Event()

        async def end() -> None:
            over.set()

        self.later(end)
        await over.wait()

    async def safely(self, work: Awaitable[None]) -> None:
        """Do it; a failure is told."""
        await self.tried(work)

    async def tried(self, work: Awaitable[None]) -> Exception | None:
        """Do it; a failure is told, and given back."""
        try:
            await work
        except Exception as error:
            log.warning("a step of the session failed", exc_info=error)
            self._failed(error)
            return error
        return None
