"""What a brain holds of a call: a place to play sound, and the truth about what was heard.

The Call owns the Line and drives its clock (`tick`, every 20 ms of input); one brain plays on it.
Pause and resume are written here once for every carrier: clear the carrier, keep what lies behind
the stop, send it again. A write of a cut segment vanishes by construction (DESIGN 4). The Line
never knows turns, texts or history.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from .errors import LineClosed, TransportError
from .events import RATE, CallEvent
from .frame import AudioFrame
from .outflow import Outflow
from .playback import Chunk, Playback
from .resample import Resampler, resample_all
from .segments import Heard, Segment, Segments, note_played, note_unplayed
from .transport import SETTLE_MS, CallTransport

KEEP_MS = 500
"""Sound kept behind the playback position, for a replay from a corrected stop (DESIGN 2)."""

REFERENCE = RATE
"""Samples of far-end sound kept for the echo guard."""

Samples = npt.NDArray[np.int16]
Spawn = Callable[[Coroutine[None, None, None]], object]


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut: what was `heard` as far as is known now, and the `settled` truth.

    `settled` is done at once on an exact clock; else when the carrier corrects the stop position,
    SETTLE_MS later, or at `Line.settle()`, whichever is first.
    """

    heard: tuple[Heard, ...]
    settled: asyncio.Future[tuple[Heard, ...]]
    out: int


@dataclass(frozen=True, slots=True)
class Progress:
    """A segment's first sample sounded (`started`), or its last one did (`ended`), at output
    position `out` (16 kHz)."""

    segment: int
    event: Literal["started", "ended"]
    out: int


@dataclass(slots=True)
class _Carrier:
    """The attached transport, its ledger, and the output position (16 kHz) at which it began."""

    transport: CallTransport
    playback: Playback
    rate: int
    base_out: int
    tap: Resampler | None

    @property
    def estimated(self) -> bool:
        return self.transport.info.clock == "estimate"

    @property
    def correctable(self) -> bool:
        return self.estimated and self.playback.uncorrected

    @property
    def out(self) -> int:
        return self.base_out + self.transport.played() * RATE // self.rate


@dataclass(slots=True)
class _Settling:
    """A cut whose stop may still be corrected."""

    epoch: int
    segments: list[Segment]
    settled: asyncio.Future[tuple[Heard, ...]]
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class _Far:
    """The last second of what was played, on the input clock, ending at `end`."""

    end: int = 0
    pcm: Samples = field(default_factory=lambda: np.zeros(0, np.int16))

    def put(self, start: int, pcm: Samples) -> None:
        """`pcm` sounded from input sample `start` on."""
        missing = start - self.end
        if missing >= 0:
            before = np.concatenate((self.pcm, np.zeros(min(missing, REFERENCE), np.int16)))
        else:
            before = self.pcm[: max(0, len(self.pcm) + missing)]
        self.pcm = np.concatenate((before, pcm))[-REFERENCE:]
        self.end = start + len(pcm)


