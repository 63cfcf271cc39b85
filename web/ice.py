"""Which STUN and TURN servers a line may use, with names and passwords made for the moment.

Pure. What it returns holds secrets: it goes to the page that asked and to aiortc, never into a log.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field

from .config_webrtc import IceServerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class IceAccess:
    """One server as it may be used now."""

    urls: tuple[str, ...]
    username: str = ""
    credential: str = field(default="", repr=False)

    def as_dictionary(self) -> dict[str, object]:
        """An RTCIceServer of the browser's API."""
        found: dict[str, object] = {"urls": list(self.urls)}
        if self.username:
            found |= {"username": self.username, "credential": self.credential}
        return found


def ice_access(servers: tuple[IceServerConfig, ...], now: float, user: str) -> Iterator[IceAccess]:
    """`servers` for `user` at `now` (seconds since 1970)."""
    for server in servers:
        username, credential = server.username, server.credential.reveal()
        if secret := server.auth_secret.reveal():
            username, credential = turn_credentials(secret, now + server.ttl_s, user)
        yield IceAccess(urls=server.urls, username=username, credential=credential)


def turn_credentials(secret: str, expires_at: float, user: str) -> tuple[str, str]:
    """(name, password) that a TURN server with the same secret takes until `expires_at` (TURN REST
    API, draft-uberti-behave-turn-rest 2.2; coturn's use-auth-secret)."""
    name = f"{int(expires_at)}:{user}"
    mac = hmac.digest(secret.encode(), name.encode(), hashlib.sha1)
    return name, base64.b64encode(mac).decode()
