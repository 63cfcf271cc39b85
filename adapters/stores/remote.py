"""Stores that another voxglove server keeps, over its `/sessions` door.

`RemoteStores` is the way there: one HTTP client for any number of conversations, owned by whoever
opened it and closed by `aclose`. It repeats a request whose answer was lost; the key that goes with
every write makes the server do it once (docs/stores.md). It never follows a redirect, so that its
key stays where it was meant to go, and never shows the key.

    RemoteStoreError   a StoreError: `status` of the answer if there was one, `retryable`
"""

from __future__ import annotations

import asyncio
import io
import json
import random
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

import aiohttp

from ...core.errors import (
    StoreError,
    UnknownMessageError,
    UnknownRecordError,
    UsageError,
)
from ..credentials import Secret
from .remote_store import RemoteStore, RemoteStoreError
from .remote_wire import (
    ABANDONED,
    FEATURES,
    IDEMPOTENCY,
    MAX_ABANDONED,
    REPEATED,
    BadField,
    Feature,
    Fields,
    parsed,
    session_problem,
)

__all__ = ["RemoteConfig", "RemoteStore", "RemoteStoreError", "RemoteStores"]

MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""A history larger than this is not read."""
MAX_WAIT_S = 4.0
"""Longest pause between two attempts."""
CONNECTIONS = 16
LARGE_BYTES = 262_144

_USAGE = frozenset({400, 409, 422})
_AGAIN = frozenset({408, 425, 429})
_UNKNOWN: Mapping[str, type[UsageError]] = {
    "unknown_message": UnknownMessageError,
    "unknown_record": UnknownRecordError,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteConfig:
    """Where the server is and how patient we are.

    url        `http[s]://host[:port][/prefix]`, what stands before `/sessions`
    key        one of the server's `api_keys`; needed unless it listens on loopback
    timeout_s  of each attempt, answer included
    attempts   in all, while the failure is one that passes
    wait_s     before the second attempt; twice as long before each further one, +-20 %
    """

    url: str
    key: Secret = field(default=Secret(""))
    timeout_s: float = 10.0
    attempts: int = 4
    wait_s: float = 0.25

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
        except ValueError:
            raise UsageError("RemoteConfig.url: write http[s]://host[:port][/prefix]") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("RemoteConfig.url: write http[s]://host[:port][/prefix]")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise UsageError("RemoteConfig.url: no user, query or fragment; the key goes into key")
        for name in ("timeout_s", "attempts", "wait_s"):
            if getattr(self, name) <= 0:
                raise UsageError(f"RemoteConfig.{name}: must be positive")


class RemoteStores:
    """The stores of one server. All methods belong on one event loop.

    `features` names the groups that the server keeps; None asks it on first need. What it does not
    keep lives in memory, for as long as the RemoteStore object does.
    """

    def __init__(
        self, config: RemoteConfig, *, features: Collection[Feature] | None = None
    ) -> None:
        self._config = config
        self._features = None if features is None else frozenset(features)
        self._client: aiohttp.ClientSession | None = None
        self._closed = False

    def store(self, session_id: str) -> RemoteStore:
        """The store of one conversation. Nothing is sent yet. Raises UsageError for an id that no
        address can carry."""
        problem = session_problem(session_id)
        if problem is not None:
            raise UsageError(f"session_id: {problem}")
        return RemoteStore(self, session_id)

    async def features(self, session_id: str) -> frozenset[Feature]:
        """The groups that the server keeps; asked once. Raises StoreError."""
        if self._features is None:
            answer = await self.ask("GET", f"/sessions/{quote(session_id, safe='')}")
            try:
                told = Fields(parsed(answer)).texts("features", 100)
            except BadField as error:
                raise RemoteStoreError(
                    f"{self._config.url} does not say what it keeps; pass features="
                ) from error
            self._features = frozenset(one for one in FEATURES if one in told)
        return self._features

    async def ask(
        self, method: str, path: str, body: bytes | None = None, lost: list[str] | None = None
    ) -> bytes:
        """The answer's body; empty when there is none. A failure that passes is tried again.

        `lost` holds the keys of writes that were cancelled or got no answer: it grows when this one
        is, and the server is told of them with the next request, so that none of them is done
        after it. Raises RemoteStoreError, UsageError, UnknownMessageError, UnknownRecordError.
        """
        lost = [] if lost is None else lost
        told = list(lost)
        key = "" if method == "GET" else uuid.uuid4().hex
        try:
            answer = await self._persist(method, path, body, _headers(key, body, told))
        except (asyncio.CancelledError, RemoteStoreError):
            if key:
                lost.append(key)
                del lost[:-MAX_ABANDONED]
            raise
        lost[:] = [one for one in lost if one not in told]
        return answer

    async def _persist(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> bytes:
        wait_s = self._config.wait_s
        for left in range(self._config.attempts - 1, -1, -1):
            try:
                return await self._attempt(method, path, body, headers)
            except RemoteStoreError as error:
                if not error.retryable or not left:
                    raise
            if IDEMPOTENCY in headers:
                headers[REPEATED] = "1"
            await asyncio.sleep(wait_s * random.uniform(0.8, 1.2))
            wait_s = min(2 * wait_s, MAX_WAIT_S)
        raise RemoteStoreError("attempts must be positive")

    async def aclose(self) -> None:
        """Close the connections. Stores made here raise StoreError from now on."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _attempt(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> bytes:
        client, url = self._open(), self._config.url.rstrip("/") + path
        try:
            async with (
                asyncio.timeout(self._config.timeout_s),
                client.request(
                    method, url, data=_sent(body), headers=headers, allow_redirects=False
                ) as answer,
            ):
                raw = await _read(answer)
        except TimeoutError as error:
            raise RemoteStoreError(
                f"{method} {path}: no answer within {self._config.timeout_s:g} s", retryable=True
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise RemoteStoreError(
                f"{method} {path}: {type(error).__name__}: {error}", retryable=True
            ) from error
        if 200 <= answer.status < 300:
            return raw
        raise _refusal(answer.status, raw, f"{method} {path}")

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise RemoteStoreError("the RemoteStores of this store are closed")
        if self._client is None:
            key = self._config.key.reveal()
            self._client = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS),
                timeout=aiohttp.ClientTimeout(total=None),
                headers={"Authorization": f"Bearer {key}"} if key else {},
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._client


