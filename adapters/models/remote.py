"""A model that another voxglove server answers for: `POST /chat` (seed: createRemoteModel).

For agents that run where no vendor's key should be. Owned by whoever built the agent; `aclose`
frees the connections. One request is one HTTP stream: an abort or a cancellation closes it, and the
server then stops its model. It never retries, and never follows a redirect.
"""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

from ...core.cancel import CancelToken
from ...core.errors import ModelError, UsageError
from ...core.events import TextDelta, ToolUse
from ...core.model import ModelRequest, ModelResult, Notify
from ..credentials import Secret
from .connections import KEPT_S, MOST
from .exchange import exchange, reported
from .failures import PROTOCOL, broken, retry_after, status_error
from .remote_wire import EventReader, answered, failure, request_body

MAX_PROBLEM_BYTES = 65_536
END_S = 0.1
"""How long the end of a stream may come after its last event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteModelConfig:
    """url: the endpoint, `http[s]://host[:port]/chat`; key: one of the server's `api_keys`.

    `timeout_s` bounds connecting and every silence; the server breaks its own every 15 s. How long
    a whole answer may take is ModelLimits' business.
    """

    url: str
    key: Secret = Secret("")
    name: str = "remote"
    timeout_s: float = 45.0

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("RemoteModelConfig.url: write http[s]://host[:port]/chat")
        if "@" in parts.netloc:
            raise UsageError("RemoteModelConfig.url: no user; the key goes into key")
        if self.timeout_s <= 0:
            raise UsageError("RemoteModelConfig.timeout_s: must be positive")


class RemoteModel:
    """A Model. `config` may be the endpoint's address alone."""

    def __init__(self, config: RemoteModelConfig | str) -> None:
        self._config = RemoteModelConfig(url=config) if isinstance(config, str) else config
        self._client: aiohttp.ClientSession | None = None

    @property
    def name(self) -> str:
        return self._config.name

    def set_system_prompt(self, prompt: str) -> None:
        """Nothing: each request carries its prompt, so that many agents can share this model."""

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        """One answer. The HTTP stream is closed on every way out."""
        body = request_body(request)
        async with exchange(self.name, token, request.limits.timeout_s, self._vendor_error):
            return await self._ask(body, notify)

    async def aclose(self) -> None:
        """Close idle connections; the model can be used again."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, body: bytes, notify: Notify) -> ModelResult:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        async with self._open().post(
            self._config.url, data=io.BytesIO(body), headers=headers, allow_redirects=False
        ) as answer:
            if answer.status != 200:
                raise await self._refusal(answer)
            if answer.content_type != "text/event-stream":
                raise ModelError(f"{self.name} sent no event stream", code=PROTOCOL)
            return await self._follow(answer, notify)

    async def _follow(self, answer: aiohttp.ClientResponse, notify: Notify) -> ModelResult:
        reader, told = EventReader(), set[str]()
        async for piece in answer.content.iter_any():
            for event in reader.feed(piece):
                match event.get("type"):
                    case "text_delta":
                        notify(TextDelta(text=str(event.get("text") or "")))
                    case "tool_use":
                        told.add(str(event.get("id")))
                        notify(
                            ToolUse(
                                id=str(event.get("id")),
                                name=str(event.get("name")),
                                input=event.get("input"),
                            )
                        )
                    case "error":
                        raise failure(event, self.name)
                    case "done":
                        await _to_the_end(answer)
                        end = answered(event)
                        return reported(
                            end.messages[0], end.usage, end.stop_reason, notify, told=told
                        )
        raise broken(f"{self.name} broke off its answer: the stream has no done")

    def _vendor_error(self, error: Exception) -> ModelError | None:
        """aiohttp's; a deadline of its is a TimeoutError as well, and stalled."""
        if isinstance(error, (aiohttp.ClientError, OSError)) and not isinstance(
            error, TimeoutError
        ):
            return broken(f"{self.name}: {type(error).__name__}: {error}")
        return None

    async def _refusal(self, answer: aiohttp.ClientResponse) -> ModelError:
        """The server's problem, in its words, shortened."""
        raw = await answer.content.read(MAX_PROBLEM_BYTES)
        try:
            problem = json.loads(raw)
            said = str(problem["message"])[:300]
        except (ValueError, RecursionError, KeyError, TypeError):
            said = "no reason given"
        text = f"{self.name}: {said} ({answer.status})"
        return status_error(text, answer.status, retry_after_s=retry_after(answer.headers))

    def _open(self) -> aiohttp.ClientSession:
        if self._client is None:
            key, silence_s = self._config.key.reveal(), self._config.timeout_s
            self._client = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=MOST, keepalive_timeout=KEPT_S),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=silence_s, sock_read=silence_s
                ),
                headers={"Authorization": f"Bearer {key}"} if key else {},
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._client


async def _to_the_end(answer: aiohttp.ClientResponse) -> None:
    """A stream that was read whole leaves its connection for the next request; one that does not
    end is not waited for."""
    with suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(END_S):
            await answer.content.readany()
