"""Gemini over the Gemini API's generateContent, through `google-genai`.

The only file that uses the SDK's client. Owned by whoever built the agent; `aclose` frees the
connections. One request is one HTTP stream: an abort or a cancellation closes it. It never
retries: the SDK's retries are off, its hidden one over aiohttp too, because it is given an httpx2
client. The SDK goes on by itself where the server ends a stream with CONTINUATION; that repeats
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from ...core.cancel import CancelToken
from ...core.encoding import whole_text
from ...core.errors import ModelError, UsageError
from ...core.events import TextDelta
from ...core.model import ModelRequest, ModelResult, Notify
from ..credentials import Secret
from . import failures
from .connections import http_error, kept_open, shared_context
from .exchange import exchange, finished
from .gemini_answer import MISHAPS, Answer
from .gemini_failures import api_error
from .gemini_wire import tool_names, wire_contents, wire_declarations

if TYPE_CHECKING:
    from google.genai.types import Content, GenerateContentConfig, ThinkingConfig
    from httpx2 import Response

GEMINI_URL = "https://generativelanguage.googleapis.com/"
API_VERSION = "v1beta"

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
_LEVELS: dict[Effort, str] = {
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "XHIGH",
    "max": "XHIGH",
}

T = TypeVar("T")

_OPENED: ContextVar[list[Response] | None] = ContextVar("opened", default=None)
"""The HTTP responses of the request that runs in this context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiConfig:
    """One model on one server. `base_url` None is Google's Gemini API.

    max_tokens        of an answer, thoughts included; None: the model's own. A request's wins
    reasoning_effort  `none` switches thinking off where the model allows it; None leaves it to it
    thinking_tokens   a budget, for models without reasoning_effort
    include_thoughts  ask for summaries of the thoughts; they go into reasoning_content
    timeout_s         bounds every silence of the server, connecting included

    Prompts are cached by the service without being asked; cached tokens are counted.
    """

    model: str
    base_url: str | None = None
    stream: bool = True
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: Effort | None = None
    thinking_tokens: int | None = None
    include_thoughts: bool = False
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise UsageError("GeminiConfig.model: name the model, such as gemini-3-flash")
        if self.timeout_s <= 0:
            raise UsageError("GeminiConfig.timeout_s: must be positive")
        if self.max_tokens is not None and self.max_tokens <= 0:
            raise UsageError("GeminiConfig.max_tokens: must be positive, or None for no bound")
        if self.reasoning_effort not in (None, "none", *_LEVELS):
            raise UsageError("GeminiConfig.reasoning_effort: use none, minimal, low, medium, …")
        if self.thinking_tokens is not None and self.thinking_tokens < 0:
            raise UsageError("GeminiConfig.thinking_tokens: 0 or more, or None")
        if self.thinking_tokens is not None and self.reasoning_effort is not None:
            raise UsageError("GeminiConfig.thinking_tokens: leave it out beside reasoning_effort")


