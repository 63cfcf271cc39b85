"""Sub-agents: whole agents that the model sends a task and reads one answer from (spec core 13.6).

A sub-agent sees nothing of its parent's history. Its events reach the parent's subscribers wrapped
(SubAgentEvent), between brackets that always close. Values and the one run; the registry keeps
which there are.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, Field

from ..cancel import AbortScope, CancelToken, contained
from ..errors import AbortError
from ..events import (
    RequestEnded,
    RequestStarted,
    SubAgentCompleted,
    SubAgentEvent,
    SubAgentInvoked,
    SubscriberEvent,
)
from ..messages import ResultStatus
from ..notify import Listener, Subscriber
from ..requests import RequestResult
from ..store import Store, SubAgentStores
from ..stores.memory import MemoryStore
from ..tool import ToolHost

INVOKE_SUB_AGENT = "glove_invoke_subagent"
CHILD_S = 86_400.0
"""A child ends by its own limits; this one only keeps the agent's default deadline away."""
LAST_WORDS_S = 1.0


class RunnableAgent(Protocol):
    """What a factory makes; agent.Agent is one.

    A request must end when its token fires: the parent waits for it, so that un_abortable tools of
    the child run to their end.
    """

    def add_subscriber(self, subscriber: Subscriber) -> object: ...

    def remove_subscriber(self, subscriber: Subscriber) -> object: ...

    async def process_request(
        self,
        request: str,
        *,
        token: CancelToken | None = None,
        subscriber: Listener | None = None,
    ) -> RequestResult: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentContext:
    """What a factory may use. `parent` gives its model, display, prompt and tools."""

    name: str
    prompt: str
    parent: ToolHost

    async def store(self, *, durable: bool = False) -> Store:
        """A store for the child: kept under its name if durable, fresh otherwise (row 61)."""
        mother = self.parent.store
        if isinstance(mother, SubAgentStores):
            return await mother.create_sub_agent_store(self.name, durable)
        return MemoryStore()


SubAgentFactory = Callable[[SubAgentContext], Awaitable[RunnableAgent] | RunnableAgent]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgent:
    """One sub-agent; the model chooses by `description`."""

    name: str
    factory: SubAgentFactory
    description: str = ""


class InvokeSubAgent(BaseModel):
    """What the model fills in."""

    name: str = Field(description="The sub-agent's name, as listed")
    prompt: str = Field(
        min_length=1,
        description="The whole task; the sub-agent sees nothing else of this conversation",
    )


def sub_agent_listing(sub_agents: Mapping[str, SubAgent]) -> str:
    """The description of the dispatch tool."""
    lines = [f"- {one.name}: {one.description}" for one in sub_agents.values()]
    return "\n".join(["Hand a task to a sub-agent and get its answer. Sub-agents:", *lines])


class Bracket:
    """Emits subagent_invoked and, whatever happens inside, one subagent_completed."""

    def __init__(
        self, name: str, prompt: str, call_id: str, emit: Callable[[SubscriberEvent], None]
    ) -> None:
        self._name = name
        self._call_id = call_id
        self._emit = emit
        emit(SubAgentInvoked(name=name, prompt=prompt, call_id=call_id))

    def relay(self, event: SubscriberEvent, /) -> None:
        """An event of the child, to the parent's subscribers."""
        self._emit(SubAgentEvent(name=self._name, call_id=self._call_id, event=event))

    def close(self, error: BaseException | None) -> None:
        """The end; call it once."""
        status: ResultStatus = "success"
        if error is not None:
            status = "error" if isinstance(error, Exception) else "aborted"
        if isinstance(error, AbortError):
            status = "aborted"
        self._emit(
            SubAgentCompleted(
                name=self._name,
                call_id=self._call_id,
                status=status,
                message=None if error is None else str(error) or type(error).__name__,
            )
        )


class Relay:
    """Passes on what one child emits during one request: as its subscriber, so that what has no
    request (stored messages, its own sub-agents) comes in its place. A child that others use too is
    heard only while this request runs."""

    def __init__(self, bracket: Bracket) -> None:
        self._bracket = bracket
        self._own = ""
        self._running = ""
        self._heard = asyncio.Event()

    def begin(self, event: SubscriberEvent, /) -> None:
        """The request's temporary subscriber: learns which request it is."""
        self._own = self._own or event.run_id

    def record(self, event: SubscriberEvent, /) -> None:
        """Wrapped and passed on at once."""
        if isinstance(event, RequestStarted):
            self._running = event.run_id
        if self._own and self._own == self._running:
            self._bracket.relay(event)
        if isinstance(event, RequestEnded):
            self._running = ""
            if event.run_id == self._own:
                self._heard.set()

    async def heard(self) -> None:
        """Wait, not for ever, until the request's last event came: a child that runs by itself
        delivers in its own time."""
        if not self._own:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await self._heard.wait()


async def run_child(
    sub_agent: SubAgent, context: SubAgentContext, token: CancelToken, bracket: Bracket
) -> str:
    """Make the child and ask it. `token` ends its generation and its abortable tools; raises
    AbortError then, and what factory and child raise."""
    async with AbortScope(token):
        made = sub_agent.factory(context)
        child = await contained(made) if inspect.isawaitable(made) else made
    own, relay = CancelToken(), Relay(bracket)
    unsubscribe = token.on_abort(lambda: own.abort(token.reason or "aborted", tools=True))
    child.add_subscriber(relay)
    try:
        result = await child.process_request(context.prompt, token=own, subscriber=relay.begin)
        await relay.heard()
    finally:
        unsubscribe()
        child.remove_subscriber(relay)
    return result.text
