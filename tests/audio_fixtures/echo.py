"""An echo path: the agent's sound coming back into the caller's microphone.

Lives here: `EchoPath`, a delay, a gain and a small room. Owned by whoever made it, one per track;
it keeps the tail of what it was fed and nothing else. Integer arithmetic: exact at any block size.
"""

import numpy as np
from numpy.typing import NDArray

from tests.audio_fixtures.dsp import Pcm, draws, pcm16, samples

REFLECTIONS = 6
ROOM_MS = 40


class EchoPath:
    """Direct sound after `delay_ms` plus six reflections within 40 ms.

    `gain_db` is the level of the whole echo relative to the far end (the taps' energies sum to
    it), so -20 means: measured on broadband sound, the echo is 20 dB below what was played.
    """

    def __init__(self, *, delay_ms: float, gain_db: float, seed: int = 0) -> None:
        times, sizes = draws(REFLECTIONS, seed), draws(REFLECTIONS, seed + 1)
        delays = [0.0, *sorted(ROOM_MS * time for time in times)]
        heights = [1.0] + [
            (0.5 if size < 0.5 else -0.5) * float(np.exp(-delay / 15))
            for size, delay in zip(sizes, delays[1:], strict=True)
        ]
        scale = 10 ** (gain_db / 20) / float(np.sqrt(sum(h * h for h in heights)))
        self._taps = [
            (samples(delay_ms + delay), round(height * scale * (1 << 20)))
            for delay, height in zip(delays, heights, strict=True)
        ]
        self.tail = max(delay for delay, _ in self._taps)
        self._past: NDArray[np.int64] = np.zeros(self.tail, dtype=np.int64)

    def feed(self, played: Pcm) -> Pcm:
        """The echo heard while `played` was played: same length, blocks join without a seam."""
        line = np.concatenate([self._past, played.astype(np.int64)])
        total = np.zeros(played.size, dtype=np.int64)
        for delay, factor in self._taps:
            start = self.tail - delay
            total += factor * line[start : start + played.size]
        self._past = line[line.size - self.tail :]
        return pcm16(total / float(1 << 20))

    def feed_all(self, played: Pcm) -> Pcm:
        """Feed everything and then silence until the echo has died away."""
        return np.concatenate([self.feed(played), self.feed(np.zeros(self.tail, dtype=np.int16))])
