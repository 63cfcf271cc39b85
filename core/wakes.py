"""Outside events of one agent: what emit_event decides, and the wakes it starts.

A wake is born in the task group of Agent.running(), or handed to the holder of the turn queue;
without either the event waits for the next user turn. Owned by the agent; which events are pending
is external.ExternalEvents' business.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from .cancel import CancelToken
from .errors import AbortError
from .events import EventReceived
from .external import AgentEvent, EventReceipt, ExternalEvents, WhenIdle
from .lifetime import Lifetime
from .messages import IdSource
from .notify import Emitter
from .requests import Wake
from .turn_queue import TurnQueue

logger = logging.getLogger(__name__)

StartWake = Callable[[Wake, CancelToken], Awaitable[object]]


class Wakes:
    """Takes events in and asks for turns; `start` runs one without a holder."""

    def __init__(
        self,
        events: ExternalEvents,
        queue: TurnQueue,
        lifetime: Lifetime,
        emitter: Emitter,
        new_id: IdSource,
        start: StartWake,
    ) -> None:
        self._events = events
        self._queue = queue
        self._lifetime = lifetime
        self._emitter = emitter
        self._new_id = new_id
        self._start = start

    async def emit(self, event: AgentEvent, when_idle: WhenIdle | None) -> EventReceipt:
        """See Agent.emit_event."""
        if not event.id:
            event = replace(event, id=self._new_id("event"))
        in_call = self._queue.current_hold is not None
        decision = await self._events.accept(event, when_idle, busy=self._busy, in_call=in_call)
        self._emitter.emit(
            EventReceived(
                id=event.id,
                source=event.source,
                kind=event.kind,
                content=event.content,
                decision=decision,
            )
        )
        if decision == "drop":
            return EventReceipt("dropped", event.id)
        if decision == "duplicate":
            return EventReceipt("duplicate", event.id)
        if self._busy:
            return EventReceipt("queued", event.id)
        woke = decision == "wake" and self.wake_now()
        return EventReceipt("woke" if woke else "deferred", event.id)

    def ask(self, key: str) -> None:
        """Something else came from outside, such as an inbox answer: a running request takes it up
        at its next step, an idle agent is woken."""
        self._events.ask_wake(key)
        if not self._busy:
            self.wake_now()

    def wake_now(self) -> bool:
        """Start a turn for pending events that ask for one, if somebody can run it."""
        hold, group = self._queue.current_hold, self._lifetime.group
        if (hold is None and group is None) or not self._events.take_wake():
            return False
        if hold is not None:
            hold.wake(Wake("event"))
        elif group is not None:
            group.create_task(self._alone(self._lifetime.wakes), name="agent wake")
        return True

    @property
    def _busy(self) -> bool:
        return self._lifetime.active is not None

    async def _alone(self, token: CancelToken) -> None:
        try:
            await self._start(Wake("event"), token)
        except AbortError:
            logger.info("wake aborted")
        except Exception:  # the group is the agent's: no wake may end what else lives in it
            logger.exception("wake failed")
