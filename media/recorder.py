"""Two-track call recording: left the caller, right the agent, on one sample clock.

Owned by the call that records. A sample's place in the file is its position on the input clock,
so the tracks cannot drift. File I/O runs on the recorder's one thread, because a slow disk may
block a write for seconds; at most `_MAX_JOBS` blocks wait for it. What exceeds that is counted as
lost on a real loop, which must not stall; where time stands still (a virtual loop, or no loop at
all) the recorder waits instead. Never resamples: feed it its own rate.
"""

from __future__ import annotations

import asyncio
import struct
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .errors import MediaError, MediaValueError
from .format import PIPELINE
from .pcm import Samples

_HEADER = 44
_FRAME = 4
"""Bytes of one sample of both tracks."""

_MAX_SAMPLES = (2**32 - 1 - _HEADER) // _FRAME
"""What a WAV header can count: 18 hours at 16 kHz."""

_MAX_JOBS = 8
"""Blocks of about a second in the writer's queue."""

CALLER, AGENT = 0, 1


class RecordingFailed(MediaError):
    """The file could not be opened or written; the message names it."""

    code = "ERR_RECORDING"


@dataclass(slots=True)
class RecorderStatistics:
    """Samples missing in the file: `late` came behind the window, `lost` met a stalled disk."""

    late: int = 0
    lost: int = 0


class _WavFile:
    """The file itself, used from the writer thread only. Its header is true after every write."""

    def __init__(self, path: Path, rate: int) -> None:
        self._rate = rate
        self._samples = 0
        self._file: BinaryIO = path.open("wb", buffering=0)
        self._file.write(self._header())

    def write(self, at: int, block: bytes, end: int) -> None:
        """Samples at their place, then the sizes: a kill between the two loses only the block."""
        self._file.seek(_HEADER + at * _FRAME)
        self._file.write(block)
        if end > self._samples:
            self._samples = end
            self._file.truncate(_HEADER + end * _FRAME)
            self._file.seek(0)
            self._file.write(self._header())

    def close(self) -> None:
        self._file.close()

    def _header(self) -> bytes:
        """RIFF WAVE, PCM, 2 channels, 16 bit."""
        size = self._samples * _FRAME
        form = struct.pack("<HHIIHH", 1, 2, self._rate, self._rate * _FRAME, _FRAME, 16)
        riff = struct.pack("<4sI4s4sI", b"RIFF", _HEADER - 8 + size, b"WAVE", b"fmt ", len(form))
        return riff + form + struct.pack("<4sI", b"data", size)


