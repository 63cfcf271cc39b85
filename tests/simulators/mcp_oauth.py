"""An authorisation server for tests: the official SDK's own endpoints on a provider in memory.

Registration, consent, codes, tokens. The person's consent is the test's: `consent` says what comes
back from the authorisation page.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx2
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

from tests.simulators.mcp_server import McpServer

Consent = Callable[[dict[str, str | None]], dict[str, str | None]]


class OAuthProvider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Gives everybody what they ask for, or what `consent` makes of the answer."""

    def __init__(self, *, registers: bool = True) -> None:
        self.registers = registers
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.asked: list[AuthorizationParams] = []
        self.tokens: dict[str, AccessToken] = {}
        self.consent: Consent = dict
        self._codes: dict[str, AuthorizationCode] = {}

    def guard(self, server: McpServer) -> None:
        """Make `server` ask for this provider's tokens, and serve its endpoints beside it."""
        server.options = lambda origin: {
            "auth": AuthSettings(
                issuer_url=AnyHttpUrl(origin),
                resource_server_url=AnyHttpUrl(f"{origin}/mcp"),
                client_registration_options=ClientRegistrationOptions(enabled=self.registers),
                validate_token_resource=False,
            ),
            "auth_server_provider": self,
            "token_verifier": ProviderTokenVerifier(self),
        }

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        self.asked.append(params)
        code = f"code{len(self.asked)}"
        self._codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=str(client.client_id),
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        answer = self.consent({"code": code, "state": params.state})
        return construct_redirect_uri(str(params.redirect_uri), **answer)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        token = f"access-{authorization_code.code}"
        self.tokens[token] = AccessToken(
            token=token, client_id=str(client.client_id), scopes=authorization_code.scopes
        )
        return OAuthToken(
            access_token=token,
            expires_in=3600,
            refresh_token=f"refresh-{authorization_code.code}",
            scope=" ".join(authorization_code.scopes),
        )

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return None

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        raise NotImplementedError

    async def exchange_identity_assertion(self, *args: Any, **named: Any) -> OAuthToken:
        raise NotImplementedError

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.tokens.pop(token.token, None)


async def browse(url: str) -> httpx2.Response:
    """What a browser does with an address, a person nodding."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        return await browser.get(url)
