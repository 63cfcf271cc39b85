"""Keeps a session connected: carries out what the connection table decides (`lifecycle`).

Owned by one session, whose TaskGroup it is given: the dial, the clock, the pacer and connections
that are being retired are tasks of that group, and all of them end with `close` or with the closed
state. It holds the caller's last seconds of sound and the newest resumption handle. It never reads
what the events mean for the conversation, and never writes history.

What holds (rows 78-80, DESIGN 5.8): one connection at a time carries the session, its events alone
reach `on_event`, and after a change the caller's sound goes on from the last settled sample, every
sample once and in order. While nothing is open no command is kept: the conversation is in the
store, and `setup` is asked for it when a connection is sought.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import assert_never

from ..adapters.errors import ConnectionFailed
from . import lifecycle_vocabulary as voc
from .carried import Handle, Meter
from .commands import CutOutput, ProviderCommand, SendAudio
from .dial import Dialler, DialParts
from .events import Closed, GoAway, RealtimeEvent, Resumable, Used
from .leg import Leg
from .lifecycle import wakes_at
from .lifecycle_vocabulary import Phase
from .linking import LinkConfig, LinkState, MakeSetup, Reconnected, Refresh, SetupRequest
from .naming import local, named
from .port import RealtimeAdapter
from .ring import Ring
from .stepping import Table
from .uplink import Uplink

__all__ = ["Link", "LinkConfig", "LinkState", "MakeSetup", "Reconnected", "SetupRequest"]

PACE_S = 0.02


class Link:
    """See the module. All methods belong to the loop's thread; callbacks are plain calls and may
    call back.

    setup     asked for each connection; its `resume_handle` is set here
    on_event  every event of the connection that carries the session, Opened and Closed included.
              Used.seconds counts all connections of the session
    on_state  states and Reconnected, in order; before the events of a new connection
    at_gap    whether a move would interrupt nobody now
    on_leave  a connection is replaced by another that is open already: before it is decided what
              that one hears again
    mark      the session's mark of what the provider knows, taken when a handle comes
    refresh   an adapter with new credentials, after they were rejected
    """

    def __init__(
        self,
        adapter: RealtimeAdapter,
        *,
        group: asyncio.TaskGroup,
        setup: MakeSetup,
        on_event: Callable[[RealtimeEvent], None],
        on_state: Callable[[LinkState | Reconnected], None],
        at_gap: Callable[[], bool],
        on_leave: Callable[[], None] = lambda: None,
        mark: Callable[[], object] = lambda: None,
        refresh: Refresh | None = None,
        config: LinkConfig | None = None,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        self._group = group
        self._on_event = on_event
        self._on_state = on_state
        self._at_gap = at_gap
        self._on_leave = on_leave
        self._mark = mark
        self._config = config or LinkConfig()
        able = adapter.capabilities
        rules = voc.Rules(
            resume=able.resume,
            closes_first=able.closes_first,
            max_session_s=able.max_session_s,
            refreshable=refresh is not None,
            attempts=self._config.attempts,
        )
        self._rate = able.input_format.rate
        self._ring = Ring(max(1, round(self._rate * self._config.ring_s)))
        self._handle = Handle()
        parts = DialParts(
            setup=setup,
            refresh=refresh,
            jitter=jitter or (lambda: random.uniform(-1, 1)),
            handle=self._handle,
            leave=self._leave,
            hear=self._hear,
            outcome=self._dialled,
        )
        self._dialler = Dialler(adapter, group, parts, self._config)
        self._meter = Meter()
        self._table = Table(self._perform, rules)
        self._turned = asyncio.Event()  # open for the first time, or closed
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._leg: Leg | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self._announced = LinkState("connecting")
        self._error: Exception | None = None
        self._outage_at: float | None = None
        self._settled = 0

    @property
    def state(self) -> LinkState:
        """What `on_state` was told last; `connecting` before `open`."""
        return self._announced

    @property
    def handle(self) -> str | None:
        """The handle that a new connection would resume with."""
        return self._handle.value

    @property
    def number(self) -> int:
        """How many connections have carried the session, the present or last one included."""
        return self._meter.connections

    @property
    def used(self) -> Used | None:
        """The provider's newest count, seconds of all connections summed; after `close` its last
        word. None: it told none."""
        return self._meter.last

    @property
    def heard(self) -> int:
        """The session position behind the newest sample of the caller."""
        return self._ring.end

    async def open(self, resume_handle: str | None = None) -> None:
        """Connect, and return when the session is open; once. Raises AdapterError when that cannot
        be, or what `setup` raised; the link is closed then. Cancelled: it is closed as well."""
        self._handle.keep(resume_handle)
        self._table.feed(voc.Start(resume_handle is not None))
        self._spawn(self._watch())
        try:
            await self._turned.wait()
        except asyncio.CancelledError:
            self._table.feed(voc.Stop())
            raise
        if self._announced.phase == "closed":
            raise self._error or ConnectionFailed("ERR_REALTIME_CLOSED", "stopped before it opened")

    async def close(self) -> None:
        """End it and wait for the provider's last word; its events still come, then the closed
        state. Concurrent calls share one ending. Cancelled: it goes on by itself, bounded, and no
        event of it comes any more."""
        if self._stopping.is_set():
            await self._ended.wait()
            return
        self._stopping.set()
        self._table.feed(voc.Stop())
        try:
            await self._wind_up()
        finally:
            self._leg = None
            if self._announced.phase != "closed":
                self._announce(LinkState("closed"))
            self._ended.set()

    def send_audio(self, pcm: bytes) -> None:
        """The caller's next samples, in the adapter's input format; until it is closed. Sent now,
        or when something is open again. Raises MediaValueError for half a sample."""
        if self._table.state.phase == "closed":
            return
        self._ring.push(pcm)
        self._pump(self._leg)

    def tell(self, command: ProviderCommand) -> bool:
        """Hand `command` to the connection that is open. False: none is, and it is not kept, as
        what a new one must know is asked of `setup`. During a move the old connection is told."""
        if isinstance(command, SendAudio):
            self.send_audio(command.pcm)
            return self._table.state.phase != "closed"
        if self._announced.phase != "open" or self._leg is None or self._leg.connection is None:
            return False
        if isinstance(command, CutOutput):
            command = local(command, self.number)
        self._leg.connection.tell(command)
        return True

    def settle(self, position: int) -> None:
        """What the caller said before `position` is in the store: it is not replayed. While nobody
        speaks, settle a little behind `heard`, or a new connection first hears old silence."""
        self._settled = max(self._settled, min(position, self._ring.end))

    def position_of(self, ms: float) -> int:
        """The session position of `ms` of the sound that this connection was sent."""
        uplink = self._leg.uplink if self._leg else None
        return self._settled if uplink is None else uplink.position_of(ms)

    def move(self, within_s: float | None = None, *, fresh: bool = False) -> None:
        """Change to a new connection at the next gap, at the latest after `within_s` (0: now).
        `fresh`: it does not resume, as what the provider knows is not wanted any more."""
        now = asyncio.get_running_loop().time()
        by = None if within_s is None else now + within_s
        self._table.feed(voc.MoveWanted(by, fresh))

    def _perform(self, effect: voc.Effect) -> None:
        match effect:
            case voc.Dial():
                planned, first = self._table.state.planned, self._announced.phase == "connecting"
                work = self._dialler.dial(effect, planned=planned, first=first)
                self._dialling = self._spawn(work)
            case voc.Abort():
                if self._dialling is not None:
                    self._dialling.cancel()
            case voc.Adopt():
                if self._leg is not None:
                    self._on_leave()
                old, self._leg = self._leg, self._dialler.take()
                self._meter.connections += 1
                self._retire(old)
            case voc.Resume():
                self._resume(effect)
            case voc.ForgetHandle():
                self._handle.keep(None)
            case voc.Announce(phase, code):
                if phase != "closed" or not self._stopping.is_set():
                    self._announce(LinkState(phase, code, self._reason(phase)))
            case _:
                assert_never(effect)

    def _dialled(self, event: voc.Connected | voc.Failed, error: Exception | None) -> None:
        if error is not None:
            self._error = error
        self._table.feed(event)

    async def _leave(self) -> None:
        """Close the connection before another is opened; its last events still count."""
        self._outage_at = asyncio.get_running_loop().time()
        if self._leg is not None:
            await self._leg.close(self._config.close_timeout_s)
            self._leg = None

    def _resume(self, resume: voc.Resume) -> None:
        """The adopted connection: reported, its early events given, the ring sent, then live."""
        leg, now = self._leg, asyncio.get_running_loop().time()
        if leg is None or leg.connection is None:
            return
        kept = self._ring.since(self._settled)
        self._settled = kept.start
        pacing = self._config.pacing if self._dialler.adapter.capabilities.paced_input else None
        send = _sender(leg)
        leg.uplink = Uplink(self._ring, self._rate, send, start=kept.start, pacing=pacing, now=now)
        if not resume.first:
            self._report(resume, leg.resumed, kept.lost, kept.end - kept.start, now)
        self._error = self._outage_at = None
        leg.release()
        self._pump(leg)
        if pacing is not None:
            self._spawn(self._pace(leg))

    def _report(
        self, resume: voc.Resume, restored: bool, lost: int, replayed: int, now: float
    ) -> None:
        outage_s = 0.0 if self._outage_at is None else now - self._outage_at
        lost_ms, replayed_ms = (samples * 1000 // self._rate for samples in (lost, replayed))
        self._on_state(
            Reconnected(
                state_restored=restored,
                lost_ms=lost_ms,
                replayed_ms=replayed_ms,
                attempt=resume.attempt,
                outage_ms=round(outage_s * 1000),
                planned=resume.planned,
            )
        )

    def _hear(self, leg: Leg, event: RealtimeEvent) -> None:
        """An event of a released connection. Of one that was replaced only Used still counts."""
        if isinstance(event, Used):
            last = self._stopping.is_set() and leg is self._leg
            event = self._meter.count(leg, event, final=last)
            if leg is not self._leg:  # its context is not that of the session any more
                event = replace(event, context_tokens=None, context_ratio=None)
        elif leg is not self._leg:
            return
        now = asyncio.get_running_loop().time()
        if isinstance(event, Resumable) and event.handle is not None:
            self._handle.keep(event.handle, self._mark())
            self._table.feed(voc.HandleKept())
        self._on_event(named(event, self.number))
        match event:
            case GoAway(time_left_s):
                self._table.feed(voc.GoingAway(now, time_left_s))
            case Closed():
                self._lost(leg, event, now)
            case _:
                pass

    def _lost(self, leg: Leg, closed: Closed, now: float) -> None:
        if self._table.state.phase != "open":
            return  # we are closing it ourselves
        self._outage_at = now
        self._error = ConnectionFailed(closed.code, closed.reason)
        self._leg = None
        self._retire(leg)
        self._table.feed(voc.Dropped(now, closed.code, closed.fatal))

    def _reason(self, phase: Phase) -> str:
        return str(self._error or "") if phase in ("reconnecting", "closed") else ""

    def _announce(self, state: LinkState) -> None:
        self._announced = state
        if state.phase in ("open", "closed"):
            self._turned.set()
        self._on_state(state)

    def _pump(self, leg: Leg | None) -> None:
        if leg is not None and leg is self._leg and leg.uplink is not None:
            leg.uplink.pump(asyncio.get_running_loop().time())

    async def _pace(self, leg: Leg) -> None:
        """Time goes on for a paced provider. Task of the session's group, ends with the leg."""
        while leg is self._leg:
            self._pump(leg)
            await asyncio.sleep(PACE_S)

    async def _watch(self) -> None:
        """Time goes on for the table. Task of the session's group, ends in the closed state."""
        loop = asyncio.get_running_loop()
        while self._table.state.phase != "closed":
            self._table.changed.clear()
            wake = wakes_at(self._table.state)
            if self._table.waits_for_gap:
                poll = loop.time() + self._config.gap_poll_s
                wake = poll if wake is None else min(wake, poll)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(wake):
                    await self._table.changed.wait()
            if self._table.state.phase == "open":
                self._table.feed(voc.Tick(loop.time(), self._at_gap()))

    def _retire(self, leg: Leg | None) -> None:
        """Close a connection that was replaced, beside everything else."""
        task = self._spawn(leg.close(self._config.close_timeout_s)) if leg else None
        if task is not None:
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    async def _wind_up(self) -> None:
        """Let go of the dial, and of every connection in order, all at once."""
        self._retire(self._leg)
        work = {*self._retiring} if self._dialling is None else {*self._retiring, self._dialling}
        if work:
            await asyncio.wait(work)
        if self._leg is not None:  # closed already, unless the group ends before us
            await self._leg.close(self._config.close_timeout_s)

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None] | None:
        """A task of the session's group; None when that ends already, and we with it."""
        try:
            return self._group.create_task(work)
        except RuntimeError:
            work.close()
            return None


def _sender(leg: Leg) -> Callable[[bytes], None]:
    def send(pcm: bytes) -> None:
        if leg.connection is not None:
            leg.connection.tell(SendAudio(pcm))

    return send
