"""The JSON beside the sound of a WebRTC line: the messages of CONTRACTS B on a data channel.

Owned by one transport. Checks what the peer says, queues what is said before the channel opens,
and notices a peer that does not read. Knows no more of aiortc than `Channel`.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from ...media.transport import Data, Hangup
from .websocket_messages import MAX_MESSAGE_BYTES, BadMessage, RateWindow, read_message

MAX_WAITING = 256
"""Messages before the channel opens."""
MAX_BUFFERED_BYTES = 1 << 20
"""A peer that leaves more unread is a slow consumer."""
BAD_MESSAGES, BAD_WINDOW_S = 20, 10.0
TEXTS_PER_S = 100
DRAIN_S = 0.3

OUR_CLOCK = ("playback", "cleared", "playback_done")
"""Reports of a player: here the outgoing track is the playback clock, so they say nothing new."""


class Channel(Protocol):
    """What is needed of an RTCDataChannel."""

    @property
    def readyState(self) -> str: ...

    @property
    def bufferedAmount(self) -> int: ...

    def send(self, data: str) -> None: ...


class TooMuch(Exception):
    """The peer broke a limit; the text says which."""


class DataLine:
    """One data channel, or its absence. Raises TooMuch when the line has to end."""

    def __init__(self) -> None:
        self.offered = True
        """False: the peer has no channel, messages to it are dropped."""
        self.refused = 0
        self._channel: Channel | None = None
        self._waiting: deque[str] = deque()
        self._drained = asyncio.Event()
        self._bad = RateWindow.of(BAD_MESSAGES, BAD_WINDOW_S)
        self._texts = RateWindow.of(TEXTS_PER_S, 1.0)

    def open(self, channel: Channel) -> bool:
        """Take `channel` if it is the first, and say what waited. False for any other."""
        if self._channel is not None and self._channel.readyState != "closed":
            return False
        self._channel = channel
        while self._waiting and channel.readyState == "open":
            channel.send(self._waiting.popleft())
        return True

    def drained(self) -> None:
        """The channel's buffer ran empty."""
        self._drained.set()

    def post(self, message: Mapping[str, object]) -> None:
        """Say `message`, now or when the channel opens; dropped where there will be none."""
        if not self.offered:
            return
        text = json.dumps(message, allow_nan=False)
        channel = self._channel
        if channel is None or channel.readyState == "connecting":
            if len(self._waiting) >= MAX_WAITING:
                raise TooMuch("the data channel never opened")
            self._waiting.append(text)
        elif channel.readyState == "open":
            if channel.bufferedAmount > MAX_BUFFERED_BYTES:
                raise TooMuch("slow consumer: the data channel is not read")
            channel.send(text)

    def take(self, message: str | bytes, now: float) -> Data | Hangup | None:
        """What the peer's `message` means. A bad one is answered, and None."""
        try:
            return self._meaning(message, now)
        except BadMessage as bad:
            self.refused += 1
            self.post(bad.as_message())
            if self._bad.full(now):
                raise TooMuch("too many bad messages") from bad
            return None

    async def drain(self) -> None:
        """Wait, briefly, until what was said has left."""
        channel = self._channel
        if channel is None or channel.readyState != "open":
            return
        self._drained.clear()
        if channel.bufferedAmount:
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_S):
                    await self._drained.wait()

    def _meaning(self, message: str | bytes, now: float) -> Data | Hangup | None:
        if self._texts.full(now):
            raise BadMessage("t", f"more than {TEXTS_PER_S} messages in a second; slow down")
        if isinstance(message, bytes):
            raise BadMessage("t", "sound goes on the audio track; send JSON text here")
        if len(message.encode(errors="replace")) > MAX_MESSAGE_BYTES:
            raise BadMessage("t", f"messages are limited to {MAX_MESSAGE_BYTES} bytes")
        said = read_message(message)
        if said["t"] == "hangup":
            return Hangup(by_remote=True)
        return None if said["t"] in OUR_CLOCK else Data(said)
