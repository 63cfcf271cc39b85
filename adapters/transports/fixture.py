"""A line without a carrier: recorded audio in, and a peer that plays what it is sent.

Owned by the call that attached it. It ships in the package because `voxglove call --wav` and a
user's own tests need the same seam as ours. It is the call's clock: tick n happens at
t0 + n * 20 ms of `loop.time()`, on a virtual loop as in real time. A tick first plays 20 ms of
queued output, then yields the input of the same 20 ms. Without an iterated `receive()` nothing
moves. It never resamples and never touches a socket.

Ways to misbehave: `stall()` (the peer takes nothing), `fail_at()` (the carrier breaks), `Estimate`
(the stop position is a guess that is corrected late or never), `chunks` (input in odd pieces),
input given as frames (holes stay holes).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from ...media.errors import (
    MediaValueError,
    TransportClosed,
    TransportError,
    TransportStalled,
)
from ...media.format import PIPELINE, AudioFormat
from ...media.frame import FRAME_MS, AudioFrame
from ...media.pcm import Samples, pcm_of, samples_of
from ...media.transport import HORIZON_MS, Data, Hangup, Played, Signal, TransportInfo

WRITE_DEADLINE_S = 5.0
"""How long a peer may take nothing before `send` gives it up."""

SETTLE_TURNS = 24
"""Turns of a real loop before a tick: more than any frame needs from its model to the line."""

TICK = PIPELINE.samples(FRAME_MS)
"""Input samples of one tick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A playback clock that guesses.

    While sound is queued, `played()` and `clear()` are wrong by `error` output samples, within
    what was sent. `Played` with the true position follows a clear after `corrected_after_ms` of
    the fixture's clock; None: it never comes.
    """

    error: int = 0
    corrected_after_ms: float | None = 100


class FixtureTransport:
    """A CallTransport over `audio`: int16 at 16 kHz, or frames at their places (`at`).

    An array is followed by silence until the line is closed, frames by nothing. `signals` are
    (input sample, signal) in order. `hangup_after_s` hangs up from the far end that long after
    the audio ended; None: never. Raises MediaValueError for audio that is not mono int16.
    """

    def __init__(
        self,
        audio: Samples | Sequence[AudioFrame],
        *,
        output: AudioFormat = PIPELINE,
        hangup_after_s: float | None = None,
        signals: Sequence[tuple[int, Signal]] = (),
        estimate: Estimate | None = None,
        chunks: Sequence[int] = (),
        write_deadline_s: float = WRITE_DEADLINE_S,
        peer: str = "",
    ) -> None:
        self._source = _Source(audio, chunks)
        self._peer = _Peer(output, estimate)
        self._hangup = _hangup_sample(self._source.end, hangup_after_s)
        self._signals = list(signals)
        self._fail_at: int | None = None
        self._closed = asyncio.Event()
        self._moved = asyncio.Event()
        self._sending = asyncio.Lock()
        self._write_deadline_s = write_deadline_s
        self.input_done = asyncio.Event()
        """Set when all of `audio` was yielded."""
        self.messages: list[Mapping[str, object]] = []
        """What `send_data` was given, in order."""
        self._info = TransportInfo(
            kind="fixture",
            peer=peer,
            output=output,
            clock="exact" if estimate is None else "estimate",
            gapless=isinstance(audio, np.ndarray) and not chunks,
            data=True,
        )

    @property
    def info(self) -> TransportInfo:
        """Kind `fixture`, with a data channel."""
        return self._info

    @property
    def input_end(self) -> int:
        """Input sample at which `audio` ends."""
        return self._source.end

    async def receive(self) -> AsyncIterator[AudioFrame | Signal]:
        """The ticks of the module docstring, until a hang-up, a failure or `aclose`."""
        loop = asyncio.get_running_loop()
        start, tick = loop.time(), 0
        while not self._closed.is_set():
            if self._peer.play_tick(tick):
                self._moved.set()
            for item in self._due(tick):
                yield item
                if isinstance(item, Hangup):
                    self._close()
                    return
            tick += 1
            await self._until(start + tick * FRAME_MS / 1000)

    async def send(self, frame: AudioFrame) -> bool:
        """As the port says; senders are served in the order they came."""
        self._peer.check(frame)
        epoch = self._peer.epoch
        async with self._sending:
            await self._room_for(frame.samples, epoch)
            if self._closed.is_set():
                raise TransportClosed("the fixture line is closed")
            if epoch != self._peer.epoch:
                return False
            self._peer.queue(frame)
            return True

    def clear(self) -> int:
        """Stop at the last played tick; with an `Estimate`, near it."""
        position = self._peer.clear()
        self._moved.set()
        return position

    def played(self) -> int:
        """Output samples played, or the estimate of it. Monotone."""
        return self._peer.position()

    async def send_data(self, message: Mapping[str, object]) -> None:
        """Keep the message in `messages`."""
        self.messages.append(message)

    async def aclose(self, reason: str) -> None:
        """End `receive` at once and refuse further sends. Idempotent."""
        self._close()

    # What a test or a scripted caller does with the far end.

    def push(self, signal: Signal) -> None:
        """Yield `signal` at the next tick, behind those already due."""
        self._signals.append((0, signal))
        self._signals.sort(key=lambda due: due[0])

    def push_data(self, message: Mapping[str, object]) -> None:
        """Let the peer send JSON at the next tick."""
        self.push(Data(message))

    def hang_up(self) -> None:
        """Let the peer hang up at the next tick."""
        self.push(Hangup())

    def stall(self, on: bool = True) -> None:
        """From now on the peer plays nothing (`on`), or plays again."""
        self._peer.stalled = on

    def fail_at(self, sample: int) -> None:
        """Let `receive` raise TransportError in place of the input at `sample`."""
        self._fail_at = sample

    def heard(self) -> Samples:
        """What the peer heard, at the output rate, from the first tick to now.

        Index i sounded at input sample i * 16,000 / rate; silence where nothing was played.
        """
        return self._peer.heard()

    def _due(self, tick: int) -> list[AudioFrame | Signal]:
        """All that becomes known in this tick, in order. Raises TransportError at `fail_at`."""
        due: list[AudioFrame | Signal] = [*self._peer.corrections(tick)]
        until = (tick + 1) * TICK
        for frame in self._source.take(until):
            due += self._signals_before(frame.at)
            due.append(frame)
        due += self._signals_before(tick * TICK)
        if until >= self._source.end:
            self.input_done.set()
        if self._hangup is not None and tick * TICK >= self._hangup:
            due.append(Hangup())
        if self._fail_at is not None and until > self._fail_at:
            self._close()
            raise TransportError(f"the fixture failed at input sample {self._fail_at}, as told")
        return due

    def _signals_before(self, sample: int) -> list[Signal]:
        ready = [signal for at, signal in self._signals if at <= sample]
        self._signals = [(at, signal) for at, signal in self._signals if at > sample]
        return ready

    async def _room_for(self, samples: int, epoch: int) -> None:
        """Wait for room within the horizon, for a clear, or for the close."""
        while self._peer.is_full(samples) and epoch == self._peer.epoch:
            if self._closed.is_set():
                return
            self._moved.clear()
            try:
                async with asyncio.timeout(self._write_deadline_s):
                    await self._moved.wait()
            except TimeoutError as error:
                raise TransportStalled(
                    f"the peer took no audio for {self._write_deadline_s:g} s"
                ) from error

    async def _until(self, when: float) -> None:
        """Sleep until loop time `when`, or until closed, and let what is ready by then run first.

        A virtual loop never moves its clock before that. A real one that is behind would begin
        the next tick while an answer's first frame is still on its way through the tasks, and the
        same recording would sound a frame later than it does on a virtual loop.
        """
        try:
            async with asyncio.timeout_at(when):
                await self._closed.wait()
        except TimeoutError:
            if not getattr(asyncio.get_running_loop(), "is_virtual", False):
                for _ in range(SETTLE_TURNS):
                    await asyncio.sleep(0)

    def _close(self) -> None:
        self._closed.set()
        self._moved.set()


class _Source:
    """The caller's audio, cut into the pieces in which it arrives. Never ends for an array."""

    def __init__(self, audio: Samples | Sequence[AudioFrame], chunks: Sequence[int]) -> None:
        if any(size <= 0 for size in chunks):
            raise MediaValueError("chunks", str(list(chunks)), "use sizes of 1 sample or more")
        self._frames: list[AudioFrame] | None = None
        self._samples: Samples = np.zeros(0, np.int16)
        if isinstance(audio, np.ndarray):
            self._samples = _mono(audio)
            self.end = len(audio)
        else:
            self._frames = list(audio)
            self.end = max((frame.end for frame in self._frames), default=0)
        self._sizes = cycle(chunks or (TICK,))
        self._size = next(self._sizes)
        self._at = 0

    def take(self, until: int) -> list[AudioFrame]:
        """Everything that has ended by input sample `until`."""
        if self._frames is not None:
            ready = [frame for frame in self._frames if frame.end <= until]
            self._frames = [frame for frame in self._frames if frame.end > until]
            return ready
        ready = []
        while self._at + self._size <= until:
            ready.append(AudioFrame(self._pcm(self._at, self._size), PIPELINE, self._at))
            self._at += self._size
            self._size = next(self._sizes)
        return ready

    def _pcm(self, at: int, size: int) -> bytes:
        piece = self._samples[at : at + size]
        return pcm_of(piece) + bytes(2 * (size - len(piece)))


