"""The developer's injector: makes a living WebRTC line as bad as asked, up, down or both.

Owned by one transport. Up, packets are lost and delayed before our jitter buffer, with the sequence
numbers the peer gave them; down, the encrypted datagrams on their way out, so the browser's own
jitter buffer sees real holes. Nothing is in the way while it is off. Never meant for the public:
who may ask is decided at the door.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence

from aiortc import RTCIceTransport
from aiortc.rtp import is_rtcp

from ...media.impair import Impairer, Impairment
from .webrtc_seams import VoiceStream

Send = Callable[..., Coroutine[object, object, None]]
"""`RTCIceTransport._send`: one datagram."""


class Way:
    """One direction through a bad network, on the running loop's clock."""

    def __init__(self, what: Impairment, seed: int) -> None:
        self.counts = Impairer(what, seed)
        self._due: set[asyncio.TimerHandle] = set()

    def carry(self, deliver: Callable[[], None]) -> None:
        """Call `deliver` now, later, or never."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for at in self.counts.arrivals(now):
            if at <= now:
                deliver()
            else:
                self._later(loop, at, deliver)

    def close(self) -> None:
        """What is still under way does not arrive."""
        for timer in self._due:
            timer.cancel()
        self._due.clear()

    def _later(
        self, loop: asyncio.AbstractEventLoop, at: float, deliver: Callable[[], None]
    ) -> None:
        def arrive() -> None:
            self._due.discard(timer)
            deliver()

        timer = loop.call_at(at, arrive)
        self._due.add(timer)


class Injector:
    """Both directions of one line."""

    def __init__(self, streams: Sequence[VoiceStream], ice: RTCIceTransport) -> None:
        self.up: Way | None = None
        self.down: Way | None = None
        self._streams = streams
        self._ice = ice
        self._send = ice._send
        self._seed = 0

    def set(self, what: Impairment, *, down: bool) -> None:
        """From now on `what`; an inactive one takes everything out of the way again."""
        self.close()
        self._seed += 1
        if not what.active:
            return
        self.up = Way(what, self._seed)
        for stream in self._streams:
            stream.through = self.up.carry
        if down:
            self.down = Way(what, -self._seed)
            self._ice._send = _bad_sender(self._send, self.down)

    def close(self) -> None:
        """Nothing in the way, nothing pending. Idempotent."""
        for way in (self.up, self.down):
            if way is not None:
                way.close()
        self.up = self.down = None
        for stream in self._streams:
            stream.through = None
        self._ice._send = self._send


def _bad_sender(send: Send, way: Way) -> Send:
    """Stands for an ICE transport's `_send`: sound goes `way`, all else (DTLS, RTCP) as ever."""

    def deliver(data: bytes) -> None:
        # aioice sends without waiting, but for a TURN channel that is being bound: lost then.
        sending = send(data)
        try:
            sending.send(None)
        except (StopIteration, ConnectionError):
            return
        sending.close()

    async def bad_send(data: bytes) -> None:
        if 128 <= data[0] < 192 and not is_rtcp(data):
            way.carry(lambda: deliver(data))
        else:
            await send(data)

    return bad_send
