"""What an agent is told about the world: context providers and turn preparers (spec core 11).

A provider gives one text; how often it is asked is its delivery. A preparer may change the agent
before a turn is read. Both are bounded: one that fails or hangs is reported and left out, never
the end of a turn (spec core 19.28). Owned by the agent; neither touches the system prompt, so the
prompt cache keeps its prefix (19.23).
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from .cancel import AbortScope, CancelToken, Unsubscribe, contained
from .errors import UsageError
from .events import AgentProblem, ProblemStage, RuntimeContext, SubscriberEvent
from .history import History
from .messages import Message
from .tool import ToolHost
from .view import since_compaction

logger = logging.getLogger(__name__)

Delivery = Literal["iteration", "request", "history"]
DELIVERIES: tuple[Delivery, ...] = ("iteration", "request", "history")
ContextProvider = Callable[[CancelToken], str | None | Awaitable[str | None]]
PrepareReason = Literal["request", "session_open", "user_speech", "event"]
Report = Callable[[ProblemStage, str, Exception], None]
"""Takes where it failed, who, and why."""

PREPARE_S = 5.0
"""On a call a preparer may take this long; then the turn goes on without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPreparation:
    """What a turn preparer gets: the agent it may change, and why it is asked now.

    `user` is the message that the turn is about to answer, not stored yet; None for a wake, and
    for a session that has not heard the words.
    """

    agent: ToolHost
    token: CancelToken
    reason: PrepareReason
    user: Message | None = None


