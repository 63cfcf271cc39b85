"""LiveConversation: what a session may use of an agent whose model answers by itself.

A realtime model hears, thinks and speaks behind a socket; the agent's half stays here: history,
tools, context, what comes from outside, compaction. Made by Agent.live(), used by the one task of a
session that holds the agent's turn queue; batches of tools may run as tasks beside it. It starts no
task, opens nothing and needs no closing: what outlives a session is the agent's own. It never asks
the agent's text model, except for a summary where it is told to.
"""

from collections.abc import Collection, Coroutine, Sequence
from dataclasses import dataclass
from typing import Literal

from .agent_parts import Parts
from .amend import Amendments
from .cancel import CancelToken
from .commit import Committed
from .compaction import Summarise
from .context import ContextValue, RequestContext
from .directives.hooks import Compact, Controls
from .directives.registry import Directed
from .errors import UsageError
from .events import SubscriberEvent, TokenConsumption
from .intake import directed, join_outside, prepare, store_answers
from .live_calls import LiveCalls
from .messages import ContentPart, Message, ToolCall, ToolResult
from .mind import Mind
from .model import Model
from .notify import Emitter, Notifier
from .permissions import PermissionPolicy
from .requests import read_input
from .tool import Tool
from .turn_queue import TurnQueue
from .usage import Usage

LivePreparation = Literal["session_open", "user_speech", "event"]
ContextMoment = Literal["open", "turn", "tools"]

