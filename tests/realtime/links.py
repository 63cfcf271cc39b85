"""A link on a scripted provider, and what it reported: support for tests of connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np

from voxglove.realtime.events import RealtimeEvent
from voxglove.realtime.link import Link, LinkConfig, LinkState, Reconnected, SetupRequest
from voxglove.realtime.port import RealtimeAdapter, Setup
from voxglove.realtime.scripted import ScriptedAdapter

FRAME_MS = 20
BACKOFF_SUM_S = 0.25 + 0.5 + 1 + 2 + 4 * 3


@dataclass
class Linked:
    """A link under test and everything it told."""

    adapter: ScriptedAdapter
    link: Link
    events: list[RealtimeEvent] = field(default_factory=list)
    told: list[LinkState | Reconnected] = field(default_factory=list)
    requests: list[SetupRequest] = field(default_factory=list)
    gap: bool = True
    stored: int = 0
    """The session's mark: how many messages are stored."""
    sound: bytearray = field(default_factory=bytearray)
    """All the caller said."""

    @property
    def states(self) -> list[str]:
        return [told.phase for told in self.told if isinstance(told, LinkState)]

    @property
    def reports(self) -> list[Reconnected]:
        return [told for told in self.told if isinstance(told, Reconnected)]

    def hear(self, ms: int = FRAME_MS) -> bytes:
        """The caller's next samples: each a different number, so that none can pass for another."""
        rate = self.adapter.capabilities.input_format.rate
        first = len(self.sound) // 2
        numbers = np.arange(first, first + rate * ms // 1000)
        pcm = (numbers * 7_919 % 65_536).astype("<u2").tobytes()
        self.sound += pcm
        self.link.send_audio(pcm)
        return pcm

    async def talk(self, seconds: float) -> None:
        """The caller's sound in real time."""
        start = asyncio.get_running_loop().time()
        for count in range(round(seconds * 1000 / FRAME_MS)):
            await asyncio.sleep(start + count * FRAME_MS / 1000 - asyncio.get_running_loop().time())
            self.hear()

    def position(self) -> int:
        return len(self.sound) // 2


@asynccontextmanager
async def linked(
    adapter: ScriptedAdapter,
    *,
    opened: bool = True,
    setup: Callable[[SetupRequest], Awaitable[Setup]] | None = None,
    refresh: Callable[[], Awaitable[RealtimeAdapter]] | None = None,
    config: LinkConfig | None = None,
) -> AsyncIterator[Linked]:
    """A link in a group of its own; closed at the end."""
    async with asyncio.TaskGroup() as group:
        requests: list[SetupRequest] = []

        async def make(request: SetupRequest) -> Setup:
            requests.append(request)
            return await setup(request) if setup else Setup(instructions="be brief")

        link = Link(
            adapter,
            group=group,
            setup=make,
            on_event=lambda event: it.events.append(event),
            on_state=lambda told: it.told.append(told),
            at_gap=lambda: it.gap,
            mark=lambda: it.stored,
            refresh=refresh,
            config=config,
            jitter=lambda: 0.0,
        )
        it = Linked(adapter, link, requests=requests)
        try:
            if opened:
                await link.open()
            yield it
        finally:
            await link.close()
