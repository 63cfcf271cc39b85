"""Chat models over OpenAI's chat completions: OpenAI itself and every server that speaks that wire.

Owned by whoever built the agent; `aclose` frees the connections. One request is one HTTP stream: an
abort or a cancellation closes it. It never retries. Its sibling openai_responses.py speaks the
Responses wire, which is the better one for OpenAI's reasoning models.
"""

from __future__ import annotations

from ...core.cancel import CancelToken
from ...core.events import ModelResponse, ModelResponseComplete, TextDelta, ToolUse
from ...core.model import ModelRequest, ModelResult, Notify
from ..credentials import Secret
from . import failures
from .openai_client import NO_KEY, OpenAIClient
from .openai_config import OpenAIConfig
from .openai_wire import Answer, shown_names, streamed_body, whole_body

__all__ = ["NO_KEY", "OpenAIConfig", "OpenAIModel"]

USAGE_S = 0.5
"""How long the count of tokens and the end of the body may follow the end of the answer."""


class OpenAIModel:
    """A Model. Raises ModelError at construction when the SDK is not installed."""

    def __init__(self, config: OpenAIConfig, api_key: Secret = NO_KEY) -> None:
        self._config = config
        self._client = OpenAIClient(config, api_key)

    @property
    def name(self) -> str:
        return self._client.name

    def set_system_prompt(self, prompt: str) -> None:
        """Nothing: each request carries its prompt, so that many agents can share this model."""

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        """One answer. The HTTP stream is closed on every way out."""
        async with self._client.request(token, request.limits.timeout_s):
            if self._config.stream:
                return await self._stream(request, notify)
            return await self._whole(request, notify)

    async def aclose(self) -> None:
        """Close idle connections."""
        await self._client.aclose()

    async def _stream(self, request: ModelRequest, notify: Notify) -> ModelResult:
        answer = Answer(self._config.model, shown_names(request))
        stream = await self._client.sdk.chat.completions.create(
            **streamed_body(self._config, request), extra_body=dict(self._config.extra) or None
        )
        async with stream:
            async for chunk in stream:
                text = answer.feed(chunk)
                if text:
                    notify(TextDelta(text=text))
                if answer.finish is not None:
                    await self._client.rest(stream, answer.feed, USAGE_S)
                    break
        if answer.finish is None:
            # The SDK takes an early end of the body for the end of the answer.
            raise failures.broken(f"{self.name} broke off its answer")
        for call in answer.calls():
            notify(ToolUse(id=call.id, name=call.tool_name, input=call.input_args))
        return self._result(answer, notify, ModelResponseComplete)

    async def _whole(self, request: ModelRequest, notify: Notify) -> ModelResult:
        answer = Answer(self._config.model, shown_names(request))
        completion = await self._client.sdk.chat.completions.create(
            **whole_body(self._config, request), extra_body=dict(self._config.extra) or None
        )
        if not answer.take_whole(completion):
            raise failures.empty(f"{self.name} gave no choice")
        return self._result(answer, notify, ModelResponse)

    def _result(
        self,
        answer: Answer,
        notify: Notify,
        event: type[ModelResponse] | type[ModelResponseComplete],
    ) -> ModelResult:
        message, stop, usage = answer.message(), answer.stop_reason, answer.usage
        failures.check_not_wasted(self.name, message.text, message.tool_calls, stop)
        calls = message.tool_calls
        notify(event(text=message.text, tool_calls=calls, stop_reason=stop, usage=usage))
        return ModelResult(messages=(message,), usage=usage, stop_reason=stop)
