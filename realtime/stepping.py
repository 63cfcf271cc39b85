"""The connection table at work: one event at a time, each effect performed before the next event.

Owned by one link. It holds the table's state and nothing else; `lifecycle.step` decides.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from . import lifecycle_vocabulary as voc
from .lifecycle import State, step


class Table:
    """See the module. `perform` may feed events; they are stepped after what is being performed."""

    def __init__(self, perform: Callable[[voc.Effect], None], rules: voc.Rules) -> None:
        self._perform = perform
        self._rules = rules
        self._waiting: deque[voc.Event] = deque()
        self._busy = False
        self.state = State()
        self.changed = asyncio.Event()

    @property
    def waits_for_gap(self) -> bool:
        return self.state.phase == "open" and self.state.moving and not self.state.attempt

    def feed(self, event: voc.Event) -> None:
        """Step, and perform what it asks for; events that this brings are stepped after it."""
        self._waiting.append(event)
        if self._busy:
            return
        self._busy = True
        try:
            while self._waiting:
                before = self.state
                self.state, effects = step(before, self._waiting.popleft(), self._rules)
                for effect in effects:
                    self._perform(effect)
                if self.state is not before:
                    self.changed.set()
        finally:
            self._busy = False
