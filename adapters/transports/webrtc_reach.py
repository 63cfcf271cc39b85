"""Whether the peer of a WebRTC line still gets our sound, judged by what comes from it. Pure.

A line that is cut shows no error for seconds: packets leave and nobody says that they are lost. A
peer that speaks sends a packet every 20 ms, muted or not, so its silence is the first sign; one
without a microphone still answers a connectivity check every second (RFC 7675). What would be sent
meanwhile is withheld, and so not taken for heard (DESIGN 5.4).
"""

from __future__ import annotations

SILENT_S = 0.5
"""A stream of packets that stops for so long may be cut. Loss and jitter leave shorter holes."""

CHECKED_S = 1.7
"""Checks go out 0.8 to 1.2 s apart; longer without any datagram is a cut."""


class Reach:
    """Fed with times of the loop's clock."""

    def __init__(self) -> None:
        self._sound_at: float | None = None
        self._sign_at = 0.0

    def sound(self, now: float) -> None:
        """A packet of the peer's voice came."""
        self._sound_at = now

    def sign(self, now: float) -> None:
        """Anything came from the peer: a connectivity check, a report, a message."""
        self._sign_at = now

    def lost(self, now: float) -> bool:
        """Whether the peer seems to be cut off. One that shows itself after its voice stopped is
        there, and merely sends none."""
        if self._sign_at and now - self._sign_at > CHECKED_S:
            return True
        if self._sound_at is None:
            return False
        silent = self._sound_at + SILENT_S
        return now > silent and self._sign_at <= silent
