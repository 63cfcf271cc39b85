"""The sound that goes out on a WebRTC line: a bounded queue, and the track that empties it.

Owned by one transport. aiortc's sender pulls a packet every 20 ms; what was pulled counts as
played. Paced on the loop's clock: after a stall the track leaves time out instead of sending a
burst, so delay never builds up (aiortc issues 64, 775, 1192).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av.packet import Packet
from av.stream import Stream

from ...media.format import PIPELINE
from ...media.frame import FRAME_MS
from ...media.jitter import RTP_RATE
from ...media.transport import HORIZON_MS

FRAME_S = FRAME_MS / 1000
LATE_S = 0.06
"""A pull so late follows a stall: whole frames are left out until it is on time again."""

_FRAME = PIPELINE.samples(FRAME_MS)
_SILENCE = bytes(2 * _FRAME)
_TIME_BASE = Fraction(1, RTP_RATE)
_FRAME_TICKS = RTP_RATE * FRAME_MS // 1000
"""Packets carry RTP's own clock: aiortc then converts nothing (fractions cost as much as SRTP)."""

SETTLED_FRAMES = 10
"""After so much digital silence every packet of the encoder says the same."""


class Encoder(Protocol):
    """Makes a packet of 20 ms of 16 kHz mono PCM."""

    def encode(self, pcm: bytes) -> bytes: ...


class Playout:
    """What was sent and not yet pulled, at most HORIZON_MS of it; counts what was pulled."""

    def __init__(self) -> None:
        self.played = 0
        """Samples pulled so far."""
        self.epoch = 0
        """Counts the clears."""
        self.queued = 0
        """Samples that wait."""
        self._chunks: deque[bytes] = deque()
        self._moved = asyncio.Event()

    def fits(self, samples: int) -> bool:
        """Whether `samples` more stay within the horizon; anything fits into an empty queue."""
        return not self.queued or self.queued + samples <= PIPELINE.samples(HORIZON_MS)

    def put(self, pcm: bytes) -> None:
        """Queue sound. The caller asks `fits` first."""
        self._chunks.append(pcm)
        self.queued += len(pcm) // 2

    def pull(self, samples: int) -> bytes:
        """Exactly `samples`, silence after what was there. What is given counts as played."""
        parts, wanted = [], 2 * samples
        while wanted and self._chunks:
            chunk = self._chunks.popleft()
            if len(chunk) > wanted:
                self._chunks.appendleft(chunk[wanted:])
                chunk = chunk[:wanted]
            parts.append(chunk)
            wanted -= len(chunk)
        pcm = b"".join(parts)
        self.played += len(pcm) // 2
        self.queued -= len(pcm) // 2
        if pcm:
            self._moved.set()
        return pcm + bytes(wanted)

    def clear(self) -> int:
        """Drop what waits. Returns the sample at which sound stopped."""
        self._chunks.clear()
        self.queued = 0
        self.epoch += 1
        self._moved.set()
        return self.played

    def wake(self) -> None:
        """Let `moved` return."""
        self._moved.set()

    async def moved(self, timeout_s: float) -> bool:
        """Wait until something was pulled or cleared; False after `timeout_s` of neither."""
        self._moved.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._moved.wait()
        except TimeoutError:
            return False
        return True


class OutgoingVoice(MediaStreamTrack):
    """A track of encoded packets: aiortc sends them as they are, without its own encoder."""

    kind = "audio"

    def __init__(
        self, playout: Playout, encoder: Encoder, *, away: Callable[[], bool] = lambda: False
    ) -> None:
        """While `away` says that nobody hears, the track sends silence and takes nothing."""
        super().__init__()
        self.skipped = 0
        """Frames of time left out after stalls."""
        self._playout = playout
        self._encoder = encoder
        self._away = away
        self._due: float | None = None
        """When the next frame is to leave."""
        self._frames = 0
        self._silent = 0
        """Frames of silence in a row."""
        self._payload = b""

    async def recv(self) -> Packet[Stream]:
        """The next packet, at its time. Raises MediaStreamError when the track was stopped."""
        await self._pace()
        if self.readyState != "live":
            raise MediaStreamError
        packet = Packet(self._encoded(_SILENCE if self._away() else self._playout.pull(_FRAME)))
        packet.pts = self._frames * _FRAME_TICKS
        packet.time_base = _TIME_BASE
        self._frames += 1
        return packet

    def _encoded(self, pcm: bytes) -> bytes:
        """The packet of `pcm`. An agent is silent most of a call: that is encoded only once."""
        self._silent = self._silent + 1 if pcm == _SILENCE else 0
        if self._silent <= SETTLED_FRAMES:
            self._payload = self._encoder.encode(pcm)
        return self._payload

    async def _pace(self) -> None:
        now = asyncio.get_running_loop().time()
        due = now if self._due is None else self._due
        if now - due > LATE_S:
            frames = int((now - due) / FRAME_S)
            self.skipped += frames
            self._frames += frames
            due += frames * FRAME_S
        self._due = due + FRAME_S
        if due > now:
            await asyncio.sleep(due - now)
