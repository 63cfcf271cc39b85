"""Claude over Anthropic's Messages API, and servers that speak the same wire.

The only file that uses the `anthropic` SDK's client. Owned by whoever built the agent; `aclose`
frees the connections. One request is one HTTP stream: an abort or a cancellation closes it. It
never retries (the SDK's own retries are off). Key and address are given, never looked up; what the
SDK reads beside them in the environment are proxies and ANTHROPIC_CUSTOM_HEADERS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

from ...core.cancel import CancelToken
from ...core.errors import ModelError, UsageError
from ...core.events import TextDelta
from ...core.model import ModelLimits, ModelRequest, ModelResult, Notify
from ..credentials import Secret
from . import failures
from .anthropic_answer import Answer
from .anthropic_wire import CacheTtl, WireRequest, tool_names, wire_request
from .connections import CONNECT_S, http_error, kept_open, shared_context
from .exchange import exchange, finished

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic, Omit
    from anthropic.types import (
        MessageParam,
        OutputConfigParam,
        TextBlockParam,
        ThinkingConfigParam,
        ToolParam,
    )

ANTHROPIC_URL = "https://api.anthropic.com"
DEFAULT_MAX_TOKENS = 8192
"""The wire wants a bound; this one is above any spoken answer."""
LEAST_THINKING = 1024
SAMPLING_VERSION = "2023-06-01"
"""The last version of the API that takes a temperature; later ones refuse it."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
_EFFORTS: dict[Effort, Literal["low", "medium", "high", "xhigh", "max"]] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicConfig:
    """One model on one server. `base_url` None is Anthropic.

    temperature       sent with the API version that still takes one; newer models refuse it
    max_tokens        of an answer, thinking included; None: 8192. A request's own limit wins
    reasoning_effort  `none` switches thinking off (the quickest first word), `minimal` is `low`;
                      None leaves it to the model
    thinking_tokens   a fixed budget of at least 1024, for models without reasoning_effort
    timeout_s         bounds every silence of the server; connecting never takes over 10 s of it
    cache             True or `5m`, or `1h`: keep the prefix of requests for so long. Cached tokens
                      are counted in any case
    """

    model: str
    base_url: str | None = None
    stream: bool = True
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: Effort | None = None
    thinking_tokens: int | None = None
    timeout_s: float = 30.0
    cache: bool | CacheTtl | None = None

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise UsageError("AnthropicConfig.model: name the model, such as claude-haiku-4-5")
        if self.timeout_s <= 0:
            raise UsageError("AnthropicConfig.timeout_s: must be positive")
        if self.max_tokens is not None and self.max_tokens <= 0:
            raise UsageError("AnthropicConfig.max_tokens: must be positive, or None for 8192")
        if self.cache not in (None, True, False, "5m", "1h"):
            raise UsageError("AnthropicConfig.cache: use True, False, '5m' or '1h'")
        if self.reasoning_effort not in (None, "none", *_EFFORTS):
            raise UsageError("AnthropicConfig.reasoning_effort: use none, low, medium, high, …")
        if self.thinking_tokens is not None and self.thinking_tokens < LEAST_THINKING:
            raise UsageError("AnthropicConfig.thinking_tokens: at least 1024, or None")
        if self.thinking_tokens is not None and self.temperature is not None:
            raise UsageError("AnthropicConfig.temperature: leave it out where thinking_tokens is")

    @property
    def cache_ttl(self) -> CacheTtl | None:
        """How long a prefix is kept; None: no breakpoints are set."""
        if isinstance(self.cache, str):
            return self.cache
        return "5m" if self.cache else None


class _Body(TypedDict):
    """What the SDK's `create` takes beside the choice of streaming."""

    model: str
    max_tokens: int
    messages: list[MessageParam]
    system: list[TextBlockParam] | Omit
    tools: list[ToolParam] | Omit
    thinking: ThinkingConfigParam | Omit
    output_config: OutputConfigParam | Omit
    extra_headers: dict[str, str] | None
    extra_body: dict[str, float] | None


