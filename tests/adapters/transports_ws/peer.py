"""The far end of a WebSocket in a test: a socket without a network, and a player behind it.

`FakeSocket` is a `websocket.Socket`; `Player` is a browser's ring: it plays what it got on the
loop's clock, acknowledges every 100 ms, and answers `clear` with `cleared`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

RATE = 16_000


class FakeSocket:
    """`say` puts a client message in; `texts`, `audio` and `log` are what the server wrote."""

    def __init__(self) -> None:
        self.close_code: int | None = None
        self.closed: tuple[int, str] | None = None
        self.audio = bytearray()
        self.texts: list[dict[str, object]] = []
        self.log: list[tuple[float, bytes | dict[str, object]]] = []
        self.stuck = False
        self._inbound: asyncio.Queue[bytes | str | None] = asyncio.Queue()

    def say(self, message: bytes | str | dict[str, object]) -> None:
        """A message of the client."""
        self._inbound.put_nowait(json.dumps(message) if isinstance(message, dict) else message)

    def end(self, code: int | None = None) -> None:
        """The client closes with `code`, or the connection breaks."""
        self.close_code = code
        self._inbound.put_nowait(None)

    def kinds(self) -> list[object]:
        """The kinds of the messages written, in order."""
        return [text["t"] for text in self.texts]

    def of_kind(self, kind: str) -> list[dict[str, object]]:
        """Those of one kind."""
        return [text for text in self.texts if text["t"] == kind]

    def __aiter__(self) -> AsyncIterator[bytes | str]:
        return self._messages()

    async def _messages(self) -> AsyncIterator[bytes | str]:
        while (message := await self._inbound.get()) is not None:
            yield message

    @property
    def writable(self) -> bool:
        return not self.stuck

    def write(self, data: bytes | str) -> None:
        if self.closed is not None:
            raise ConnectionResetError("closed")
        now = asyncio.get_running_loop().time()
        if isinstance(data, bytes):
            self.audio += data
            self.log.append((now, data))
        else:
            message = json.loads(data)
            self.texts.append(message)
            self.log.append((now, message))

    async def drained(self) -> None:
        if self.stuck:
            await asyncio.sleep(3600)

    async def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)
        self._inbound.put_nowait(None)


class Player:
    """Plays what `socket` was sent, `late_s` behind; `acks` off is a client that never reports."""

    def __init__(self, socket: FakeSocket, *, late_s: float = 0.03, acks: bool = True) -> None:
        self.pos = 0
        self.epoch = 0
        self.sounded = bytearray()
        self._socket = socket
        self._late_s = late_s
        self._acks = acks
        self._seen = 0
        self._ring: list[tuple[float, bytes]] = []

    async def run(self) -> None:
        """20 ms at a time until cancelled."""
        ticks = 0
        while True:
            await asyncio.sleep(0.02)
            ticks += 1
            self._read()
            drained = self._play()
            if self._acks and (ticks % 5 == 0 or drained):
                self._socket.say({"t": "playback", "epoch": self.epoch, "pos": self.pos})

    def _read(self) -> None:
        for at, item in self._socket.log[self._seen :]:
            if isinstance(item, bytes):
                self._ring.append((at + self._late_s, item))
            elif item["t"] == "clear":
                self._ring.clear()
                self.epoch = int(str(item["epoch"])) + 1
                if self._acks:
                    cleared = {"t": "cleared", "epoch": item["epoch"], "pos": self.pos}
                    self._socket.say(cleared)
        self._seen = len(self._socket.log)

    def _play(self) -> bool:
        had = bool(self._ring)
        now, budget = asyncio.get_running_loop().time(), 640
        while self._ring and budget and self._ring[0][0] <= now:
            ready, pcm = self._ring.pop(0)
            taken, rest = pcm[:budget], pcm[budget:]
            if rest:
                self._ring.insert(0, (ready, rest))
            self.sounded += taken
            self.pos += len(taken) // 2
            budget -= len(taken)
        return had and not self._ring