class Line:
    """The brain's side of a call. All but `play`, `finish` and `drain` are synchronous.

    `emit` publishes a call event; `spawn` starts a task in the call's own TaskGroup; `lost` tells
    the call that its carrier failed under a send; `record` takes what was heard, on the input
    clock.
    """

    def __init__(
        self,
        *,
        emit: Callable[[CallEvent], None],
        spawn: Spawn,
        lost: Callable[[CallTransport, TransportError], None],
        record: Callable[[int, Samples], None] | None = None,
    ) -> None:
        self.emit = emit
        self._spawn = spawn
        self._lost = lost
        self._record = record
        self._carrier: _Carrier | None = None
        self._rate, self._out = RATE, 0
        self._segments = Segments()
        self._held: deque[Chunk] = deque()
        self._flow = Outflow()
        self._progress: list[Progress] = []
        self._settling: _Settling | None = None
        self._far = _Far()

    # ---- the brain's side

    async def play(self, segment: int, frame: AudioFrame) -> None:
        """Send mono `frame` as the next sound of `segment`; waits while the line is paused,
        detached, or has more than the horizon unplayed.

        Returns silently when the segment was cut. Raises LineClosed after the call's end. After
        cancellation the frame may have been sent in part.
        """
        found = self._segments.get(segment, frame.format.rate, self._rate)
        if found is not None:
            found.given += frame.samples
            await self._push(found, found.resampler.feed(frame.array()))

    async def finish(self, segment: int) -> None:
        """No more frames of this segment: its resampler's tail is sent, `ended` will follow."""
        found = self._segments.find(segment)
        if found is not None:
            await self._push(found, found.resampler.flush())
            found.finished = True

    def cut(self) -> Cut:
        """Silence now: nothing sent so far, nor of any segment known so far, is played again."""
        self.settle()
        self._stop()
        dead = self._segments.cut()
        self._held.clear()
        self._flow.release("paused")
        heard = tuple(segment.report(estimated=self._estimated) for segment in dead)
        settling = _Settling(-1, dead, asyncio.get_running_loop().create_future())
        self._settling = settling
        if self._carrier is not None and self._carrier.correctable:
            settling.epoch = self._carrier.playback.epoch - 1
            loop = asyncio.get_running_loop()
            settling.timer = loop.call_later(SETTLE_MS / 1000, self.settle)
        else:
            self._settled(estimated=self._estimated)
        return Cut(heard, settling.settled, self.out)

    def pause(self) -> int:
        """Silence now, sound kept. Returns the output position (16 kHz) of the stop."""
        if not self._flow.stopped("paused"):
            self._flow.stop("paused")
            self._stop()
        return self.out

    def resume(self) -> None:
        """Go on at the sample at which `pause` stopped."""
        self._flow.release("paused")
        if self._held:
            self._spawn(self._replay())

    async def drain(self) -> None:
        """Wait until everything sent was heard. Returns at once after a cut; raises LineClosed."""
        while self.unplayed:
            await self._flow.next_tick()

    def settle(self) -> None:
        """The truth about the last cut is needed now: take the best known."""
        self._settled(estimated=True)

    def progress(self) -> list[Progress]:
        """What started or ended to sound since the last call."""
        news, self._progress = self._progress, []
        return news

    def heard(self, segment: int) -> Heard | None:
        """How much of a segment was heard so far; None when it is unknown, ended or cut."""
        found = self._segments.find(segment)
        return None if found is None else found.report(estimated=self._estimated)

    def reference(self, at: int, samples: int) -> Samples:
        """What was played over input samples [at, at + samples), 16 kHz, zeros where nothing."""
        out = np.zeros(samples, np.int16)
        far, start = self._far, self._far.end - len(self._far.pcm)
        low, high = max(at, start), min(at + samples, far.end)
        if low < high:
            out[low - at : high - at] = far.pcm[low - start : high - start]
        return out

    @property
    def out(self) -> int:
        """Output position now, in samples at 16 kHz since the call began."""
        return self._out if self._carrier is None else self._carrier.out

    @property
    def unplayed(self) -> bool:
        """Whether sound was given that nobody heard yet."""
        carrier = self._carrier
        if self._held or carrier is None:
            return bool(self._held)
        return carrier.transport.played() < carrier.playback.end

    # ---- the call's side

    def attach(self, transport: CallTransport) -> None:
        """Sound goes to `transport` from here on; held sound is replayed on it."""
        self.detach()
        rate = transport.info.output.rate
        if rate != self._rate:
            self._rebase(rate)
        playback = Playback(rate * KEEP_MS // 1000)
        tap = None if rate == RATE else Resampler(rate, RATE)
        self._carrier = _Carrier(transport, playback, rate, self._out, tap)
        self._flow.release("detached")
        if self._held:
            self._spawn(self._replay())

    def detach(self) -> None:
        """The carrier is gone: sound is held until the next one."""
        if self._carrier is not None:
            self._flow.stop("detached")
            self._stop()
            self._out, self._carrier = self._carrier.out, None
            self.settle()

    def correct(self, pos: int, epoch: int) -> None:
        """The carrier's word on where a closed epoch stopped (`Played`)."""
        found = None if self._carrier is None else self._carrier.playback.correct(epoch, pos)
        if found is None:
            return
        played, behind = found
        cut = self._settling.segments if self._settling is not None else []
        segments = [*self._segments.all(), *cut]
        note_played(segments, played)
        note_unplayed(segments, behind)
        if self._flow.stopped("paused"):
            self._held = deque(chunk for chunk in behind if self._segments.alive(chunk))
        if self._settling is not None and self._settling.epoch == epoch:
            self._settled(estimated=False)

    def tick(self, at: int) -> None:
        """The input clock reached sample `at`: note what was played up to now."""
        carrier = self._carrier
        if carrier is not None:
            parts = carrier.playback.advance(carrier.transport.played())
            note_played(self._segments.all(), parts)
            if parts:
                self._tap(carrier, at, parts)
            self._note_progress()
        self._flow.tick()

    def close(self) -> None:
        """The call ended: whoever waits in `play` or `drain` gets LineClosed."""
        self.settle()
        self._flow.shut()

    # ---- inside

    @property
    def _estimated(self) -> bool:
        return self._carrier is None or self._carrier.estimated

    async def _push(self, segment: Segment, pcm: Samples) -> None:
        step = self._rate // 50
        for start in range(0, len(pcm), step):
            piece = pcm[start : start + step]
            chunk = Chunk(segment.key, segment.sent, piece.tobytes())
            segment.sent += len(piece)
            async with self._flow.order:
                await self._flush()
                await self._send(chunk)

    async def _replay(self) -> None:
        """Task in the call's group: send what a pause or a lost carrier left behind."""
        try:
            async with self._flow.order:
                await self._flush()
        except LineClosed:
            return

    async def _flush(self) -> None:
        while self._held:
            await self._flow.opened()
            if self._held:
                await self._send(self._held.popleft())

    async def _send(self, chunk: Chunk) -> None:
        await self._flow.opened()
        carrier = self._carrier
        if carrier is None or not self._segments.alive(chunk):
            return
        frame = AudioFrame(chunk.pcm, carrier.transport.info.output, carrier.playback.end)
        # Noted before it is sent: a clear that comes while the carrier makes it wait finds the
        # chunk behind its stop, and so holds it or drops it like any other.
        carrier.playback.append(chunk)
        try:
            await carrier.transport.send(frame)
        except TransportError as error:
            self._lost(carrier.transport, error)

    def _stop(self) -> None:
        """Clear the carrier if it has anything left; keep what lay behind the stop."""
        carrier = self._carrier
        if carrier is None:
            return
        played = min(carrier.transport.played(), carrier.playback.end)
        note_played(self._segments.all(), carrier.playback.advance(played))
        if played >= carrier.playback.end:
            return
        behind = carrier.playback.close(carrier.transport.clear())
        note_unplayed(self._segments.all(), behind)
        alive = [chunk for chunk in behind if self._segments.alive(chunk)]
        self._held.extendleft(reversed(alive))

    def _settled(self, *, estimated: bool) -> None:
        settling, self._settling = self._settling, None
        if settling is None:
            return
        if settling.timer is not None:
            settling.timer.cancel()
        if not settling.settled.done():
            truth = tuple(segment.report(estimated=estimated) for segment in settling.segments)
            settling.settled.set_result(truth)

    def _note_progress(self) -> None:
        for segment in self._segments.all():
            if segment.heard and not segment.started:
                segment.started = True
                self._progress.append(Progress(segment.key, "started", self.out))
            if segment.complete:
                self._segments.end(segment)
                self._progress.append(Progress(segment.key, "ended", self.out))

    def _tap(self, carrier: _Carrier, at: int, parts: list[Chunk]) -> None:
        """Put what was just played on the input clock, ending at `at`."""
        pcm = np.frombuffer(b"".join(part.pcm for part in parts), dtype="<i2")
        if carrier.tap is not None:
            pcm = carrier.tap.feed(pcm)
        start = at - len(pcm)
        self._far.put(start, pcm)
        if self._record is not None:
            self._record(start, pcm)

    def _rebase(self, rate: int) -> None:
        """The next carrier has another rate: convert what is held and every count."""
        old, self._rate = self._rate, rate
        self._held = deque(
            Chunk(
                chunk.segment,
                chunk.offset * rate // old,
                resample_all(np.frombuffer(chunk.pcm, dtype="<i2"), old, rate).tobytes(),
            )
            for chunk in self._held
        )
        for segment in self._segments.all():
            segment.rebase(rate)