def _sent(body: bytes | None) -> bytes | io.BytesIO | None:
    """aiohttp wants a large body as a file: it sends that in pieces, the loop free in between."""
    return body if body is None or len(body) < LARGE_BYTES else io.BytesIO(body)


def _headers(key: str, body: bytes | None, told: list[str]) -> dict[str, str]:
    headers = {IDEMPOTENCY: key} if key else {}
    if body is not None:
        headers["Content-Type"] = "application/json"
    if told:
        headers[ABANDONED] = ",".join(told)
    return headers


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    raw = bytearray()
    async for piece in answer.content.iter_any():
        raw += piece
        if len(raw) > MAX_ANSWER_BYTES:
            raise RemoteStoreError(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
    return bytes(raw)


def _refusal(status: int, raw: bytes, what: str) -> StoreError | UsageError:
    """Our error for the server's problem; what it says is kept, shortened."""
    code, message = "", ""
    try:
        problem = Fields(json.loads(raw))
        code, message = problem.text("code"), problem.text("message")
    except (ValueError, RecursionError):
        message = "the answer is no problem of this protocol"
    text = f"{what}: {message[:300]} ({status}{' ' + code[:40] if code else ''})"
    if code in _UNKNOWN:
        return _UNKNOWN[code](text)
    if code and status in _USAGE:
        return UsageError(text)
    return RemoteStoreError(
        text, status=status, retryable=status >= 500 and status != 501 or status in _AGAIN
    )
