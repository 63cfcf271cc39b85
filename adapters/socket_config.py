"""What a WebSocket to a provider is given, and how its end is told: values, no I/O.

Owned by socket.py, which hands these names on; realtime and recognisers import them from there.
Keys stand here in clear, inside Secrets and in a URL's query, and nothing here shows one.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import parse_qsl, urlsplit

from ..media.errors import MediaValueError
from .credentials import Secret

ATTEMPTS = 8
"""How often a connection is tried in a row before it is given up (DESIGN 8)."""
FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 4.0
JITTER = 0.2

UNSENT = 4002
"""`SocketClosed.code` of a connection given up because the peer took too little, too slowly."""
ABNORMAL = 1006
"""`SocketClosed.code` where no close frame was exchanged (RFC 6455, 7.4.1)."""

_KEY_NAME = re.compile("key|token|secret|auth|password|signature", re.IGNORECASE)


def backoff(attempt: int, jitter: float) -> float:
    """Seconds to wait after `attempt` failures in a row, from 1: 0.25, 0.5, 1, 2, 4, 4, …

    `jitter` in -1..1 moves it by up to a fifth either way; the caller draws it. That there are no
    more than ATTEMPTS is for the caller to count (DESIGN 8).
    """
    if attempt < 1:
        raise MediaValueError("attempt", str(attempt), "count failures from 1")
    if not -1.0 <= jitter <= 1.0:
        raise MediaValueError("jitter", str(jitter), "draw it from -1 to 1")
    # The exponent is bounded: a link that fails for days must not overflow a float.
    wait = min(FIRST_WAIT_S * 2.0 ** min(attempt - 1, 16), LONGEST_WAIT_S)
    return wait * (1.0 + JITTER * jitter)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SocketConfig:
    """Where to connect, and how patient to be.

    url                `ws[s]://host[:port]/path?query`; the query is never shown
    headers            of the handshake; Secret values where they are keys
    subprotocols       offered, best first; Secret where one carries a key
    connect_timeout_s  for name, TCP, TLS and handshake together
    ping_s, pong_s     a ping after so long a silence, and how long a life sign may then take:
                       together the time until a half-open peer is noticed. `ping_s` None: no pings
    max_message_bytes  a larger message of the peer ends the connection (1009)
    max_unsent_bytes   while more than this waits for the peer, one more frame ends it (UNSENT).
                       A single frame may be larger
    close_timeout_s    for the peer's part of a closing handshake
    tls                of `wss`; None: the system's certificates
    """

    url: str
    headers: Mapping[str, str | Secret] = field(default_factory=dict)
    subprotocols: tuple[str | Secret, ...] = ()
    connect_timeout_s: float = 10.0
    ping_s: float | None = 4.0
    pong_s: float = 5.0
    max_message_bytes: int = 16 * 1024 * 1024
    max_unsent_bytes: int = 4 * 1024 * 1024
    close_timeout_s: float = 2.0
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            usable = bool(parts.hostname) and parts.port != 0
        except ValueError:
            _bad_url()
        if not usable or parts.scheme not in ("ws", "wss") or "@" in parts.netloc or parts.fragment:
            _bad_url()
        if self.tls is not None and parts.scheme != "wss":
            raise MediaValueError("tls", "a context for ws://", "write wss://, or leave it out")
        for name in (
            "connect_timeout_s",
            "pong_s",
            "max_message_bytes",
            "max_unsent_bytes",
            "close_timeout_s",
        ):
            _positive(name, getattr(self, name))
        if self.ping_s is not None:
            _positive("ping_s", self.ping_s)

    def __repr__(self) -> str:
        names = ", ".join(sorted(self.headers))
        return f"SocketConfig({self.address}, headers: {names or 'none'})"

    @property
    def address(self) -> str:
        """The URL without its query: what may be shown."""
        return self.url.partition("?")[0]

    @property
    def host(self) -> str:
        """Name and port, as errors tell them."""
        return urlsplit(self.url).netloc

    def scrubbed(self, text: str) -> str:
        """`text` of the peer, with every key of ours that it repeats taken out."""
        for key in self._keys():
            text = text.replace(key, "…")
        return text

    def _keys(self) -> list[str]:
        told = [*self.headers.values(), *self.subprotocols]
        keys = [value.reveal() for value in told if isinstance(value, Secret)]
        # A peer that complains about `Bearer abc` may repeat the `abc` alone.
        keys += [key.rpartition(" ")[2] for key in keys]
        keys += [value for name, value in _query(self.url) if _KEY_NAME.search(name)]
        return sorted({key for key in keys if len(key) > 3}, key=len, reverse=True)


def _query(url: str) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(url).query)


def _bad_url() -> NoReturn:
    # The URL may hold a key: it is not repeated.
    raise MediaValueError(
        "url", "this address", "write ws[s]://host[:port]/path, no user and no #fragment"
    ) from None


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise MediaValueError(name, str(value), "use a positive number")


@dataclass(frozen=True, slots=True)
class SocketClosed:
    """How a connection ended: the close frame's code and reason, ABNORMAL without one, UNSENT.

    `by_us`: we ended it (aclose, abort, a message that broke the rules), not the peer.
    """

    code: int
    reason: str = ""
    by_us: bool = False
