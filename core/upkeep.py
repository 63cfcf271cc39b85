"""When an agent summarises its history: after an answer, in the background, or on demand.

Background compaction is born in the task group of Agent.running() and nowhere else; without it
compaction runs at the end of a request. How a summary is made is compaction.Compactor's business.
Owned by the agent.
"""

import logging

from .agent_parts import Parts
from .amend import Amendments
from .cancel import CancelToken
from .errors import AbortError
from .lifetime import Lifetime
from .mind import Mind
from .notify import Emitter
from .turn_queue import Hold, TurnQueue

logger = logging.getLogger(__name__)


class Upkeep:
    """Starts compactions at the moments the agent names."""

    def __init__(
        self,
        parts: Parts,
        mind: Mind,
        queue: TurnQueue,
        lifetime: Lifetime,
        amendments: Amendments,
        emitter: Emitter,
    ) -> None:
        self._parts = parts
        self._mind = mind
        self._queue = queue
        self._lifetime = lifetime
        self._amendments = amendments
        self._emitter = emitter

    async def compact_after(self, hold: Hold | None, token: CancelToken) -> None:
        """After an answer was delivered: in the background with an owner, else here."""
        if self._lifetime.group is not None:
            self.compact_later(hold)
        elif self._parts.compactor.is_due and not await self._unsettled():
            await self.compact(token)

    def compact_later(self, hold: Hold | None) -> None:
        """Compact in the background if it is due and nothing runs. Not behind the back of a holder
        whose model has a context of its own: its summary must reach that model too."""
        group, busy = self._lifetime.group, self._lifetime.active is not None
        if group is None or busy or not self._parts.compactor.is_due:
            return
        if hold is not None and hold.keeps_context:
            return
        self._lifetime.compaction = token = CancelToken()
        group.create_task(self._compact_quietly(hold, token), name="compaction")

    async def compact(self, token: CancelToken) -> bool:
        """Summarise now; the caller has the turn queue. False while tools run: a summary between a
        call and its late result would hide the result from the model."""
        if self._parts.runs.running:
            return False
        on_call = self._queue.current_hold is not None
        model, prompt = self._mind.current(on_call=on_call)
        summarise = self._parts.compactor.by_model(model, prompt, self._emitter)
        return await self._parts.compactor.run(summarise, self._emitter, token)

    async def _compact_quietly(self, hold: Hold | None, token: CancelToken) -> None:
        """Gives way: the next request aborts it rather than wait for it."""
        try:
            async with self._queue.turn(hold, token):
                if self._parts.compactor.is_due and not await self._unsettled():
                    await self.compact(token)
        except AbortError:
            logger.info("compaction gave way")
        except Exception:  # the group is the agent's: upkeep may not end what else lives in it
            logger.exception("compaction failed")

    async def _unsettled(self) -> bool:
        """Whether a summary now would lose a late result or keep text nobody heard."""
        return bool(self._parts.runs.running) or await self._amendments.any_pending()
