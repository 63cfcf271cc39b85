"""What the vendors' HTTP clients of this process share: certificates, how long they stay open, and
what their errors mean.

Clients are those of SDKs that bring httpx2. Owns nothing but the one TLS context, which is only
read.
"""

from __future__ import annotations

import ssl
from functools import cache
from typing import TYPE_CHECKING

from ...core.errors import ModelError
from . import failures

if TYPE_CHECKING:
    from httpx2 import Limits

KEPT_S = 60.0
"""How long an idle connection is kept. httpx2's own 5 s is less than most turns of a talk take, and
opening another costs round trips before the first word."""
CONNECT_S = 10.0
"""The longest that connecting may take, however long an answer may."""
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


def http_error(name: str, error: Exception) -> ModelError | None:
    """Our error for one of httpx2's, which an SDK lets through inside a stream; None: not one."""
    try:
        import httpx2
    except ImportError:  # an SDK that is older than httpx2 has errors of its own
        return None
    match error:
        case httpx2.TimeoutException():
            return failures.stalled(f"{name}: silent past the deadline")
        case httpx2.TransportError():
            return failures.broken(f"{name}: {error}")
        case httpx2.DecodingError():
            return failures.garbled(f"{name} sent no valid answer: {error}")
    return None
