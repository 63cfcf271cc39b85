"""What authorises requests to an MCP server: a bearer token, or headers of any kind.

Both come as a value or as a function, plain or async. A function is asked before every request, so
a token that was refreshed is used by the next one (core fault 22); it should answer from memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping

from ...core.mcp.port import AuthHeaders
from ..credentials import Secret

Token = str | Secret | None
TokenSource = Token | Callable[[], Token | Awaitable[Token]]
HeaderSource = Mapping[str, str] | Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]]


def bearer(token: TokenSource) -> AuthHeaders:
    """`Authorization: Bearer …`, white space around the token stripped; no header while there is
    no token."""

    async def headers_now() -> Mapping[str, str]:
        given = token() if callable(token) else token
        now = await given if inspect.isawaitable(given) else given
        text = (now.reveal() if isinstance(now, Secret) else now or "").strip()
        return {"Authorization": f"Bearer {text}"} if text else {}

    return headers_now


def headers(values: HeaderSource) -> AuthHeaders:
    """Headers as they are given."""

    async def headers_now() -> Mapping[str, str]:
        given = values() if callable(values) else values
        return await given if inspect.isawaitable(given) else given

    return headers_now


async def no_headers() -> Mapping[str, str]:
    """For servers that are open to everybody."""
    return {}
