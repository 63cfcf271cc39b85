"""The WebRTC lines of one server: how many may connect at once, who is there, why one ended.

Owns the TaskGroup (`running`) in which each line has one task: it carries the line, attaches it to
its call as soon as it is connected, and remembers its end for a minute. Until it is connected the
call's old line goes on: one that never connects takes nothing away. It knows no HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ..media.errors import MediaValueError, TransportError
from ..media.opus import OpusMissing
from .calls import CallRegistry, Refused
from .config import Config
from .metrics import Metrics
from .rtc_opener import Opener, installed, open_webrtc
from .session import CallSession

if TYPE_CHECKING:
    from ..adapters.transports.webrtc import WebRtcTransport

log = logging.getLogger(__name__)

MAX_CONNECTING = 32
"""Lines of one server that may be connecting at once; more are refused."""
MAX_CONNECTING_PER_CALL = 2
"""A page may ask anew before its first attempt is given up."""
KNOWN_S = 60.0
"""How long the cause of a line's end can be asked for."""
MAX_KNOWN = 1_000
"""Ended lines that are remembered at most; the oldest go first."""

LineState = Literal["connecting", "connected", "closed"]


class NoSuchLine(KeyError):
    """The line is not known, or not any more, or it is another call's."""


@dataclass(slots=True)
class RtcLine:
    """One living line. `id` is a secret of its page."""

    id: str
    call_id: str
    transport: WebRtcTransport
    began: float
    connected: bool = False
    negotiating: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class LineStatus:
    """What a page may know of its line. `at`: when that was so, on the loop's clock."""

    state: LineState
    cause: str | None
    at: float


