"""What can be registered with an agent, before and after it is built: one surface for both.

Tools, hooks, skills, sub-agents, context providers, turn preparers, subscribers. Builder and agent
share the same registries, so it does not matter which of them is asked, or when.
"""

from collections.abc import Sequence
from typing import Self

from .agent_parts import Extensions
from .cancel import Unsubscribe
from .context import ContextProvider, Delivery, TurnPreparer
from .directives.hooks import Hook
from .directives.skills import Skill, SkillFunction
from .directives.sub_agents import SubAgent, SubAgentFactory
from .notify import Hearing, Notifier, Subscriber, SubscriberStatistics
from .tool import Tool, ToolFunction
from .tool import tool as as_tool


class Registration:
    """The registering half of Glove and Agent. Everything that returns Self can be chained."""

    def __init__(self, registered: Extensions, notifier: Notifier) -> None:
        self._registered = registered
        self._notifier = notifier

    @property
    def tools(self) -> tuple[Tool, ...]:
        """In order of registration; readable without running the loop (row 11)."""
        return self._registered.toolset.tools

    def fold(self, tool: Tool | ToolFunction) -> Self:
        """Add a tool; the next model call offers it. A typed function with a docstring is made one
        as by @tool. Raises DuplicateToolError, UsageError.
        """
        self._registered.toolset.add(tool if isinstance(tool, Tool) else as_tool(tool))
        return self

    def replace_tools(self, previous: Sequence[str], following: Sequence[Tool]) -> Self:
        """Exchange tools in one step (row 12); see Toolset.replace."""
        self._registered.toolset.replace(previous, following)
        return self

    def define_hook(self, name: str, hook: Hook) -> Self:
        """Run `hook` when a user's message holds `/name`, before the model sees it (row 62).

        A second definition of a name replaces the first, here and for skills and sub-agents.
        """
        self._registered.directives.define_hook(name, hook)
        return self

    def define_skill(
        self,
        name: str,
        handler: SkillFunction,
        *,
        description: str = "",
        expose_to_agent: bool = False,
    ) -> Self:
        """Put the handler's text in front of a user's message that holds `/name` (row 63).

        `expose_to_agent` offers it to the model too, through glove_invoke_skill; then the
        description is needed. Raises UsageError.
        """
        skill = Skill(
            name=name, handler=handler, description=description, expose_to_agent=expose_to_agent
        )
        self._registered.directives.define_skill(skill)
        return self

    def define_sub_agent(
        self, name: str, factory: SubAgentFactory, *, description: str = ""
    ) -> Self:
        """Let the model hand tasks to an agent of its own, through glove_invoke_subagent (row 66).

        `factory` is called for every task, with the parent's model, display and store in reach.
        """
        sub_agent = SubAgent(name=name, factory=factory, description=description)
        self._registered.directives.define_sub_agent(sub_agent)
        return self

    def remove_sub_agent(self, name: str) -> Self:
        """Take a sub-agent away; the dispatch tool goes with the last. Harmless for none."""
        self._registered.directives.remove_sub_agent(name)
        return self

    def add_context_provider(
        self,
        provider: ContextProvider,
        *,
        delivery: Delivery = "iteration",
        id: str | None = None,
        timeout_s: float | None = None,
    ) -> Unsubscribe:
        """Tell the model something that changes, without touching the system prompt (rows 68, 69).

        provider   (token) -> text or None, plain or async; blank says nothing
        delivery   iteration  asked before each model call; shown at its tail, stored nowhere
                   request    asked once per request and frozen; shown like the former
                   history    asked once per request; stored when its value changed, told once
        id         names it; `history` needs a stable one to be recognised after a restart
        timeout_s  of one asking; one that fails or is too slow is reported and left out

        Returns a function that takes the provider away. Raises UsageError.
        """
        return self._registered.context.add(provider, delivery=delivery, id=id, timeout_s=timeout_s)

    def add_turn_preparer(self, preparer: TurnPreparer) -> Unsubscribe:
        """Run `preparer` before each turn is read; it may change prompt and tools (row 71).

        In text its exception ends the request; on a call it is reported and the turn goes on.
        Returns a function that takes it away.
        """
        return self._registered.preparers.add(preparer)

    def add_subscriber(self, subscriber: Subscriber | Hearing) -> Self:
        """Let `subscriber` hear every event, in order; adding it twice counts once.

        An object with `record(event)` or a function of one event, plain or async. It hears events
        from a queue of its own, so it may be slow and may lag behind; `Agent.flush` waits for it.
        """
        self._notifier.add(subscriber)
        return self

    def remove_subscriber(self, subscriber: Subscriber | Hearing) -> Self:
        """Events still queued for it are lost."""
        self._notifier.remove(subscriber)
        return self

    def subscriber_statistics(self) -> list[tuple[Subscriber | Hearing, SubscriberStatistics]]:
        """What each subscriber got, failed at, lost, and has still to hear."""
        return self._notifier.statistics()
