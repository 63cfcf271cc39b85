"""The `openai` SDK as both wires use it: imported on first use, bounded, its errors in our words.

Owned by one model. It never retries (the SDK's own retries are off). Of the environment it reads
nothing (DESIGN 7) but what the SDK cannot be told to leave: the machine's proxies and certificates,
and OPENAI_CUSTOM_HEADERS.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from ...core.cancel import AbortScope, CancelToken
from ...core.errors import ModelError
from ..credentials import Secret
from . import failures
from .connections import kept_open, shared_context
from .openai_config import OPENAI_URL, OpenAIConfig

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from openai import APIStatusError, AsyncOpenAI, AsyncStream, OpenAIError, Timeout

T = TypeVar("T")

NO_KEY = Secret("none")
"""What servers without keys (Ollama, vLLM) are sent: the SDK wants something."""

CONNECT_S = 10.0
"""The longest that connecting may take, however long an answer may."""


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

    @asynccontextmanager
    async def request(self, token: CancelToken, timeout_s: float | None) -> AsyncIterator[None]:
        """The surroundings of one request: closed by the token, over after `timeout_s`.

        What fails inside is raised as ModelError, the SDK's error its cause.
        """
        async with AbortScope(token):
            try:
                async with asyncio.timeout(timeout_s):
                    yield
            except self._openai.OpenAIError as error:
                raise self._mapped(error) from error
            except TimeoutError as error:
                text = f"{self.name}: no whole answer within {timeout_s} s"
                raise failures.stalled(text) from error
            except ValueError as error:
                # JSON, UTF-8 or types: the wire modules raise nothing else for a bad answer.
                raise failures.garbled(f"{self.name} sent no valid answer: {error}") from error

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
        """Close idle connections."""
        await self.sdk.close()

    def _mapped(self, error: OpenAIError) -> ModelError:
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
            case _:
                return ModelError(text)


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
