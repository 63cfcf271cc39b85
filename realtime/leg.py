"""One connection of a link: its birth, what it says while it is not adopted yet, its end.

Owned by the link. It decides nothing: what it emits counts for as long as the link calls it the
current one. A connection that nobody adopts is closed by whoever opened it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from ..adapters.errors import ProviderRefused, ProviderStalled
from .events import Opened, RealtimeEvent
from .lifecycle_vocabulary import HANDLE_REFUSED
from .port import Connection, RealtimeAdapter, Setup
from .uplink import Uplink


class Leg:
    """See the module. `hear` gets its events, in order, once `release` was called."""

    def __init__(self, hear: Callable[[Leg, RealtimeEvent], None]) -> None:
        self._hear = hear
        self._early: list[RealtimeEvent] | None = []
        self.connection: Connection | None = None
        self.uplink: Uplink | None = None
        self.resumed = False
        self.seconds = 0.0
        """What the provider counted on this connection, where it counts time."""

    async def open(
        self, adapter: RealtimeAdapter, setup: Setup, group: asyncio.TaskGroup, timeout_s: float
    ) -> None:
        """Connect. Raises AdapterError, and then nothing is left; `ERR_REALTIME_HANDLE` too when
        the provider took the handle without the conversation."""
        try:
            async with asyncio.timeout(timeout_s):
                self.connection = await adapter.connect(setup, self._emit, group)
        except TimeoutError as error:
            await self.close(timeout_s)
            raise ProviderStalled(
                "ERR_REALTIME_CONNECT", f"{adapter.provider} took no setup in {timeout_s:g} s"
            ) from error
        if setup.resume_handle is not None and not self.resumed:
            await self.close(timeout_s)
            raise ProviderRefused(HANDLE_REFUSED, "the conversation was not restored")

    def release(self) -> None:
        """Let the events through, those that came early first."""
        while self._early:
            self._hear(self, self._early.pop(0))
        self._early = None

    async def close(self, timeout_s: float) -> None:
        """End it in order, bounded. Idempotent."""
        if self.connection is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self.connection.close()

    def _emit(self, event: RealtimeEvent) -> None:
        if isinstance(event, Opened):
            self.resumed = event.resumed
        if self._early is None:
            self._hear(self, event)
        else:
            self._early.append(event)
