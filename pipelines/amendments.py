"""Corrections of history under way: what was heard of an answer, what was really said in a turn.

Owned by `Answers`. A failing store costs the correction, never the call: it is told as a problem.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

from ..media import events as call
from .parts import Parts

log = logging.getLogger(__name__)


class Amendments:
    """Each runs as a task of the brain's group. Once closed they wait in a list for `written`:
    the group they would be a task of may be on its way out."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tasks: set[asyncio.Task[None]] = set()
        self._late: list[Coroutine[None, None, None]] = []
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the call is over."""
        return self._closed

    def add(self, amendment: Coroutine[None, None, None]) -> None:
        """Write `amendment`, soon."""
        if self._closed:
            self._late.append(self._write(amendment))
            return
        task = self._parts.spawn(self._write(amendment))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """The call is over."""
        self._closed = True

    async def written(self) -> None:
        """Wait until history has them all."""
        while self._late:
            await self._late.pop(0)
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def _write(self, amendment: Coroutine[None, None, None]) -> None:
        try:
            await amendment
        except Exception as error:  # a user's own store may raise anything
            log.warning("history was not amended", extra={"why": repr(error)})
            self._parts.line.emit(
                call.Problem(code="ERR_STORE", stage="agent", message=f"not amended: {error}")
            )
