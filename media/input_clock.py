"""The loop's clock under a call's input timeline: when to look for a hole.

Owned by the `Call`, which says what to do then. One timer and no task: it rings every third frame
of a caller who is heard well, and waking a task for that costs three times as much. Fills nothing
itself and knows no limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .frame import FRAME_MS
from .intake import FILL_AFTER_MS, Intake

STEP_S = FRAME_MS / 1000
"""A hole is looked at again after so long. Rung so much late, the loop was held: what it held up
is about to be delivered, so a hole is not one until the next look."""


class InputClock:
    """Calls `fill(now)` where the stream of `intake` is broken, and `check(now)` at every look.

    Construct it on the running loop; it runs from then on. Neither call may raise.
    """

    def __init__(
        self, intake: Intake, fill: Callable[[float], None], check: Callable[[float], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._intake = intake
        self._fill = fill
        self._check = check
        self._wake = 0.0
        self._handle: asyncio.Handle = self._armed(self._loop.time())

    def close(self) -> None:
        """Nothing is called any more."""
        self._handle.cancel()

    def _ring(self) -> None:
        now = self._loop.time()
        if self._intake.broken(now) and now - self._wake < STEP_S:
            # What arrived in this very step of the loop is read first: it may end the hole.
            self._handle = self._loop.call_soon(self._look)
        else:
            self._handle = self._armed(now)
            self._check(now)

    def _look(self) -> None:
        now = self._loop.time()
        self._handle = self._armed(now)
        self._fill(now)
        self._check(now)

    def _armed(self, now: float) -> asyncio.Handle:
        due = self._intake.fill_due() or now + FILL_AFTER_MS / 1000
        self._wake = max(due, now + STEP_S)
        return self._loop.call_at(self._wake, self._ring)
