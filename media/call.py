"""One call: a brain, the carriers that come and go under it, and one timeline of events.

The Call owns, in one TaskGroup, its brain's task and the reader of the attached transport. It
outlives its transport: a failed reader means *detached*, the answer waits, and a new transport
takes over without losing the agent, its history or the current answer (DESIGN 2). Only a hang-up,
the brain's end, a limit, or linger expiry ends it. It never looks into turns or texts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field

from .brain import Brain, Command
from .errors import MediaValueError, TransportError
from .events import (
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
from .frame import AudioFrame
from .intake import Intake
from .line import Line
from .recorder import Recorder
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

log = logging.getLogger(__name__)

Sink = Callable[[int, CallEvent], None]
"""Takes each event with the input sample at which it was emitted, on the loop, in order."""

CLOSE_S = 2.0
"""Bound on closing a carrier or a recording (DESIGN 5.10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPolicy:
    """How long a call lives: without a carrier, without anyone speaking, and at most.

    Raises MediaValueError for a limit that is not positive.
    """

    linger_s: float = 30.0
    idle_s: float = 600.0
    max_s: float = 3_600.0

    def __post_init__(self) -> None:
        for name in ("linger_s", "idle_s", "max_s"):
            if getattr(self, name) <= 0:
                raise MediaValueError(name, str(getattr(self, name)), "use more than 0 seconds")


@dataclass(slots=True)
class _Life:
    """When what happened last, on the loop's clock, and how it ended."""

    detached: float = 0.0
    active: int = 0
    turns: int = 0
    broken_hears: int = 0
    reason: EndReason | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Call:
    """A conversation. `run` once; everything else is synchronous and safe at any time.

    `late` tells how many inference results missed their frame (CONTRACTS A `call_ended`).
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
        self._recorder = recorder
        self._late = late
        self._sinks: list[Sink] = []
        self._intake = Intake(brain.input_format)
        self._life = _Life()
        self._group: asyncio.TaskGroup | None = None
        self._transport: CallTransport | None = None
        self._waiting: CallTransport | None = None
        self._reader: asyncio.Task[None] | None = None
        self._line = Line(
            emit=self.emit,
            spawn=self._spawn,
            lost=self._lose,
            record=None if recorder is None else recorder.agent,
        )

    # ---- what others may do with a call

    @property
    def at(self) -> int:
        """Input sample now (the brain's input rate)."""
        return self._intake.at

    @property
    def transport(self) -> CallTransport | None:
        """The attached carrier, if any."""
        return self._transport

    @property
    def ended(self) -> EndReason | None:
        """Why the call ended, None while it lives."""
        return self._life.reason

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Hear every event from now on; returns the way out. A sink that raises is logged and
        left in place: it never touches the call."""
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink) if sink in self._sinks else None

    def emit(self, event: CallEvent) -> None:
        """Publish `event` at the present input sample."""
        if isinstance(event, Vad | Transcript | Response):
            self._life.active = self.at
        if isinstance(event, Turn) and event.event == "committed":
            self._life.turns += 1
        for sink in tuple(self._sinks):
            try:
                sink(self.at, event)
            except Exception:
                log.exception("event sink failed", extra={"event_type": event.type})

    def attach(self, transport: CallTransport) -> CallTransport | None:
        """Put the person on `transport`; returns the carrier it replaces, which the caller closes
        (the call no longer reads it). Before `run` it waits for it."""
        old, self._transport = self._transport, None
        if self._group is None:
            old, self._waiting = self._waiting, transport
            return old
        if self._reader is not None:
            self._reader.cancel()
        if old is not None:
            self._line.detach()
        self._begin(transport)
        return old

    def command(self, command: Command) -> asyncio.Future[None]:
        """Hand `command` to the brain. Raises RuntimeError before `run` and after the end."""
        if self._group is None or self._life.reason is not None:
            raise RuntimeError("the call is not running: commands need a live call")
        return self.brain.command(command)

    def hang_up(self, reason: EndReason = "hangup") -> None:
        """End the call; `run` returns within two seconds."""
        if self._life.reason is None:
            self._life.reason = reason
            self._life.ended.set()

    async def run(self) -> EndReason:
        """Live until something ends the call; returns why. Cancelling it hangs up.

        Afterwards no task, socket or timer of the call is left, and `call_ended` was emitted.
        """
        if self._group is not None or self._life.reason is not None:
            raise RuntimeError("a call runs once")
        try:
            await self._live()
        finally:
            self._life.reason = self._life.reason or "error"
            await self._close(self._life.reason)
        return self._life.reason

    # ---- the call's tasks

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._life.detached = asyncio.get_running_loop().time()
            tasks = [
                group.create_task(self._think(), name="call.brain"),
                group.create_task(self._pace(), name="call.pace"),
            ]
            # The brain is up (its first step taken) before it hears anything (voice row 2).
            await asyncio.sleep(0)
            if self._waiting is not None:
                waiting, self._waiting = self._waiting, None
                self._begin(waiting)
            try:
                await self._life.ended.wait()
            finally:
                self._line.close()
                for task in (*tasks, self._reader):
                    if task is not None:
                        task.cancel()

    async def _think(self) -> None:
        try:
            await self.brain.run(self._line)
        except Exception as error:
            log.exception("brain failed", extra={"call_id": self.info.call_id})
            code = getattr(error, "code", "ERR_BRAIN")
            self.emit(Problem(code=str(code), stage="brain", message=str(error), fatal=True))
            self.hang_up("error")
        else:
            self.hang_up("hangup")

    async def _read(self, transport: CallTransport) -> None:
        try:
            async for item in transport.receive():
                if isinstance(item, AudioFrame):
                    self._hear(self._intake.take(item, asyncio.get_running_loop().time()))
                else:
                    self._signal(item)
            error = TransportError("the carrier ended without a hang-up")
        except TransportError as failure:
            error = failure
        except Exception as failure:
            log.exception("transport failed", extra={"call_id": self.info.call_id})
            error = TransportError(f"{type(failure).__name__}: {failure}")
        self._lose(transport, error)

    async def _pace(self) -> None:
        """The loop's clock under the input timeline: fills holes, and ends what lived too long."""
        loop = asyncio.get_running_loop()
        step = 0.02
        while True:
            due = self._intake.fill_due()
            wake = loop.time() + 1.0 if due is None else max(due, loop.time() + step)
            await asyncio.sleep(wake - loop.time())
            # Woken late, the loop was held: what it held up is about to be delivered, so a hole
            # is not one until the next look.
            if loop.time() - wake < step:
                self._hear(self._intake.fill(loop.time()))
            self._check_limits(loop.time())

    def _begin(self, transport: CallTransport) -> None:
        if self._group is None or self._life.reason is not None:
            return
        info = transport.info
        now = asyncio.get_running_loop().time()
        self._intake.attach(info.input.rate, gapless=info.gapless, now=now)
        self._transport = transport
        self._line.attach(transport)
        self._line_state("attached")
        self._reader = self._group.create_task(self._read(transport), name="call.reader")

    def _lose(self, transport: CallTransport, error: TransportError) -> None:
        """The carrier failed under a read or a send: go on without."""
        if transport is not self._transport:
            return
        self._transport = None
        if self._life.reason is not None:
            return
        log.info("carrier lost", extra={"call_id": self.info.call_id, "why": str(error)})
        self._intake.detach()
        self._line.detach()
        self._life.detached = asyncio.get_running_loop().time()
        if self._reader is not None and self._reader is not asyncio.current_task():
            self._reader.cancel()
        self._spawn(self._close_carrier(transport, error.code))
        self._line_state("detached")

    def _signal(self, signal: Signal) -> None:
        match signal:
            case Gap(samples):
                self.emit(InputGap(samples=samples))
                self._hear(self._intake.gap(samples, asyncio.get_running_loop().time()))
            case Played(pos, epoch):
                self._line.correct(pos, epoch)
            case Hangup(by_remote):
                self.hang_up("remote_hangup" if by_remote else "hangup")
            case _:
                self._guard(lambda: self.brain.signal(signal))

    def _hear(self, frames: Iterable[AudioFrame]) -> None:
        for frame in frames:
            self._line.tick(frame.end)
            if self._recorder is not None:
                self._recorder.caller(frame.at, frame.array())
            self._guard(lambda frame=frame: self.brain.hear(frame))  # type: ignore[misc]

    def _guard(self, step: Callable[[], None]) -> None:
        """A bad frame or signal never ends a call: it is told once a second at most."""
        try:
            step()
        except Exception as error:
            self._life.broken_hears += 1
            if self._life.broken_hears % 50 == 1:
                log.exception("brain refused input", extra={"call_id": self.info.call_id})
                self.emit(Problem(code="ERR_BRAIN", stage="input", message=str(error)))

    def _check_limits(self, now: float) -> None:
        rate = self.brain.input_format.rate
        if self._transport is None and now - self._life.detached >= self.policy.linger_s:
            self.hang_up("linger")
        elif (
            self.at >= self.policy.max_s * rate
            or self.at - self._life.active >= self.policy.idle_s * rate
        ):
            self.hang_up("limit")

    def _line_state(self, state: LineState) -> None:
        self.emit(LineEvent(state=state))
        self._guard(lambda: self.brain.signal(LineChanged(state)))

    def _spawn(self, coro: Coroutine[None, None, None]) -> None:
        if self._group is None or self._life.reason is not None:
            coro.close()
        else:
            self._group.create_task(coro, name="call.line")

    async def _close_carrier(self, transport: CallTransport, reason: str) -> None:
        try:
            async with asyncio.timeout(CLOSE_S):
                await transport.aclose(reason)
        except (TransportError, TimeoutError, OSError) as error:
            log.info("carrier did not close", extra={"why": str(error)})

    async def _close(self, reason: EndReason) -> None:
        transport, self._transport = self._transport or self._waiting, None
        if transport is not None:
            await self._close_carrier(transport, reason)
        if self._recorder is not None:
            async with asyncio.timeout(CLOSE_S):
                await self._recorder.aclose()
        self.emit(LineEvent(state="closed"))
        self.emit(CallEnded(reason=reason, late=self._late(), turns=self._life.turns))
