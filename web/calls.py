"""The calls of one server: who may come in, who is there, and how all of them end.

The registry owns the server's TaskGroup (`running`): one task per call, and the tools that outlive
their call. A call's task never raises: what goes wrong in it is logged and counted here. It knows
no HTTP.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from ..core.external import AgentEvent, EventReceipt
from ..media.call import Call
from ..media.events import EndReason
from ..media.transport import CallInfo
from .auth import START_TTL_S, Grant, Signer, TokenRefused, new_call_id
from .metrics import Metrics
from .session import Answer, CallSession, Past

log = logging.getLogger(__name__)

END_S = 3.0
"""Every call is gone this long after it was told to end (DESIGN 5.10)."""
ENDED_KEPT = 10_000
"""Ended calls whose start tokens are still refused by name; tokens die after START_TTL_S."""
COLLECT_AFTER = 16
"""Ended calls after which the collector runs. A call leaves few objects but large ones (its sound):
by the collector's own count of objects hundreds of calls would pile up. It takes about 5 ms where
the server has frozen what lives for ever (app.py), and is left to itself elsewhere."""


class Refused(Exception):
    """No call now. `reason` is a closed word for the metrics, `retry_after_s` for the client."""

    def __init__(self, reason: str, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after_s = retry_after_s


class LiveWords(Protocol):
    """Calls `show` with an answer's text so far."""

    show: Callable[[str], None]


class LiveAgent(Protocol):
    """What reaches an agent on a call from outside; core.agent.Agent is one."""

    async def resolve_inbox_item(self, item_id: str, response: str) -> bool: ...

    async def emit_event(self, event: AgentEvent) -> EventReceipt: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltCall:
    """A call ready to run, how people's answers reach its display stack, who can show its answers
    while they grow, and the agent that is told what comes from outside."""

    call: Call
    answer: Answer = lambda request: False
    assistant: str = "Assistant"
    live_text: LiveWords | None = None
    agent: LiveAgent | None = None
    past: Past | None = None
    """What was said before a client came; None: nobody keeps it."""
    inbox: bool = False
    """Whether the page's own visitors may answer the agent's inbox through the store door."""


CallFactory = Callable[[CallInfo, asyncio.TaskGroup], AbstractAsyncContextManager[BuiltCall]]
"""Builds one call; leaving the context closes what belongs to that call alone. The group is the
server's: an un-abortable tool finishes there under its own deadline (DESIGN 5.6)."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What POST /session answers: a token that begins one call within START_TTL_S."""

    token: str
    call_id: str
    expires_at: float


@dataclass(slots=True)
class _Entry:
    """A call from its first moment: `ready` holds its session once it is built."""

    ready: asyncio.Future[CallSession] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    built: BuiltCall | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryLimits:
    """`max_calls` alive at once; a re-attach token outlives `call_s` of its call by a minute;
    a `developer` may impair the line of his call."""

    max_calls: int = 80
    call_s: float = 3_600.0
    developer: bool = False


