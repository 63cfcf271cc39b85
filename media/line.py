"""What a brain holds of a call: a place to play sound, and the truth about what was heard.

The Call owns the Line and drives its clock (`tick`, every 20 ms of input); one brain plays on it.
Pause and resume are written here once for every carrier: clear the carrier, keep what lies behind
the stop, send it again. A write of a cut segment vanishes by construction (DESIGN 4). The Line
never knows turns, texts or history.

Positions: input and output samples at 16 kHz since the call began. On an estimated clock `out`
may step when the carrier corrects a stop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Literal

from .carrier import Carrier
from .errors import MediaValueError, TransportError
from .events import RATE, CallEvent
from .farend import FarEnd, Record, Samples
from .frame import FRAME_MS, AudioFrame
from .outflow import Outflow
from .playback import Chunk, Playback
from .rebase import rebase
from .segments import Heard, Segment, Segments, note_played, note_unplayed
from .settling import Cut, Settling, resolve
from .transport import SETTLE_MS, CallTransport

__all__ = ["KEEP_MS", "Cut", "Line", "Progress"]

log = logging.getLogger(__name__)

KEEP_MS = 500
"""Sound kept behind the playback position, for a replay from a corrected stop (DESIGN 2)."""

Spawn = Callable[[Coroutine[None, None, None]], object]


@dataclass(frozen=True, slots=True)
class Progress:
    """A segment's first sample sounded (`started`), or its last one did (`ended`), at output
    position `out` (16 kHz)."""

    segment: int
    event: Literal["started", "ended"]
    out: int


class Line:
    """The brain's side of a call. All but `play`, `finish` and `drain` are synchronous.

    `emit` publishes a call event; `spawn` starts a task in the call's own TaskGroup; `lost` tells
    the Call that a carrier failed under a send; `record` takes what was played (16 kHz), at its
    place on the input clock.
    """

    def __init__(
        self,
        *,
        emit: Callable[[CallEvent], None],
        spawn: Spawn,
        lost: Callable[[CallTransport, TransportError], None],
        record: Record | None = None,
    ) -> None:
        self.emit = emit
        self._spawn = spawn
        self._lost = lost
        self._carrier: Carrier | None = None
        self._rate, self._out = RATE, 0
        self._segments = Segments()
        self._held: deque[Chunk] = deque()
        self._flow = Outflow()
        self._progress: list[Progress] = []
        self._settling: Settling | None = None
        self._far = FarEnd(record)

    # ---- the brain's side

    async def play(self, segment: int, frame: AudioFrame) -> None:
        """Send mono `frame` (any length) as the next sound of `segment`; waits while the line is
        paused, detached, or has more than the horizon unplayed. Numbers of segments only grow.

        Returns silently when the segment was cut or finished. Raises LineClosed after the call's
        end, MediaValueError for a frame that is not mono or changes the segment's rate. After
        cancellation the frame may have been taken in part; what was taken will be played.
        """
        self._flow.check()
        pcm = frame.array()
        if pcm.ndim != 1:
            raise MediaValueError(
                "frame.format.channels", str(frame.format.channels), "play mono (pcm.downmix)"
            )
        found = self._segments.get(segment, frame.format.rate, self._rate)
        step = frame.format.samples(FRAME_MS)
        async with self._flow.order:
            for start in range(0, len(pcm), step):
                if found is None or found.finished or not await self._ready(found):
                    return
                piece = pcm[start : start + step]
                found.given += len(piece)
                await self._speak(found, found.resampler.feed(piece))

    async def finish(self, segment: int) -> None:
        """No more frames of this segment: its resampler's tail is sent, `ended` will follow.

        Waits like `play` where there is a tail. Raises LineClosed after the call's end.
        """
        self._flow.check()
        found = self._segments.find(segment)
        if found is None:
            return
        async with self._flow.order:
            if found.finished or (found.lag and not await self._ready(found)):
                return
            found.finished = True
            await self._speak(found, found.resampler.flush())

    def cut(self) -> Cut:
        """Silence now: nothing sent so far, nor of any segment known so far, is played again."""
        self._stop()
        dead = self._segments.cut()
        self._held.clear()
        out = self.out
        estimated = self._estimated
        heard = tuple(segment.report(estimated=estimated) for segment in dead)
        settled = asyncio.get_running_loop().create_future()
        if self._settling is not None:
            # Of this stop, or of the pause before it: a guess is cleared whenever sound was sent.
            self._settling.cuts.append((dead, settled))
            self._settling.restored = 0
        else:
            resolve(settled, dead, estimated=estimated)
        self._flow.release("unsettled")
        self._flow.release("paused")
        return Cut(heard, settled, out)

    def pause(self) -> int:
        """Silence now, sound kept. Returns the output position (16 kHz) of the stop."""
        if not self._flow.stopped("paused"):
            self._flow.stop("paused")
            if self._stop() and self._settling is not None:
                self._flow.stop("unsettled")
        return self.out

    def resume(self) -> None:
        """Go on at the sample at which `pause` stopped. Where that is an estimate, sound waits
        until the carrier has told the true one, at most SETTLE_MS after the stop."""
        self._release("paused")

    async def drain(self) -> None:
        """Wait until everything sent was heard. Returns at once after a cut; raises LineClosed."""
        while self.unplayed:
            await self._flow.next_tick()

    def settle(self) -> None:
        """The truth about the last cut is needed now: take the best known."""
        if self._settling is not None:
            self._settling.settle(estimated=True)

    def progress(self) -> list[Progress]:
        """What started or ended to sound since the last call, in order."""
        news, self._progress = self._progress, []
        return news

    def heard(self, segment: int) -> Heard | None:
        """How much of a segment was heard so far; None when it is unknown, ended or cut."""
        found = self._segments.find(segment)
        return None if found is None else found.report(estimated=self._estimated)

    def reference(self, at: int, samples: int) -> Samples:
        """What was played over input samples [at, at + samples), 16 kHz, zeros where nothing."""
        return self._far.reference(at, samples)

    @property
    def out(self) -> int:
        """Output position now, in samples at 16 kHz since the call began."""
        return self._out if self._carrier is None else self._carrier.out()

    @property
    def paused(self) -> bool:
        """Whether `pause` holds the sound back."""
        return self._flow.stopped("paused")

    @property
    def unplayed(self) -> bool:
        """Whether sound was taken that nobody heard yet."""
        carrier = self._carrier
        if self._held or self._flow.stopped("unsettled"):
            return True
        return carrier is not None and carrier.transport.played() < carrier.playback.end

    # ---- the call's side

    def attach(self, transport: CallTransport) -> None:
        """Sound goes to `transport` from here on; held sound is replayed on it.

        Raises MediaValueError, and changes nothing, when its output is not mono.
        """
        output = transport.info.output
        if output.channels != 1:
            raise MediaValueError(
                "transport.info.output.channels", str(output.channels), "attach a mono carrier"
            )
        self.detach()
        if output.rate != self._rate:
            self._held = rebase(self._held, self._segments.all(), self._rate, output.rate)
            self._rate = output.rate
        playback = Playback(output.samples(KEEP_MS))
        self._carrier = Carrier(transport, playback, output.rate, self._out)
        self._far.begin(output.rate)
        self._release("detached")

    def detach(self) -> None:
        """The carrier is gone: sound is held until the next one."""
        if self._carrier is not None:
            self._flow.stop("detached")
            self._stop()
            self._out, self._carrier = self._carrier.out(), None
            self._expire()

    def correct(self, pos: int, epoch: int) -> None:
        """The carrier's word on where a closed epoch stopped (`Played`). After SETTLE_MS it moves
        the carrier's later positions, but no longer what counts as heard."""
        found = None if self._carrier is None else self._carrier.playback.correct(epoch, pos)
        settling = self._settling
        if found is None or settling is None:
            return
        played, behind = found
        segments = [*self._segments.all(), *settling.segments()]
        note_played(segments, played)
        note_unplayed(segments, behind)
        if self._flow.stopped("unsettled"):
            for _ in range(settling.restored):
                self._held.popleft()
            self._hold(behind)
        settling.settle(estimated=False)
        self._expire()

    def tick(self, at: int) -> None:
        """The input clock reached sample `at` (16 kHz): note what was played up to now."""
        if self._carrier is not None:
            self._advance(self._carrier)
        if self._far.sounding:
            self._far.tick(at)
        if self._flow.ticking:
            self._flow.tick()

    def close(self) -> None:
        """The call ended: whoever waits in `play` or `drain` gets LineClosed."""
        self._expire()
        self._flow.shut()

    # ---- inside

    @property
    def _estimated(self) -> bool:
        carrier = self._carrier
        return carrier is None or (carrier.estimated and not carrier.playback.stop_known)

    async def _ready(self, segment: Segment) -> bool:
        """Wait until `segment` may send its next piece, everything held before it being sent.
        False when it was cut meanwhile. Raises LineClosed."""
        while self._segments.find(segment.key) is segment:
            if not self._flow.open:
                await self._flow.changed()
            elif self._held:
                await self._send(self._held.popleft())
            else:
                return True
        return False

    async def _replay(self) -> None:
        """Task in the call's group: send what a pause or a lost carrier left behind."""
        async with self._flow.order:
            while self._held and self._flow.open:
                await self._send(self._held.popleft())

    async def _speak(self, segment: Segment, pcm: Samples) -> None:
        # No await since the resampler ran: what it gave is in the ledger before anything else
        # can happen, so a stop or a carrier of another rate finds it there.
        if len(pcm):
            chunk = Chunk(segment.key, segment.sent, pcm.tobytes())
            segment.sent += len(pcm)
            if self._flow.open:
                await self._send(chunk)
            else:
                self._held.append(chunk)

    async def _send(self, chunk: Chunk) -> None:
        """Only while sound may flow, and with `order` held."""
        carrier = self._carrier
        if carrier is None:
            self._held.appendleft(chunk)
            return
        frame = AudioFrame(chunk.pcm, carrier.transport.info.output, carrier.playback.end)
        # Noted before it is sent: a clear that comes while the carrier makes it wait finds the
        # chunk behind its stop, and so holds it or drops it like any other.
        carrier.playback.append(chunk)
        try:
            await carrier.transport.send(frame)
        except asyncio.CancelledError:
            if carrier is self._carrier and carrier.playback.retract(chunk):
                self._held.appendleft(chunk)
                self._replay_held()
            raise
        except TransportError as error:
            self._lost(carrier.transport, error)
        except Exception as error:
            log.exception("carrier failed under a send")
            self._lost(carrier.transport, TransportError(f"{type(error).__name__}: {error}"))

    def _release(self, stop: Literal["paused", "unsettled", "detached"]) -> None:
        self._flow.release(stop)
        self._replay_held()

    def _replay_held(self) -> None:
        if self._held and self._flow.open:
            self._spawn(self._replay())

    def _stop(self) -> bool:
        """Clear the carrier if it has anything left, keep what lay behind the stop; whether it
        had to be cleared."""
        carrier = self._carrier
        if carrier is None:
            return False
        self._advance(carrier)
        if carrier.silent:
            return False
        self._expire()
        behind = carrier.playback.close(carrier.transport.clear())
        note_unplayed(self._segments.all(), behind)
        restored = self._hold(behind)
        if carrier.estimated:
            timer = asyncio.get_running_loop().call_later(SETTLE_MS / 1000, self._expire)
            self._settling = Settling(carrier.playback.epoch - 1, restored, timer)
        return True

    def _hold(self, behind: list[Chunk]) -> int:
        alive = [chunk for chunk in behind if self._segments.alive(chunk)]
        self._held.extendleft(reversed(alive))
        return len(alive)

    def _expire(self) -> None:
        """Nothing more will be learned about the last stop."""
        settling, self._settling = self._settling, None
        if settling is not None:
            settling.timer.cancel()
            settling.settle(estimated=True)
            if self._carrier is not None:
                self._carrier.playback.expire()
        if self._flow.stopped("unsettled"):
            self._release("unsettled")

    def _advance(self, carrier: Carrier) -> None:
        """Note what was played since the last look: heard counts, progress, the far end."""
        if self._segments.none and carrier.playback.finished:
            return
        position = carrier.playback.advanced
        parts = carrier.playback.advance(carrier.transport.played())
        if parts:
            self._far.played(parts)
            for part in parts:
                samples = part.samples
                segment = self._segments.find(part.segment)
                if segment is not None:
                    if not segment.started:
                        self._start(segment, carrier.out(position))
                    segment.heard = max(segment.heard, part.offset + samples)
                    if segment.finished:
                        self._end(segment, carrier.out(position + samples))
                position += samples
        for segment in self._segments.complete():
            self._end(segment, carrier.out(carrier.playback.advanced))

    def _start(self, segment: Segment, out: int) -> None:
        if not segment.started:
            segment.started = True
            self._progress.append(Progress(segment.key, "started", out))

    def _end(self, segment: Segment, out: int) -> None:
        if segment.complete:
            self._start(segment, out)
            self._segments.end(segment)
            self._progress.append(Progress(segment.key, "ended", out))
