"""One call: a brain, the carriers that come and go under it, and one timeline of events.

The Call owns, in one TaskGroup, its brain's task, the reader of the attached transport, and what
`Line` spawns; and the timer of its input clock. It outlives its transport: a failed reader means
*detached*, the answer waits, and a new transport takes over without losing the agent, its history
or the current answer (DESIGN 2). Only a hang-up, the brain's end, a limit, or linger expiry ends
it. It never looks into turns or texts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from .brain import Brain, Command
from .errors import TransportError
from .events import (
    RATE,
    CallEnded,
    CallEvent,
    EndReason,
    InputGap,
    LineEvent,
    Problem,
    Response,
    Transcript,
    Turn,
    Vad,
)
from .frame import FRAME_MS, AudioFrame
from .input_clock import InputClock
from .intake import Intake
from .lifetime import CallPolicy, bounded, stop
from .line import Line
from .outlet import Outlet, Sink
from .recorder import Recorder
from .tape import Tape
from .transport import (
    CallInfo,
    CallTransport,
    Gap,
    Hangup,
    LineChanged,
    LineState,
    Played,
    Signal,
)

__all__ = ["Call", "CallPolicy", "Sink"]

log = logging.getLogger(__name__)

_T = TypeVar("_T")


@dataclass(slots=True)
class _Life:
    """When what happened last, on the loop's clock, and how it ended."""

    owner: asyncio.Task[object] | None = None
    detached: float = 0.0
    active: int = 0
    turns: int = 0
    refused: int = 0
    hole: int = 0
    """Samples filled in since the last frame that came."""
    reason: EndReason | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Call:
    """A conversation. `run` once; everything else is synchronous and safe at any time.

    `late` tells how many inference results missed their frame (CONTRACTS A `call_ended`). Raises
    MediaValueError for a recorder that does not run at 16 kHz.
    """

    def __init__(
        self,
        brain: Brain,
        info: CallInfo,
        policy: CallPolicy | None = None,
        *,
        recorder: Recorder | None = None,
        late: Callable[[], int] = lambda: 0,
    ) -> None:
        self.brain = brain
        self.info = info
        self.policy = policy or CallPolicy()
        self._late = late
        self._outlet = Outlet()
        self._intake = Intake(brain.input_format)
        self._frame = brain.input_format.samples(FRAME_MS)
        self._life = _Life()
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: CallTransport | None = None
        self._reader: asyncio.Task[None] | None = None
        self._tape = (
            None
            if recorder is None
            else Tape(recorder, brain.input_format.rate, self._recording_failed)
        )
        self._line = Line(
            emit=self.emit,
            spawn=self._spawn,
            lost=self._lose,
            record=None if self._tape is None else self._tape.agent,
        )

    # ---- what others may do with a call

    @property
    def at(self) -> int:
        """Input sample now, at 16 kHz: the position of the timeline (CONTRACTS A)."""
        return self._timeline(self._intake.at)

    @property
    def transport(self) -> CallTransport | None:
        """The attached carrier, if any; before `run` the one that waits for it."""
        return self._transport

    @property
    def ended(self) -> EndReason | None:
        """Why the call ended, None while it lives."""
        return self._life.reason

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Hear every event from now on; returns the way out. A sink that raises is logged and
        left in place: it never touches the call."""
        sinks = self._outlet.sinks
        sinks.append(sink)
        return lambda: sinks.remove(sink) if sink in sinks else None

    def emit(self, event: CallEvent) -> None:
        """Publish `event` at the present input sample. After `call_ended` it vanishes."""
        if isinstance(event, Vad | Transcript | Response):
            self._life.active = self.at
        if isinstance(event, Turn) and event.event == "committed":
            self._life.turns += 1
        self._outlet.publish(self.at, event)

    def attach(self, transport: CallTransport) -> CallTransport | None:
        """Put the person on `transport`; returns the carrier that the caller must close: the one
        it replaces, or `transport` itself when the call has ended. Before `run` it waits for it.

        Raises MediaValueError, and changes nothing, when its output is not mono.
        """
        if self._life.reason is not None:
            return transport
        old = self._transport
        if self._group is None:
            self._transport = transport
        else:
            self._begin(transport)
        return None if old is transport else old

    def command(self, command: Command) -> asyncio.Future[None]:
        """Hand `command` to the brain. Raises RuntimeError before `run` and after the end."""
        if self._group is None or self._life.reason is not None:
            raise RuntimeError("the call is not running: commands need a live call")
        return self.brain.command(command)

    def hang_up(self, reason: EndReason = "hangup") -> None:
        """End the call; `run` returns within two seconds. Before `run` it returns at once."""
        if self._life.reason is None:
            self._life.reason = reason
            self._life.ended.set()

    async def run(self) -> EndReason:
        """Live until something ends the call; returns why. Raises RuntimeError the second time.

        Cancelling it is the owner's shutdown: the call ends with the reason `drain`, as orderly as
        by a hang-up. Afterwards no task, socket or timer of the call is left, and `call_ended` was
        emitted as the last event.
        """
        if self._life.owner is not None:
            raise RuntimeError("a call runs once")
        self._life.owner = asyncio.current_task()
        try:
            if self._life.reason is None:
                await self._live()
        finally:
            self.hang_up("error")
            await self._close(self._life.reason or "error")
        return self._life.reason or "error"

    # ---- the call's tasks

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            waiting, self._group = self._transport, group
            self._life.detached = asyncio.get_running_loop().time()
            now = [self._task(self._think(), "call.brain")]
            clock = InputClock(self._intake, partial(self._guard, self._fill), self._check_limits)
            try:
                # The brain is up (its first step taken) before it hears anything (voice row 2).
                await asyncio.sleep(0)
                if waiting is not None and waiting is self._transport and self._reader is None:
                    self._begin(waiting)
                await self._life.ended.wait()
            finally:
                self.hang_up("drain")
                clock.close()
                self._line.close()
                if self._reader is not None:
                    now.append(self._reader)
                await stop(now, self._tasks - set(now))

    async def _think(self) -> None:
        try:
            await self.brain.run(self._line)
        except asyncio.CancelledError:
            owner = self._life.owner
            if self._life.reason is None and not (owner and owner.cancelling()):
                self._fail("brain", RuntimeError("the brain was cancelled from within"))
            raise
        except Exception as error:
            self._fail("brain", error)
        else:
            self.hang_up("hangup")

    async def _read(self, transport: CallTransport) -> None:
        clock = asyncio.get_running_loop().time
        try:
            async for item in transport.receive():
                try:
                    self._take(item, clock())
                except Exception as refused:
                    self._refuse(refused)
            error = TransportError("the carrier ended without a hang-up")
        except TransportError as failure:
            error = failure
        except Exception as failure:
            log.exception("transport failed", extra={"call_id": self.info.call_id})
            error = TransportError(f"{type(failure).__name__}: {failure}")
        self._lose(transport, error)

    def _begin(self, transport: CallTransport) -> None:
        """Read and play on `transport` from here on, whatever was attached before."""
        self._line.attach(transport)
        if self._reader is not None:
            self._reader.cancel()
        info = transport.info
        now = asyncio.get_running_loop().time()
        self._intake.attach(info.input.rate, gapless=info.gapless, now=now)
        self._life.hole = 0
        self._transport = transport
        self._reader = self._task(self._read(transport), "call.reader")
        self._line_state("attached")

    def _lose(self, transport: CallTransport, error: TransportError) -> None:
        """The carrier failed under a read or a send: go on without."""
        if transport is not self._transport or self._life.reason is not None:
            return
        log.info("carrier lost", extra={"call_id": self.info.call_id, "why": str(error)})
        self._transport = None
        self._intake.detach()
        self._line.detach()
        self._life.detached = asyncio.get_running_loop().time()
        self._life.hole = 0
        if self._reader is not None and self._reader is not asyncio.current_task():
            self._reader.cancel()
        self._spawn(_close_carrier(transport, error.code))
        self._line_state("detached")

    def _take(self, item: AudioFrame | Signal, now: float) -> None:
        if isinstance(item, AudioFrame):
            if self._life.hole:
                self._tell_gap(self._life.hole)
            self._hear(self._intake.take(item, now))
            return
        match item:
            case Gap(samples):
                before = self._intake.statistics.filled
                frames = list(self._intake.gap(samples, now))
                self._tell_gap(self._intake.statistics.filled - before + self._life.hole)
                self._hear(frames)
            case Played(pos, epoch):
                self._line.correct(pos, epoch)
            case Hangup(by_remote):
                self.hang_up("remote_hangup" if by_remote else "hangup")
            case _:
                self.brain.signal(item)

    def _fill(self, now: float) -> None:
        before = self._intake.statistics.filled
        self._hear(self._intake.fill(now))
        if self._transport is not None:
            self._life.hole += self._intake.statistics.filled - before

    def _tell_gap(self, samples: int) -> None:
        self._life.hole = 0
        if samples:
            self.emit(InputGap(samples=self._timeline(samples)))

    def _hear(self, frames: Iterable[AudioFrame]) -> None:
        rate = self._intake.format.rate
        for frame in frames:
            # All of one length: reckoned here, not asked of each.
            self._line.tick((frame.at + self._frame) * RATE // rate)
            if self._tape is not None:
                self._tape.caller(frame)
            try:
                self.brain.hear(frame)
            except Exception as error:
                self._refuse(error)

    def _guard(self, step: Callable[[_T], None], what: _T) -> None:
        try:
            step(what)
        except Exception as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        """A bad frame or signal never ends a call: it is told once in 50, a second of frames."""
        self._life.refused += 1
        if self._life.refused % 50 == 1:
            log.error("input refused", exc_info=error, extra={"call_id": self.info.call_id})
            code = getattr(error, "code", "ERR_BRAIN")
            self.emit(Problem(code=str(code), stage="input", message=str(error)))

    def _check_limits(self, now: float) -> None:
        policy, at = self.policy, self.at
        if self._transport is None and now - self._life.detached >= policy.linger_s:
            self.hang_up("linger")
        elif at >= policy.max_s * RATE or at - self._life.active >= policy.idle_s * RATE:
            self.hang_up("limit")

    def _timeline(self, samples: int) -> int:
        return samples * RATE // self._intake.format.rate

    def _line_state(self, state: LineState) -> None:
        self.emit(LineEvent(state=state))
        self._guard(self.brain.signal, LineChanged(state))

    def _recording_failed(self, error: Exception) -> None:
        log.error("recording given up", extra={"call_id": self.info.call_id, "why": str(error)})
        code = getattr(error, "code", "ERR_RECORDING")
        self.emit(Problem(code=str(code), stage="recording", message=str(error)))

    def _fail(self, stage: str, error: Exception) -> None:
        """Something without which there is no call has failed: say what, and end it."""
        log.error("call failed", exc_info=error, extra={"call_id": self.info.call_id})
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        code = getattr(error, "code", f"ERR_{stage.upper()}")
        message = str(error) or type(error).__name__
        self.emit(Problem(code=str(code), stage=stage, message=message, fatal=True))
        self.hang_up("error")

    def _spawn(self, coro: Coroutine[None, None, None]) -> None:
        if self._group is None or self._life.reason is not None:
            coro.close()
        else:
            self._task(coro, "call.line")

    def _task(self, coro: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """A task of the call's group. None of them takes the group down: a failure ends the call
        by its own way, so that `call_ended` tells why."""
        if self._group is None:
            raise RuntimeError("the call is not running")
        task = self._group.create_task(self._safely(coro), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Cancelled before its first step, a task never touches what it was to run.
        task.add_done_callback(lambda _: coro.close())
        return task

    async def _safely(self, coro: Coroutine[None, None, None]) -> None:
        try:
            await coro
        except Exception as error:
            self._fail("call", error)

    async def _close(self, reason: EndReason) -> None:
        transport, self._transport = self._transport, None
        try:
            async with asyncio.TaskGroup() as group:
                if transport is not None:
                    group.create_task(_close_carrier(transport, reason), name="call.carrier")
                if self._tape is not None:
                    group.create_task(self._close_tape(self._tape), name="call.recording")
        finally:
            self.emit(LineEvent(state="closed"))
            self.emit(CallEnded(reason=reason, late=self._late(), turns=self._life.turns))

    async def _close_tape(self, tape: Tape) -> None:
        error = await bounded("recording", tape.aclose())
        if error is not None:
            self._recording_failed(error)


async def _close_carrier(transport: CallTransport, reason: str) -> None:
    await bounded("carrier", transport.aclose(reason))
