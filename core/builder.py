"""Glove: the builder of agents.

    agent = Glove(model=model, system_prompt="…").fold(get_time).build()

Folding and subscribing are legal before and after build() and act on the same agent.
"""

from collections.abc import Sequence
from typing import Self

from .agent import Agent
from .config import AgentConfig
from .display import DisplayStack
from .errors import NotBuiltError, UsageError
from .mind import Mind
from .model import Model
from .notify import Notifier, Subscriber
from .requests import RequestResult, UserInput
from .store import Store
from .stores.memory import MemoryStore
from .tool import Tool
from .toolset import Toolset


class Glove:
    """Collects an agent's parts; chainable. One builder makes one agent."""

    def __init__(
        self,
        *,
        model: Model,
        system_prompt: str = "",
        store: Store | None = None,
        display: DisplayStack | None = None,
        config: AgentConfig | None = None,
    ) -> None:
        self._config = config or AgentConfig()
        self._mind = Mind(model, system_prompt)
        self._store = store
        self._display = display or DisplayStack()
        self._toolset = Toolset()
        self._notifier = Notifier(self._config.queue_size, self._config.close_timeout_s)
        self._agent: Agent | None = None

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._toolset.tools

    def fold(self, tool: Tool) -> Self:
        """Add a tool; raises DuplicateToolError. After build() the next model call offers it."""
        self._toolset.add(tool)
        return self

    def replace_tools(self, previous: Sequence[str], following: Sequence[Tool]) -> Self:
        """Exchange tools in one step; see Toolset.replace."""
        self._toolset.replace(previous, following)
        return self

    def add_subscriber(self, subscriber: Subscriber) -> Self:
        self._notifier.add(subscriber)
        return self

    def remove_subscriber(self, subscriber: Subscriber) -> Self:
        self._notifier.remove(subscriber)
        return self

    def set_display(self, display: DisplayStack) -> Self:
        """Exchange the display, also after build()."""
        self._display = display
        if self._agent is not None:
            self._agent.set_display(display)
        return self

    def build(self, store: Store | None = None) -> Agent:
        """The agent; the same one every time. A fresh MemoryStore unless a store was given.

        Raises UsageError if a store comes too late or twice (spec core 19.7).
        """
        if store is not None:
            if self._agent is not None and store is not self._agent.store:
                raise UsageError("build(store): the agent is built already; make a new builder")
            if self._store is not None and store is not self._store:
                raise UsageError("build(store): the constructor was given a store; pass only one")
            self._store = store
        if self._agent is None:
            self._agent = Agent(
                mind=self._mind,
                store=self._store or MemoryStore(),
                display=self._display,
                config=self._config,
                toolset=self._toolset,
                notifier=self._notifier,
            )
        return self._agent

    async def process_request(self, request: UserInput) -> RequestResult:
        """Shorthand for build().process_request(...); raises NotBuiltError before build()."""
        if self._agent is None:
            raise NotBuiltError("call build() before process_request()")
        return await self._agent.process_request(request)
