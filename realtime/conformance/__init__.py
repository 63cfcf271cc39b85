"""What every realtime adapter must do, as cases that any adapter can be run through (voice 18.12).

For authors of adapters. Write a `Peer`: your fake provider, which speaks the provider's real frames
over a real socket, with your adapter pointed at it. Then run each case, with any test tool or none:

    @pytest.mark.parametrize("name", CASES)
    async def test_conformance(name: str) -> None:
        await run_case(name, my_peer)       # `async with my_peer() as peer:` gives a fresh Peer

A case that fails raises NonConforming: what the port demands and where it says so, and what was
told instead. What the capabilities do not claim must do no harm; a case about it is left out, or
shows that. After each case the whole stream of events is held to `assert_well_formed`. Cases send
silence in real time while they wait, so a loop whose clock jumps (`media.virtual_loop`) runs them
in no time.

Nothing here is imported by a session, and no test tool is imported here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from ..events import Closed
from ..port import Capabilities
from . import commanding, ends, opening, talking
from .grammar import NonConforming, assert_well_formed
from .peer import Line, MakePeer, Peer, Trial

__all__ = [
    "CASES",
    "Case",
    "Line",
    "MakePeer",
    "NonConforming",
    "Peer",
    "Trial",
    "assert_well_formed",
    "run_case",
]

SETTLE_S = 0.5
"""So long after its end a case may still be told something that it must not be."""


@dataclass(frozen=True, slots=True)
class Case:
    """One demand of the port, in `run`'s docstring. `claimed`: whether an adapter of these
    capabilities is held to it."""

    run: Callable[[Trial], Awaitable[None]]
    claimed: Callable[[Capabilities], bool]

    @property
    def demand(self) -> str:
        return self.run.__doc__ or ""


CASES: Mapping[str, Case] = {
    run.__name__: Case(run, claimed)
    for module in (opening, talking, commanding, ends)
    for run, claimed in module.CASES
}
"""By name, in the order in which a new adapter best comes to pass them."""


async def run_case(name: str, make: MakePeer, *, patience_s: float = 10.0) -> bool:
    """Run one case on a fresh peer; False when it is about what the adapter does not claim.

    `patience_s` bounds the wait for each single thing. Raises NonConforming, KeyError for an
    unknown case, and what the adapter or the peer raises.
    """
    case = CASES[name]
    async with make() as peer:
        if not case.claimed(peer.adapter.capabilities):
            return False
        lines = await _tried(case, peer, patience_s)
        for line in lines:
            assert_well_formed(line.events, line.commands)
        if peer.open_connections():
            raise NonConforming("the port demands: close has closed the socket (port.Connection)")
    return True


async def _tried(case: Case, peer: Peer, patience_s: float) -> list[Line]:
    """Run the case's body and close what it opened: the group ends only if that leaves nothing."""
    failed: NonConforming | None = None
    try:
        async with asyncio.timeout(60 * patience_s), asyncio.TaskGroup() as group:
            trial = Trial(peer, group, patience_s)
            try:
                await case.run(trial)
            except NonConforming as error:
                failed = error
            for line in trial.lines:
                await line.time(0.04 if failed or line.all(Closed) else SETTLE_S)
                await line.connection.close()
    except TimeoutError:
        left = "connect and close leave no task in the group (port.RealtimeAdapter.connect)"
        raise failed or NonConforming(f"the port demands: {left}") from None
    if failed is not None:
        raise failed
    return trial.lines
