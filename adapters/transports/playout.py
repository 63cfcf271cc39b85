"""The frame that leaves next for a remote player, and the beat on which it leaves.

Owned by one transport. A frame is taken one beat ahead, so that it is written in the very step of
the loop in which its time comes: whoever makes sound is woken after it left, not before. It has no
timer of its own (`Beats`), and never writes faster than the horizon allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...media.frame import AudioFrame
from .beats import Beats
from .client_clock import ClientClock
from .pace import Pace
from .writer import WRITE_DEADLINE_S, Writer

FULL_WAIT_S = 0.005
"""A full writer is looked at again after so long."""


class Playout:
    """`stalled` is told that the player played nothing for WRITE_DEADLINE_S."""

    def __init__(
        self, writer: Writer, rate: int, beats: Beats, stalled: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.clock = ClientClock(rate, self._loop.time())
        self._pace = Pace(rate)
        self._writer = writer
        self._beats = beats
        self._stalled = stalled
        self._next: AudioFrame | None = None
        self._since = 0.0
        """When `_next` was put."""
        self._asked: float | None = None
        """The earliest moment at which `_look` will be called."""
        self._looking: list[asyncio.Future[None]] = []
        """Whoever waits for `moved`."""

    @property
    def busy(self) -> bool:
        """Whether a frame waits for its beat: another one cannot be put."""
        return self._next is not None

    @property
    def sent(self) -> int:
        """Output position after the last frame put."""
        return self.clock.sent + (0 if self._next is None else self._next.samples)

    def put(self, frame: AudioFrame) -> None:
        """The next frame, while not `busy`; it leaves now or on the beat, if no `clear` comes."""
        self._next = frame
        self._since = now = self._loop.time()
        self._release(frame, now)

    def moved(self) -> asyncio.Future[None]:
        """Done when the frame that waits has left or was dropped, or at `close`."""
        looking = self._loop.create_future()
        self._looking.append(looking)
        return looking

    def ack(self, epoch: int, pos: int) -> None:
        """The player's report (`ClientClock.ack`)."""
        now = self._loop.time()
        if self.clock.ack(epoch, pos, now) and self._next is not None:
            self._release(self._next, now)

    def clear(self) -> tuple[int, int]:
        """Drop the frame that waits and close the epoch (`ClientClock.clear`)."""
        self._drop()
        return self.clock.clear(self._loop.time())

    def close(self) -> None:
        """Drop the frame that waits."""
        self._drop()

    def _look(self, now: float) -> None:
        self._asked = None
        if self._next is not None:
            self._release(self._next, now)

    def _release(self, frame: AudioFrame, now: float) -> None:
        """Write `frame` if it is due; else look again when it may be."""
        wait_s = self._pace.wait_s(self.clock.unplayed(now), now)
        if wait_s <= 0 and not self._writer.audio_full:
            samples = frame.samples
            self.clock.add(samples, now)
            self._pace.sent(samples, now)
            self._writer.audio(frame.pcm)
            self._drop()
        elif now < self._since + WRITE_DEADLINE_S:
            self._ask(min(now + (wait_s or FULL_WAIT_S), self._since + WRITE_DEADLINE_S))
        else:
            self._stalled()

    def _ask(self, at: float) -> None:
        if self._asked is None or at < self._asked:
            self._asked = at
            self._beats.call_at(at, self._look)

    def _drop(self) -> None:
        self._next = None
        if self._looking:
            looking, self._looking = self._looking, []
            for one in looking:
                if not one.done():
                    one.set_result(None)
