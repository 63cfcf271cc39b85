"""What the vendors' HTTP clients of this process share: certificates, and how long they stay open.

For SDKs that bring httpx2. Owns nothing but the one TLS context, which is only read.
"""

from __future__ import annotations

import ssl
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from httpx2 import Limits

KEPT_S = 60.0
"""How long an idle connection is kept. httpx2's own 5 s is less than most turns of a talk take, and
opening another costs round trips before the first word."""
MOST = 1000
"""Connections of one client; a model of a server may answer many calls."""


@cache
def shared_context() -> ssl.SSLContext:
    """The machine's trusted roots. Reading them takes about 0.1 s of the loop's time, and every
    call may make a model of its own. Raises ImportError without httpx2."""
    import httpx2

    return httpx2.create_ssl_context()


def kept_open() -> Limits:
    """Limits under which a connection survives from turn to turn."""
    import httpx2

    return httpx2.Limits(
        max_connections=MOST, max_keepalive_connections=MOST // 10, keepalive_expiry=KEPT_S
    )
