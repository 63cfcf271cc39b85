"""What waits for a socket that takes no more just now.

Owned by a transport, which empties it into the socket. Sound and messages keep their common order.
Bounded in milliseconds of sound and in messages: a full queue is reported, never grown.
"""

from __future__ import annotations

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

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._items)

    @property
    def audio_full(self) -> bool:
        """Whether the sound limit is reached."""
        return self._audio_bytes >= MAX_AUDIO_BYTES

    def put_audio(self, pcm: bytes) -> None:
        """Queue sound. The caller looks at `audio_full` first."""
        if not self.closed:
            self._audio_bytes += len(pcm)
            self._items.append(pcm)

    def put_text(self, text: str) -> bool:
        """Queue a message. False when too many wait already; True and no effect when closed."""
        if self.closed:
            return True
        if self._texts >= MAX_TEXTS:
            return False
        self._texts += 1
        self._items.append(text)
        return True

    def pop(self) -> bytes | str:
        """The next item. IndexError when nothing waits."""
        item = self._items.popleft()
        if isinstance(item, bytes):
            self._audio_bytes -= len(item)
        else:
            self._texts -= 1
        return item

    def drop_audio(self) -> None:
        """Forget queued sound; messages stay in order."""
        if self._audio_bytes:
            self._items = deque(item for item in self._items if isinstance(item, str))
            self._audio_bytes = 0

    def drop_all(self) -> None:
        """Forget everything queued."""
        self._items.clear()
        self._texts = self._audio_bytes = 0

    def close(self) -> None:
        """Take nothing more in."""
        self.closed = True
