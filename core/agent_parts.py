"""The parts of one agent that its loop works with, put together once by the agent."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .compaction import Compactor
from .config import AgentConfig
from .external import ExternalEvents
from .history import History
from .runs import ToolRuns
from .toolset import Toolset

if TYPE_CHECKING:
    from .agent import Agent


@dataclass(frozen=True, slots=True)
class Parts:
    """Owned by the agent; the loop borrows them for one request."""

    agent: "Agent"
    config: AgentConfig
    toolset: Toolset
    history: History
    runs: ToolRuns
    events: ExternalEvents
    compactor: Compactor
