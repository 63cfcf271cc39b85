"""One use of a server through the SDK's OAuth provider, which asks a person where it must.

Imports the SDK at its head: oauth.py imports this module when an authorisation begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import httpx2
from mcp.client.auth.oauth2 import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from mcp.shared.exceptions import MCPError

from ...core.mcp.port import McpError
from ..models.connections import shared_context
from .oauth_store import McpOAuthStore
from .oauth_wish import OAuthWish, Person, VerifyCall

REQUEST_S = 30.0
"""Of each request; a person is waited for outside of them."""


class StoredAuthorization:
    """The SDK's TokenStorage on one key of a store."""

    def __init__(self, store: McpOAuthStore, wish: OAuthWish, about: OAuthClientMetadata) -> None:
        self._store = store
        self._wish = wish
        self._about = about

    async def get_tokens(self) -> OAuthToken | None:
        tokens = (await self._store.get(self._wish.key)).tokens
        return OAuthToken.model_validate(tokens) if tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        await self._put(tokens=tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """A registration made beforehand, else the stored one where it was for this redirect."""
        client, about = self._wish.client, self._about
        if client is not None:
            secret = client.client_secret
            return OAuthClientInformationFull(
                client_id=client.client_id,
                client_secret=secret.reveal() if secret else None,
                redirect_uris=about.redirect_uris,
                token_endpoint_auth_method=about.token_endpoint_auth_method
                or ("client_secret_post" if secret else "none"),
            )
        stored = (await self._store.get(self._wish.key)).client
        if not stored:
            return None
        known = OAuthClientInformationFull.model_validate(stored)
        return known if known.redirect_uris == about.redirect_uris else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await self._put(client=client_info.model_dump(mode="json", exclude_none=True))

    async def _put(self, **changed: Mapping[str, object]) -> None:
        state = await self._store.get(self._wish.key)
        await self._store.set(self._wish.key, replace(state, **changed))


async def use_once(wish: OAuthWish, store: McpOAuthStore, person: Person) -> None:
    """Shake hands and do what `wish.verify` says. Raises McpError."""
    about = OAuthClientMetadata.model_validate(
        {
            "redirect_uris": [person.redirect_url],
            "client_name": wish.client_name,
            "scope": wish.scope,
            "token_endpoint_auth_method": wish.token_auth_method,
        }
    )

    async def answered() -> AuthorizationCodeResult:
        answer = await person.answer()
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)

    provider = OAuthClientProvider(
        wish.server_url,
        about,
        StoredAuthorization(store, wish, about),
        redirect_handler=person.ask,
        callback_handler=answered,
    )
    timeout = httpx2.Timeout(REQUEST_S)
    try:
        async with httpx2.AsyncClient(
            auth=provider, timeout=timeout, verify=shared_context()
        ) as http:
            transport = streamable_http_client(wish.server_url, http_client=http)
            async with Client(transport, cache=None) as client:
                await _verify(client, wish)
    except Exception as error:
        raise _translated(error) from error


async def _verify(client: Client, wish: OAuthWish) -> None:
    """Raises McpError."""
    try:
        match wish.verify:
            case "list_tools":
                await client.list_tools()
            case VerifyCall(tool=tool, arguments=arguments):
                result = await client.call_tool(tool, dict(arguments))
                if result.is_error:
                    raise McpError(f"authorised, but {tool} answered with an error")
            case False:
                return
    except MCPError as error:
        raise McpError(f"authorised, but the check failed: {error.message}") from error


def _translated(error: Exception) -> McpError:
    """What went wrong first. A request that found its connection closed only tells that another
    failed."""
    causes = _leaves(error)
    ours = [cause for cause in causes if isinstance(cause, McpError)]
    if ours:
        return ours[0]
    told = [cause for cause in causes if not isinstance(cause, MCPError)] or causes
    return McpError(f"not authorised: {told[0] or type(told[0]).__name__}")


def _leaves(error: Exception) -> list[Exception]:
    if isinstance(error, ExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