class RtcLines:
    """`answer` an offer, then `carry` the line. Everything happens on the server's loop."""

    def __init__(self, config: Config, registry: CallRegistry, metrics: Metrics) -> None:
        self._config = config
        self._registry = registry
        self._metrics = metrics
        self._living: dict[str, RtcLine] = {}
        self._ended: dict[str, LineStatus] = {}
        self._open: Opener | None = None
        self._opening = asyncio.Lock()
        self._broken = False
        self._group: asyncio.TaskGroup | None = None
        metrics.gauge("rtc_lines_active", lambda: len(self._living))

    @property
    def offered(self) -> bool:
        """Whether calls can come over WebRTC: switched on, installed, and not found broken."""
        return self._config.webrtc.enabled and not self._broken and installed()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own the lines' tasks; leaving it closes every line."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                for line in self._living.values():
                    group.create_task(line.transport.aclose("drain"), name=f"{line.id} close")

    async def warm(self) -> None:
        """Import what lines need, in a thread, so that no first offer waits for it."""
        if self.offered:
            try:
                await self._opener()
            except Refused as refused:
                log.warning("webrtc is not offered", extra={"why": str(refused)})

    async def answer(self, call_id: str, sdp: str, peer: str) -> tuple[RtcLine, str]:
        """A new line for that call, and its answer to the offer `sdp`. `carry` or `give_up` it.

        Raises Refused, MediaValueError naming the field, TransportError when no answer can be made.
        """
        opener = await self._opener()
        self._admit(call_id)
        now = asyncio.get_running_loop().time()
        line = RtcLine(f"line_{secrets.token_hex(16)}", call_id, opener(peer), now)
        self._living[line.id] = line
        try:
            return line, await self._negotiated(line, sdp)
        except BaseException:
            await self.give_up(line)
            raise

    async def renegotiate(self, line_id: str, call_id: str, sdp: str) -> str:
        """The answer of a living line to another offer. Raises NoSuchLine and as `answer`; after
        a MediaValueError the line goes on as it was."""
        line = self.find(line_id)
        if line.call_id != call_id:
            raise NoSuchLine(line_id)
        if line.negotiating.locked():
            raise Refused("busy", "another offer for this line is being answered", 1)
        return await self._negotiated(line, sdp)

    def carry(self, line: RtcLine, session: CallSession, token: str) -> None:
        """Give the line a life of its own. Older attempts of its call are dropped. Raises Refused
        while the server goes down."""
        group = self._group
        if group is None:
            raise Refused("draining", "the server is going down", 30)
        for other in self._attempts(line.call_id):
            if other is not line:
                group.create_task(other.transport.aclose("replaced"), name=f"{other.id} close")
        group.create_task(self._live(line, session, token), name=line.id)

    async def give_up(self, line: RtcLine) -> None:
        """Close and forget a line that was not carried."""
        self._living.pop(line.id, None)
        await line.transport.aclose("error")

    def find(self, line_id: str) -> RtcLine:
        """The living line. Raises NoSuchLine."""
        line = self._living.get(line_id)
        if line is None:
            raise NoSuchLine(line_id)
        return line

    def status(self, line_id: str) -> LineStatus:
        """Of a line that lives or ended lately. Raises NoSuchLine."""
        self._forget()
        if (ended := self._ended.get(line_id)) is not None:
            return ended
        line, now = self.find(line_id), asyncio.get_running_loop().time()
        if (cause := line.transport.cause) is not None:  # over, and closing
            return LineStatus("closed", cause, now)
        return LineStatus("connected" if line.connected else "connecting", None, now)

    def _attempts(self, call_id: str | None = None) -> list[RtcLine]:
        return [
            line
            for line in self._living.values()
            if not line.connected and call_id in (None, line.call_id)
        ]

    def _admit(self, call_id: str) -> None:
        if self._group is None or self._registry.draining:
            raise Refused("draining", "the server is going down", 30)
        busy = len(self._attempts()) >= MAX_CONNECTING
        if busy or len(self._attempts(call_id)) >= MAX_CONNECTING_PER_CALL:
            self._metrics.count("rtc_lines_refused_total")
            raise Refused("connecting", "too many lines are connecting", 2)

    async def _opener(self) -> Opener:
        async with self._opening:
            if self._open is None:
                loop = asyncio.get_running_loop()
                try:
                    self._open = await loop.run_in_executor(None, open_webrtc, self._config)
                except (ImportError, OpusMissing) as error:
                    self._broken = True
                    raise Refused("no_webrtc", f"WebRTC cannot be used: {error}", 60) from error
            return self._open

    async def _negotiated(self, line: RtcLine, sdp: str) -> str:
        async with line.negotiating:
            try:
                async with asyncio.timeout(self._config.webrtc.connect_s):
                    return await line.transport.answer(sdp)
            except MediaValueError:
                self._metrics.count("rtc_lines_failed_total", cause="offer")
                raise
            except TimeoutError:
                raise TransportError("no answer could be made in time") from None

    async def _live(self, line: RtcLine, session: CallSession, token: str) -> None:
        """Task of one line in the server's group. Never raises but for cancellation.

        A client that came to the call after the offer is newer than this line: it stays.
        """
        transport, before = line.transport, session.attached
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(transport.run(), name=f"{line.id} run")
                if await transport.opened():
                    self._connected(line)
                    if session.attached == before:
                        await session.attach(transport, token)
                    else:
                        await transport.aclose("replaced")
        except Exception:
            log.exception("webrtc line failed", extra={"call_id": line.call_id})
        finally:
            session.detach(transport)
            self._over(line)

    def _connected(self, line: RtcLine) -> None:
        line.connected = True
        setup_s = asyncio.get_running_loop().time() - line.began
        self._metrics.count("rtc_lines_total")
        self._metrics.count("rtc_setup_seconds_total", setup_s)
        log.info("webrtc connected", extra={"call_id": line.call_id, "setup_s": round(setup_s, 3)})

    def _over(self, line: RtcLine) -> None:
        transport, cause = line.transport, line.transport.cause or ""
        self._living.pop(line.id, None)
        self._ended[line.id] = LineStatus("closed", cause, asyncio.get_running_loop().time())
        self._forget()
        self._metrics.count("bad_messages_total", transport.bad_messages)
        self._metrics.count("input_dropped_samples_total", transport.dropped_samples)
        failed = failure(cause)
        if failed is not None:
            self._metrics.count("rtc_lines_failed_total", cause=failed)
        level = logging.INFO if failed is None else logging.WARNING
        log.log(level, "webrtc line ended", extra={"call_id": line.call_id, "cause": cause})

    def _forget(self) -> None:
        oldest = asyncio.get_running_loop().time() - KNOWN_S
        while self._ended:
            first, status = next(iter(self._ended.items()))
            if status.at >= oldest and len(self._ended) <= MAX_KNOWN:
                return
            del self._ended[first]


def failure(cause: str) -> str | None:
    """The word for the metrics, of a closed list: `ice`, `dtls`, `other`; None for an end in
    order."""
    if cause.startswith(("the line was closed", "the peer closed")):
        return None
    kind = cause.partition(":")[0].lower()
    return kind if kind in ("ice", "dtls") else "other"