class _Peer:
    """The far end's loudspeaker: what is queued, what was played and when."""

    def __init__(self, format: AudioFormat, estimate: Estimate | None) -> None:
        self._format = format
        self._estimate = estimate
        self._queue = bytearray()
        self._played = 0  # in this epoch, true
        self._base = 0  # position at which this epoch began
        self._reported = 0
        self._ticks = 0
        self._heard: list[tuple[int, bytes]] = []
        self._corrections: list[tuple[int, Played, int]] = []
        """(tick it is due, the word, how far it moves what is counted from here on)."""
        self.epoch = 0
        self.stalled = False

    def check(self, frame: AudioFrame) -> None:
        """Raise MediaValueError when the frame is not in the output format."""
        if frame.format != self._format:
            raise MediaValueError("frame", str(frame.format), f"send {self._format}")

    def queue(self, frame: AudioFrame) -> None:
        """Take audio to be played."""
        self._queue += frame.pcm

    def is_full(self, samples: int) -> bool:
        """Whether `samples` more would pass the horizon. An empty peer takes any frame."""
        unplayed = self._unplayed()
        return unplayed > 0 and unplayed + samples > self._format.samples(HORIZON_MS)

    def play_tick(self, tick: int) -> bool:
        """Play up to 20 ms; whether anything was played."""
        self._ticks = tick + 1
        size = self._format.samples(FRAME_MS) * self._format.bytes_per_sample
        if self.stalled or not self._queue:
            return False
        pcm = bytes(self._queue[:size])
        del self._queue[:size]
        self._heard.append((tick, pcm))
        self._played += len(pcm) // self._format.bytes_per_sample
        return True

    def position(self) -> int:
        """The reported clock: exact, or off by the estimate's error while sound is queued."""
        guess = self._played
        if self._estimate is not None and self._queue:
            sent = self._played + self._unplayed()
            guess = min(max(self._played + self._estimate.error, 0), sent)
        self._reported = max(self._reported, self._base + guess)
        return self._reported

    def clear(self) -> int:
        """Drop the queue, close the epoch and schedule its correction."""
        stopped = self.position()
        if self._estimate is not None and self._estimate.corrected_after_ms is not None:
            due = self._ticks + round(self._estimate.corrected_after_ms / FRAME_MS)
            word = Played(self._base + self._played, self.epoch)
            self._corrections.append((due, word, word.pos - stopped))
        self._queue.clear()
        self._base, self._played = stopped, 0
        self.epoch += 1
        return stopped

    def corrections(self, tick: int) -> list[Played]:
        """The corrections due by now, oldest first."""
        ready = [played for due, played, _ in self._corrections if due <= tick]
        for due, played, shift in self._corrections:
            if due <= tick and played.epoch == self.epoch - 1:
                # From here on both sides count alike (media.transport.Played).
                self._base += shift
                self._reported += shift
        self._corrections = [item for item in self._corrections if item[0] > tick]
        return ready

    def heard(self) -> Samples:
        """Shape [ticks * samples per tick * channels]."""
        size = self._format.samples(FRAME_MS) * self._format.channels
        out = np.zeros(self._ticks * size, np.int16)
        for tick, pcm in self._heard:
            samples = samples_of(pcm)
            out[tick * size : tick * size + len(samples)] = samples
        return out

    def _unplayed(self) -> int:
        return len(self._queue) // self._format.bytes_per_sample


def _mono(audio: Samples) -> Samples:
    if audio.ndim != 1 or audio.dtype != np.int16:
        raise MediaValueError(
            "audio", f"{audio.dtype} of shape {audio.shape}", "give mono int16 at 16 kHz"
        )
    return audio


def _hangup_sample(end: int, after_s: float | None) -> int | None:
    return None if after_s is None else end + PIPELINE.samples(after_s * 1000)
