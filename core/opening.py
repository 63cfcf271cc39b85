"""The beginning of a request: everything between its turn in the queue and its first model call.

In order (spec core 1.3, 2, 11): turn preparers, runtime context, resolved inbox items and outside
events, what the user's message names (hooks, skills), the message itself. Owned by one request;
asks no model and runs no tool.
"""

from functools import partial

from .agent_parts import Parts
from .cancel import contained
from .context import PrepareReason, RequestContext, TurnPreparation, reporting
from .directives.hooks import Compact, Controls
from .directives.registry import Directed
from .errors import AbortError
from .events import EventInjected, HookInvoked, InjectionMode, SkillInvoked, SubscriberEvent
from .external import events_message
from .messages import Message
from .requests import Request


class Opening:
    """Used once. `user_stored`: the request's user message is in the store."""

    def __init__(self, parts: Parts, request: Request, compact: Compact) -> None:
        self._parts = parts
        self._request = request
        self._compact = compact
        self._report = reporting(request.emitter.emit)
        self.context = RequestContext(parts.context, request.token, self._report)
        self.user_stored = False

    async def run(self) -> tuple[Message, ...]:
        """The answers of a hook that answered the request; else none.

        Raises AbortError, StoreError; in text also what a preparer or a hook raises.
        """
        request, parts = self._request, self._parts
        await self._prepare()
        await self.context.open(parts.history)
        await self.inject("wake" if request.user is None else "user_turn")
        if request.user is None:
            return ()
        parts.events.user_turn()
        directed = await self._directed(parts.history.corrected(request.user))
        await parts.history.append(*directed.before, directed.user)
        self.user_stored = True
        return directed.answers

    async def inject(self, mode: InjectionMode) -> None:
        """Show resolved inbox items and all pending outside events, in one stored message each.

        Called again after tools, so that what came meanwhile joins before the next model call
        (row 58, spec core 10.2).
        """
        parts = self._parts
        parts.events.shown([item.id for item in await parts.inbox.join()])
        events = await parts.events.pending()
        if not events:
            return
        message = events_message(events, parts.history.new_id("msg"))
        await parts.history.append_marking(message, partial(parts.events.injected, events))
        for event in events:
            self._request.emitter.emit(
                EventInjected(id=event.id, source=event.source, kind=event.kind, mode=mode)
            )

    async def _prepare(self) -> None:
        request, parts = self._request, self._parts
        reason: PrepareReason = "event" if request.user is None else "request"
        user = None if request.user is None else parts.history.corrected(request.user)
        preparation = TurnPreparation(
            agent=parts.host, token=request.token, reason=reason, user=user
        )
        await parts.preparers.run(preparation, self._report, on_call=request.in_call)

    async def _directed(self, user: Message) -> Directed:
        """What the message's hooks and skills make of it. A hook may have effects, so it waits for
        the turn's commit, as tools do."""
        request, directives = self._request, self._parts.directives
        if not directives.names(user.text):
            return Directed(user=user)
        await request.gate.passed()
        controls = Controls(agent=self._parts.host, force_compaction=self._compact)
        name = ""

        def emit(event: SubscriberEvent) -> None:
            nonlocal name
            if isinstance(event, HookInvoked | SkillInvoked):
                name = event.name
            request.emitter.emit(event)

        try:
            return await contained(directives.apply(user, controls, request.token, emit))
        except AbortError:
            raise
        except Exception as error:
            self._report("directive", f"/{name}", error)
            if not request.in_call:
                raise
            return Directed(user=user)
