"""What a WebRTC line heard and its call has not taken yet: one bounded queue, sound and signals.

Owned by one transport; one reader takes from it. Sound that waits too long becomes a Gap of its
length, so that time never shrinks. Pure but for the event that wakes the reader.
"""

from __future__ import annotations

import asyncio
from collections import deque

from ...media.format import PIPELINE
from ...media.transport import Gap, Signal

MAX_INPUT_MS = 500
"""Sound that waits for the call; what is older is dropped and counted."""


class Inbox:
    """Bytes are sound (16 kHz mono); the rest are signals, few, for the data line counts them."""

    def __init__(self) -> None:
        self.dropped = 0
        """Samples that became gaps."""
        self._items: deque[bytes | Signal] = deque()
        self._samples = 0
        self._over = False
        self._filled = asyncio.Event()

    def put(self, item: bytes | Signal) -> None:
        """Queue `item` behind the others; nothing after `close`."""
        if self._over:
            return
        self._items.append(item)
        if isinstance(item, bytes):
            self._samples += len(item) // 2
            while self._samples > PIPELINE.samples(MAX_INPUT_MS):
                self._shed()
        self._filled.set()

    def close(self) -> None:
        """Take nothing more in; what is queued is still given out."""
        self._over = True
        self._filled.set()

    async def get(self) -> bytes | Signal | None:
        """The next item; None once it is closed and empty. A cancelled get takes nothing."""
        while not self._items:
            if self._over:
                return None
            self._filled.clear()
            await self._filled.wait()
        item = self._items.popleft()
        if isinstance(item, bytes):
            self._samples -= len(item) // 2
        return item

    def _shed(self) -> None:
        """The oldest sound becomes a gap of its length, which joins the gap before it."""
        at = next(n for n, item in enumerate(self._items) if isinstance(item, bytes))
        pcm = self._items[at]
        samples = len(pcm) // 2 if isinstance(pcm, bytes) else 0
        self._samples -= samples
        self.dropped += samples
        before = self._items[at - 1] if at else None
        if isinstance(before, Gap):
            self._items[at - 1] = Gap(before.samples + samples)
            del self._items[at]
        else:
            self._items[at] = Gap(samples)
