"""Chat models over OpenAI's chat completions: OpenAI itself, Ollama, vLLM, llama.cpp.

The only file that uses the `openai` SDK. Owned by whoever built the agent; `aclose` frees the
connections. One request is one HTTP stream: an abort or a cancellation closes it. It never retries
(the SDK's own retries are off) and never repairs history: the request is valid when it comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypedDict

from ...core.cancel import AbortScope, CancelToken
from ...core.errors import ModelError
from ...core.events import ModelResponse, ModelResponseComplete, TextDelta, ToolUse
from ...core.messages import Message, ToolCall
from ...core.model import ModelRequest, ModelResult, Notify
from ..credentials import Secret
from .openai_wire import (
    STOP_REASONS,
    Answer,
    parsed_arguments,
    usage_of,
    wire_messages,
    wire_tools,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI, Omit, OpenAIError
    from openai.types.chat import ChatCompletion, ChatCompletionToolParam

NO_KEY = Secret("none")
"""What servers without keys (Ollama, vLLM) are sent: the SDK wants something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIConfig:
    """One model on one server. `base_url` None is OpenAI.

    `timeout_s` bounds connecting and every silence of the server. `extra` goes into the request
    body as it is, for what a compatible server has beyond the wire.
    """

    model: str
    base_url: str | None = None
    stream: bool = True
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: Literal["minimal", "low", "medium", "high"] | None = None
    timeout_s: float = 30.0
    extra: Mapping[str, object] = field(default_factory=dict)


class OpenAIModel:
    """A Model. Raises ModelError at construction when the SDK is not installed."""

    def __init__(self, config: OpenAIConfig, api_key: Secret = NO_KEY) -> None:
        try:
            import openai
        except ImportError as error:
            raise ModelError(
                "openai models need the openai package; pip install 'voxglove[openai]'",
                code="ERR_MODEL_MISSING",
            ) from error
        self._openai = openai
        self._config = config
        self._client: AsyncOpenAI = openai.AsyncOpenAI(
            api_key=api_key.reveal(),
            base_url=config.base_url,
            max_retries=0,
            timeout=config.timeout_s,
        )
        self._system_prompt = ""

    @property
    def name(self) -> str:
        return f"openai:{self._config.model}"

    def set_system_prompt(self, prompt: str) -> None:
        """Kept for requests that carry none."""
        self._system_prompt = prompt

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        """One answer. The HTTP stream is closed on every way out."""
        if not request.system_prompt and self._system_prompt:
            request = ModelRequest(
                messages=request.messages, tools=request.tools, system_prompt=self._system_prompt
            )
        async with AbortScope(token):
            try:
                if self._config.stream:
                    return await self._stream(request, notify)
                return await self._whole(request, notify)
            except self._openai.OpenAIError as error:
                raise self._mapped(error) from error
            except ValueError as error:
                raise ModelError(
                    f"{self.name} sent what is no chat completion: {error}",
                    code="ERR_MODEL_PROTOCOL",
                ) from error

    async def aclose(self) -> None:
        """Close idle connections."""
        await self._client.close()

    async def _stream(self, request: ModelRequest, notify: Notify) -> ModelResult:
        answer = Answer()
        stream = await self._client.chat.completions.create(
            model=self._config.model,
            messages=wire_messages(request),
            tools=self._tools(request),
            stream=True,
            stream_options={"include_usage": True},
            **self._options(),
        )
        async with stream:
            async for chunk in stream:
                text = answer.feed(chunk)
                if text:
                    notify(TextDelta(text=text))
        if answer.finish is None:
            # The SDK takes an early end of the body for the end of the answer.
            raise ModelError(
                f"{self.name} broke off its answer", code="ERR_MODEL_CONNECTION", retryable=True
            )
        for call in answer.calls():
            notify(ToolUse(id=call.id, name=call.tool_name, input=call.input_args))
        message = answer.message()
        notify(
            ModelResponseComplete(
                text=message.text,
                tool_calls=message.tool_calls,
                stop_reason=answer.stop_reason,
                usage=answer.usage,
            )
        )
        return ModelResult(messages=(message,), usage=answer.usage, stop_reason=answer.stop_reason)

    async def _whole(self, request: ModelRequest, notify: Notify) -> ModelResult:
        answer: ChatCompletion = await self._client.chat.completions.create(
            model=self._config.model,
            messages=wire_messages(request),
            tools=self._tools(request),
            stream=False,
            **self._options(),
        )
        if not answer.choices:
            raise ModelError(f"{self.name} gave no choice", code="ERR_MODEL_EMPTY")
        choice = answer.choices[0]
        calls = tuple(
            ToolCall(call.function.name, parsed_arguments(call.function.arguments), call.id)
            for call in choice.message.tool_calls or ()
            if call.type == "function"
        )
        text = choice.message.content or choice.message.refusal or ""
        usage = usage_of(answer.usage)
        stop = "tool_use" if calls else STOP_REASONS.get(choice.finish_reason)
        notify(ModelResponse(text=text, tool_calls=calls, stop_reason=stop, usage=usage))
        message = Message(sender="agent", text=text, tool_calls=calls)
        return ModelResult(messages=(message,), usage=usage, stop_reason=stop)

    def _tools(self, request: ModelRequest) -> list[ChatCompletionToolParam] | Omit:
        return wire_tools(request.tools) if request.tools else self._openai.omit

    def _options(self) -> _Options:
        config, omit = self._config, self._openai.omit
        return {
            "temperature": omit if config.temperature is None else config.temperature,
            "max_completion_tokens": omit if config.max_tokens is None else config.max_tokens,
            "reasoning_effort": omit
            if config.reasoning_effort is None
            else config.reasoning_effort,
            "extra_body": dict(config.extra) or None,
        }

    def _mapped(self, error: OpenAIError) -> ModelError:
        """Our error for the SDK's; whether to try again is decided here and nowhere else."""
        openai, text = self._openai, f"{self.name}: {error}"
        match error:
            case openai.APITimeoutError():
                return ModelError(text, code="ERR_MODEL_STALLED", retryable=True)
            case openai.APIConnectionError():
                return ModelError(text, code="ERR_MODEL_CONNECTION", retryable=True)
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                return ModelError(text, code="ERR_MODEL_AUTH")
            case openai.RateLimitError():
                spent = error.code == "insufficient_quota"
                return ModelError(text, code="ERR_MODEL_RATE_LIMIT", retryable=not spent)
            case openai.APIStatusError():
                server = error.status_code >= 500 or error.status_code in (408, 409)
                code = "ERR_MODEL_SERVER" if server else "ERR_MODEL_REFUSED"
                return ModelError(text, code=code, retryable=server)
            case openai.APIError():
                # An error event inside a stream that began with status 200.
                server = str(error.type or error.code) in _SERVER_ERRORS
                return ModelError(text, code="ERR_MODEL_SERVER", retryable=server)
            case _:
                return ModelError(text)


_SERVER_ERRORS = frozenset({"server_error", "overloaded_error", "rate_limit_exceeded", "timeout"})


class _Options(TypedDict):
    """What every request has beside its messages and tools."""

    temperature: float | Omit
    max_completion_tokens: int | Omit
    reasoning_effort: Literal["minimal", "low", "medium", "high"] | Omit
    extra_body: dict[str, object] | None