class GeminiModel:
    """A Model. Raises at construction: UsageError without a key, ModelError without the SDK."""

    def __init__(self, config: GeminiConfig, api_key: Secret) -> None:
        if not api_key:
            raise UsageError("GeminiModel.api_key: give a key")  # the SDK would look for one
        try:
            import httpx2  # a dependency of the SDK
            from google import genai
            from google.genai import errors, types
        except ImportError as error:
            raise failures.missing_sdk("google-genai", "gemini") from error
        self._types = types
        self._errors = errors
        self._config = config
        # Without its own deadlines: the SDK would tell the server to end each answer by then.
        self._http = httpx2.AsyncClient(
            verify=shared_context(),
            limits=kept_open(),
            timeout=None,
            follow_redirects=True,
            event_hooks={"response": [_opened]},
        )
        self._client = genai.Client(
            vertexai=False,
            api_key=api_key.reveal(),
            http_options=types.HttpOptions(
                base_url=config.base_url or GEMINI_URL,
                api_version=API_VERSION,
                client_args={"verify": shared_context()},
                async_client_args={"ssl": shared_context()},  # for its WebSockets
                httpx_async_client=self._http,
                retry_options=types.HttpRetryOptions(attempts=1),
            ),
        )

    @property
    def name(self) -> str:
        return f"gemini:{self._config.model}"

    def set_system_prompt(self, prompt: str) -> None:
        """Nothing: each request carries its prompt, so that many agents can share this model."""

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        """One answer. The HTTP stream is closed on every way out."""
        if self._http.is_closed:
            raise failures.closed(self.name)
        answer = Answer(tool_names(request), self._config.model)
        contents = [
            self._types.Content.model_validate(one)
            for one in wire_contents(request, self._config.model)
        ]
        config = self._request_config(request)
        async with self._request(token, request.limits.timeout_s) as heard:
            if self._config.stream:
                await self._stream(contents, config, answer, notify, heard)
            else:
                whole = self._client.aio.models.generate_content(
                    model=self._config.model, contents=[*contents], config=config
                )
                answer.feed(await _decoded(whole))
        self._refuse(answer, said=bool(answer.message().text.strip()))
        return finished(self.name, request, answer, notify, streamed=self._config.stream)

    async def aclose(self) -> None:
        """Close the connections; after that `prompt` raises UsageError."""
        self._client.close()
        await self._http.aclose()

    async def _stream(
        self,
        contents: list[Content],
        config: GenerateContentConfig,
        answer: Answer,
        notify: Notify,
        heard: Callable[[], None],
    ) -> None:
        chunks = await self._client.aio.models.generate_content_stream(
            model=self._config.model, contents=[*contents], config=config
        )
        while (chunk := await _decoded(anext(chunks, None))) is not None:
            heard()
            text = answer.feed(chunk)
            if text:
                notify(TextDelta(text=text))

    def _refuse(self, answer: Answer, *, said: bool) -> None:
        """Raise for what is no answer."""
        if answer.blocked is not None:
            raise failures.refused(f"{self.name} refused the prompt: {answer.blocked}")
        if not answer.has_candidate:
            raise failures.empty(f"{self.name} gave no candidate")
        if answer.finish is None:
            # The SDK takes an early end of the body for the end of the answer.
            raise failures.broken(f"{self.name} broke off its answer")
        if answer.finish == "MISSING_THOUGHT_SIGNATURE":
            raise failures.garbled(f"{self.name}: a call came back without its signature")
        if answer.finish in MISHAPS and not (said and answer.finish == "OTHER"):
            text = f"{self.name} spoiled its answer: {answer.finish}"
            raise ModelError(text, code=failures.PROTOCOL, retryable=not said)

    def _request_config(self, request: ModelRequest) -> GenerateContentConfig:
        types, config = self._types, self._config
        declarations = [
            types.FunctionDeclaration.model_validate(one)
            for one in wire_declarations(request.tools)
        ]
        prompt = request.system_prompt
        wire: GenerateContentConfig = types.GenerateContentConfig(
            system_instruction=whole_text(prompt) if prompt.strip() else None,
            temperature=config.temperature,
            max_output_tokens=request.limits.max_tokens or config.max_tokens,
            tools=[types.Tool(function_declarations=declarations)] if declarations else None,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            thinking_config=self._thinking(),
        )
        return wire

    def _thinking(self) -> ThinkingConfig | None:
        types, config = self._types, self._config
        budget = 0 if config.reasoning_effort == "none" else config.thinking_tokens
        level = None
        if config.reasoning_effort not in (None, "none"):
            level = types.ThinkingLevel(_LEVELS[config.reasoning_effort])
        if budget is None and level is None and not config.include_thoughts:
            return None
        wire: ThinkingConfig = types.ThinkingConfig(
            thinking_budget=budget,
            thinking_level=level,
            include_thoughts=config.include_thoughts or None,
        )
        return wire

    @asynccontextmanager
    async def _request(
        self, token: CancelToken, timeout_s: float | None
    ) -> AsyncIterator[Callable[[], None]]:
        """The frame of one request, every silence in it bounded, its responses closed at the end.

        Yields what to call whenever the server was heard.
        """
        loop, silence_s = asyncio.get_running_loop(), self._config.timeout_s
        responses: list[Response] = []
        async with exchange(self.name, token, timeout_s, self._vendor_error):
            before = _OPENED.set(responses)
            try:
                async with asyncio.timeout(silence_s) as silence:
                    yield lambda: silence.reschedule(loop.time() + silence_s)
            finally:
                _OPENED.reset(before)
                # The SDK's nested generators close theirs only when they are collected.
                for response in responses:
                    await response.aclose()

    def _vendor_error(self, error: Exception) -> ModelError | None:
        if isinstance(error, self._errors.APIError):
            return api_error(f"{self.name}: {error}", error)
        return http_error(self.name, error)


async def _decoded(work: Awaitable[T]) -> T:
    """What the SDK makes of the server's next words; ValueError where they are no JSON of the wire,
    which the SDK does not expect."""
    try:
        return await work
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"the SDK cannot read it: {error}") from error


async def _opened(response: Response) -> None:
    responses = _OPENED.get()
    if responses is not None:
        responses.append(response)
