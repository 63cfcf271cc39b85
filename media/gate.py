"""Speech gate: what of the caller's audio a recogniser gets to hear, each sample at most once.

Pure; owned by the brain that feeds it. Exact to the sample: what comes out carries its position on
the input clock. Never decides that there is speech: `hold`, `open`, `cancel` and `close` say so.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

import numpy as np

from .errors import MediaValueError
from .pcm import Samples

GateState = Literal["closed", "pending", "open"]

Chunk = tuple[int, Samples]
"""(position of the first sample, samples)."""

_LAG_MS = 500
"""A start is reported some frames after its onset; closed, the gate keeps that much more."""


class SpeechGate:
    """closed: keeps a pre-roll. pending: keeps everything since it. open: forwards.

    One utterance's span is [start - preroll, end], clipped at the last sample forwarded before
    (voice row 14). Pending longer than `max_pending_ms` fails open: rather noise to the recogniser
    than a lost word (row 15). Memory is bounded by preroll + max_pending.
    """

    def __init__(
        self, *, preroll_ms: int = 800, max_pending_ms: int = 5_000, rate: int = 16_000
    ) -> None:
        for name, value in (("preroll_ms", preroll_ms), ("max_pending_ms", max_pending_ms)):
            if value < 0:
                raise MediaValueError(name, str(value), "use 0 ms or more")
        self._preroll = preroll_ms * rate // 1000
        self._lag = _LAG_MS * rate // 1000
        self._max_pending = max_pending_ms * rate // 1000
        self._state: GateState = "closed"
        self._kept: deque[Chunk] = deque()
        self._heard = 0
        """Position after the last sample fed."""
        self._pending_since = 0

    @property
    def state(self) -> GateState:
        """closed, pending or open."""
        return self._state

    @property
    def buffered(self) -> int:
        """Samples kept for later."""
        return sum(len(samples) for _, samples in self._kept)

    def feed(self, at: int, samples: Samples) -> list[Chunk]:
        """What may be forwarded now, in order. Samples fed before are cut off, never repeated.

        Keeps `samples` themselves, not a copy: they are not to be changed afterwards.
        """
        if at < self._heard:
            at, samples = self._heard, samples[self._heard - at :]
        count = len(samples)
        if not count:
            return []
        self._heard = at + count
        if self._state == "open":
            return [(at, samples)]
        kept = self._kept
        kept.append((at, samples))
        if self._state == "closed":
            reach = self._heard - self._preroll - self._lag
            if at <= reach:
                self._trim(reach)
            # Whole pieces only: `hold` cuts to the sample, and is rare.
            while kept[0][0] < reach and kept[1][0] <= reach:
                kept.popleft()
        elif self._heard - self._pending_since >= self._max_pending:
            return self.open()
        return []

    def hold(self, start: int | None = None) -> None:
        """Speech may have begun at `start` (default: now): keep from `start` - preroll on.

        Pending or open it changes nothing.
        """
        if self._state != "closed":
            return
        self._state = "pending"
        self._pending_since = self._heard
        start = self._heard if start is None else start
        self._trim(max(start, self._heard - self._lag) - self._preroll)

    def open(self, start: int | None = None) -> list[Chunk]:
        """It is speech: everything kept, once. Later audio comes from `feed`.

        From closed, `start` dates the onset as in `hold`; an open gate has nothing to give.
        """
        if self._state == "closed":
            self.hold(start)
        kept = list(self._kept)
        self._kept.clear()
        self._state = "open"
        return kept

    def cancel(self) -> None:
        """It was no speech: back to closed, with the audio still in reach of the next pre-roll.

        An open gate stays open: its utterance goes on (spec/voice 4).
        """
        if self._state == "pending":
            self._state = "closed"
            self._trim(self._heard - self._preroll - self._lag)

    def close(self) -> None:
        """The utterance is over: closed, nothing kept (voice row 16)."""
        self._state = "closed"
        self._kept.clear()

    def reset(self) -> None:
        """As new: closed, nothing kept, positions may start anywhere."""
        self.close()
        self._heard = 0

    def _trim(self, first: int) -> None:
        """Drop what lies before position `first`, to the sample."""
        while self._kept and self._kept[0][0] + len(self._kept[0][1]) <= first:
            self._kept.popleft()
        if self._kept and self._kept[0][0] < first:
            at, samples = self._kept[0]
            self._kept[0] = (first, samples[first - at :])


def joined(chunks: list[Chunk]) -> Samples:
    """The samples of `chunks` in one array; their positions must follow each other."""
    return np.concatenate([samples for _, samples in chunks]) if chunks else np.zeros(0, np.int16)