NO_TRANSCRIPT = "[the user spoke; there is no transcript]"
"""The text of a spoken turn while, or because, nobody knows its words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveContext:
    """What the model is to be told at one moment.

    values  what is true now, in the order of the providers, stored nowhere: takes the place of the
            values told before
    told    messages that were stored just now because their value changed: to be told once
    """

    values: tuple[ContextValue, ...] = ()
    told: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAdded:
    """A user's turn in history.

    stored   texts of skills and the user's message, in order, as they stand in the store
    answers  what a hook answered, stored behind them: with any, nothing is asked of the model
    """

    stored: tuple[Message, ...]
    answers: tuple[Message, ...] = ()

    @property
    def user(self) -> Message:
        return self.stored[-1]


class LiveConversation:
    """See the module. Methods raise StoreError when the store fails.

    `run_id` arguments attribute events to a turn of the session, as a request's id does.
    """

    def __init__(
        self,
        parts: Parts,
        mind: Mind,
        notifier: Notifier,
        amendments: Amendments,
        queue: TurnQueue,
        *,
        permissions: PermissionPolicy | None,
        tool_retries: int | None,
    ) -> None:
        hold = queue.current_hold
        if hold is None:
            raise UsageError("live: hold the turn queue first (agent.turn_queue.hold)")
        hold.keeps_context = True
        self._parts = parts
        self._mind = mind
        self._notifier = notifier
        self._amendments = amendments
        self._calls = LiveCalls(parts, permissions, tool_retries)
        self._context = RequestContext(parts.context, self.emit)
        self._untold: tuple[Message, ...] = ()

    # -- what the model works with

    @property
    def prompt(self) -> str:
        """The prompt in force: the voice prompt if there is one."""
        return self._mind.prompt(on_call=True)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may call now; the same tuple as long as nothing was folded."""
        return self._parts.toolset.tools

    def emit(self, event: SubscriberEvent, run_id: str = "") -> None:
        """Report to the agent's subscribers, in its name; never raises, never blocks."""
        self._emitter(run_id).emit(event)

    def new_id(self, prefix: str) -> str:
        """An id of the agent's own kind (AgentConfig.new_id)."""
        return self._parts.config.new_id(prefix)

    # -- a turn begins

    async def prepare(
        self,
        reason: LivePreparation,
        user: Message | None = None,
        token: CancelToken | None = None,
    ) -> None:
        """Run the turn preparers: before a session opens, when a user's turn begins (spec/voice
        18.11b). They may change prompt and tools. One that fails is reported, the others run.

        Raises AbortError. A cancelled one has run some of them.
        """
        await prepare(self._parts, reason, user, token or CancelToken(), self.emit, on_call=True)

    async def context(self, moment: ContextMoment, token: CancelToken | None = None) -> LiveContext:
        """What providers say now (spec/voice 18.7); emits runtime_context if any is registered.

        `open` and `turn` ask all of them; `tools`, after a batch of tools, asks those of delivery
        `iteration` and repeats what `request` ones said. A `history` value is stored and told when
        it changed, and told again after a compaction. Raises AbortError; what was stored before it
        came is told by the next call.
        """
        token = token or CancelToken()
        if moment != "tools":
            fresh = RequestContext(self._parts.context, self.emit)
            self._untold += await fresh.open(self._parts.history, token)
            self._context = fresh
        values = await self._context.values(token)
        told, self._untold = self._untold, ()
        return LiveContext(values=values, told=told)

    async def join_outside(self, run_id: str = "") -> tuple[Message, ...]:
        """Store what came from outside, each thing once: resolved inbox items in one message,
        pending events in another (spec/voice 18.8). Returns them, to be told to the model.

        A cancelled one may have stored them: then they are in history and come no more.
        """
        return await join_outside(self._parts, self._emitter(run_id).emit, "realtime")

    async def reminder(self) -> Message | None:
        """What the model is reminded of before it goes on: blocking inbox items nobody answered
        (spec core 13.2). Not stored."""
        return await self._parts.inbox.reminder()

    # -- history

    async def view(self) -> list[Message]:
        """History as a model sees it, to seed a provider: from the last summary on, of spoken
        answers what was heard, every call with its result; what still runs says so."""
        return await self._parts.history.view(self._parts.runs.running)

    async def view_since(self, known: Collection[str]) -> list[Message]:
        """The view without messages whose ids are known; results go with their call."""
        fresh: list[Message] = []
        wanted = False
        for message in await self.view():
            wanted = wanted if message.tool_results else message.id not in known
            if wanted:
                fresh.append(message)
        return fresh

    async def add_user(
        self,
        request: str | Sequence[ContentPart],
        *,
        message_id: str | None = None,
        directives: bool = True,
        playback: bool = False,
        compact: Compact | None = None,
        token: CancelToken | None = None,
        run_id: str = "",
    ) -> UserAdded:
        """Store a user's turn; the agent may wake by itself again (EventConfig.wake_budget).

        message_id  also the id under which amend_user may correct it before it is stored
        directives  the hooks and skills it names apply, as in a request; off for speech
        playback    answers of a hook are spoken: pending until amend_heard
        compact     what a hook's force_compaction does; by default the agent's text model
                    summarises
        token       ends hooks and skills

        Blank text stands for speech without a transcript (NO_TRANSCRIPT). Raises AbortError, then
        nothing is stored, and UsageError for no parts. A cancelled one has stored all or nothing
        of `stored`.
        """
        parts, emit = self._parts, self._emitter(run_id).emit
        said = NO_TRANSCRIPT if isinstance(request, str) and not request.strip() else request
        _, user = read_input(said, message_id, self.new_id)
        if user is None:
            raise UsageError("request: a wake is no turn of the user")
        parts.events.user_turn()
        with parts.history.announced(user):
            user = parts.history.corrected(user)
            made = Directed(user=user)
            if directives and parts.directives.names(user.text):
                controls = Controls(
                    agent=parts.host, force_compaction=compact or self._compact_by_model
                )
                token = token or CancelToken()
                made = await directed(parts, user, controls, token, emit, on_call=True)
            stored = await parts.history.append(*made.before, made.user)
        answers = await store_answers(parts, made.answers, emit, playback=playback)
        return UserAdded(stored=stored, answers=answers)

    async def correct_user(self, message_id: str, text: str) -> None:
        """A late or better transcript of a spoken turn. The first wording is kept as
        pre_modified_text, unless it was NO_TRANSCRIPT.

        Raises UnknownMessageError, and UsageError if it is no user's turn.
        """
        text = text if text.strip() else NO_TRANSCRIPT
        await self._amendments.user(message_id, text, stand_in=NO_TRANSCRIPT)

    def open_answer(self) -> str:
        """The id of an answer that is being spoken: from now on amend_heard and report_heard know
        it. Ends with add_answer (or run_calls) of this id, or with drop_answer."""
        return self._parts.history.open_draft()

    def drop_answer(self, message_id: str) -> None:
        """The answer came to nothing; what was amended is forgotten. Harmless for unknown ids."""
        self._parts.history.drop_draft(message_id)

    async def add_answer(
        self,
        text: str,
        *,
        message_id: str | None = None,
        playback: bool,
        interrupted: bool = False,
    ) -> Message:
        """Store what the model said. With `playback` it was spoken: pending until amend_heard,
        which may have come already. `interrupted`: its generation was cut. Returns it as stored.
        """
        answer = self._spoken(text, message_id, playback, interrupted=interrupted)
        (stored,) = await self._parts.history.append(answer)
        return stored

    # -- tools

    def run_calls(
        self,
        calls: Sequence[ToolCall],
        *,
        text: str = "",
        message_id: str | None = None,
        playback: bool = False,
        run_id: str = "",
        token: CancelToken | None = None,
        gate: Committed | None = None,
    ) -> Coroutine[None, None, tuple[ToolResult, ...]]:
        """Run the calls of one reply and give their results, in the order of the calls (row 93).

        Await it, or make it a task: abort_calls knows the calls as soon as this is called.

        Each call has exactly one terminal result in the store, reserved in the same write as the
        call: also an unknown tool, input that is no JSON or invalid, a refused permission, a tool
        that raises, is aborted or cancelled by the provider. Ids are made unique in history, so a
        result's call_id may be another than its call's; events carry that of history.

        text, message_id, playback  what was said before the calls, in the same message
        token  abort() ends the waiting with AbortError, tools go on; abort(tools=True) stops
               abortable ones; as in Agent.process_request, also without running()
        gate   of tools that are not read_only (commit.Committed)

        Cancelled: before the calls are stored they are dropped, or stored as aborted; after it
        they go on. Results that nobody awaits any more are announced by tool_settled_idle.
        """
        asked = self._spoken(text, message_id, playback, calls=tuple(calls))
        return self._calls.run(asked, self._emitter(run_id), token, gate)

    def abort_calls(self, call_ids: Collection[str], reason: str = "cancelled") -> None:
        """The provider takes no result for these of its calls any more: abortable tools stop,
        queued calls never start, a running un_abortable tool goes on (spec/voice 18.11b).

        run_calls returns their results all the same. Ids are the provider's; of one that it used
        twice the latest call is meant. Unknown ids are ignored.
        """
        self._calls.abort(call_ids, reason)

    # -- the size of the context

    @property
    def size(self) -> int:
        """Tokens of the context as last told."""
        return self._parts.compactor.size

    async def used(
        self, usage: Usage, *, context_tokens: int | None = None, run_id: str = ""
    ) -> None:
        """Count one response of the model. `context_tokens` is the size of the provider's context;
        None leaves the size at what the usage says, if it says anything."""
        tokens = usage.total if context_tokens is None else context_tokens
        if tokens:
            self._parts.compactor.note(tokens)
        store = self._parts.history.store
        await store.add_tokens(usage)
        self.emit(TokenConsumption(consumption=usage), run_id)
        await store.increment_turn()

    async def compact(
        self, summarise: Summarise, token: CancelToken | None = None, run_id: str = ""
    ) -> bool:
        """Summarise history with `summarise`: (view, instructions, token) -> (text, usage).

        False if it failed, gave a blank text, was aborted or cancelled by nobody here, took longer
        than CompactionConfig.timeout_s; while a call has no result (row 48); and if anything was
        stored meanwhile, which the summary would hide: try again later. History is unchanged then.
        Between compaction_start and compaction_end, which always come together, nothing is spoken.
        """
        if not self._parts.runs.idle:
            return False
        emitter = self._emitter(run_id)
        return await self._parts.compactor.run(summarise, emitter, token or CancelToken())

    def summarise_with(self, model: Model | None = None, run_id: str = "") -> Summarise:
        """A text model as summariser, by default the agent's own."""
        model = model or self._mind.model
        return self._parts.compactor.by_model(model, self.prompt, self._emitter(run_id))

    # -- inside

    async def _compact_by_model(self) -> bool:
        return await self.compact(self.summarise_with())

    def _emitter(self, run_id: str) -> Emitter:
        return Emitter(self._notifier, self._parts.config.name, run_id)

    def _spoken(
        self,
        text: str,
        message_id: str | None,
        playback: bool,
        *,
        interrupted: bool = False,
        calls: tuple[ToolCall, ...] = (),
    ) -> Message:
        """Words of the model; blank ones are never pending."""
        return Message(
            sender="agent",
            id=message_id or self.new_id("msg"),
            text=text,
            playback="pending" if playback and text.strip() else None,
            interrupted=interrupted,
            tool_calls=calls,
        )
