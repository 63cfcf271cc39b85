"""The caller's sound on its way to one connection: first what is replayed, then what is said now.

Owned by one link, one for each connection. It sends every sample of the ring once and in order
from where it starts, and knows which session position each sample of the connection had. Paced, it
lets time go on for a provider whose clock is our audio. It has no task: `pump` is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..media.errors import MediaValueError
from .ring import SAMPLE_BYTES, Positions, Ring

CHUNK_MS = 100
"""Longest piece that is sent at once."""
STEP_MS = 20
"""Shortest piece of silence that is put in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """How sound reaches a provider whose time is the audio we send.

    catch_up   speed once more than `slack_ms` waits, until nothing does: faster than real time, so
               that a replay ends, yet not in one burst
    fill_ms    nothing came for this long: silence goes out in its place, from then on as time
               passes, until sound comes again
    slack_ms   sound may be this far ahead of time, so that the host's frames are sent whole
    """

    catch_up: float = 2.0
    fill_ms: int = 200
    slack_ms: int = 40

    def __post_init__(self) -> None:
        if self.catch_up <= 1:
            raise MediaValueError("catch_up", str(self.catch_up), "use more than 1")
        if self.fill_ms < STEP_MS or self.slack_ms < 0:
            raise MediaValueError("fill_ms, slack_ms", "too short", "use 20 or more, 0 or more")


class Uplink:
    """Sends `ring` from position `start` by `send`, at `rate` samples a second, from loop time
    `now` on; without `pacing` as soon as it is pumped."""

    def __init__(
        self,
        ring: Ring,
        rate: int,
        send: Callable[[bytes], None],
        *,
        start: int,
        pacing: Pacing | None,
        now: float,
    ) -> None:
        self._ring = ring
        self._rate = rate
        self._send = send
        self._pacing = pacing
        self._positions = Positions(start)
        self._next = start
        self._credit = 0.0
        self._pumped_at = now
        self._filling = False
        self._behind = self._waiting > 0
        if self._behind:  # the oldest sound of a full ring goes before the next frame pushes it out
            self._credit = float(self._samples(CHUNK_MS))

    def pump(self, now: float) -> None:
        """Send what may go at `now`. Call it when sound came, and paced every 20 ms besides."""
        if self._pacing is None:
            self._sound(self._waiting)
            return
        speed = self._pacing.catch_up if self._behind else 1.0
        self._credit += (now - self._pumped_at) * self._rate * speed
        self._pumped_at = now
        slack = self._samples(self._pacing.slack_ms)
        waiting = self._waiting
        if waiting:
            self._filling = False
            whole = waiting <= self._credit + slack + 1  # a sample for what floats lose
            self._sound(waiting if whole else min(waiting, int(self._credit)))
            if not self._waiting:
                # A host whose clock is a little slow leaves no hole: only time in which nothing
                # came is filled.
                self._credit = min(self._credit, 0.0)
        behind = self._waiting > (0 if self._behind else slack)
        if self._behind and not behind:
            self._credit = 0.0  # what haste earned is no time that passed
        self._behind = behind
        if not self._waiting:
            self._fill(self._pacing)

    def position_of(self, ms: float) -> int:
        """The session position of `ms` of this connection's sound."""
        return self._positions.of(round(ms * self._rate / 1000))

    @property
    def _waiting(self) -> int:
        return self._ring.end - max(self._next, self._ring.start)

    def _samples(self, ms: int) -> int:
        return self._rate * ms // 1000

    def _sound(self, samples: int) -> None:
        while samples > 0:
            kept = self._ring.since(self._next, min(samples, self._samples(CHUNK_MS)))
            count = kept.end - kept.start
            if not count:
                return
            self._next = kept.end
            self._positions.add(count, kept.start)
            self._credit -= count
            samples -= count
            self._send(kept.pcm)

    def _fill(self, pacing: Pacing) -> None:
        """Silence for the time in which nothing came."""
        step = self._samples(STEP_MS)
        if self._credit < (step if self._filling else self._samples(pacing.fill_ms)):
            return
        self._filling = True
        while self._credit >= step:
            count = min(int(self._credit) // step * step, self._samples(CHUNK_MS))
            self._positions.add(count, None)
            self._credit -= count
            self._send(bytes(count * SAMPLE_BYTES))
