"""Who held the event loop: a lag sampler on the loop, and a thread that looks while it is late.

Owned by the server; one per process. The task measures, the thread only reads the loop thread's
stack. It never interrupts anything. Admission asks `lagging`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

log = logging.getLogger(__name__)

SAMPLE_S = 0.1
HELD_S = 0.05
"""Longer than this is worth a name (DESIGN 6)."""
WINDOW = 50
"""Samples that are looked back on: 5 s."""
LAGGING_SHARE = 0.2
"""The loop is overloaded when this share of the window was late by more than HELD_S."""
REPORT_EVERY_S = 1.0
DEPTH = 6


@dataclass(frozen=True, slots=True)
class Held:
    """The loop stood still for `seconds` (known when it moved on), at `where` in its stack."""

    seconds: float
    where: str


class Watchdog:
    """`on_held` is called on the loop for each time the loop was held."""

    def __init__(self, on_held: Callable[[Held], None] = lambda held: None) -> None:
        self._on_held = on_held
        self._lags: deque[float] = deque(maxlen=WINDOW)
        self._beat = 0
        """Counts wake-ups; the thread sees by it whether the loop moves."""
        self._seen = ""
        """Where the thread saw the loop stand, since the last wake-up."""
        self._stop = threading.Event()
        self._reported_at = float("-inf")

    @property
    def lag_s(self) -> float:
        """Worst lateness within the window."""
        return max(self._lags, default=0.0)

    @property
    def lagging(self) -> bool:
        """Whether the loop is too busy for another call."""
        late = sum(lag > HELD_S for lag in self._lags)
        return late >= WINDOW * LAGGING_SHARE

    async def run(self) -> None:
        """Sample until cancelled; then the thread is gone too."""
        loop = asyncio.get_running_loop()
        thread = threading.Thread(
            target=self._look, args=(threading.get_ident(),), name="loop watchdog", daemon=True
        )
        thread.start()
        try:
            while True:
                due = loop.time() + SAMPLE_S
                await asyncio.sleep(SAMPLE_S)
                self.note(max(0.0, loop.time() - due), loop.time())
        finally:
            self._stop.set()
            thread.join(timeout=1)

    def note(self, lag_s: float, now: float) -> None:
        """One sample: the loop woke `lag_s` late."""
        self._beat += 1
        self._lags.append(lag_s)
        where, self._seen = self._seen, ""
        if lag_s <= HELD_S:
            return
        held = Held(lag_s, where or "(not seen)")
        self._on_held(held)
        if now - self._reported_at >= REPORT_EVERY_S:
            self._reported_at = now
            log.warning(
                "event loop was held", extra={"held_ms": round(lag_s * 1000), "where": held.where}
            )

    def _look(self, loop_thread: int) -> None:
        """Thread: when a whole look passes without a beat, note what the loop is doing."""
        last, since = -1, 0
        while not self._stop.wait(HELD_S / 2):
            since = since + 1 if self._beat == last else 0
            last = self._beat
            if since * HELD_S / 2 > SAMPLE_S + HELD_S / 2 and not self._seen:
                with suppress(KeyError):
                    self._seen = where_is(sys._current_frames()[loop_thread])


def where_is(frame: FrameType) -> str:
    """The innermost calls of a stack, outermost first: `file:line function > …`."""
    stack = traceback.extract_stack(frame)[-DEPTH:]
    return " > ".join(f"{_short(part.filename)}:{part.lineno} {part.name}" for part in stack)


def _short(path: str) -> str:
    return "/".join(path.replace("\\", "/").split("/")[-2:])
