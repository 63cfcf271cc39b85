"""Where a call's events leave it: every subscriber gets each event, in order of emission.

Owned by the `Call`. A subscriber that raises is logged and left in place; one that emits while it
is told something is heard after that was told to all. Never stamps and never stores an event.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from .events import CallEnded, CallEvent

log = logging.getLogger(__name__)

Sink = Callable[[int, CallEvent], None]
"""Takes each event with the input sample (16 kHz) at which it was emitted, on the loop, in order
of emission."""


@dataclass(slots=True)
class Outlet:
    """Subscribers, and events that were emitted while another one was being delivered."""

    sinks: list[Sink] = field(default_factory=list)
    waiting: deque[tuple[int, CallEvent]] = field(default_factory=deque)
    delivering: bool = False
    closed: bool = False

    def publish(self, at: int, event: CallEvent) -> None:
        """Deliver to every sink in order of emission; nothing follows `call_ended`."""
        if self.closed:
            return
        self.closed = isinstance(event, CallEnded)
        self.waiting.append((at, event))
        if self.delivering:
            return
        self.delivering = True
        try:
            while self.waiting:
                self._deliver(*self.waiting.popleft())
        finally:
            self.delivering = False

    def _deliver(self, at: int, event: CallEvent) -> None:
        for sink in tuple(self.sinks):
            try:
                sink(at, event)
            except Exception:
                log.exception("event sink failed", extra={"event_type": event.type})
