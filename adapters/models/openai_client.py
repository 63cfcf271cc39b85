"""What both of OpenAI's wires share: the `openai` SDK, imported on first use, and the model on it.

Owned by one model. It never retries (the SDK's own retries are off). Of the environment it reads
nothing (DESIGN 7) but what the SDK cannot be told to leave: the machine's proxies and certificates,
and OPENAI_CUSTOM_HEADERS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeVar

from ...core.cancel import CancelToken
from ...core.errors import ModelError
from ...core.model import ModelRequest, ModelResult, Notify
from ..credentials import Secret
from . import failures
from .connections import CONNECT_S, http_error, kept_open, shared_context
from .exchange import WholeAnswer, exchange, finished
from .openai_config import OPENAI_URL, OpenAIConfig

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from openai import APIStatusError, AsyncOpenAI, AsyncStream, Timeout

T = TypeVar("T")

NO_KEY = Secret("none")
"""What servers without keys (Ollama, vLLM) are sent: the SDK wants something."""


class OpenAIClient:
    """One SDK client. Raises ModelError at construction when the SDK is not installed."""

    def __init__(self, config: OpenAIConfig, api_key: Secret) -> None:
        try:
            import openai
        except ImportError as error:
            raise failures.missing_sdk("openai", "openai") from error
        self._openai = openai
        self.name = f"{config.vendor}:{config.model}"
        timeout = openai.Timeout(config.timeout_s, connect=min(config.timeout_s, CONNECT_S))
        self.sdk: AsyncOpenAI = openai.AsyncOpenAI(
            api_key=api_key.reveal(),
            base_url=config.base_url or OPENAI_URL,
            max_retries=0,
            timeout=timeout,
            http_client=_http_client(timeout),
        )
        # The SDK fills these from the environment where they are not given.
        self.sdk.organization = config.organization
        self.sdk.project = config.project

    def exchange(
        self, token: CancelToken, timeout_s: float | None
    ) -> AbstractAsyncContextManager[None]:
        """The frame of one request (exchange.py)."""
        return exchange(self.name, token, timeout_s, self._vendor_error)

    async def rest(
        self, stream: AsyncStream[T], take: Callable[[T], object], seconds: float
    ) -> None:
        """What still follows an answer that has ended: a count of tokens, the end of the body.

        A server that goes on for longer, or breaks off, holds nobody up: the answer is whole.
        """
        try:
            async with asyncio.timeout(seconds):
                async for value in stream:
                    take(value)
        except (TimeoutError, self._openai.APIConnectionError):
            return

    async def aclose(self) -> None:
        """Close the connections; after that `prompt` raises UsageError."""
        await self.sdk.close()

    def _vendor_error(self, error: Exception) -> ModelError | None:
        """Our error for the SDK's; whether to try again is decided by failures.py alone."""
        openai, text = self._openai, f"{self.name}: {error}"
        match error:
            case openai.APITimeoutError():
                return failures.stalled(text)
            case openai.APIConnectionError():
                return failures.broken(text)
            case openai.APIStatusError():
                return _status(text, error)
            case openai.APIError():
                # An error event inside a stream that began with status 200.
                return failures.named_error(text, error.code, error.type)
            case openai.OpenAIError():
                return ModelError(text)
            case _:
                return http_error(self.name, error)


class OpenAIWire:
    """A Model. A wire says how an answer is streamed and how it comes whole.

    Raises ModelError at construction when the SDK is not installed.
    """

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
        if self._client.sdk.is_closed():
            raise failures.closed(self.name)
        streamed = self._config.stream
        async with self._client.exchange(token, request.limits.timeout_s):
            if streamed:
                answer = await self._stream(request, notify)
            else:
                answer = await self._whole(request)
        return finished(self.name, request, answer, notify, streamed=streamed)

    async def aclose(self) -> None:
        """Close the connections; after that `prompt` raises UsageError."""
        await self._client.aclose()

    @property
    def _extra(self) -> dict[str, object] | None:
        """What goes into the body as it is."""
        return dict(self._config.extra) or None

    async def _stream(self, request: ModelRequest, notify: Notify) -> WholeAnswer:
        """The answer, its text told as it comes. Raises ModelError where it broke off."""
        raise NotImplementedError

    async def _whole(self, request: ModelRequest) -> WholeAnswer:
        """The answer in one piece."""
        raise NotImplementedError


def _http_client(timeout: Timeout) -> AsyncClient | None:
    """The SDK's own HTTP client on what this process shares (connections.py). None, with an older
    SDK that has no httpx2, leaves it to the SDK."""
    import openai

    try:
        trusted, limits = shared_context(), kept_open()
    except ImportError:
        return None
    return openai.DefaultAsyncHttpxClient(verify=trusted, timeout=timeout, limits=limits)


def _status(text: str, error: APIStatusError) -> ModelError:
    return failures.status_error(
        text,
        error.status_code,
        quota_spent=failures.is_spent(error.code, error.type),
        retry_after_s=failures.retry_after(error.response.headers),
    )
