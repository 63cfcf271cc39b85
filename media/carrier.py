"""One attached transport as the `Line` sees it: its ledger and its place in the call's output.

Owned by `Line`, for as long as the transport is attached. Never sends and never clears.
"""

from __future__ import annotations

from dataclasses import dataclass

from .events import RATE
from .playback import Playback
from .transport import CallTransport


@dataclass(slots=True)
class Carrier:
    """`base_out` = the call's output position (16 kHz) at which this transport began."""

    transport: CallTransport
    playback: Playback
    rate: int
    base_out: int

    @property
    def estimated(self) -> bool:
        """Whether its clock is a guess that it may correct after a clear."""
        return self.transport.info.clock == "estimate"

    @property
    def silent(self) -> bool:
        """Whether it certainly has nothing left to play. An estimate is no certainty."""
        if self.playback.fresh:
            return True
        return not self.estimated and self.transport.played() >= self.playback.end

    def out(self, position: int | None = None) -> int:
        """The call's output position of the carrier's `position`; of now without one."""
        played = self.transport.played() if position is None else position
        return self.base_out + played * RATE // self.rate
