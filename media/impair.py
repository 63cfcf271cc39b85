"""A bad network on purpose: which packets are lost, when the others arrive, seeded.

Used by the tests, by bench/ and by the developer's injector of a living WebRTC line. Pure: it is
told when a packet was sent and says when it arrives, in seconds of whatever clock the caller has.
It holds no packet and never looks into one.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Literal

from .errors import MediaValueError

MAX_BURST = 10
MAX_JITTER_MS = 300
MAX_SKEW_PPM = 2_000
REORDER_MS = 50
"""How much later a reordered packet comes: behind the two that were sent after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impairment:
    """What happens to packets. Shares are of all packets, 0..1."""

    loss: float = 0.0
    burst: int = 1
    """Losses come in runs of 1..burst packets, each length as likely."""
    jitter_ms: float = 0.0
    """Extra delay: uniform in 0..jitter_ms, or gaussian with jitter_ms as its 99.7 % point."""
    spread: Literal["uniform", "gaussian"] = "uniform"
    queued: bool = False
    """A delayed packet holds up those behind it (a busy link); else it is overtaken."""
    reorder: float = 0.0
    duplicate: float = 0.0
    skew_ppm: float = 0.0
    """By how much the sender's clock is slow: its packets come ever later (or earlier)."""

    def __post_init__(self) -> None:
        for name, most in (
            ("loss", 1),
            ("reorder", 1),
            ("duplicate", 1),
            ("jitter_ms", MAX_JITTER_MS),
        ):
            value = getattr(self, name)
            if not 0 <= value <= most:
                raise MediaValueError(name, str(value), f"use 0..{most}")
        if not 1 <= self.burst <= MAX_BURST:
            raise MediaValueError("burst", str(self.burst), f"use 1..{MAX_BURST} packets")
        if not abs(self.skew_ppm) <= MAX_SKEW_PPM:
            raise MediaValueError("skew_ppm", str(self.skew_ppm), f"use +-{MAX_SKEW_PPM}")

    @property
    def active(self) -> bool:
        """Whether it does anything at all."""
        return self != Impairment(burst=self.burst, spread=self.spread, queued=self.queued)


class Impairer:
    """One stream's way through the network. The same seed and the same calls give the same way."""

    def __init__(self, what: Impairment, seed: int = 0) -> None:
        self.what = what
        self.sent = 0
        self.lost = 0
        self._random = random.Random(seed)
        self._losing = 0
        """Packets that the present burst still takes."""
        self._start: float | None = None
        self._last = -math.inf
        """The latest arrival so far: a queue lets nobody pass."""

    def arrivals(self, sent: float) -> list[float]:
        """When the packet sent at `sent` arrives: never, once, or twice. `sent` never falls."""
        self.sent += 1
        if self._loses():
            self.lost += 1
            return []
        start = self._start = sent if self._start is None else self._start
        at = start + (sent - start) * (1 + self.what.skew_ppm / 1e6) + self._delay()
        if self.what.queued:
            at = self._last = max(self._last, at)
        if self._happens(self.what.reorder):
            at += REORDER_MS / 1000
        return [at, at + self._delay()] if self._happens(self.what.duplicate) else [at]

    def _loses(self) -> bool:
        loss = self.what.loss
        if self._losing:
            self._losing -= 1
            return True
        # A burst of m packets on average begins so often that `loss` of all packets are in one.
        mean = (1 + self.what.burst) / 2
        if not self._happens(loss / (loss + mean * (1 - loss)) if loss else 0):
            return False
        self._losing = self._random.randint(1, self.what.burst) - 1
        return True

    def _delay(self) -> float:
        most = self.what.jitter_ms / 1000
        if not most:
            return 0.0
        if self.what.spread == "uniform":
            return self._random.uniform(0, most)
        return min(abs(self._random.gauss(0, most / 3)), 2 * most)

    def _happens(self, share: float) -> bool:
        return share > 0 and self._random.random() < share