class AnthropicModel:
    """A Model. Raises at construction: UsageError without a key, ModelError without the SDK."""

    def __init__(self, config: AnthropicConfig, api_key: Secret) -> None:
        if not api_key:
            raise UsageError("AnthropicModel.api_key: give a key; a server without keys takes any")
        try:
            import anthropic

            trusted, limits = shared_context(), kept_open()
        except ImportError as error:
            raise failures.missing_sdk("anthropic", "anthropic") from error
        self._anthropic = anthropic
        self._config = config
        key = api_key.reveal()
        self._client: AsyncAnthropic = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=config.base_url or ANTHROPIC_URL,
            max_retries=0,
            http_client=anthropic.DefaultAsyncHttpxClient(verify=trusted, limits=limits),
            timeout=anthropic.Timeout(config.timeout_s, connect=min(config.timeout_s, CONNECT_S)),
            # The SDK sends the key as a bearer; compatible servers read the older header.
            default_headers={"x-api-key": key} if config.base_url else None,
        )

    @property
    def name(self) -> str:
        return f"anthropic:{self._config.model}"

    def set_system_prompt(self, prompt: str) -> None:
        """Nothing: each request carries its prompt, so that many agents can share this model."""

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        """One answer. The HTTP stream is closed on every way out."""
        if self._client.is_closed():
            raise failures.closed(self.name)
        answer = Answer(tool_names(request), self._config.model)
        wire = wire_request(request, model=self._config.model, cache=self._config.cache_ttl)
        body = self._body(wire, request.limits)
        streamed = self._config.stream
        async with exchange(self.name, token, request.limits.timeout_s, self._vendor_error):
            if streamed:
                await self._stream(body, answer, notify)
            else:
                answer.whole(await self._client.messages.create(stream=False, **body))
        if not answer.complete:
            # The SDK takes an early end of the body for the end of the answer.
            raise failures.broken(f"{self.name} broke off its answer")
        return finished(self.name, request, answer, notify, streamed=streamed)

    async def aclose(self) -> None:
        """Close the connections; after that `prompt` raises UsageError."""
        await self._client.close()

    async def _stream(self, body: _Body, answer: Answer, notify: Notify) -> None:
        async with await self._client.messages.create(stream=True, **body) as stream:
            async for event in stream:
                text = answer.feed(event)
                if text:
                    notify(TextDelta(text=text))

    def _body(self, wire: WireRequest, limits: ModelLimits) -> _Body:
        config, omit = self._config, self._anthropic.omit
        max_tokens = limits.max_tokens or config.max_tokens or DEFAULT_MAX_TOKENS
        effort = None if config.reasoning_effort in (None, "none") else config.reasoning_effort
        hot = config.temperature
        return {
            "model": config.model,
            "max_tokens": max_tokens,
            "messages": wire.messages,
            "system": wire.system or omit,
            "tools": wire.tools or omit,
            "thinking": self._thinking(max_tokens, wire.may_think),
            "output_config": omit if effort is None else {"effort": _EFFORTS[effort]},
            "extra_headers": None if hot is None else {"anthropic-version": SAMPLING_VERSION},
            "extra_body": None if hot is None else {"temperature": hot},
        }

    def _thinking(self, max_tokens: int, may_think: bool) -> ThinkingConfigParam | Omit:
        """Off, or a budget below the bound of the answer; a small bound leaves no room for one."""
        if self._config.reasoning_effort == "none":
            return {"type": "disabled"}
        budget = min(self._config.thinking_tokens or 0, max_tokens - 1)
        if budget < LEAST_THINKING or not may_think:
            return self._anthropic.omit
        return {"type": "enabled", "budget_tokens": budget}

    def _vendor_error(self, error: Exception) -> ModelError | None:
        """Our error for the SDK's; whether to try again is decided by failures.py alone."""
        anthropic, text = self._anthropic, f"{self.name}: {error}"
        match error:
            case anthropic.APITimeoutError():
                return failures.stalled(text)
            case anthropic.APIConnectionError():
                return failures.broken(text)
            case anthropic.APIStatusError(status_code=200):
                # An error event inside a stream that began with status 200.
                return failures.named_error(text, error.type)
            case anthropic.APIStatusError():
                return _status(text, error)
            case anthropic.APIResponseValidationError():
                return failures.garbled(text)
            case anthropic.AnthropicError():
                return ModelError(text)
            case _:
                return http_error(self.name, error)


def _status(text: str, error: APIStatusError) -> ModelError:
    return failures.status_error(
        text,
        error.status_code,
        quota_spent="spend_limit" in (error.error_code or ""),
        retry_after_s=failures.retry_after(error.response.headers),
    )
