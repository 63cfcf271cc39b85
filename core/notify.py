"""Subscribers: ordered, isolated, bounded.

Every subscriber has its own queue and its own pump task, so a slow one delays nobody and a raising
one is logged and counted (spec core 9, 19.9). The pumps live in the task group of whoever entered
`running()`: the agent's owner for a call, the single request otherwise. A temporary subscriber of
one request is different: it is called in the emitter's own step, so it must be quick.
"""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from .errors import UsageError
from .events import SubscriberEvent, TextDelta

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Subscriber(Protocol):
    """Anything with `record(event)`, plain or async."""

    def record(self, event: SubscriberEvent, /) -> Awaitable[None] | None: ...


Listener = Callable[[SubscriberEvent], None]
Hearing = Callable[[SubscriberEvent], Awaitable[None] | None]


@dataclass(slots=True)
class SubscriberStatistics:
    """Counts since the subscriber was added; `queued` is the present backlog."""

    delivered: int = 0
    failed: int = 0
    dropped: int = 0
    queued: int = 0


class _Feed:
    """One subscriber's queue. Drops the oldest text_delta first, then the oldest event."""

    def __init__(self, subscriber: Subscriber | Hearing, limit: int) -> None:
        self.subscriber = subscriber
        self._hear: Hearing = subscriber.record if hasattr(subscriber, "record") else subscriber
        self.statistics = SubscriberStatistics()
        self._limit = limit
        self._events: deque[SubscriberEvent] = deque()
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def put(self, event: SubscriberEvent) -> None:
        if len(self._events) >= self._limit:
            self._drop_one()
        self._events.append(event)
        self.statistics.queued = len(self._events)
        self._idle.clear()
        self._changed.set()

    async def flushed(self) -> None:
        await self._idle.wait()

    async def pump(self) -> None:
        """Deliver for ever; a cancelled pump has delivered a prefix and nothing twice."""
        while True:
            while self._events:
                event = self._events.popleft()
                self.statistics.queued = len(self._events)
                await self._deliver(event)
            self._changed.clear()
            self._idle.set()
            await self._changed.wait()

    async def _deliver(self, event: SubscriberEvent) -> None:
        try:
            outcome = self._hear(event)
            if inspect.isawaitable(outcome):
                await outcome
            self.statistics.delivered += 1
        except Exception:
            self.statistics.failed += 1
            logger.exception("subscriber failed", extra={"event": event.wire})

    def _drop_one(self) -> None:
        self.statistics.dropped += 1
        for event in self._events:
            if isinstance(event, TextDelta):
                self._events.remove(event)
                return
        self._events.popleft()


class Notifier:
    """Fans events out to the agent's subscribers, in order for each of them."""

    def __init__(self, queue_size: int = 1024, close_timeout_s: float = 1.0) -> None:
        self._queue_size = queue_size
        self._close_timeout_s = close_timeout_s
        self._feeds: list[_Feed] = []
        self._pumps: dict[int, asyncio.Task[None]] = {}
        self._groups: list[asyncio.TaskGroup] = []  # pumps live in the first

    def add(self, subscriber: Subscriber | Hearing) -> None:
        """Add once; a second add of the same object is ignored. Raises UsageError for what can hear
        nothing: neither a function nor an object with `record`."""
        if not callable(getattr(subscriber, "record", subscriber)):
            raise UsageError("subscriber: give a function of one event, or an object with record()")
        if any(feed.subscriber is subscriber for feed in self._feeds):
            return
        feed = _Feed(subscriber, self._queue_size)
        self._feeds.append(feed)
        self._start(feed)

    def remove(self, subscriber: Subscriber | Hearing) -> None:
        """Stop delivering; events still queued for it are lost."""
        for feed in [feed for feed in self._feeds if feed.subscriber is subscriber]:
            self._feeds.remove(feed)
            pump = self._pumps.pop(id(feed), None)
            if pump is not None:
                pump.cancel()

    def emit(self, event: SubscriberEvent) -> None:
        """Queue for every subscriber; never blocks, never raises."""
        for feed in self._feeds:
            feed.put(event)

    def statistics(self) -> list[tuple[Subscriber | Hearing, SubscriberStatistics]]:
        return [(feed.subscriber, feed.statistics) for feed in self._feeds]

    async def during(self, work: Coroutine[object, object, T]) -> T:
        """Run `work` while subscribers are served; without an owner the pumps live in here."""
        if self._groups or not self._feeds:
            return await work
        async with self.running():
            try:
                return await work
            except Exception as error:
                failure = error  # a TaskGroup would wrap it
        raise failure

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own the pump tasks; at exit queues are flushed for at most `close_timeout_s`.

        Entered beneath a request that owns them, it takes them over when that ends.
        """
        async with asyncio.TaskGroup() as group:
            self._groups.append(group)
            if self._groups[0] is group:
                self._start_all()
            try:
                yield
                await self.flush()
            finally:
                owned = self._groups[0] is group
                self._groups.remove(group)
                if owned:
                    pumps, self._pumps = self._pumps, {}
                    for pump in pumps.values():
                        pump.cancel()
                    self._start_all()

    async def flush(self) -> None:
        """Wait until every subscriber caught up, or `close_timeout_s` is over (logged)."""
        if not self._groups:
            return
        try:
            async with asyncio.timeout(self._close_timeout_s):
                for feed in list(self._feeds):
                    await feed.flushed()
        except TimeoutError:
            logger.warning("subscriber still busy at close", extra={"left": len(self._feeds)})

    def _start_all(self) -> None:
        for feed in self._feeds:
            self._start(feed)

    def _start(self, feed: _Feed) -> None:
        if self._groups:
            group = self._groups[0]
            self._pumps[id(feed)] = group.create_task(feed.pump(), name="subscriber pump")


class Emitter:
    """Emits for one request: attributes events, calls its temporary subscriber, then the others."""

    def __init__(
        self,
        notifier: Notifier,
        agent: str,
        run_id: str = "",
        listener: Listener | Subscriber | None = None,
    ) -> None:
        self._notifier = notifier
        self._agent = agent
        self._run_id = run_id
        self._listener = listener

    @contextmanager
    def during(self, run_id: str) -> Iterator[None]:
        """What is emitted inside the block belongs to that request. For the agent's own emitter:
        history, inbox and tasks report through it, whatever request they work for."""
        before, self._run_id = self._run_id, run_id
        try:
            yield
        finally:
            self._run_id = before

    def emit(self, event: SubscriberEvent) -> None:
        """Never raises and never blocks. An event that bears this attribution is taken as it is."""
        if event.agent != self._agent or event.run_id != self._run_id:
            event = replace(event, agent=self._agent, run_id=self._run_id)
        if self._listener is not None:
            call_isolated(self._listener, event)
        self._notifier.emit(event)

    @property
    def agent(self) -> str:
        return self._agent

    @property
    def run_id(self) -> str:
        return self._run_id

    def detach(self) -> None:
        """The request is over: its temporary subscriber hears nothing more."""
        self._listener = None


def call_isolated(listener: Listener | Subscriber, event: SubscriberEvent) -> None:
    """Call a request's temporary subscriber in place; its exception is logged, not raised."""
    try:
        if callable(listener):
            listener(event)
        else:
            outcome = listener.record(event)
            if inspect.isawaitable(outcome):
                raise TypeError("the temporary subscriber of a request must not be async")
    except Exception:
        logger.exception("request subscriber failed", extra={"event": event.wire})
