"""Glove: the builder of agents.

    agent = Glove(model=model, system_prompt="…").fold(get_time).build()

Folding, defining and subscribing are legal before and after build() and act on the same agent.
"""

from typing import Self

from .agent import Agent
from .agent_parts import extensions
from .config import AgentConfig
from .display import DisplayStack
from .errors import NotBuiltError, UsageError
from .mind import Mind
from .model import Model
from .notify import Notifier
from .registration import Registration
from .requests import RequestResult, UserInput
from .store import Store
from .stores.memory import MemoryStore


class Glove(Registration):
    """Collects an agent's parts; chainable. One builder makes one agent.

    system_prompt  of every model call
    voice_prompt   stands in for it while a call holds the agent's turn queue: short spoken answers,
                   no tool that waits for a click
    """

    def __init__(
        self,
        *,
        model: Model,
        system_prompt: str = "",
        voice_prompt: str | None = None,
        store: Store | None = None,
        display: DisplayStack | None = None,
        config: AgentConfig | None = None,
    ) -> None:
        self._config = config or AgentConfig()
        super().__init__(
            extensions(self._config),
            Notifier(self._config.queue_size, self._config.close_timeout_s),
        )
        self._mind = Mind(model, system_prompt, voice_prompt)
        self._store = store
        self._display = display or DisplayStack()
        self._agent: Agent | None = None

    @property
    def server_mode(self) -> bool:
        """Whether the agent will be headless."""
        return self._config.server_mode

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
                registered=self._registered,
                notifier=self._notifier,
            )
        return self._agent

    async def process_request(self, request: UserInput) -> RequestResult:
        """Shorthand for build().process_request(...); raises NotBuiltError before build()."""
        if self._agent is None:
            raise NotBuiltError("call build() before process_request()")
        return await self._agent.process_request(request)
