"""Agent: the running Glove agent, put together by builder.Glove.

One agent serves one conversation. It owns its turn queue, history, tools, display stack and
subscribers. Inside `async with agent.running():` it also owns a task group in which subscriber
pumps, wakes, background compaction and tools that outlive their request live; without it every
request is complete in itself and starts no task that survives it. What is done lives in its parts
(turns, wakes, lifetime, upkeep, amend, runs); this is their one surface, with the contracts.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from .agent_parts import Extensions, assemble
from .amend import Amendments
from .cancel import CancelToken
from .commit import Committed
from .config import AgentConfig
from .context import PrepareReason, RequestContext
from .display import DisplayStack
from .events import SubscriberEvent
from .external import AgentEvent, EventReceipt, WhenIdle
from .intake import prepare
from .lifetime import Lifetime
from .live import LiveConversation
from .messages import Message
from .mind import Mind
from .model import Model, ModelLimits
from .notify import Emitter, Listener, Notifier, Subscriber
from .permissions import PermissionPolicy
from .records import InboxItem, Task
from .registration import Registration
from .requests import RequestResult, UserInput, Wake
from .store import Store
from .turn_queue import Hold, TurnQueue
from .turns import Turns
from .upkeep import Upkeep
from .wakes import Wakes


class Agent(Registration):
    """See the module. Made by Glove(...).build(); all methods belong on one event loop."""

    def __init__(
        self,
        *,
        mind: Mind,
        store: Store,
        display: DisplayStack,
        config: AgentConfig,
        registered: Extensions,
        notifier: Notifier,
    ) -> None:
        super().__init__(registered, notifier)
        self.turn_queue = TurnQueue()
        self.config = config
        self._mind = mind
        self._display = display
        self._emitter = emitter = Emitter(notifier, config.name)
        self._parts = parts = assemble(self, store, config, registered, emitter.emit)
        self._amendments = Amendments(parts.history)
        self._lifetime = Lifetime(parts.runs, notifier, config.close_timeout_s)
        self._upkeep = Upkeep(
            parts, mind, self.turn_queue, self._lifetime, self._amendments, emitter
        )
        self._wakes = Wakes(
            parts.events, self.turn_queue, self._lifetime, emitter, config.new_id, self._wake
        )
        self._turns = Turns(
            parts,
            mind,
            self.turn_queue,
            self._lifetime,
            notifier,
            emitter,
            self._upkeep,
            self._wakes,
        )

    # -- what it is made of

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def server_mode(self) -> bool:
        return self.config.server_mode

    @property
    def store(self) -> Store:
        return self._parts.history.store

    @property
    def model(self) -> Model:
        return self._mind.model

    @property
    def system_prompt(self) -> str:
        return self._mind.system_prompt

    @property
    def voice_prompt(self) -> str | None:
        """Stands in for system_prompt while a call holds the turn queue."""
        return self._mind.voice_prompt

    @property
    def display(self) -> DisplayStack:
        return self._display

    @property
    def busy(self) -> bool:
        """Whether a request runs now."""
        return self._lifetime.active is not None

    @property
    def outstanding(self) -> frozenset[str]:
        """Ids of tool calls without a terminal result."""
        return self._parts.runs.running

    def set_model(self, model: Model) -> None:
        """Used from the next model call on."""
        self._mind.model = model

    def set_system_prompt(self, prompt: str) -> None:
        """Used from the next model call on."""
        self._mind.system_prompt = prompt

    def set_voice_prompt(self, prompt: str | None) -> None:
        """Used from the next model call on, while a call holds the turn queue."""
        self._mind.voice_prompt = prompt

    def set_display(self, display: DisplayStack) -> None:
        """Used by tools from their next push on (row 45)."""
        self._display = display

    def notify_subscribers(self, event: SubscriberEvent) -> None:
        """Report an event in the agent's name, as a realtime session does for its own turns."""
        self._emitter.emit(event)

    # -- requests

    async def process_request(
        self,
        request: UserInput,
        *,
        token: CancelToken | None = None,
        hold: Hold | None = None,
        playback: bool = False,
        subscriber: Listener | Subscriber | None = None,
        committed: Committed | None = None,
        message_id: str | None = None,
        limits: ModelLimits | None = None,
    ) -> RequestResult:
        """Answer a user turn (text or content parts) or a wake (Wake or None).

        token       abort(reason) ends generation and this call with AbortError; tools go on when
                    the agent is running(), else they are stopped too; abort(reason, tools=True)
                    stops abortable tools in any case
        hold        the hold of the turn queue this request runs inside
        playback    its answers are spoken: stored with playback `pending` until amend_heard
        subscriber  called synchronously with every event of this request, before all others
        committed   gate of tools that are not read_only (commit.Committed)
        message_id  id of the stored user message; also in the request_started event
        limits      bounds of each of its model calls, instead of AgentConfig.limits

        Raises AbortError, ModelError, StoreError; in text also what a preparer or a hook raises;
        UsageError, also inside a turn of this agent (in a hook, a preparer, a tool that the turn
        waits for): it would wait for itself. An abort while it waits in the turn queue leaves the
        store untouched and emits nothing; later the user message and partial text are kept.
        AbortError.user_stored tells which; after a ModelError the message is stored. A cancelled
        caller sees request_started if its turn came (the message then may be stored).
        """
        return await self._turns.process(
            request,
            token=token,
            hold=hold,
            playback=playback,
            subscriber=subscriber,
            committed=committed,
            message_id=message_id,
            limits=limits,
        )

    def interrupt(self, reason: str = "interrupted") -> None:
        """End the running request, its generation and every abortable tool, outstanding or not.

        An un_abortable tool that runs goes on; one still queued behind another never starts.
        """
        self._lifetime.interrupt(reason)

    def abort_tools(self, reason: str = "aborted") -> None:
        """Stop every abortable tool that still runs, and queued ones; generation goes on."""
        self._parts.runs.abort(reason)

    async def join_tools(self, limit_s: float, token: CancelToken | None = None) -> None:
        """Wait until no tool is outstanding, at most `limit_s`."""
        await self._parts.runs.join(limit_s, token or CancelToken())

    async def append_answer(
        self,
        text: str,
        *,
        hold: Hold | None = None,
        token: CancelToken | None = None,
        playback: bool = False,
        message_id: str | None = None,
    ) -> str:
        """Store words the agent says without asking its model, such as a fixed greeting.

        Returns the message's id; with `playback` it is pending until amend_heard.
        """
        return await self._turns.answer(
            text, hold=hold, token=token, playback=playback, message_id=message_id
        )

    # -- for a brain whose model is not asked through process_request

    async def prepare_turn(self, reason: PrepareReason, token: CancelToken | None = None) -> None:
        """Run the turn preparers, as a request would (row 71): when a session opens, when the user
        begins to speak. One that fails is reported and the others run. Raises AbortError."""
        token = token or CancelToken()
        await prepare(self._parts, reason, None, token, self._emitter.emit, on_call=True)

    async def get_runtime_context(self, token: CancelToken | None = None) -> list[Message]:
        """What providers with delivery `iteration` and `request` say now, as transient messages.

        Those with delivery `history` are asked too, and stored when their value changed. Emits
        runtime_context when any is registered. Raises AbortError.
        """
        token = token or CancelToken()
        context = RequestContext(self._parts.context, self._emitter.emit)
        await context.open(self._parts.history, token)
        return [value.message for value in await context.values(token)]

    def live(
        self, *, permissions: PermissionPolicy | None = None, tool_retries: int | None = 0
    ) -> LiveConversation:
        """The seam for a model that answers by itself over a socket; see live.LiveConversation.

        permissions   stands in for AgentConfig.permissions for the calls of this conversation
        tool_retries  bounds each tool's own retries, which a caller hears as silence

        Used inside running(), while somebody holds the turn queue; until that hold is released,
        background compaction is the holder's business. Raises UsageError without a hold.
        """
        return LiveConversation(
            self._parts,
            self._mind,
            self._notifier,
            self._amendments,
            self.turn_queue,
            permissions=permissions,
            tool_retries=tool_retries,
        )

    # -- corrections: the one writer of stored messages

    async def amend_heard(
        self,
        message_id: str,
        heard: str,
        unheard: str = "",
        *,
        interrupted: bool = False,
        estimated: bool = False,
    ) -> None:
        """Settle what was heard of a spoken answer, at its cut or drain.

        The model's view shows heard text only from now on. Legal before the message is stored (its
        id comes with the first delta). Raises UnknownMessageError.
        """
        await self._amendments.heard(
            message_id, heard, unheard, interrupted=interrupted, estimated=estimated
        )
        self._upkeep.compact_later(self.turn_queue.current_hold)

    async def report_heard(self, message_id: str, heard: str) -> None:
        """Note how far playback got; the answer stays pending. Read after a crash."""
        await self._amendments.progress(message_id, heard)

    async def settle_pending(self, last_position: Mapping[str, int] | None = None) -> list[str]:
        """After a crash: settle every pending answer at its last known position.

        `last_position` maps message ids to characters heard; other messages use the last
        report_heard, else nothing was heard. Returns the ids settled, all marked estimated.
        """
        return await self._amendments.settle_pending(last_position or {})

    async def amend_user(self, message_id: str, text: str) -> None:
        """Correct what the user said; the first wording is kept as pre_modified_text."""
        await self._amendments.user(message_id, text)

    # -- outside events

    async def emit_event(
        self, event: AgentEvent, *, when_idle: WhenIdle | None = None
    ) -> EventReceipt:
        """Accept an outside event; returns when it is queued, not when it is handled.

        It joins a running request at its next step. Idle: policy and `when_idle` decide; a wake
        goes to the holder of the turn queue (Hold.on_wake), else to a request of its own if the
        agent is running(), else it is deferred to the next user turn.
        """
        return await self._wakes.emit(event, when_idle)

    async def get_inbox_items(self) -> list[InboxItem]:
        """The store's inbox in the order it was filled, consumed items too; empty without one."""
        return await self._parts.inbox.items()

    async def get_tasks(self) -> list[Task]:
        """The agent's plan; empty when its store keeps none."""
        return await self._parts.tasks.get()

    async def add_inbox_item(self, item: InboxItem) -> bool:
        """Put an item into the inbox, pending or resolved already; False when the store has none.

        A resolved one is shown at the next turn or step; nobody is woken. Raises UsageError when
        the id is taken.
        """
        return await self._parts.inbox.add(item)

    async def resolve_inbox_item(self, item_id: str, response: str, *, wake: bool = True) -> bool:
        """Answer a pending inbox item (spec core 13.2); False if there is none of this id.

        A running request shows the answer at its next step; an idle agent is woken as by an event,
        unless `wake` is off. Other processes resolve through the store and are noticed at the next
        turn.
        """
        resolved = await self._parts.inbox.resolve(item_id, response)
        if resolved and wake:
            self._wakes.ask(item_id)
        return resolved

    # -- life

    @asynccontextmanager
    async def running(self, survivors: asyncio.TaskGroup | None = None) -> AsyncIterator["Agent"]:
        """Own the agent's tasks for the length of a call.

        Tools then survive barge-in. At exit the request and abortable tools are stopped; running
        un_abortable ones go on in `survivors` (the server's group) if given, else the exit waits
        for them under their own deadline. Exceptions of the block come out as they are. If the
        block is cancelled, tools in the own group are cancelled too and recorded as aborted.
        """
        async with self._lifetime.owned(survivors):
            yield self

    async def flush(self) -> None:
        """Wait until every subscriber has heard what was emitted, `close_timeout_s` at most.

        Inside running(); without it a request returns when they have.
        """
        await self._notifier.flush()

    async def aclose(self) -> None:
        """Refuse further requests, stop the running one and abortable tools, flush subscribers."""
        await self._lifetime.close()

    async def compact(self, token: CancelToken | None = None, hold: Hold | None = None) -> bool:
        """Summarise history now, in the turn queue. False if it failed, was aborted, or a tool is
        outstanding: the model would never see its result."""
        return await self._turns.compact(token, hold)

    async def _wake(self, wake: Wake, token: CancelToken) -> RequestResult:
        return await self.process_request(wake, token=token)
