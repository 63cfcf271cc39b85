"""The caller's last seconds of sound by sample position, for replay to a new connection.

Owned by one link. Positions count samples of the session's input from its first one (mono), on all
connections alike. Nothing here reads a clock, resamples or decides what is sent.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from ..media.errors import MediaValueError

SAMPLE_BYTES = 2
_TRIM_SHARE = 4
"""Old sound is dropped a quarter of the ring at a time, so that a push is cheap."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Sound from position `start` on. `lost`: samples before it that were asked for and are no
    longer kept."""

    pcm: bytes
    start: int
    lost: int = 0

    @property
    def end(self) -> int:
        """Position behind the last sample."""
        return self.start + len(self.pcm) // SAMPLE_BYTES


class Ring:
    """The last `capacity` samples of mono 16-bit sound (DESIGN 5.8).

    Raises MediaValueError for a capacity below one sample.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise MediaValueError("capacity", str(capacity), "keep at least one sample")
        self._capacity = capacity
        self._pcm = bytearray()
        self._origin = 0

    @property
    def start(self) -> int:
        """Position of the oldest sample that is kept."""
        return max(self._origin, self.end - self._capacity)

    @property
    def end(self) -> int:
        """Position behind the newest sample: how many were ever pushed."""
        return self._origin + len(self._pcm) // SAMPLE_BYTES

    def push(self, pcm: bytes) -> None:
        """Append sound. Raises MediaValueError for half a sample; then nothing was taken."""
        if len(pcm) % SAMPLE_BYTES:
            raise MediaValueError("pcm", f"{len(pcm)} bytes", "send whole 16-bit samples")
        self._pcm += pcm
        surplus = self.end - self._origin - self._capacity
        if surplus > self._capacity // _TRIM_SHARE:
            del self._pcm[: surplus * SAMPLE_BYTES]
            self._origin += surplus

    def since(self, position: int, limit: int | None = None) -> Kept:
        """Everything from `position` on, `limit` samples at most. A position that was not reached
        yet gives nothing; one that is too old gives what is kept, and says how much is lost."""
        start = min(max(position, self.start), self.end)
        stop = self.end if limit is None else min(self.end, start + limit)
        first, last = ((at - self._origin) * SAMPLE_BYTES for at in (start, stop))
        return Kept(bytes(self._pcm[first:last]), start, max(0, start - max(0, position)))


class Positions:
    """Which session position a sample of one connection had. Sound that was made up (silence of a
    pacer) has the position at which it was put in. Remembers the last `PIECES` pieces."""

    PIECES = 512

    def __init__(self, start: int) -> None:
        self._places = [0]
        self._starts = [start]
        self._sent = 0
        self._next = start
        self._made_up = False

    @property
    def sent(self) -> int:
        """Samples of this connection so far."""
        return self._sent

    def add(self, samples: int, position: int | None) -> None:
        """`samples` were sent: those from `position` on, or made-up ones (None)."""
        start = self._next if position is None else position
        made_up = position is None
        if made_up != self._made_up or start != self._next:
            self._places.append(self._sent)
            self._starts.append(start)
            del self._places[: -self.PIECES], self._starts[: -self.PIECES]
        self._sent += samples
        self._next = start if made_up else start + samples
        self._made_up = made_up

    def of(self, sample: int) -> int:
        """The session position of connection sample `sample`, held inside what was sent."""
        sample = min(max(sample, self._places[0]), self._sent)
        piece = max(0, bisect_right(self._places, sample) - 1)
        start = self._starts[piece]
        after = self._starts[piece + 1] if piece + 1 < len(self._starts) else self._next
        return min(start + sample - self._places[piece], after)
