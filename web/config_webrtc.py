"""The section `webrtc`: frozen values, checked. Knows nothing of aiortc, which is optional."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

from ..adapters.credentials import Secret
from .config_reader import ConfigError

MAX_CONNECT_S = 10.0
"""A page learns within this time that no connection comes."""
MIN_TTL_S = 60.0

_URL = re.compile(
    r"(?:stuns?:(?:\[[0-9a-fA-F:.]+\]|[^\s:?/\[\]]+)(?::\d{1,5})?)"
    r"|(?:turns?:(?:\[[0-9a-fA-F:.]+\]|[^\s:?/\[\]]+)(?::\d{1,5})?(?:\?transport=(?:udp|tcp))?)"
)
"""RFC 7064, RFC 7065."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IceServerConfig:
    """One STUN or TURN server: `urls` (stun:, stuns:, turn:, turns:), and for TURN either
    `username` and `credential`, or `auth_secret`, from which names are made that die after
    `ttl_s` (coturn's use-auth-secret)."""

    urls: tuple[str, ...] = ()
    username: str = ""
    credential: Secret = Secret("")
    auth_secret: Secret = Secret("")
    ttl_s: float = 86_400.0

    def __post_init__(self) -> None:
        if not self.urls:
            raise ConfigError("urls", self.urls, "list at least one, as stun:host:port")
        for url in self.urls:
            if not _URL.fullmatch(url):
                raise ConfigError("urls", url, "write stun:host:port or turn:host:port")
        if self.auth_secret.reveal() and (self.username or self.credential.reveal()):
            raise ConfigError("auth_secret", "(hidden)", "give it alone: it makes the names")
        if bool(self.username) != bool(self.credential.reveal()):
            raise ConfigError("username", self.username, "give both username and credential")
        if self.is_turn and not (self.username or self.auth_secret.reveal()):
            raise ConfigError("urls", self.urls[0], "TURN wants a credential or an auth_secret")
        if self.ttl_s < MIN_TTL_S:
            raise ConfigError("ttl_s", self.ttl_s, f"use {MIN_TTL_S:g} or more seconds")

    @property
    def is_turn(self) -> bool:
        """Whether it relays."""
        return any(url.startswith("turn") for url in self.urls)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRtcSection:
    """Calls of browsers over WebRTC, where the extra `webrtc` is installed."""

    enabled: bool = True
    host_addresses: tuple[str, ...] = ()
    ice_servers: tuple[IceServerConfig, ...] = ()
    relay_only: bool = False
    connect_s: float = 8.0
    """Sooner than a page gives up by itself (9 s), so that it can show the server's cause."""

    def __post_init__(self) -> None:
        for address in self.host_addresses:
            try:
                ip_address(address)
            except ValueError:
                raise ConfigError("host_addresses", address, "write IP addresses") from None
        if not 0 < self.connect_s <= MAX_CONNECT_S:
            remedy = f"use at most {MAX_CONNECT_S:g} seconds"
            raise ConfigError("connect_s", self.connect_s, remedy)
        if self.relay_only and not any(server.is_turn for server in self.ice_servers):
            raise ConfigError("relay_only", True, "name a TURN server in webrtc.ice_servers")
