"""Closes connections that take a place and ask for nothing (slow headers, silent sockets).

Runs in the server's TaskGroup beside the listening socket. The HTTP library bounds how long a
connection may idle *after* a request; this bounds the wait for the first one, and how many there
may be. It never touches a connection that has had a request: those are the doors' business.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from aiohttp import web

log = logging.getLogger(__name__)

FIRST_REQUEST_S = 10.0
"""How long a connection may take to send its first request's headers; up to a sweep more."""
IDLE_S = 75.0
"""How long it is kept between requests: longer than the usual reverse proxy's minute."""
SWEEP_S = 2.5
SPARE = 256
"""Connections beyond one for each call: pages, scrapers, and those on their way out."""


class Connections:
    """Knows which of a server's connections have asked for something."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._served: set[web.RequestHandler] = set()
        self._waiting: dict[web.RequestHandler, float] = {}

    def asked(self, request: web.Request) -> None:
        """The connection of `request` sent whole headers."""
        self._served.add(request.protocol)

    async def run(self, present: Callable[[], Collection[web.RequestHandler]]) -> None:
        """Sweep until cancelled. `present` gives the connections that are open now."""
        while True:
            await asyncio.sleep(SWEEP_S)
            self.sweep(present(), asyncio.get_running_loop().time())

    def sweep(self, present: Collection[web.RequestHandler], now: float) -> int:
        """Close what waits too long, or, beyond the limit, whatever waits; how many that were."""
        self._served &= set(present)
        waiting = [each for each in present if each not in self._served]
        self._waiting = {each: self._waiting.get(each, now) for each in waiting}
        patience_s = FIRST_REQUEST_S if len(present) <= self._limit else 0.0
        late = [each for each, since in self._waiting.items() if now - since >= patience_s]
        for each in late:
            each.force_close()
        if late:
            log.warning("silent connections closed", extra={"count": len(late)})
        return len(late)
