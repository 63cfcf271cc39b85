"""The calls of a model that answers by itself: from its reply to one result for each.

What a session knows of a call is the provider's id; history has one of its own, which no other call
has. Owned by one live.LiveConversation; running is runs.ToolRuns' business, and tools that outlive
the session are in the agent's task group.
"""

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from dataclasses import dataclass, replace

from .agent_parts import Parts
from .cancel import CancelToken
from .commit import CommitGate, Committed
from .errors import UsageError
from .events import ToolUse
from .executor import CallScope
from .messages import Message, ToolResult
from .notify import Emitter
from .permissions import PermissionPolicy
from .runs import Batch, results_id


@dataclass(slots=True)
class _Given:
    """A call of the provider. `id` is its own in history, once it is known; `begun`: its batch is
    the business of ToolRuns now; `aborted` says why it was withdrawn."""

    id: str = ""
    begun: bool = False
    aborted: str | None = None


class LiveCalls:
    """Its methods are explained in LiveConversation's."""

    def __init__(self, parts: Parts, policy: PermissionPolicy | None, retries: int | None) -> None:
        if retries is not None and retries < 0:
            raise UsageError("tool_retries: must be 0 or more, or None for the tools' own")
        self._parts = parts
        self._policy = policy
        self._retries = retries
        self._ids: set[str] = set()
        self._given: dict[str, _Given] = {}

    def run(
        self,
        asked: Message,
        emitter: Emitter,
        token: CancelToken | None,
        gate: Committed | None,
    ) -> Coroutine[None, None, tuple[ToolResult, ...]]:
        """See LiveConversation.run_calls; `asked` has the calls as the provider made them."""
        if not asked.tool_calls:
            raise UsageError("calls: give at least one")
        running = self._parts.runs.running
        self._given = {
            name: one for name, one in self._given.items() if not one.begun or one.id in running
        }
        given = [_Given() for _ in asked.tool_calls]
        self._given.update(
            {call.id: one for call, one in zip(asked.tool_calls, given, strict=True)}
        )
        return self._answered(asked, given, emitter, token, gate)

    def abort(self, call_ids: Collection[str], reason: str) -> None:
        """See LiveConversation.abort_calls."""
        for call_id in call_ids:
            one = self._given.get(call_id)
            if one is not None and one.aborted is None:
                one.aborted = reason
                self._parts.runs.abort_calls([one.id], reason)

    async def _answered(
        self,
        asked: Message,
        given: Sequence[_Given],
        emitter: Emitter,
        token: CancelToken | None,
        gate: Committed | None,
    ) -> tuple[ToolResult, ...]:
        """run(), once it is awaited."""
        runs = self._parts.runs
        own = token.child() if token is not None else CancelToken()
        scope = self._scope(own, gate)  # with the tools the model was shown
        try:
            with runs.starting(scope.token):
                asked = await self._identified(asked, given)
                for call in asked.tool_calls:
                    event = ToolUse(id=call.id, name=call.tool_name, input=call.input_args)
                    emitter.emit(replace(event, message_id=asked.id))
                await runs.reserve(asked, emitter.emit)
        finally:
            for one in given:
                one.begun = True
        withdrawn = {one.id: one.aborted for one in given if one.aborted is not None}
        batch = Batch(
            results_id(asked), asked.tool_calls, scope, emitter.emit, asyncio.Event(), withdrawn
        )
        return await runs.answers(batch, own)

    async def _identified(self, asked: Message, given: Sequence[_Given]) -> Message:
        """The message with call ids that no other call of the history has (spec core 19)."""
        stored = await self._parts.history.store.get_messages()
        self._ids.update(call.id for message in stored for call in message.tool_calls)
        calls = []
        for call, one in zip(asked.tool_calls, given, strict=True):
            one.id = call.id
            while not one.id or one.id in self._ids:
                one.id = self._parts.config.new_id("call")
            self._ids.add(one.id)
            calls.append(replace(call, id=one.id))
        return replace(asked, tool_calls=tuple(calls))

    def _scope(self, token: CancelToken, gate: Committed | None) -> CallScope:
        tools, stop = self._parts.runs.tokens(token)
        return CallScope(
            self._parts.host,
            self._parts.toolset.tools,
            tools,
            stop,
            CommitGate(gate, token),
            retries=self._retries,
            policy=self._policy,
        )
