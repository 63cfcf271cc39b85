"""When the next frame of an answer leaves for a player that is up to the horizon behind.

Pure and without a clock: told loop seconds and what the player still holds. Owned by one transport.
The player's position is an estimate that each of its reports moves a little; frames released at
the very edge of the horizon would follow every such step, so they keep a beat of their own in it.
"""

from __future__ import annotations

from ...media.transport import HORIZON_MS

FULL_MS = HORIZON_MS - 20
"""Above this the player is supplied: frames follow each other as they will sound."""
LOW_MS = HORIZON_MS - 80
"""At this little they no longer wait for the beat: a report says that it plays faster, or more."""

BEHIND_MS = HORIZON_MS - 45
"""At this little, and more than LOW_MS, frames follow twice as fast: a loop that was held up pays
back what it owes frame by frame."""

NEAR_MS = 3
SLEW = 0.01
"""A player that holds more or less than this around `FULL_MS` has another clock, or reports late:
the beat follows by 0.2 ms a frame, so that it stays clear of both limits."""


class Pace:
    """Says how long the next frame has to wait. Never lets one go beyond the horizon."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._filling = True
        self._held_ms = 0.0
        self._due = 0.0
        """When the next frame follows the last one without a hole."""

    def wait_s(self, unplayed: int, now: float) -> float:
        """Seconds until a frame may leave, when the player holds `unplayed` samples; 0 is now."""
        held_ms = unplayed * 1000 / self._rate
        if held_ms > HORIZON_MS:
            return (held_ms - HORIZON_MS) / 1000
        self._filling = held_ms <= (FULL_MS if self._filling else LOW_MS)
        self._held_ms = held_ms
        return 0.0 if self._filling else max(0.0, self._due - now)

    def sent(self, samples: int, now: float) -> None:
        """A frame left at `now`. One that was late by less than itself does not move the beat."""
        beat = length = samples / self._rate
        kept = self._due <= now < self._due + length
        if self._held_ms <= BEHIND_MS:
            beat /= 2
        elif abs(self._held_ms - FULL_MS) > NEAR_MS:
            beat *= 1 + SLEW if self._held_ms > FULL_MS else 1 - SLEW
        self._due = (self._due if kept else now) + beat
