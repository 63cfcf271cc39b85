"""The last seconds of a caller's audio, for whoever asks now and then.

A ring that is written once per frame and read rarely. Owned by the brain that feeds it. Keeps
copies: the frames themselves may go, and their memory is used again while it is warm.
"""

from __future__ import annotations

import numpy as np

from .pcm import Samples


class Recent:
    """The newest `length` samples that were added; silence before the first."""

    def __init__(self, length: int) -> None:
        self._ring = np.zeros(length, np.int16)
        self._length = length
        self._head = 0
        """Where in the ring the next sample goes: the oldest stands there."""
        self._end = 0
        self._since = 0
        """Position from which on nothing is missing up to `_end`."""

    def add(self, at: int, samples: Samples) -> None:
        """`samples` came, the first of them at `at` of the input clock."""
        if at != self._end:
            self._since = at
        count = len(samples)
        self._end = at + count
        head = self._head
        if head + count < self._length:
            self._ring[head : head + count] = samples
            self._head = head + count
        else:
            self._wrap(samples[-self._length :])

    def last(self, count: int | None = None) -> Samples:
        """A copy of the newest `count` samples (all, if None), whether or not their positions
        follow each other. Shape [count], never more than the ring's length."""
        count = self._length if count is None else min(count, self._length)
        start = self._head - count
        if start >= 0:
            return self._ring[start : self._head].copy()
        return np.concatenate((self._ring[start:], self._ring[: self._head]))

    def unbroken(self, count: int) -> tuple[int, Samples]:
        """(position, samples): at most `count` of the newest, and none from before a hole."""
        count = min(count, self._end - self._since, self._length)
        return self._end - count, self.last(count)

    def _wrap(self, samples: Samples) -> None:
        """Over the end of the ring and on from its beginning."""
        fits = min(len(samples), self._length - self._head)
        self._ring[self._head : self._head + fits] = samples[:fits]
        rest = len(samples) - fits
        self._ring[:rest] = samples[fits:]
        self._head = (self._head + len(samples)) % self._length
