"""The parts of one agent that its loop works with, put together once by the agent."""

from dataclasses import dataclass

from .compaction import Compactor
from .config import AgentConfig
from .context import ContextProviders, TurnPreparers
from .directives.registry import Directives
from .executor import Executor
from .external import ExternalEvents
from .history import History
from .inbox import Inbox
from .permissions import Permissions
from .runs import Emit, ToolRuns
from .store import Store
from .tasks import Tasks
from .tool import Tool, ToolHost
from .toolset import Toolset, find_tool


@dataclass(frozen=True, slots=True)
class Extensions:
    """What is registered by name or order, before and after build(): shared by the builder."""

    toolset: Toolset
    directives: Directives
    context: ContextProviders
    preparers: TurnPreparers


def extensions(config: AgentConfig) -> Extensions:
    """Nothing registered yet."""
    toolset = Toolset()
    return Extensions(
        toolset,
        Directives(toolset),
        ContextProviders(config.context_timeout_s),
        TurnPreparers(),
    )


@dataclass(frozen=True, slots=True)
class Parts:
    """Owned by the agent; the loop borrows them for one request. `host` is what tools see of it."""

    host: ToolHost
    config: AgentConfig
    toolset: Toolset
    directives: Directives
    context: ContextProviders
    preparers: TurnPreparers
    history: History
    runs: ToolRuns
    events: ExternalEvents
    inbox: Inbox
    tasks: Tasks
    compactor: Compactor


def assemble(
    host: ToolHost, store: Store, config: AgentConfig, registered: Extensions, emit: Emit
) -> Parts:
    """The parts of a new agent. Its display is asked for again at every use, for it may change."""
    history = History(store, config.new_id, emit, summaries=config.tool_result_summaries)
    executor = Executor(
        Permissions(store, lambda: host.display, config.permission_policy),
        lambda: host.display,
        un_abortable_timeout_s=config.un_abortable_timeout_s,
        threads=config.threads,
    )
    inbox, tasks = Inbox(history, emit), Tasks(store, config.new_id, emit)
    registered.directives.report_to(emit)
    for tool in _builtin(config, inbox, tasks):
        # A tool of this name that the user folded is meant to stand in for ours.
        if find_tool(registered.toolset.tools, tool.name) is None:
            registered.toolset.add(tool)
    return Parts(
        host=host,
        config=config,
        toolset=registered.toolset,
        directives=registered.directives,
        context=registered.context,
        preparers=registered.preparers,
        history=history,
        runs=ToolRuns(history, executor, emit),
        events=ExternalEvents(config.events),
        inbox=inbox,
        tasks=tasks,
        compactor=Compactor(config.compaction, history, inbox.summary_block),
    )


def _builtin(config: AgentConfig, inbox: Inbox, tasks: Tasks) -> list[Tool]:
    """The tools that the store makes possible and the configuration allows (rows 54, 55)."""
    found = []
    if "tasks" in config.builtin_tools and tasks.store is not None:
        found.append(tasks.tool())
    if "inbox" in config.builtin_tools and inbox.store is not None:
        found.append(inbox.tool())
    return found