TurnPreparer = Callable[[TurnPreparation], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class _Provider:
    id: str
    ask: ContextProvider
    delivery: Delivery
    timeout_s: float


@dataclass(frozen=True, slots=True)
class ContextValue:
    """What one provider said. `id` names the provider, `text` is not blank."""

    id: str
    text: str

    @property
    def message(self) -> Message:
        """Transient: shown in one model call and stored nowhere."""
        return Message(
            sender="user",
            id=f"context_{self.id}",
            text=self.text,
            framework_context="runtime",
            context_id=self.id,
        )


def reporting(emit: Callable[[SubscriberEvent], None]) -> Report:
    """Tell the log and the subscribers what was left out."""

    def report(stage: ProblemStage, name: str, error: Exception) -> None:
        text = str(error) or type(error).__name__
        logger.warning("left out", exc_info=error, extra={"stage": stage, "part": name})
        emit(AgentProblem(stage=stage, name=name, message=text))

    return report


class ContextProviders:
    """In order of registration; `default_timeout_s` bounds those without a limit of their own."""

    def __init__(self, default_timeout_s: float) -> None:
        self._default_timeout_s = default_timeout_s
        self._providers: dict[str, _Provider] = {}
        self._made = 0
        self._telling = asyncio.Lock()

    def add(
        self,
        provider: ContextProvider,
        *,
        delivery: Delivery = "iteration",
        id: str | None = None,
        timeout_s: float | None = None,
    ) -> Unsubscribe:
        """See Agent.add_context_provider."""
        if delivery not in DELIVERIES:
            raise UsageError(f"delivery: {delivery!r} is none of {', '.join(DELIVERIES)}")
        if timeout_s is not None and timeout_s <= 0:
            raise UsageError("timeout_s: must be positive")
        id = id or self._free_id()
        if id in self._providers:
            raise UsageError(f"id: a context provider named {id!r} is registered already")
        limit = timeout_s or self._default_timeout_s
        entry = self._providers[id] = _Provider(id, provider, delivery, limit)
        return lambda: self._remove(entry)

    def delivers(self, *deliveries: Delivery) -> bool:
        """Whether any provider has one of these deliveries."""
        if not self._providers:  # the usual case, asked several times a request
            return False
        return any(one.delivery in deliveries for one in self._providers.values())

    async def ask(
        self, deliveries: Sequence[Delivery], token: CancelToken, report: Report
    ) -> list[ContextValue]:
        """What providers of these deliveries say now, in order, blank texts left out.

        Raises AbortError when `token` fires. A failure or a time-out is reported and skipped.
        """
        said: list[ContextValue] = []
        for one in list(self._providers.values()):
            if one.delivery not in deliveries or self._providers.get(one.id) is not one:
                continue
            try:
                async with AbortScope(token), asyncio.timeout(one.timeout_s):
                    answer = one.ask(token)
                    text = await contained(answer) if inspect.isawaitable(answer) else answer
                if text is not None and text.strip():
                    said.append(ContextValue(one.id, text))
            except Exception as error:
                token.raise_if_aborted()
                report("context_provider", one.id, error)
        return said

    def in_order(self, *groups: Sequence[ContextValue]) -> list[ContextValue]:
        """Values that were asked at different times, in the order of their providers; without those
        of providers that were taken away meanwhile."""
        by_id = {value.id: value for group in groups for value in group}
        return [by_id[one] for one in self._providers if one in by_id]

    async def tell(self, values: Sequence[ContextValue], history: History) -> tuple[Message, ...]:
        """Store what the model's view does not hold yet, and return it. One at a time: a session
        asks beside the requests."""
        async with self._telling:
            known = self.in_order(values)
            if not known:
                return ()
            return await history.append(*_news(known, await history.store.get_messages()))

    def _free_id(self) -> str:
        self._made += 1
        while f"provider_{self._made}" in self._providers:
            self._made += 1
        return f"provider_{self._made}"

    def _remove(self, entry: _Provider) -> None:
        if self._providers.get(entry.id) is entry:
            del self._providers[entry.id]


class RequestContext:
    """The runtime context of one request, or one turn of a session; `request` values are frozen at
    its beginning. All that asks providers raises AbortError."""

    def __init__(
        self, providers: ContextProviders, emit: Callable[[SubscriberEvent], None]
    ) -> None:
        self._providers = providers
        self._emit = emit
        self._report = reporting(emit)
        self._frozen: list[ContextValue] = []
        self._told: list[ContextValue] = []

    async def open(self, history: History, token: CancelToken) -> tuple[Message, ...]:
        """Freeze `request` values; store `history` values that changed since they were last told.

        Returns what was stored now. What was told is read from history itself, so it holds across
        restarts, and a compaction that removed a value makes it told again.
        """
        ask = self._providers.ask
        if self._providers.delivers("request"):
            self._frozen = await ask(("request",), token, self._report)
        if not self._providers.delivers("history"):
            return ()
        self._told = await ask(("history",), token, self._report)
        return await self._providers.tell(self._told, history)

    async def tell_again(self, history: History) -> None:
        """After a compaction in the middle of the request: `history` values it took away."""
        if self._told:
            await self._providers.tell(self._told, history)

    async def values(self, token: CancelToken) -> tuple[ContextValue, ...]:
        """What the model is told now and is stored nowhere, in the order of the providers. Emits
        runtime_context when any is registered for it."""
        if not self._providers.delivers("iteration", "request"):
            return ()
        fresh = await self._providers.ask(("iteration",), token, self._report)
        values = tuple(self._providers.in_order(self._frozen, fresh))
        self._emit(RuntimeContext(messages=tuple(value.message for value in values)))
        return values


def _news(now: Sequence[ContextValue], stored: Sequence[Message]) -> list[Message]:
    """Values the model's view does not hold yet, as messages to be stored."""
    told = {
        message.context_id: message.text
        for message in since_compaction(stored)
        if message.framework_context == "history"
    }
    return [
        Message(sender="user", text=value.text, framework_context="history", context_id=value.id)
        for value in now
        if told.get(value.id) != value.text
    ]


class TurnPreparers:
    """In order of registration, each before the context of a turn is read."""

    def __init__(self) -> None:
        self._preparers: dict[object, TurnPreparer] = {}

    def add(self, preparer: TurnPreparer) -> Unsubscribe:
        """See Agent.add_turn_preparer."""
        key = object()
        self._preparers[key] = preparer
        return lambda: self._remove(key)

    async def run(self, preparation: TurnPreparation, report: Report, *, on_call: bool) -> None:
        """Run all. In text a failing one raises; on a call it is reported and the turn goes on.

        Raises AbortError when the turn's token fires.
        """
        for key, preparer in list(self._preparers.items()):
            if key not in self._preparers:
                continue
            try:
                async with asyncio.timeout(PREPARE_S if on_call else None):
                    async with AbortScope(preparation.token):
                        outcome = preparer(preparation)
                        if inspect.isawaitable(outcome):
                            await contained(outcome)
            except Exception as error:
                preparation.token.raise_if_aborted()
                name = getattr(preparer, "__qualname__", type(preparer).__name__)
                report("turn_preparer", name, error)
                if not on_call:
                    raise

    def _remove(self, key: object) -> None:
        self._preparers.pop(key, None)
