"""Who may open a door: signed session tokens, the Origin check, API keys.

Pure but for the random secret of a fresh server. Never logs or shows a secret; every comparison
of secrets takes constant time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Literal

START_TTL_S = 60.0
"""How long a fresh token may wait for its socket."""

MAX_TOKEN_CHARS = 1_024

_AUTHORITY = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?")
"""Host and port as a browser writes them: no user, no path, nothing to misread (RFC 9110 7.2)."""

Purpose = Literal["start", "attach"]


class TokenRefused(ValueError):
    """The token is malformed, forged, expired or of another server. Says which, never more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a token permits: one call, begun (`start`) or taken up again (`attach`)."""

    call_id: str
    agent: str
    purpose: Purpose
    expires_at: float


def unix_now() -> float:
    """Seconds since 1970: tokens outlive the process's own clock."""
    return datetime.now(UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Signer:
    """Makes and reads tokens: base64url(JSON) "." base64url(HMAC-SHA256). Masked when shown."""

    secret: bytes = field(repr=False)
    now: Callable[[], float] = unix_now

    @classmethod
    def of(cls, secret: str | None, now: Callable[[], float] = unix_now) -> Signer:
        """With the configured secret, or a random one that dies with the process."""
        return cls(secret.encode() if secret else secrets.token_bytes(32), now)

    def sign(self, call_id: str, agent: str, purpose: Purpose, ttl_s: float) -> tuple[str, float]:
        """(token, when it expires in seconds since 1970)."""
        expires_at = round(self.now() + ttl_s, 3)
        claims = {"c": call_id, "a": agent, "p": purpose, "e": expires_at}
        body = json.dumps(claims, separators=(",", ":")).encode()
        return f"{_b64(body)}.{_b64(self._mac(body))}", expires_at

    def read(self, token: str) -> Grant:
        """What `token` permits. Raises TokenRefused."""
        if len(token) > MAX_TOKEN_CHARS:
            raise TokenRefused("the token is malformed")
        head, _, tail = token.partition(".")
        try:
            body, mac = _unb64(head), _unb64(tail)
        except (binascii.Error, ValueError):
            raise TokenRefused("the token is malformed") from None
        if not hmac.compare_digest(mac, self._mac(body)):
            raise TokenRefused("the token was not signed by this server")
        claims = json.loads(body)
        if claims["e"] <= self.now():
            raise TokenRefused("the token has expired; POST /session gives a new one")
        return Grant(
            call_id=claims["c"], agent=claims["a"], purpose=claims["p"], expires_at=claims["e"]
        )

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self.secret, body, hashlib.sha256)


def new_call_id() -> str:
    """Unguessable, and safe as a file name and as a store id."""
    return f"call_{secrets.token_hex(8)}"


def origin_allowed(origin: str, host: str, scheme: str, allowed: Sequence[str]) -> bool:
    """Whether a browser page of `origin` may talk to us, whose own address it reached as
    `scheme`://`host`. Same origin always may; others only when listed, or by "*"."""
    if "*" in allowed:
        return True
    asked = read_origin(origin)
    if asked is None:
        return False
    return asked == read_origin(f"{scheme}://{host}") or asked in map(read_origin, allowed)


def read_origin(text: str) -> tuple[str, str, int] | None:
    """(scheme, name, port) of `http[s]://name[:port]`; None for anything else."""
    scheme, _, authority = text.lower().partition("://")
    found = read_host(authority)
    if scheme not in ("http", "https") or found is None:
        return None
    name, port = found
    return scheme, name, port or (443 if scheme == "https" else 80)


def read_host(text: str) -> tuple[str, int | None] | None:
    """(name in lower case and without brackets, port) of a Host header; None if malformed."""
    found = _AUTHORITY.fullmatch(text.lower())
    if found is None:
        return None
    port = None if found["port"] is None else int(found["port"])
    if port is not None and port > 65_535:
        return None
    return found["name"].strip("[]"), port


def key_allowed(authorization: str | None, keys: Sequence[str]) -> bool:
    """Whether an `Authorization: Bearer` header carries one of `keys`."""
    kind, _, given = (authorization or "").partition(" ")
    if kind.lower() != "bearer":
        return False
    found = False
    for key in keys:  # all of them, so that time tells nothing
        found |= hmac.compare_digest(given.strip().encode(), key.encode())
    return found


def is_loopback(host: str) -> bool:
    """Whether a bind address is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    padded = text + "=" * (-len(text) % 4)
    return base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