class CallRegistry:
    """Admission, tokens, linger and drain. Everything happens on the server's loop."""

    def __init__(
        self,
        build: CallFactory,
        *,
        signer: Signer,
        metrics: Metrics,
        limits: RegistryLimits | None = None,
        lagging: Callable[[], bool] = lambda: False,
    ) -> None:
        self.draining = False
        self._build = build
        self._signer = signer
        self._metrics = metrics
        self._limits = limits or RegistryLimits()
        self._lagging = lagging
        self._calls: dict[str, _Entry] = {}
        self._ended: OrderedDict[str, float] = OrderedDict()
        self._uncollected = 0
        self._group: asyncio.TaskGroup | None = None
        self._changed = asyncio.Event()
        metrics.gauge("calls_active", lambda: len(self._calls))
        metrics.gauge("draining", lambda: float(self.draining))

    @property
    def active(self) -> int:
        """Calls alive now, attached or lingering."""
        return len(self._calls)

    def live(self, call_id: str) -> BuiltCall | None:
        """The call of this id, while it is on."""
        entry = self._calls.get(call_id)
        return None if entry is None else entry.built

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own the calls' tasks; leaving it ends every call as `drain`."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self.draining = True
                self._hang_up_all("drain")
        self._group = None

    def admit(self) -> None:
        """Raise Refused when no new call may begin: before answering, never after (DESIGN 3)."""
        if self.draining or self._group is None:
            raise self._refused("draining", "the server is going down", 30)
        if len(self._calls) >= self._limits.max_calls:
            raise self._refused("full", f"all {self._limits.max_calls} lines are busy", 5)
        if self._lagging():
            raise self._refused("lagging", "the server is too busy for another call", 2)

    def offer(self, agent: str) -> Offer:
        """A token for a new call with `agent`. Raises Refused."""
        self.admit()
        call_id = new_call_id()
        token, expires_at = self._signer.sign(call_id, agent, "start", START_TTL_S)
        return Offer(token, call_id, expires_at)

    def permit(self, token: str) -> str:
        """The id of the call that `token` would open now; begins nothing. Raises TokenRefused or
        Refused."""
        grant = self._signer.read(token)
        if grant.call_id not in self._calls:
            self._admit_start(grant)
        return grant.call_id

    async def open(self, token: str, peer: str, line: str = "websocket") -> tuple[CallSession, str]:
        """The session that `token` permits, begun on a `line` of that kind if need be, and a token
        to attach again.

        Raises TokenRefused, Refused, or whatever building the call raised.
        """
        grant = self._signer.read(token)
        entry = self._calls.get(grant.call_id)
        if entry is None:
            entry = self._begin(grant, peer, line)
        session = await asyncio.shield(entry.ready)
        ttl_s = self._limits.call_s + START_TTL_S
        again, _ = self._signer.sign(grant.call_id, grant.agent, "attach", ttl_s)
        return session, again

    async def drain(self, within_s: float) -> None:
        """Take no new calls; let those that run finish, and end the rest after `within_s`."""
        self.draining = True
        log.info("draining", extra={"calls": self.active, "within_s": within_s})
        if not await self._emptied(within_s):
            self._hang_up_all("drain")
            await self._emptied(END_S)

    def _admit_start(self, grant: Grant) -> None:
        if grant.purpose != "start" or grant.call_id in self._ended:
            raise TokenRefused("the call has ended; POST /session begins a new one")
        self.admit()

    def _begin(self, grant: Grant, peer: str, line: str) -> _Entry:
        self._admit_start(grant)
        group = self._group
        if group is None:
            raise self._refused("draining", "the server is going down", 30)
        entry = self._calls[grant.call_id] = _Entry()
        info = CallInfo(call_id=grant.call_id, line=line, peer=peer, agent=grant.agent)
        group.create_task(self._live(entry, info, group), name=f"call {grant.call_id}")
        return entry

    async def _live(self, entry: _Entry, info: CallInfo, group: asyncio.TaskGroup) -> None:
        """Task of one call in the server's group. Never raises but for cancellation."""
        reason: EndReason = "error"
        self._metrics.count("calls_started_total")
        try:
            async with self._build(info, group) as built:
                session = CallSession(
                    built.call,
                    built.answer,
                    built.assistant,
                    developer=self._limits.developer,
                    past=built.past,
                    inbox=built.inbox,
                )
                if built.live_text is not None:
                    built.live_text.show = session.show_words
                entry.built = built
                entry.ready.set_result(session)
                if self.draining:
                    built.call.hang_up("drain")
                reason = await built.call.run()
                await session.aclose(reason)
        except Exception as error:
            log.exception("call failed", extra={"call_id": info.call_id})
            if not entry.ready.done():
                entry.ready.set_exception(error)
                entry.ready.exception()  # heard by whoever waits; nobody has to
        finally:
            if not entry.ready.done():
                entry.ready.cancel()
            self._forget(info.call_id)
            self._metrics.count("calls_ended_total", reason=reason)
            log.info("call ended", extra={"call_id": info.call_id, "reason": reason})

    def _forget(self, call_id: str) -> None:
        now = asyncio.get_running_loop().time()
        self._calls.pop(call_id, None)
        self._ended[call_id] = now
        while self._ended and (
            len(self._ended) > ENDED_KEPT
            or next(iter(self._ended.values())) < now - START_TTL_S - 1
        ):
            self._ended.popitem(last=False)
        self._changed.set()
        self._uncollected += 1
        if self._uncollected >= COLLECT_AFTER and gc.get_freeze_count():
            self._uncollected = 0
            gc.collect()

    def _hang_up_all(self, reason: EndReason) -> None:
        for entry in self._calls.values():
            if entry.ready.done() and not entry.ready.cancelled() and not entry.ready.exception():
                entry.ready.result().call.hang_up(reason)

    async def _emptied(self, within_s: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._calls:
                    self._changed.clear()
                    await self._changed.wait()
        return not self._calls

    def _refused(self, reason: str, message: str, retry_after_s: int) -> Refused:
        self._metrics.count("calls_refused_total", reason=reason)
        return Refused(reason, message, retry_after_s)
