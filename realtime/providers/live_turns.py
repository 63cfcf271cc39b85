"""What the user said to GPT-Live, made turns; and what both said lately.

The provider gives fragments with times and no end; where the user paused long enough, a turn is
over. Owned by the codec; pure, times in milliseconds of the session's clock.
"""

from __future__ import annotations

from ..events import RealtimeEvent, Role, UserTurn, Words
from .live_frames import beginning
from .live_speech import Fragment

GAP_MS = 800
"""So long without words ends a turn; a shorter pause is inside it."""
BOUNDARY_MS = 400
"""The same where the host's own detector heard the user stop."""
ANSWERED_MS = 300
"""The same where the model begins to speak, if no host's detector tells whether the user does."""
RECENT_CHARS = 2_000


class UserWords:
    """The user's fragments, grouped into turns.

    A pause is measured from the later of a fragment's end and its arrival: transcripts that lag, or
    come in bursts, do not cut a turn in pieces.
    """

    def __init__(self) -> None:
        self._said: list[Fragment] = []
        self._arrived_ms = 0
        self._speaking: bool | None = None
        """As the host's detector told last; None: it tells nothing."""
        self._stopped_ms: int | None = None
        self._count = 0

    def fragment(self, fragment: Fragment, clock_ms: int) -> list[RealtimeEvent]:
        """A piece of what the user said."""
        events: list[RealtimeEvent] = []
        if self._said and fragment.start_ms > self._said[-1].end_ms + GAP_MS:
            events += self.end()
        words = fragment.text if self._said else fragment.text.lstrip()
        if not self._said:
            self._count += 1
        self._said.append(fragment)
        self._arrived_ms = clock_ms
        item_id = f"user_{self._count}"
        start, end = fragment.start_ms, fragment.end_ms
        return [*events, Words("user", item_id, words, False, start, end)]

    def boundary(self, speaking: bool, clock_ms: int) -> None:
        """The host heard the user begin or stop."""
        self._speaking = speaking
        self._stopped_ms = None if speaking else clock_ms

    def answered(self, clock_ms: int) -> list[RealtimeEvent]:
        """The model begins to speak or to work: that answers what was said, unless the user is in
        the middle of it. So a turn stands before its answer."""
        quiet = self._said and clock_ms > self._said[-1].end_ms + ANSWERED_MS
        over = quiet if self._speaking is None else not self._speaking
        return self.end() if over else []

    def tick(self, clock_ms: int) -> list[RealtimeEvent]:
        """Time went on: the turn may be over."""
        if not self._said:
            return []
        last = max(self._arrived_ms, self._said[-1].end_ms)
        stopped = self._stopped_ms
        if clock_ms > last + GAP_MS or (
            stopped is not None and clock_ms > max(last, stopped) + BOUNDARY_MS
        ):
            return self.end()
        return []

    def end(self) -> list[RealtimeEvent]:
        """The turn is over, if there is one."""
        said, self._said = self._said, []
        if not said:
            return []
        item_id = f"user_{self._count}"
        whole = "".join(each.text for each in said).strip()
        start, end = min(each.start_ms for each in said), max(each.end_ms for each in said)
        return [Words("user", item_id, whole, True, start, end), UserTurn(item_id, start, end)]


class RecentWords:
    """The last things both speakers said, as lines: what a delegated task is about."""

    def __init__(self) -> None:
        self._lines: list[tuple[Role, str]] = []

    def add(self, role: Role, text: str) -> None:
        """A fragment of one of them."""
        if self._lines and self._lines[-1][0] == role:
            self._lines[-1] = (role, (self._lines[-1][1] + text)[-RECENT_CHARS:])
        else:
            self._lines.append((role, beginning(text, RECENT_CHARS)))
        del self._lines[:-20]

    def __str__(self) -> str:
        lines = [f"{role}: {text.strip()}" for role, text in self._lines if text.strip()]
        return "\n".join(lines)[-RECENT_CHARS:]
