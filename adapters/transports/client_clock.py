"""Where a remote player stands in what it was sent: its own word, and an estimate in between.

Pure and without a clock: every method takes `now` in loop seconds. Owned by one transport. Never
sends anything; positions count samples really played since the line became ready (CONTRACTS B).
"""

from __future__ import annotations

from dataclasses import dataclass

CORRECTIONS_KEPT = 8
"""Closed epochs whose `cleared` may still come; older ones are stale and ignored."""


@dataclass(slots=True)
class _Closed:
    """A closed epoch: the `stop` that was returned, and between what a correction may lie."""

    stop: int
    low: int
    high: int


class ClientClock:
    """Playback position of the open epoch, and corrections of closed ones."""

    def __init__(self, rate: int, now: float) -> None:
        self.epoch = 0
        """The open epoch. Each clear closes it and opens the next."""
        self.sent = 0
        """Output position after the last sample given to the client."""
        self._rate = rate
        self._anchor = 0.0
        self._anchored_at = now
        """Where the player was known or thought to stand, and when: it plays on from there."""
        self._played = 0
        self._acked = 0
        self._closed: dict[int, _Closed] = {}

    def add(self, samples: int, now: float) -> None:
        """`samples` were sent. The estimate starts to run here when the player had run dry."""
        if self._estimate(now) >= self.sent:
            self._anchor, self._anchored_at = float(self.sent), now
        self.sent += samples

    def played(self, now: float) -> int:
        """Samples played; never less than an earlier answer, but for a correction in between."""
        played = round(self._estimate(now))
        if played > self._played:
            self._played = played
        return self._played

    def unplayed(self, now: float) -> int:
        """Samples the client still holds; unlike `played` it takes a late report back."""
        return self.sent - round(self._estimate(now))

    def ack(self, epoch: int, pos: int, now: float) -> bool:
        """The client's report for `epoch`. False, and nothing changes, when it is stale."""
        if epoch != self.epoch:
            return False
        self._acked = min(max(pos, self._acked), self.sent)
        self._anchor, self._anchored_at = float(self._acked), now
        self._played = max(self._played, self._acked)
        return True

    def clear(self, now: float) -> tuple[int, int]:
        """Close the epoch: (its number, the best known position at which sound stopped)."""
        stop, closed = self.played(now), self.epoch
        self._closed[closed] = _Closed(stop, self._acked, self.sent)
        self._closed.pop(closed - CORRECTIONS_KEPT, None)
        self.epoch += 1
        self.sent = self._acked = stop
        self._anchor, self._anchored_at = float(stop), now
        return closed, stop

    def cleared(self, epoch: int, pos: int) -> int | None:
        """The client's word where `epoch` stopped; None when it is stale or said twice.

        A correction of the epoch closed last moves every later position by the same amount: from
        here on both sides count alike. An older one only moves what a later correction may say.
        """
        known = self._closed.pop(epoch, None)
        if known is None:
            return None
        stop = min(max(pos, known.low), known.high)
        shift = stop - known.stop
        for later, closed in self._closed.items():
            if later > epoch:
                closed.low += shift
                closed.high += shift
        if epoch != self.epoch - 1:
            return None
        self.sent += shift
        self._anchor += shift
        self._acked += shift
        self._played += shift
        return stop

    def _estimate(self, now: float) -> float:
        elapsed = now - self._anchored_at
        if elapsed <= 0:
            return self._anchor
        reached = self._anchor + elapsed * self._rate
        return reached if reached < self.sent else float(self.sent)
