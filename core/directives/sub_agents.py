"""Sub-agents: whole agents that the model sends a task and reads one answer from (spec core 13.6).

A sub-agent sees nothing of its parent's history. Its events reach the parent's subscribers wrapped
(SubAgentEvent), between brackets that always close. Values and the one run; the registry keeps
which there are.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, Field

from ..cancel import CancelToken
from ..errors import AbortError
from ..events import SubAgentCompleted, SubAgentEvent, SubAgentInvoked, SubscriberEvent
from ..messages import ResultStatus
from ..notify import Subscriber
from ..requests import RequestResult
from ..store import Store, SubAgentStores
from ..stores.memory import MemoryStore
from ..tool import ToolHost

INVOKE_SUB_AGENT = "glove_invoke_subagent"


class RunnableAgent(Protocol):
    """What a factory makes; agent.Agent is one."""

    def add_subscriber(self, subscriber: Subscriber) -> object: ...

    def remove_subscriber(self, subscriber: Subscriber) -> object: ...

    async def process_request(
        self, request: str, *, token: CancelToken | None = None
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
    """The subscriber that a child is given for one run."""

    def __init__(self, bracket: Bracket) -> None:
        self._bracket = bracket

    def record(self, event: SubscriberEvent, /) -> None:
        """Wrapped and passed on at once."""
        self._bracket.relay(event)
