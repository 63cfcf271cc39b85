"""Authorising at an MCP server with a browser, once: help for command lines, opt-in (row 90).

    store = FsOAuthStore(Path.home() / ".myapp" / "mcp")
    await run_mcp_oauth("https://mcp.notion.com/mcp", store=store, key="notion")
    …
    auth = bearer(lambda: stored_token(store, "notion"))

The flow itself is the SDK's: discovery, registration, PKCE, exchange, and it compares `state`. Ours
is what stands around it: the listener, which compares it before that, the store, the browser, the
deadline.
"""

from __future__ import annotations

import asyncio
import inspect
import webbrowser
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from ...core.errors import UsageError
from ...core.mcp.port import McpError
from .oauth_listener import CallbackListener
from .oauth_store import FsOAuthStore, McpOAuthStore, MemoryOAuthStore, OAuthState, stored_token
from .oauth_wish import Answer, OAuthClient, OAuthWish, TokenAuthMethod, Verify, VerifyCall

__all__ = [
    "FsOAuthStore",
    "McpOAuthStore",
    "MemoryOAuthStore",
    "OAuthClient",
    "OAuthState",
    "VerifyCall",
    "open_in_browser",
    "run_mcp_oauth",
    "stored_token",
]

PORT = 53_683
OAuthOutcome = Literal["authorized", "already_authorized"]
OAuthStep = Literal["listening", "asking", "answered"]
OpenUrl = Callable[[str], object | Awaitable[object]]


async def run_mcp_oauth(
    server_url: str,
    *,
    store: McpOAuthStore,
    key: str,
    port: int = PORT,
    redirect_url: str | None = None,
    client: OAuthClient | None = None,
    client_name: str = "voxglove",
    scope: str | None = None,
    token_auth_method: TokenAuthMethod | None = None,
    on_authorize_url: OpenUrl | None = None,
    on_progress: Callable[[OAuthStep], object] | None = None,
    verify: Verify = "list_tools",
    fresh: bool = False,
    timeout_s: float = 300.0,
) -> OAuthOutcome:
    """Authorise at a server and keep its tokens under `key`.

    port, redirect_url  see CallbackListener.listening; a redirect_url is told as it is
    client              else the stored registration is used, else one is made
    token_auth_method   how the token endpoint is spoken to; None: as that server wishes
    on_authorize_url    gets the address a person must open; default: open_in_browser
    verify              what must work afterwards; False: the handshake alone
    fresh               forget what is stored first, and ask again
    timeout_s           for everything, the person included

    Returns already_authorized when nobody had to be asked. Raises McpError when it was refused,
    failed or took too long, UsageError for a wrong argument. Tokens that were stored before stay
    until there are new ones, unless `fresh`.
    """
    wish = OAuthWish(
        server_url=server_url,
        key=key,
        client=client,
        client_name=client_name,
        scope=scope,
        token_auth_method=token_auth_method,
        verify=verify,
    )
    if timeout_s <= 0:
        raise UsageError("timeout_s: must be positive")
    if fresh:
        await store.delete(key)
    flow = await asyncio.to_thread(_flow)
    try:
        async with (
            asyncio.timeout(timeout_s) as deadline,
            CallbackListener.listening(port, redirect_url) as listener,
        ):
            person = _AtBrowser(listener, on_authorize_url or open_in_browser, on_progress)
            await flow.use_once(wish, store, person)
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise McpError(f"not authorised within {timeout_s:g} s") from error
    return "authorized" if person.asked else "already_authorized"


async def open_in_browser(url: str) -> None:
    """Hand an address to the machine's browser, as one argument and through no shell (core fault
    22). Raises McpError where there is no browser; the address stands in it."""
    if not await asyncio.to_thread(webbrowser.open, url):
        raise McpError(f"no browser could be opened; open this address yourself: {url}")


class _AtBrowser:
    """A Person who answers through the listener."""

    def __init__(
        self,
        listener: CallbackListener,
        open_url: OpenUrl,
        on_progress: Callable[[OAuthStep], object] | None,
    ) -> None:
        self.asked = False
        self._listener = listener
        self._open_url = open_url
        self._on_progress = on_progress
        self._tell("listening")

    @property
    def redirect_url(self) -> str:
        return self._listener.redirect_url

    async def ask(self, url: str) -> None:
        """The server chooses the address: only the web's schemes are opened."""
        parts = urlsplit(url)
        states = parse_qs(parts.query).get("state", [])
        if parts.scheme not in ("http", "https") or len(states) != 1:
            raise McpError("the authorisation address is no web address with one state")
        self._listener.expect(states[0])
        self.asked = True
        self._tell("asking")
        opened = self._open_url(url)
        if inspect.isawaitable(opened):
            await opened

    async def answer(self) -> Answer:
        answer = await self._listener.answer()
        self._tell("answered")
        return answer

    def _tell(self, step: OAuthStep) -> None:
        if self._on_progress is not None:
            self._on_progress(step)


def _flow() -> ModuleType:
    try:
        from . import oauth_flow
    except ImportError as error:
        raise McpError("OAuth needs the mcp package; pip install 'voxglove[mcp]'") from error
    return oauth_flow