class Recorder:
    """Writes `caller(at, samples)` and `agent(at, samples)` to a WAV file at `path`.

    Writes may come late and in any order within `window_s` of the newest; the last one wins, and
    where nothing was written there is silence. The file is readable at any moment: each second of
    new audio goes out with the header's sizes, a killed process loses at most that second. Memory
    is bounded by the window plus the queue. Construct it before audio flows: it opens the file.
    Raises RecordingFailed when it cannot, MediaValueError for a window below 1 s.
    """

    def __init__(
        self, path: Path | str, *, rate: int = PIPELINE.rate, window_s: float = 5.0
    ) -> None:
        if window_s < 1:
            raise MediaValueError("window_s", str(window_s), "use 1 s or more")
        self.path = Path(path)
        self.rate = rate
        self.statistics = RecorderStatistics()
        self._window = int(window_s * rate)
        self._held = np.zeros((self._window + rate, 2), np.int16)
        self._base = 0
        """Position of the first held sample; what lies before is final."""
        self._end = 0
        """Length of the recording so far."""
        self._dirty: tuple[int, int] | None = None
        """Held range that the file does not have yet."""
        self._flush_at = rate
        self._jobs: list[Future[None]] = []
        """The blocks on their way, and the first that failed."""
        self._closed = False
        try:
            self._file = _WavFile(self.path, rate)
        except OSError as error:
            raise RecordingFailed(f"{self.path}: cannot be opened: {error}") from error
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="recorder")

    def caller(self, at: int, samples: Samples) -> None:
        """Left track: what the caller said at input sample `at`. Does no I/O."""
        self._put(CALLER, at, samples)

    def agent(self, at: int, samples: Samples) -> None:
        """Right track: what the caller heard at input sample `at`. Does no I/O."""
        self._put(AGENT, at, samples)

    async def aclose(self, end: int | None = None) -> None:
        """Write the rest, make the file last until sample `end`, close it. Idempotent.

        Raises RecordingFailed if any write failed. After cancellation the file is still closed,
        by the writer thread.
        """
        closed = self._finish(end)
        if closed is not None:
            await asyncio.get_running_loop().run_in_executor(self._writer, _nothing)
        self._writer.shutdown(wait=True)
        self._raise_failure(closed)

    def close(self, end: int | None = None) -> None:
        """As `aclose`, blocking: for code without a loop."""
        closed = self._finish(end)
        self._writer.shutdown(wait=True)
        self._raise_failure(closed)

    def _finish(self, end: int | None) -> Future[None] | None:
        """Queue the last blocks and the closing; None when that was done before."""
        if self._closed:
            return None
        if end is not None and self._end < end <= _MAX_SAMPLES:
            self._put(CALLER, end - 1, np.zeros(1, np.int16))
        self._flush(force=True)
        self._closed = True
        return self._writer.submit(self._file.close)

    def _raise_failure(self, closed: Future[None] | None) -> None:
        jobs = self._jobs if closed is None else [*self._jobs, closed]
        for job in jobs:
            error = job.exception()
            if error is not None:
                raise RecordingFailed(f"{self.path}: cannot be written: {error}") from error

    def _put(self, track: int, at: int, samples: Samples) -> None:
        if self._closed:
            raise RecordingFailed(f"{self.path}: the recording is closed")
        for offset in range(0, len(samples), self.rate):
            self._put_second(track, at + offset, samples[offset : offset + self.rate])

    def _put_second(self, track: int, at: int, samples: Samples) -> None:
        late = min(max(0, self._base - at), len(samples))
        self.statistics.late += late
        at, samples = at + late, samples[late:]
        end = at + len(samples)
        if not len(samples):
            return
        if end > _MAX_SAMPLES:
            self.statistics.lost += len(samples)
            return
        if end > self._base + len(self._held):
            self._advance(end - self._window)
        self._held[at - self._base : end - self._base, track] = samples
        low, high = self._dirty or (at, end)
        self._dirty = (min(low, at), max(high, end))
        self._end = max(self._end, end)
        if self._end >= self._flush_at:
            self._flush()
            self._flush_at = self._end + self.rate

    def _advance(self, base: int) -> None:
        """Let go of what lies before `base`."""
        self._flush()
        if self._dirty is not None and self._dirty[0] < base:
            low, high = self._dirty
            self.statistics.lost += min(high, base) - low
            self._dirty = (base, high) if high > base else None
        gone = min(base - self._base, len(self._held))
        kept = len(self._held) - gone
        self._held[:kept] = self._held[gone:].copy()
        self._held[kept:] = 0
        self._base = base

    def _flush(self, *, force: bool = False) -> None:
        """Queue the dirty range; on a real loop and a full queue it stays dirty until later."""
        failed = [job for job in self._jobs if job.done() and job.exception() is not None]
        waiting = [job for job in self._jobs if not job.done()]
        self._jobs = failed[:1] + waiting
        if self._dirty is None:
            return
        if len(waiting) >= _MAX_JOBS and not force:
            if not _may_wait():
                return
            wait(waiting[:1])
        low, high = self._dirty
        block = self._held[low - self._base : high - self._base].astype("<i2").tobytes()
        self._jobs.append(self._writer.submit(self._file.write, low, block, high))
        self._dirty = None


def _may_wait() -> bool:
    """Whether blocking here costs nobody time."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return True
    return bool(getattr(loop, "is_virtual", False))


def _nothing() -> None:
    """Runs on the writer thread after everything queued before it."""
