"""Joins a provider's codec with a socket into a Connection (port.py); the same for all providers.

`open_connection` is what an adapter's `connect` calls. The connection it gives owns its socket and
one task in the caller's group; that task is the only reader, and all events leave through one
outlet, in order, ending with exactly one Closed. Nothing here knows a provider's messages, and
nothing here reconnects (realtime/link.py does).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from ...adapters.errors import (
    AdapterError,
    ConnectionFailed,
    CredentialsRejected,
    ProviderRefused,
    ProviderStalled,
)
from ...adapters.socket import ABNORMAL, Socket, SocketClosed, SocketConfig, connect
from ...media.errors import MediaValueError
from ..commands import ProviderCommand
from ..events import Closed, Opened, ProviderProblem, RealtimeEvent
from ..port import Emit, Setup
from .codec import Codec

log = logging.getLogger(__name__)

STAGE = "ERR_REALTIME"
HANDLE = "handle"
"""`Closed.code` of a codec whose resume handle was refused."""
SHOWN_CHARACTERS = 300
"""Of what a provider said, in an error."""
KEY_CODES = frozenset(
    {
        "401",
        "403",
        "authentication_error",
        "invalid_api_key",
        "permission_denied",
        "permission_error",
        "unauthenticated",
        "unauthorized",
    }
)
"""`Closed.code` or `ProviderProblem.code`, before Opened, that blames the key; in small letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverLimits:
    """How long a provider may take.

    open_s    from the first byte to Opened
    finish_s  for its last word after we asked for the end (a model that owes final usage: 10)
    idle_s    a connection without any message for this long is dead; None: the socket's pings tell
    due_s     the same while an answer is due; None: never
    """

    open_s: float = 15.0
    finish_s: float = 2.0
    idle_s: float | None = None
    due_s: float | None = 10.0

    def __post_init__(self) -> None:
        for name in ("open_s", "finish_s", "idle_s", "due_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise MediaValueError(name, str(value), "use a positive number")


async def open_connection(
    codec: Codec,
    config: SocketConfig,
    setup: Setup,
    emit: Emit,
    group: asyncio.TaskGroup,
    limits: DriverLimits | None = None,
) -> DrivenConnection:
    """Connect, send the setup, and wait until Opened was emitted. `codec` is a fresh one.

    `emit` is called from the connection's task in `group`, from `tell` and from `close`; events it
    causes by telling something come after those already there. One that raises is logged, and the
    connection goes on.

    Raises AdapterError as `RealtimeAdapter.connect` says, or what `codec.begin` raises; then, and
    after a cancellation, the socket is closed and nothing more is emitted.
    """
    limits = limits or DriverLimits()
    try:
        async with asyncio.timeout(limits.open_s):
            driven = DrivenConnection(codec, await connect(config, stage=STAGE), emit, limits)
            await driven.open(setup, group, config)
    except TimeoutError as error:
        text = f"{config.host}: not ready within {limits.open_s:g} s"
        raise ProviderStalled(f"{STAGE}_STALLED", text) from error
    return driven


class DrivenConnection:
    """An open connection (port.Connection). Made by `open_connection`.

    Its one task reads, and with it live the socket's watch and our own for a provider that falls
    silent; all end when the socket does. A group that is cancelled ends it like a broken socket.
    """

    def __init__(self, codec: Codec, socket: Socket, emit: Emit, limits: DriverLimits) -> None:
        self._codec = codec
        self._socket = socket
        self._limits = limits
        self._outlet = _Outlet(emit)
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._opening = _Opening()
        self._closing = False
        self._due_since: float | None = None
        self._due_began = asyncio.Event()
        self._said_all = asyncio.Event()
        """The provider has said its last word, or will say none."""
        self._ended = asyncio.Event()

    async def open(self, setup: Setup, group: asyncio.TaskGroup, config: SocketConfig) -> None:
        """For `open_connection` alone: once, first."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            self._codec.begin(setup)
            self._flush()
            task = group.create_task(self._run(), name=f"realtime {config.host}")
            # A group that is cancelled now never starts it: its end is told all the same.
            task.add_done_callback(self._after_run)
            tasks.add(task)
            await self._opened
        except _NotOpened as error:
            raise error.told(config) from error
        finally:
            if not self._opened.done() or self._opened.cancelled() or self._opened.exception():
                self._outlet.over = True
                self._socket.abort("it was not opened")
                if tasks:
                    await asyncio.wait(tasks)

    def tell(self, command: ProviderCommand) -> None:
        """As port.Connection says."""
        if not self._closing and not self._outlet.over:
            self._step(lambda: self._codec.tell(command))

    async def close(self) -> None:
        """As port.Connection says, within `finish_s` and the socket's `close_timeout_s`."""
        if not self._closing:
            self._closing = True
            try:
                if not self._outlet.over:
                    await self._finish()
            finally:
                self._socket.abort("closed")
                self._end()
        await self._ended.wait()

    async def _finish(self) -> None:
        waits: list[bool] = []

        def finish() -> list[RealtimeEvent]:
            waits.append(self._codec.finish())
            return []

        self._step(finish)
        if any(waits):
            try:
                async with asyncio.timeout(self._limits.finish_s):
                    await self._said_all.wait()
            except TimeoutError:
                log.warning("a provider did not finish", extra={"waited_s": self._limits.finish_s})
        await self._socket.aclose()
        await self._ended.wait()

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                watches = [
                    group.create_task(self._socket.run()),
                    group.create_task(self._watch()),
                ]
                await self._read()
                for watch in watches:
                    watch.cancel()
        except Exception:
            log.exception("a realtime connection failed inside")

    def _after_run(self, task: asyncio.Task[None]) -> None:
        self._socket.abort("its task ended")
        self._end()
        self._said_all.set()
        self._ended.set()

    async def _read(self) -> None:
        async with aclosing(self._socket.receive()) as frames:
            async for frame in frames:
                self._step(partial(self._codec.receive, frame))
                if self._outlet.over:
                    # The codec said Closed by itself.
                    await self._socket.aclose()
                    return

    def _step(self, ask: Callable[[], list[RealtimeEvent]]) -> None:
        """Let the codec do something; send what it wants sent, tell what it tells."""
        try:
            events = ask()
            self._flush()
        except Exception as error:
            log.exception("a codec failed", extra={"codec": type(self._codec).__name__})
            events = [ProviderProblem("codec", f"{type(error).__name__} in our own codec")]
        self._notice()
        self._deliver(events)

    def _flush(self) -> None:
        for frame in self._codec.take():
            self._socket.send(frame)

    def _notice(self) -> None:
        if not self._codec.due:
            self._due_since = None
        elif self._due_since is None:
            self._due_since = self._loop.time()
            self._due_began.set()
        if self._closing and self._codec.finished:
            self._said_all.set()

    def _deliver(self, events: list[RealtimeEvent]) -> None:
        if self._opened.done():
            self._outlet.put(events)
            return
        told = self._opening.passed(events)
        self._outlet.put(told)
        if self._opening.failed is not None:
            self._outlet.over = True
            self._opened.set_exception(_NotOpened(self._opening))
        elif any(isinstance(event, Opened) for event in told):
            self._opened.set_result(None)

    def _end(self) -> None:
        """Tell how it ended, unless that was told."""
        if self._outlet.over:
            return
        how = self._socket.closed or SocketClosed(ABNORMAL, "its task ended", by_us=True)
        try:
            events = self._codec.closed(how.code, how.reason)
        except Exception:
            log.exception("a codec failed", extra={"codec": type(self._codec).__name__})
            events = []
        if not any(isinstance(event, Closed) for event in events):
            events = [*events, Closed(str(how.code), how.reason)]
        self._deliver(events)

    async def _watch(self) -> None:
        """Give a silent provider up (invariant 8), in a way that costs nothing per message."""
        while True:
            deadline = self._deadline()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._due_began.wait()
            except TimeoutError:
                deadline = self._deadline()
                if deadline is not None and self._loop.time() >= deadline:
                    due = "an answer was due and " if self._due_since is not None else ""
                    silent_s = self._loop.time() - self._socket.last_frame_at
                    self._socket.abort(f"{due}no message came for {silent_s:.1f} s")
                    return
            self._due_began.clear()

    def _deadline(self) -> float | None:
        heard_at = self._socket.last_frame_at
        idle_s, due_s = self._limits.idle_s, self._limits.due_s
        ends = [] if idle_s is None else [heard_at + idle_s]
        if due_s is not None and self._due_since is not None:
            ends.append(max(heard_at, self._due_since) + due_s)
        return min(ends, default=None)


class _Outlet:
    """The one way of events to `emit`: in order also when `emit` itself causes more, nothing after
    Closed."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._waiting: deque[RealtimeEvent] = deque()
        self._busy = False
        self.over = False

    def put(self, events: list[RealtimeEvent]) -> None:
        if self.over:
            return
        self._waiting.extend(events)
        if self._busy:
            return  # called from inside `emit`: the loop below comes to these
        self._busy = True
        try:
            while self._waiting and not self.over:
                event = self._waiting.popleft()
                self.over = isinstance(event, Closed)
                self._emit_one(event)
        finally:
            self._busy = False

    def _emit_one(self, event: RealtimeEvent) -> None:
        try:
            self._emit(event)
        except Exception:
            log.exception("whoever listens to a provider failed on an event")


class _Opening:
    """What came before Opened. A Closed then is the answer to whoever opens, not an event."""

    def __init__(self) -> None:
        self.problem: ProviderProblem | None = None
        self.failed: Closed | None = None

    def passed(self, events: list[RealtimeEvent]) -> list[RealtimeEvent]:
        """The events to emit: none of a list that says Closed before Opened."""
        for event in events:
            if isinstance(event, Opened):
                return events
            if isinstance(event, Closed):
                self.failed = event
                return []
            if isinstance(event, ProviderProblem):
                self.problem = event
        return events


class _NotOpened(Exception):
    """The connection ended before Opened."""

    def __init__(self, opening: _Opening) -> None:
        super().__init__("it ended before it was open")
        self._opening = opening

    def told(self, config: SocketConfig) -> AdapterError:
        """As the port's errors."""
        closed, problem = self._opening.failed, self._opening.problem
        code = "" if closed is None else closed.code
        reasons = [] if closed is None else [closed.reason]
        codes = {code.lower()}
        if problem is not None:
            codes.add(problem.code.lower())
            reasons += [problem.message]
        said = config.scrubbed(": ".join(dict.fromkeys(filter(None, reasons))))[:SHOWN_CHARACTERS]
        text = f"{config.host}: {code}" + (f": {said}" if said else "")
        if code == HANDLE:
            return ProviderRefused(f"{STAGE}_HANDLE", text)
        if codes & KEY_CODES:
            return CredentialsRejected(f"{STAGE}_AUTH", text)
        if closed is not None and closed.fatal:
            return ProviderRefused(f"{STAGE}_REFUSED", text)
        return ConnectionFailed(f"{STAGE}_CONNECTION", text)
