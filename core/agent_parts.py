"""The parts of one agent that its loop works with, put together once by the agent."""

from dataclasses import dataclass

from .compaction import Compactor
from .config import AgentConfig
from .executor import Executor
from .external import ExternalEvents
from .history import History
from .permissions import Permissions
from .runs import Emit, ToolRuns
from .store import Store
from .tool import ToolHost
from .toolset import Toolset


@dataclass(frozen=True, slots=True)
class Parts:
    """Owned by the agent; the loop borrows them for one request. `host` is what tools see of it."""

    host: ToolHost
    config: AgentConfig
    toolset: Toolset
    history: History
    runs: ToolRuns
    events: ExternalEvents
    compactor: Compactor


def assemble(
    host: ToolHost, store: Store, config: AgentConfig, toolset: Toolset, emit: Emit
) -> Parts:
    """The parts of a new agent. Its display is asked for again at every use, for it may change."""
    history = History(store, config.new_id, emit, summaries=config.tool_result_summaries)
    executor = Executor(
        Permissions(store, lambda: host.display, config.permission_policy),
        lambda: host.display,
        un_abortable_timeout_s=config.un_abortable_timeout_s,
        threads=config.threads,
    )
    return Parts(
        host=host,
        config=config,
        toolset=toolset,
        history=history,
        runs=ToolRuns(history, executor, emit),
        events=ExternalEvents(config.events),
        compactor=Compactor(config.compaction, history),
    )
