"""Chat models over OpenAI's chat completions: OpenAI itself and every server that speaks that wire.

Owned by whoever built the agent; `aclose` frees the connections. One request is one HTTP stream: an
abort or a cancellation closes it. It never retries. Its sibling openai_responses.py speaks the
Responses wire, which is the better one for OpenAI's reasoning models.
"""

from __future__ import annotations

from ...core.events import TextDelta
from ...core.model import ModelRequest, Notify
from . import failures
from .openai_client import NO_KEY, OpenAIWire
from .openai_config import OpenAIConfig
from .openai_wire import Answer, shown_names, streamed_body, whole_body

__all__ = ["NO_KEY", "OpenAIConfig", "OpenAIModel"]

USAGE_S = 0.5
"""How long the count of tokens and the end of the body may follow the end of the answer."""


class OpenAIModel(OpenAIWire):
    """Chat completions."""

    async def _stream(self, request: ModelRequest, notify: Notify) -> Answer:
        answer = Answer(self._config.model, shown_names(request))
        stream = await self._client.sdk.chat.completions.create(
            **streamed_body(self._config, request), extra_body=self._extra
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
        return answer

    async def _whole(self, request: ModelRequest) -> Answer:
        answer = Answer(self._config.model, shown_names(request))
        completion = await self._client.sdk.chat.completions.create(
            **whole_body(self._config, request), extra_body=self._extra
        )
        if not answer.take_whole(completion):
            raise failures.empty(f"{self.name} gave no choice")
        return answer
