"""One TLS context for the vendors' HTTP clients of this process.

Reading the machine's trusted roots takes about 0.1 s, and a call that makes its own model would
stand still for so long. The context is only read afterwards. SDKs that bring httpx2 share it.
"""

from __future__ import annotations

import ssl
from functools import cache


@cache
def shared_context() -> ssl.SSLContext:
    """The context, made at the first use. Raises ImportError without httpx2."""
    import httpx2

    return httpx2.create_ssl_context()
