"""What an authorisation is asked to be, as values, and who is asked, as a protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ...core.errors import UsageError
from ..credentials import Secret

TokenAuthMethod = Literal["none", "client_secret_post", "client_secret_basic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """A registration made beforehand, where a server registers nobody by itself."""

    client_id: str
    client_secret: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyCall:
    """Prove an authorisation by calling a tool: for servers that list theirs to everybody."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict)


Verify = Literal["list_tools", False] | VerifyCall


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthWish:
    """The arguments of oauth.run_mcp_oauth that the flow needs; explained there."""

    server_url: str
    key: str
    client: OAuthClient | None = None
    client_name: str = "voxglove"
    scope: str | None = None
    token_auth_method: TokenAuthMethod | None = None
    verify: Verify = "list_tools"

    def __post_init__(self) -> None:
        if not self.server_url.startswith(("http://", "https://")):
            raise UsageError("server_url: write http[s]://…, the server's MCP endpoint")
        if not self.key:
            raise UsageError("key: must not be empty; it says where the tokens are kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back from the authorisation server, with the state that went out."""

    code: str
    state: str
    issuer: str | None = None


class Person(Protocol):
    """Whoever is asked for consent."""

    @property
    def redirect_url(self) -> str:
        """Where the answer must be sent."""
        ...

    async def ask(self, url: str) -> None:
        """Show the authorisation address. Raises McpError."""

    async def answer(self) -> Answer:
        """Wait for what comes back. Raises McpError when it is no."""
        ...
