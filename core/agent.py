"""Agent: the running Glove agent, put together by builder.Glove.

One agent serves one conversation. It owns its turn queue, history, tools, display stack and
subscribers. Inside `async with agent.running():` it also owns a task group in which subscriber
pumps, wakes, background compaction and tools that outlive their request live; without it every
request is complete in itself and starts no task that survives it.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from .agent_parts import Parts
from .amend import Amendments
from .cancel import CancelToken
from .commit import CommitGate, Committed
from .compaction import Compactor
from .config import AgentConfig
from .display import DisplayStack
from .errors import AbortError, UsageError
from .events import EventReceived, RequestEnded, RequestStarted, RequestStatus
from .executor import Executor
from .external import AgentEvent, EventReceipt, ExternalEvents, WhenIdle
from .history import History
from .loop import Request, RequestRun
from .messages import Message
from .mind import Mind
from .model import Model
from .notify import Emitter, Listener, Notifier, Subscriber, SubscriberStatistics
from .permissions import Permissions
from .requests import RequestResult, UserInput, Wake, read_input
from .runs import ToolRuns
from .store import Store
from .tool import Tool
from .toolset import Toolset
from .turn_queue import Hold, TurnQueue
from .upkeep import Upkeep

T = TypeVar("T")


class Agent:
    """See the module. Made by Glove(...).build(); all methods belong on one event loop."""

    def __init__(
        self,
        *,
        mind: Mind,
        store: Store,
        display: DisplayStack,
        config: AgentConfig,
        toolset: Toolset,
        notifier: Notifier,
    ) -> None:
        self.turn_queue = TurnQueue()
        self.config = config
        self._mind = mind
        self._display = display
        self._notifier = notifier
        self._emitter = Emitter(notifier, config.name)
        self._parts = self._assemble(store, config, toolset)
        self._amendments = Amendments(self._parts.history)
        self._upkeep = Upkeep(
            self._parts, mind, self.turn_queue, self._amendments, self._emitter, self._wake
        )
        self._lifetime = self._upkeep.lifetime

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
    def tools(self) -> tuple[Tool, ...]:
        """In order of registration; readable without running the loop (row 11)."""
        return self._parts.toolset.tools

    @property
    def model(self) -> Model:
        return self._mind.model

    @property
    def system_prompt(self) -> str:
        return self._mind.system_prompt

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

    def set_display(self, display: DisplayStack) -> None:
        """Used by tools from their next push on (row 45)."""
        self._display = display

    def fold(self, tool: Tool) -> "Agent":
        """Add a tool; the next model call offers it. Raises DuplicateToolError."""
        self._parts.toolset.add(tool)
        return self

    def replace_tools(self, previous: Sequence[str], following: Sequence[Tool]) -> None:
        """Exchange tools in one step (row 12); see Toolset.replace."""
        self._parts.toolset.replace(previous, following)

    def add_subscriber(self, subscriber: Subscriber) -> None:
        self._notifier.add(subscriber)

    def remove_subscriber(self, subscriber: Subscriber) -> None:
        self._notifier.remove(subscriber)

    def subscriber_statistics(self) -> list[tuple[Subscriber, SubscriberStatistics]]:
        return self._notifier.statistics()

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

        Raises AbortError, ModelError, StoreError, UsageError. While it waits in the turn queue an
        abort leaves the store untouched; later the user message and partial text are kept.
        """
        wake, user = read_input(request, message_id, self.config.new_id)
        self._lifetime.check_open()
        own = token.child() if token is not None else CancelToken()
        emitter = Emitter(self._notifier, self.name, self.config.new_id("req"), subscriber)
        accepted = Request(
            id=emitter.run_id,
            user=user,
            wake=wake,
            token=own,
            gate=CommitGate(committed, own),
            emitter=emitter,
            playback=playback,
            in_call=hold is not None,
        )
        with self._parts.history.announced(user):
            self._lifetime.compaction.abort("a request came")
            async with self.turn_queue.turn(hold, own):
                own.raise_if_aborted()
                return await self._with_pumps(self._serve(accepted, hold))

    def interrupt(self, reason: str = "interrupted") -> None:
        """End the running request, its generation and every abortable tool, outstanding or not."""
        if self._lifetime.active is not None:
            self._lifetime.active.abort(reason, tools=True)
        self._parts.runs.abort(reason)

    def abort_tools(self, reason: str = "aborted") -> None:
        """Stop every abortable tool that still runs; generation goes on."""
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
        identity = message_id or self.config.new_id("msg")
        answer = Message(
            sender="agent", id=identity, text=text, playback="pending" if playback else None
        )
        with self._parts.history.announced(answer):
            async with self.turn_queue.turn(hold, token):
                await self._parts.history.append(answer)
        return identity

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
        if not event.id:
            event = replace(event, id=self.config.new_id("event"))
        in_call = self.turn_queue.current_hold is not None
        decision = await self._parts.events.accept(
            event, when_idle, busy=self.busy, in_call=in_call
        )
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
        if self.busy:
            return EventReceipt("queued", event.id)
        woke = decision == "wake" and self._upkeep.wake_now()
        return EventReceipt("woke" if woke else "deferred", event.id)

    # -- life

    @asynccontextmanager
    async def running(self, survivors: asyncio.TaskGroup | None = None) -> AsyncIterator["Agent"]:
        """Own the agent's tasks for the length of a call.

        Tools then survive barge-in. At exit the request and abortable tools are stopped; un-
        abortable ones go on in `survivors` (the server's group) if given, else the exit waits for
        them under their own deadline. Exceptions of the block come out as they are. If the block is
        cancelled, tools in the agent's own group are cancelled too and recorded as aborted.
        """
        self._lifetime.check_open()
        if self._lifetime.group is not None:
            raise UsageError("running(): the agent is running already")
        failure: Exception | None = None
        async with self._notifier.running(), asyncio.TaskGroup() as group:
            self._lifetime.open(group)
            self._parts.runs.group = survivors or group
            try:
                yield self
            except Exception as error:
                failure = error  # a TaskGroup would wrap it
            finally:
                # From here on nothing new enters the group: late batches end with their request.
                self._parts.runs.group = None
                self._lifetime.end("the call ended")
                self.interrupt("the call ended")
            await self._parts.runs.settle(self.config.close_timeout_s)
        if failure is not None:
            raise failure

    async def aclose(self) -> None:
        """Refuse further requests, stop the running one and abortable tools, flush subscribers."""
        self._lifetime.closed = True
        self._lifetime.wakes.abort("the agent was closed")
        self._lifetime.compaction.abort("the agent was closed")
        self.interrupt("the agent was closed")
        await self._parts.runs.settle(self.config.close_timeout_s)
        await self._notifier.flush()

    async def compact(self, token: CancelToken | None = None, hold: Hold | None = None) -> bool:
        """Summarise history now, in the turn queue. False if it failed or was aborted."""
        own = token.child() if token is not None else CancelToken()
        async with self.turn_queue.turn(hold, own):
            return await self._with_pumps(self._upkeep.compact(own))

    # -- inside

    def _assemble(self, store: Store, config: AgentConfig, toolset: Toolset) -> Parts:
        emit = self._emitter.emit
        history = History(store, config.new_id, emit, summaries=config.tool_result_summaries)
        permissions = Permissions(store, lambda: self._display, config.permission_policy)
        executor = Executor(
            permissions,
            lambda: self._display,
            un_abortable_timeout_s=config.un_abortable_timeout_s,
            threads=config.threads,
        )
        return Parts(
            agent=self,
            config=config,
            toolset=toolset,
            history=history,
            runs=ToolRuns(history, executor, emit),
            events=ExternalEvents(config.events),
            compactor=Compactor(config.compaction, history),
        )

    async def _serve(self, request: Request, hold: Hold | None) -> RequestResult:
        """Run one request and report its beginning and end, whatever happens."""
        runs, emitter = self._parts.runs, request.emitter
        self._lifetime.active, runs.quiet = request.token, False
        user_id = request.user.id if request.user is not None else None
        emitter.emit(RequestStarted(user_message_id=user_id))
        status: RequestStatus = "failed"
        try:
            result = await RequestRun(self._parts, self._mind.current, request).run()
            status = "ok"
        except (AbortError, asyncio.CancelledError):
            status = "aborted"
            raise
        finally:
            self._lifetime.active, runs.quiet = None, True
            emitter.emit(RequestEnded(status=status))
            emitter.detach()
            runs.announce()
            self._upkeep.wake_now()
        await self._upkeep.compact_after(hold, request.token)
        return result

    async def _wake(self, wake: Wake, token: CancelToken) -> RequestResult:
        return await self.process_request(wake, token=token)

    async def _with_pumps(self, work: Coroutine[object, object, T]) -> T:
        """Run `work` while subscribers are served; without an owner the pumps live in here."""
        if not self._notifier.wants_pumps:
            return await work
        async with self._notifier.running():
            try:
                return await work
            except Exception as error:
                failure = error  # a TaskGroup would wrap it
        raise failure
