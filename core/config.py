"""AgentConfig: every setting of an agent, validated at construction."""

from concurrent.futures import Executor as ThreadPool
from dataclasses import dataclass, field
from typing import Literal

from .errors import UsageError
from .external import EventConfig
from .messages import IdSource, random_id
from .model import ModelLimits
from .permissions import PermissionPolicy

BuiltinTool = Literal["tasks", "inbox"]
COMPACTION_INSTRUCTIONS = (
    "Summarise the conversation so far for yourself: what the user wants, what was decided, what is"
    " still open, names, numbers and dates exactly. Write only the summary."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionConfig:
    """When history is summarised. `context_limit` is in tokens of the last model call."""

    instructions: str = COMPACTION_INSTRUCTIONS
    context_limit: int = 100_000
    soft_share: float = 0.9
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if self.context_limit <= 0:
            raise UsageError("CompactionConfig.context_limit: must be positive")
        if not 0 < self.soft_share <= 1:
            raise UsageError("CompactionConfig.soft_share: must be in (0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """Settings of one agent.

    name                    attribution of its events
    server_mode             headless: permissions default to `deny` instead of `display`
    permissions             policy for gated tools without a remembered decision
    max_turns               model calls per request; then a canned message is stored and returned
    join_wait_s             how long a new request waits for outstanding tools (CONTRACTS E)
    un_abortable_timeout_s  deadline of un_abortable tools without one of their own
    tool_result_summaries   show summaries instead of old results to the model
    compaction              None switches it off
    builtin_tools           tools the agent registers itself where its store can keep their data
    context_timeout_s       limit of a context provider without one of its own
    limits                  bounds of each model call, unless a request brings its own
    threads                 pool for synchronous tools; the loop's own bounded pool by default
    queue_size              events a slow subscriber may lag behind
    close_timeout_s         patience with subscribers and tools at the end
    new_id                  messages.sequential_ids makes runs repeatable
    """

    name: str = "agent"
    server_mode: bool = False
    permissions: PermissionPolicy | None = None
    max_turns: int = 120
    join_wait_s: float = 1.5
    un_abortable_timeout_s: float = 120.0
    tool_result_summaries: bool = False
    compaction: CompactionConfig | None = field(default_factory=CompactionConfig)
    events: EventConfig = field(default_factory=EventConfig)
    builtin_tools: tuple[BuiltinTool, ...] = ("tasks", "inbox")
    context_timeout_s: float = 2.0
    limits: ModelLimits = ModelLimits()
    threads: ThreadPool | None = None
    queue_size: int = 1024
    close_timeout_s: float = 1.0
    new_id: IdSource = random_id

    def __post_init__(self) -> None:
        if self.max_turns < 1:
            raise UsageError("AgentConfig.max_turns: must be 1 or more")
        if self.queue_size < 1:
            raise UsageError("AgentConfig.queue_size: must be 1 or more")
        for name in ("join_wait_s", "close_timeout_s"):
            if getattr(self, name) < 0:
                raise UsageError(f"AgentConfig.{name}: must not be negative")
        for name in ("un_abortable_timeout_s", "context_timeout_s"):
            if getattr(self, name) <= 0:
                raise UsageError(f"AgentConfig.{name}: must be positive")
        unknown = set(self.builtin_tools) - {"tasks", "inbox"}
        if unknown:
            raise UsageError(
                f"AgentConfig.builtin_tools: {', '.join(sorted(unknown))}: use tasks, inbox"
            )

    @property
    def permission_policy(self) -> PermissionPolicy:
        """The policy in force (DESIGN 8)."""
        return self.permissions or ("deny" if self.server_mode else "display")
