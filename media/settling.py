"""A stop whose true position is not known yet, and what waits for it.

Owned by `Line`: at most one at a time, because only the epoch closed last can be corrected
(DESIGN 2). `Cut` is what a brain gets of it. Counts nothing and knows no carrier.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from .segments import Heard, Segment


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut: what was `heard` as far as is known now, and the `settled` truth.

    `settled` is done at once on an exact clock; else when the carrier corrects the stop position,
    SETTLE_MS after the stop, or at `Line.settle()`, whichever is first. `out` is the output
    position (16 kHz) of the stop.
    """

    heard: tuple[Heard, ...]
    settled: asyncio.Future[tuple[Heard, ...]]
    out: int


@dataclass(slots=True)
class Settling:
    """Epoch `epoch` was stopped by an estimate.

    `restored` = how many chunks at the head of the held sound the estimate put there. `cuts` are
    the cuts whose heard text hangs on it.
    """

    epoch: int
    restored: int
    timer: asyncio.TimerHandle
    cuts: list[tuple[list[Segment], asyncio.Future[tuple[Heard, ...]]]] = field(
        default_factory=list
    )

    def segments(self) -> list[Segment]:
        """The dead segments that a correction still changes."""
        return [segment for dead, _ in self.cuts for segment in dead]

    def settle(self, *, estimated: bool) -> None:
        """Tell every cut its truth, once."""
        cuts, self.cuts = self.cuts, []
        for dead, settled in cuts:
            resolve(settled, dead, estimated=estimated)


def resolve(
    settled: asyncio.Future[tuple[Heard, ...]], dead: list[Segment], *, estimated: bool
) -> None:
    """What was heard of `dead` is final."""
    if not settled.done():
        settled.set_result(tuple(segment.report(estimated=estimated) for segment in dead))
