"""The one bounded queue between a line and the writer of its socket.

Owned by a transport; one task takes from it. Sound and messages keep their common order. Bounded
in milliseconds of sound and in messages: a full queue is reported, never grown.
"""

from __future__ import annotations

import asyncio
from collections import deque

MAX_TEXTS = 256
"""Messages waiting for the socket; one more means that the peer does not read."""
MAX_AUDIO_BYTES = 16_000
"""Sound waiting for the socket: 500 ms of 16 kHz PCM."""


class Outbox:
    """Bytes are sound, strings are messages."""

    def __init__(self) -> None:
        self.closed = False
        """No more is taken in; what is queued is still given out."""
        self._items: deque[bytes | str] = deque()
        self._texts = 0
        self._audio_bytes = 0
        self._filled = asyncio.Event()
        self._looking: list[asyncio.Future[None]] = []
        """Whoever waits in `moved`."""

    @property
    def audio_full(self) -> bool:
        """Whether the sound limit is reached."""
        return self._audio_bytes >= MAX_AUDIO_BYTES

    def put_audio(self, pcm: bytes) -> None:
        """Queue sound. The caller looks at `audio_full` first."""
        if not self.closed:
            self._audio_bytes += len(pcm)
            self._push(pcm)

    def put_text(self, text: str) -> bool:
        """Queue a message. False when too many wait already; True and no effect when closed."""
        if self.closed:
            return True
        if self._texts >= MAX_TEXTS:
            return False
        self._texts += 1
        self._push(text)
        return True

    async def get(self) -> bytes | str | None:
        """The next item; None once it is closed and empty. A cancelled get takes nothing."""
        while not self._items:
            if self.closed:
                return None
            self._filled.clear()
            await self._filled.wait()
        item, full = self._items.popleft(), self.audio_full
        if isinstance(item, bytes):
            self._audio_bytes -= len(item)
        else:
            self._texts -= 1
        if full:
            self.wake()
        return item

    async def moved(self, timeout_s: float) -> None:
        """Wait until there is room again, sound was dropped, or `wake`; at most `timeout_s`."""
        loop = asyncio.get_running_loop()
        looking: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(timeout_s, _tell, looking)
        self._looking.append(looking)
        try:
            await looking
        finally:
            timer.cancel()
            self._looking.remove(looking)

    def wake(self) -> None:
        """Let `moved` look again."""
        for looking in self._looking:
            _tell(looking)

    def drop_audio(self) -> None:
        """Forget queued sound; messages stay in order."""
        self._items = deque(item for item in self._items if isinstance(item, str))
        self._audio_bytes = 0
        self.wake()

    def drop_all(self) -> None:
        """Forget everything queued."""
        self._items.clear()
        self._texts = self._audio_bytes = 0
        self.wake()

    def close(self) -> None:
        """Take nothing more in."""
        self.closed = True
        self._filled.set()
        self.wake()

    def _push(self, item: bytes | str) -> None:
        self._items.append(item)
        self._filled.set()


def _tell(looking: asyncio.Future[None]) -> None:
    if not looking.done():
        looking.set_result(None)
