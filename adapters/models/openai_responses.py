"""Text models over OpenAI's Responses API, stateless: history is ours, the provider keeps nothing.

Better than chat completions for reasoning models, which keep their train of thought between tool
calls here. Owned by whoever built the agent; `aclose` frees the connections. One request is one
HTTP stream: an abort or a cancellation closes it. It never retries.
"""

from __future__ import annotations

from ...core.events import TextDelta
from ...core.model import ModelRequest, Notify
from . import failures
from .openai_client import OpenAIWire
from .openai_config import OpenAIConfig
from .openai_responses_wire import ResponseAnswer, streamed_body, whole_body
from .openai_wire import shown_names

__all__ = ["OpenAIConfig", "OpenAIResponsesModel"]

CLOSE_S = 0.1
"""How long the end of the body may follow the end of the answer, so that the connection is kept."""


class OpenAIResponsesModel(OpenAIWire):
    """The Responses API."""

    async def _stream(self, request: ModelRequest, notify: Notify) -> ResponseAnswer:
        answer = ResponseAnswer(self.name, self._config.model, shown_names(request))
        stream = await self._client.sdk.responses.create(
            **streamed_body(self._config, request), extra_body=self._extra
        )
        async with stream:
            async for event in stream:
                text = answer.feed(event)
                if text:
                    notify(TextDelta(text=text))
                if answer.ended is not None:
                    await self._client.rest(stream, lambda event: None, CLOSE_S)
                    break
        if answer.ended is None:
            raise failures.broken(f"{self.name} broke off its answer")
        return answer

    async def _whole(self, request: ModelRequest) -> ResponseAnswer:
        answer = ResponseAnswer(self.name, self._config.model, shown_names(request))
        answer.take_whole(
            await self._client.sdk.responses.create(
                **whole_body(self._config, request), extra_body=self._extra
            )
        )
        return answer
