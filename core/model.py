"""The text-model port: what a model adapter gets, gives back and reports on the way.

An adapter owns its wire and maps its errors to ModelError; it never runs tools, never emits
tool_use_result, compaction_* or token_consumption, and never retries a request that has already
produced output.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from .cancel import CancelToken
from .errors import UsageError
from .events import ModelResponse, ModelResponseComplete, TextDelta, ToolUse
from .messages import Message
from .usage import Usage

ModelEvent = TextDelta | ToolUse | ModelResponse | ModelResponseComplete
Notify = Callable[[ModelEvent], None]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """Bounds of one model call; None leaves the adapter's own setting.

    max_tokens  of the answer, reasoning included where the provider counts it so
    timeout_s   of the whole call; past it the adapter raises a retryable ModelError
    """

    max_tokens: int | None = None
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_tokens", "timeout_s"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UsageError(f"ModelLimits.{name}: must be positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model call.

    `messages` is the model's view: heard text only, every call directly followed by one results
    message with exactly one result per call, no client-only data. `system_prompt` is what counts,
    also where it is empty: one adapter may serve many agents.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    system_prompt: str = ""
    limits: ModelLimits = ModelLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResult:
    """What one call produced: usually one assistant message. `messages` must not be empty."""

    messages: tuple[Message, ...]
    usage: Usage = Usage()
    stop_reason: str | None = None


class Model(Protocol):
    """A text model (spec core 6)."""

    @property
    def name(self) -> str: ...

    def set_system_prompt(self, prompt: str) -> None:
        """Called before the first call and whenever the prompt changed: for a model that keeps a
        session. Others do nothing here, because each request carries its prompt."""

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        """Answer once.

        Streaming: `text_delta`*, one `tool_use` per completed call with its parsed input, then one
        `model_response_complete`. Otherwise one `model_response`. When `token` fires, the request
        must be closed at once; the agent also cancels this coroutine, so an adapter that only
        handles CancelledError is correct too. Raises ModelError.
        """
        ...
