"""The HTTP client under the SDK: authorises each request anew and says what became of it.

The SDK tells its caller that a request failed, not with which status, and a broken connection ends
its whole session. So failures are turned here, where the status is known, into the one thing that
it hands through unchanged: a JSON-RPC error for the request in question. Each carries a seal that
only this client knows, so that no server can make up "unauthorised" in a body (core fault 22).

Imports the SDK's HTTP library at its head: import this module where a connection is opened.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

import httpx2

from ...core.mcp.port import AuthHeaders
from ..models.connections import kept_open, shared_context

logger = logging.getLogger(__name__)

FAILED = -32_000
"""JSON-RPC code of the errors made here; what they mean is in their data."""
MOST_ERROR_BYTES = 65_536
UNAUTHORIZED = 401
NOT_FOUND = 404

SESSION = "mcp-session-id"
LAST_EVENT = "last-event-id"

FailureKind = Literal["unauthorized", "session_gone", "status", "unreachable", "broken", "headers"]


class McpHttpClient(httpx2.AsyncClient):
    """See the module. One per session.

    connect_timeout_s  of a TCP and TLS connection, and of asking for the headers
    read_timeout_s     of silence within an answer
    close_timeout_s    of the request that ends a session
    most_bytes         of a JSON answer
    """

    def __init__(
        self,
        auth: AuthHeaders,
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
        close_timeout_s: float,
        most_bytes: int,
    ) -> None:
        timeout = httpx2.Timeout(read_timeout_s, connect=connect_timeout_s)
        super().__init__(timeout=timeout, verify=shared_context(), limits=kept_open())
        self._headers_now = auth
        self._connect_timeout_s = connect_timeout_s
        self._close_timeout_s = close_timeout_s
        self._most_bytes = most_bytes
        self._seal = uuid.uuid4().hex
        self._session_gone = False

    def failure(self, data: object) -> tuple[FailureKind, int] | None:
        """What a JSON-RPC error's data says, if this client made it: the kind, and the status or
        0. None for a server's own error."""
        match data:
            case {"seal": seal, "kind": kind, "status": int(status)} if seal == self._seal:
                return kind, status
        return None

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """As httpx2's; a failure becomes an answer. Cancellation passes through."""
        if request.method == "GET" and LAST_EVENT not in request.headers:
            # The stream for what a server says unasked. Nothing of it is used (docs/mcp.md), so it
            # is declined in the server's name, as servers may.
            return httpx2.Response(405, request=request)
        if request.method == "DELETE":
            return await self._goodbye(request, **options)
        return await self._sent(request, **options)

    async def _goodbye(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """End a session, within close_timeout_s. A server that is gone has ended it already."""
        if not self._session_gone:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._close_timeout_s):
                    await (await self._sent(request, **options)).aclose()
        return httpx2.Response(204, request=request)

    async def _sent(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                request.headers.update(_sendable(await self._headers_now()))
        except Exception as error:
            # Its words are for the host's log: they may hold what they are about.
            logger.warning("no headers for an mcp request", exc_info=error)
            why = f"no headers to authorise it ({type(error).__name__})"
            return self._failed(request, "headers", why)
        try:
            response = await super().send(request, **options)
            return await self._checked(request, response)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol) as error:
            return self._failed(request, "unreachable", f"not reached: {_told(error)}")
        except (httpx2.TransportError, httpx2.StreamError, httpx2.DecodingError) as error:
            return self._failed(request, "broken", f"the connection broke: {_told(error)}")

    async def _checked(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        if request.method != "POST" or 300 <= response.status_code < 400:
            return response
        if response.status_code >= 400:
            return await self._refused(request, response)
        if not response.headers.get("content-type", "").lower().startswith("application/json"):
            return response
        body = await _read(response, self._most_bytes)
        if body is None:
            return self._failed(request, "broken", f"an answer over {self._most_bytes} bytes")
        return _whole(request, response.status_code, body)

    async def _refused(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        status = response.status_code
        body = await _read(response, MOST_ERROR_BYTES) or b""
        if status == UNAUTHORIZED:
            return self._failed(request, "unauthorized", "HTTP status 401", status)
        if status == NOT_FOUND and SESSION in request.headers:
            self._session_gone = True
            return self._failed(request, "session_gone", "the session is gone", status)
        if _is_rpc_error(body):
            return _whole(request, status, body)
        return self._failed(request, "status", f"HTTP status {status}", status)

    def _failed(
        self, request: httpx2.Request, kind: FailureKind, message: str, status: int = 0
    ) -> httpx2.Response:
        data: dict[str, object] = {"seal": self._seal, "kind": kind, "status": status}
        error = {"code": FAILED, "message": message, "data": data}
        body = json.dumps({"jsonrpc": "2.0", "id": 0, "error": error}).encode()
        # The SDK puts the request's own id in; 502 where there is no status to pass on.
        return _whole(request, status or 502, body)


def _sendable(values: Mapping[str, str]) -> Mapping[str, str]:
    """Raises ValueError, without the value, for what would break the request apart."""
    for name, value in values.items():
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"header {name!r}: only printable ASCII can be sent")
    return values


async def _read(response: httpx2.Response, most_bytes: int) -> bytes | None:
    """The body, decoded; None, and the connection dropped, when it is longer."""
    body = bytearray()
    try:
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > most_bytes:
                return None
    finally:
        await response.aclose()
    return bytes(body)


def _whole(request: httpx2.Request, status: int, body: bytes) -> httpx2.Response:
    return httpx2.Response(
        status, headers={"content-type": "application/json"}, content=body, request=request
    )


def _is_rpc_error(body: bytes) -> bool:
    try:
        parsed = json.loads(body)
    except ValueError:
        return False
    match parsed:
        case {"jsonrpc": "2.0", "error": Mapping()}:
            return True
    return False


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__
