"""When frames leave, for all lines of one loop: one timer for all of them, and looks in between.

Owned by the server, shared by its transports. A timer's callback waits until the loop has gone
through everything that is ready, which with many calls is longer than a frame; whoever is about to
do work for one call therefore first lets the frames of the others go that are due.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from heapq import heappop, heappush

Look = Callable[[float], None]
"""Told the loop's time; may come without a reason. What it raises is logged: it may be called in
the middle of another call's work, which must not suffer by it."""

log = logging.getLogger(__name__)


class Beats:
    """Calls back at moments of the loop's clock, none of which can be taken back."""

    def __init__(self) -> None:
        self.next = float("inf")
        """The earliest moment; `catch_up` has nothing to do before."""
        self._due: list[tuple[float, int, Look]] = []
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None

    def call_at(self, when: float, look: Look) -> None:
        """Call `look` at `when`, or as soon after it as the loop allows."""
        self._number += 1
        heappush(self._due, (when, self._number, look))
        if when < self.next:
            self.next = when
            self._arm(when)

    def catch_up(self, now: float) -> None:
        """Make the calls that are due by `now`, in the order of their moments."""
        due = self._due
        while due and due[0][0] <= now:
            look = heappop(due)[2]
            try:
                look(now)
            except Exception:
                log.exception("a frame could not be written")
        self.next = due[0][0] if due else float("inf")

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self.catch_up(asyncio.get_running_loop().time())
        if self._due:
            self._arm(self.next)
