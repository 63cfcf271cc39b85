"""The beginning of a request: everything between its turn in the queue and its first model call.

In order (spec core 1.3, 2, 11): turn preparers, runtime context, resolved inbox items and outside
events, what the user's message names (hooks, skills), the message itself. Owned by one request;
asks no model and runs no tool.
"""

from .agent_parts import Parts
from .context import PrepareReason, RequestContext
from .directives.hooks import Compact, Controls
from .directives.registry import Directed
from .events import InjectionMode
from .intake import directed, join_outside, prepare
from .messages import Message
from .requests import Request


class Opening:
    """Used once. `user_stored`: the request's user message is in the store."""

    def __init__(self, parts: Parts, request: Request, compact: Compact) -> None:
        self._parts = parts
        self._request = request
        self._compact = compact
        self.context = RequestContext(parts.context, request.emitter.emit)
        self.user_stored = False

    async def run(self) -> tuple[Message, ...]:
        """The answers of a hook that answered the request; else none.

        Raises AbortError, StoreError; in text also what a preparer or a hook raises.
        """
        request, parts = self._request, self._parts
        await self._prepare()
        await self.context.open(parts.history, request.token)
        await self.inject("wake" if request.user is None else "user_turn")
        if request.user is None:
            return ()
        parts.events.user_turn()
        directed = await self._directed(parts.history.corrected(request.user))
        await parts.history.append(*directed.before, directed.user)
        self.user_stored = True
        return directed.answers

    async def inject(self, mode: InjectionMode) -> None:
        """Let what came from outside join (intake.join_outside); called again after tools, so that
        it is seen by the next model call."""
        await join_outside(self._parts, self._request.emitter.emit, mode)

    async def _prepare(self) -> None:
        request, parts = self._request, self._parts
        reason: PrepareReason = "event" if request.user is None else "request"
        user = None if request.user is None else parts.history.corrected(request.user)
        emit = request.emitter.emit
        await prepare(parts, reason, user, request.token, emit, on_call=request.in_call)

    async def _directed(self, user: Message) -> Directed:
        """What the message's hooks and skills make of it. A hook may have effects, so it waits for
        the turn's commit, as tools do."""
        request, directives = self._request, self._parts.directives
        if not directives.names(user.text):
            return Directed(user=user)
        await request.gate.passed()
        controls = Controls(agent=self._parts.host, force_compaction=self._compact)
        return await directed(
            self._parts,
            user,
            controls,
            request.token,
            request.emitter.emit,
            on_call=request.in_call,
        )
