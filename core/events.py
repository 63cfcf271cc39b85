"""Subscriber events: what an agent reports while it works.

A closed vocabulary of frozen values; `wire` holds the name the seeds gave each event, `payload()`
its fields by wire name. Every event carries the agent's name and the id of the request it belongs
to (`run_id`), so that a sub-agent's deltas are told apart (spec core 9, 19.15). Nothing here is
stored; history is in messages.py.
"""

from dataclasses import dataclass, fields
from typing import ClassVar, Literal

from .messages import Message, MessagePatch, ResultStatus, ToolCall, ToolResultData
from .records import InboxItem, Task
from .usage import Usage

Phase = Literal["answer", "compaction"]
RequestStatus = Literal["ok", "aborted", "failed"]
EventDecision = Literal["wake", "defer", "drop", "duplicate"]
InjectionMode = Literal["running", "wake", "user_turn", "realtime"]
ProblemStage = Literal["context_provider", "turn_preparer", "directive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """Who emitted it, during which request; empty outside any request."""

    wire: ClassVar[str] = ""
    agent: str = ""
    run_id: str = ""

    def payload(self) -> dict[str, object]:
        """The fields by name, not copied deeply."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStarted(Attributed):
    """A request left the turn queue. `user_message_id` is None for a wake."""

    wire: ClassVar[str] = "request_started"
    user_message_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEnded(Attributed):
    """A request is over; tools it started may still be outstanding. `error` says why it was not
    `ok`, as its caller was told; a wake has no caller, so this is where its failure shows."""

    wire: ClassVar[str] = "request_ended"
    status: RequestStatus
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(Attributed):
    """Streamed text of the message `message_id`. Only phase `answer` is for people."""

    wire: ClassVar[str] = "text_delta"
    text: str
    message_id: str = ""
    phase: Phase = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse(Attributed):
    """A streaming model finished naming a call; it has not run yet."""

    wire: ClassVar[str] = "tool_use"
    id: str
    name: str
    input: object
    message_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse(Attributed):
    """The whole answer of a non-streaming model."""

    wire: ClassVar[str] = "model_response"
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: str | None = None
    usage: Usage = Usage()
    message_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponseComplete(Attributed):
    """The end of a streamed answer, with its full text."""

    wire: ClassVar[str] = "model_response_complete"
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: str | None = None
    usage: Usage = Usage()
    message_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Attributed):
    """The executor took up a call (its permission may still be asked)."""

    wire: ClassVar[str] = "tool_started"
    call_id: str
    tool_name: str
    input: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUseResult(Attributed):
    """The one terminal result of a call; it is in the store already."""

    wire: ClassVar[str] = "tool_use_result"
    call_id: str
    tool_name: str
    result: ToolResultData
    duration_ms: float

    def payload(self) -> dict[str, object]:
        """With the aliases `id` and `name` that exist on the event only (row 47)."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return own | {"id": self.call_id, "name": self.tool_name}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettledIdle(Attributed):
    """A tool's result came when no request could show it to the model any more.

    A brain answers with process_request(Wake.tool_settled(event)) at a quiet moment.
    """

    wire: ClassVar[str] = "tool_settled_idle"
    call_id: str
    tool_name: str
    status: ResultStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStored(Attributed):
    """A message was appended to history, as it stands there."""

    wire: ClassVar[str] = "message_stored"
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAmended(Attributed):
    """A stored message was corrected by the one writer of history."""

    wire: ClassVar[str] = "message_amended"
    message_id: str
    patch: MessagePatch


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStart(Attributed):
    """Until the matching compaction_end no delta may be shown or spoken."""

    wire: ClassVar[str] = "compaction_start"
    current_token_consumption: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEnd(Attributed):
    """Always follows compaction_start, also after a failure or an abort."""

    wire: ClassVar[str] = "compaction_end"
    status: RequestStatus
    current_token_consumption: int
    summary_message: Message | None = None
    consumption: Usage = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenConsumption(Attributed):
    """Tokens of one model call, compaction calls included."""

    wire: ClassVar[str] = "token_consumption"
    consumption: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class EventReceived(Attributed):
    """emit_event took, deferred, dropped or recognised an outside event."""

    wire: ClassVar[str] = "event_received"
    id: str
    source: str
    kind: str | None
    content: str
    decision: EventDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class EventInjected(Attributed):
    """The model's next call is the first to see this outside event."""

    wire: ClassVar[str] = "event_injected"
    id: str
    source: str
    kind: str | None
    mode: InjectionMode


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeContext(Attributed):
    """What context providers said for the next model call; empty when all were silent (row 70)."""

    wire: ClassVar[str] = "runtime_context"
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProblem(Attributed):
    """Something beside the turn failed and was left out; the turn went on, unless it raised."""

    wire: ClassVar[str] = "error"
    stage: ProblemStage
    name: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksChanged(Attributed):
    """The agent's plan, whole."""

    wire: ClassVar[str] = "tasks_changed"
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxChanged(Attributed):
    """Every inbox item that is not consumed yet, in the order it was posted."""

    wire: ClassVar[str] = "inbox_changed"
    items: tuple[InboxItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookInvoked(Attributed):
    """A user's message named a hook; its handler is about to run."""

    wire: ClassVar[str] = "hook_invoked"
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillInvoked(Attributed):
    """A skill's handler is about to run, for a user's directive or a model's call."""

    wire: ClassVar[str] = "skill_invoked"
    name: str
    source: Literal["user", "agent"]
    args: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentInvoked(Attributed):
    """A sub-agent begins; exactly one subagent_completed follows (row 67)."""

    wire: ClassVar[str] = "subagent_invoked"
    name: str
    prompt: str
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentCompleted(Attributed):
    """A sub-agent ended, however it ended."""

    wire: ClassVar[str] = "subagent_completed"
    name: str
    call_id: str
    status: ResultStatus
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentEvent(Attributed):
    """An event of a sub-agent, as it emitted it. Wrapped, so that nobody takes a sub-agent's words
    for the agent's own and speaks them (spec core 19.15). Nested sub-agents wrap again."""

    wire: ClassVar[str] = "subagent_event"
    name: str
    call_id: str
    event: "SubscriberEvent"


SubscriberEvent = (
    RequestStarted
    | RequestEnded
    | TextDelta
    | ToolUse
    | ModelResponse
    | ModelResponseComplete
    | ToolStarted
    | ToolUseResult
    | ToolSettledIdle
    | MessageStored
    | MessageAmended
    | CompactionStart
    | CompactionEnd
    | TokenConsumption
    | EventReceived
    | EventInjected
    | RuntimeContext
    | AgentProblem
    | TasksChanged
    | InboxChanged
    | HookInvoked
    | SkillInvoked
    | SubAgentInvoked
    | SubAgentCompleted
    | SubAgentEvent
)
