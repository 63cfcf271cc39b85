"""Moving an answer from a carrier of one sample rate to one of another.

Pure functions on what a `Line` holds. Sound is converted in runs as long as possible, because
every seam of a resampler is a click; what a segment's own resampler still keeps back comes out
first, so that nothing is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np

from .frame import FRAME_MS
from .playback import Chunk
from .resample import resample_all
from .segments import Segment


def rebase(held: Iterable[Chunk], segments: list[Segment], old: int, rate: int) -> deque[Chunk]:
    """The held sound at `rate` in pieces of 20 ms; `segments` (oldest first) count at it."""
    runs = _joined(held)
    for segment in reversed(segments):
        _flush(segment, runs)
        segment.rebase(rate)
    by_key = {segment.key: segment for segment in segments}
    pieces: deque[Chunk] = deque()
    for run in runs:
        pcm = resample_all(np.frombuffer(run.pcm, dtype="<i2"), old, rate)
        whole = Chunk(run.segment, run.offset * rate // old, pcm.tobytes())
        if (owner := by_key.get(run.segment)) is not None:
            owner.sent = max(owner.sent, whole.end)
        step = rate * FRAME_MS // 1000
        pieces += [whole.slice(at, at + step) for at in range(0, whole.samples, step)]
    return pieces


def _joined(held: Iterable[Chunk]) -> list[Chunk]:
    runs: list[list[Chunk]] = []
    for chunk in held:
        last = runs[-1][-1] if runs else None
        if last is not None and last.segment == chunk.segment and last.end == chunk.offset:
            runs[-1].append(chunk)
        else:
            runs.append([chunk])
    return [
        Chunk(run[0].segment, run[0].offset, b"".join(chunk.pcm for chunk in run)) for run in runs
    ]


def _flush(segment: Segment, runs: list[Chunk]) -> None:
    """Add what the segment's resampler keeps back behind the last of its sound."""
    if segment.finished or not segment.given:
        return
    tail = segment.resampler.flush().tobytes()
    if not tail:
        return
    offset, segment.sent = segment.sent, segment.sent + len(tail) // 2
    for index, run in enumerate(runs):
        if run.segment == segment.key and run.end == offset:
            runs[index] = Chunk(run.segment, run.offset, run.pcm + tail)
            return
    # All before it was played, and so was the sound of every older segment.
    runs.insert(0, Chunk(segment.key, offset, tail))
