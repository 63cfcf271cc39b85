"""The talk button of a call (spec/voice rows 56 to 58): hot from the press; a click toggles the
microphone, a hold ends the turn.

Pure arithmetic on input samples; owned by one run of a brain, which opens the microphone and ends
turns as it is told here.
"""

from __future__ import annotations

from typing import Literal

Release = Literal["ignored", "click", "held"]


class TalkButton:
    """See the module. `click` and `minimum` in samples: a press shorter than `click` is a click,
    and what was begun by a longer one is recorded for `minimum` beyond that."""

    def __init__(self, click: int, minimum: int) -> None:
        self._click = click
        self._minimum = minimum
        self._down_at: int | None = None
        self._due: int | None = None
        self.was_muted = False
        """Whether the microphone was closed before the button was pressed."""

    def press(self, at: int, *, muted: bool) -> bool:
        """The button goes down; whether that is news. A press while an early release still waits
        for its end goes on with the same recording."""
        if self._down_at is not None:
            return False
        if self._due is None:
            self.was_muted = muted
        self._down_at, self._due = at, None
        return True

    def release(self, at: int) -> Release:
        """The button goes up. After `held` the end follows, see `over`."""
        if self._down_at is None:
            return "ignored"
        held_at, self._down_at = self._down_at + self._click, None
        if at < held_at:
            return "click"
        self._due = max(at, held_at + self._minimum)
        return "held"

    def over(self, at: int) -> bool:
        """The recording of a held button has come to its end at `at`; told once."""
        if self._due is None or at < self._due:
            return False
        self._due = None
        return True
