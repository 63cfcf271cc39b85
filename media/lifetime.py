"""How long a call lives and how it is taken down within its two seconds.

Owned by the `Call`. The policy is a value; the take-down knows tasks only, not what they do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass

from .errors import MediaValueError

log = logging.getLogger(__name__)

STOP_S = 1.0
"""What a call's tasks get to end by themselves after one cancellation."""

CLOSE_S = 0.8
"""Bound on closing carrier and recording. STOP_S + CLOSE_S < 2 s (DESIGN 5.10)."""

_AGAIN_S = 0.05
_AGAIN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPolicy:
    """How long a call lives: without a carrier, without anyone speaking, and at most.

    Raises MediaValueError for a limit that is not positive.
    """

    linger_s: float = 30.0
    idle_s: float = 600.0
    max_s: float = 3_600.0

    def __post_init__(self) -> None:
        for name in ("linger_s", "idle_s", "max_s"):
            if not getattr(self, name) > 0:
                raise MediaValueError(name, str(getattr(self, name)), "use more than 0 seconds")


async def stop(
    now: Iterable[asyncio.Task[None]],
    soon: Iterable[asyncio.Task[None]] = (),
    *,
    patience_s: float = STOP_S,
) -> None:
    """Cancel `now`, let `soon` finish; after `patience_s` cancel whatever is left, several times,
    for a clean-up that waits is interrupted by the second cancellation. Names what still lives."""
    left = {*now, *soon}
    for task in now:
        task.cancel()
    if left:
        _, left = await asyncio.wait(left, timeout=patience_s)
    for _ in range(_AGAIN):
        if not left:
            return
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN_S)
    if left:
        log.error("tasks refuse to end", extra={"tasks": [task.get_name() for task in left]})


async def bounded(what: str, closing: Coroutine[None, None, None]) -> Exception | None:
    """Run `closing` for at most CLOSE_S; its failure is logged and returned, never raised."""
    try:
        async with asyncio.timeout(CLOSE_S):
            await closing
    except Exception as error:
        log.warning("close failed", extra={"what": what, "why": repr(error)})
        return error
    return None
