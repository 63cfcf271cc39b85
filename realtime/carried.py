"""What a session carries from one connection to the next. Owned by its link; decides nothing."""

from __future__ import annotations

from dataclasses import replace

from .events import Used
from .leg import Leg


class Handle:
    """The last handle that was good, with the session's mark of that moment."""

    def __init__(self) -> None:
        self.value: str | None = None
        self.mark: object = None

    def keep(self, value: str | None, mark: object = None) -> None:
        self.value, self.mark = value, mark


class Meter:
    """What was counted on all connections."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self.connections = 0
        self.last: Used | None = None
        """The newest count; of the whole session where it counts seconds."""

    def count(self, leg: Leg, used: Used, *, final: bool) -> Used:
        """`used` with the seconds of all connections so far. `final`: it may be the last word."""
        if used.seconds is not None:
            self._seconds += used.seconds - leg.seconds
            leg.seconds = used.seconds
            used = replace(used, seconds=self._seconds)
        self.last = replace(used, final=used.final and final)
        return self.last
