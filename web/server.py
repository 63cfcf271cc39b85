"""The one object that the doors share, and who may pass each of them (CONTRACTS B).

Owned by app.py. Decides from headers alone; never reads a body.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from aiohttp import web

from ..adapters.transports.beats import Beats
from .auth import Signer, is_loopback, key_allowed, origin_allowed, read_host, read_origin
from .calls import CallRegistry
from .config import Config
from .connections import Connections
from .metrics import Metrics
from .rtc_lines import RtcLines
from .watchdog import Watchdog


@dataclass(slots=True)
class Server:
    """Everything of one server that is not a call."""

    config: Config
    signer: Signer
    registry: CallRegistry
    metrics: Metrics
    watchdog: Watchdog
    keys: tuple[str, ...] = field(repr=False, default=())
    connections: Connections = field(kw_only=True)
    lines: RtcLines = field(kw_only=True)
    beats: Beats = field(kw_only=True, default_factory=Beats)
    open_sockets: int = 0
    """WebSockets that are attached to a call now."""

    @property
    def local(self) -> bool:
        """Bound to loopback: nobody on another machine reaches it."""
        return is_loopback(self.config.server.host)


PROXIED = ("Forwarded", "X-Forwarded-For", "X-Real-IP", "Via")
"""Headers by which a proxy says that it passes a request on."""

SERVER: web.AppKey[Server] = web.AppKey("server", Server)


def problem(
    status: int, code: str, message: str, *, field: str | None = None, retry_after_s: int = 0
) -> web.Response:
    """An error as every door answers it: JSON with code, message and the field at fault."""
    body = {"code": code, "message": message} | ({} if field is None else {"field": field})
    headers = {"Retry-After": str(retry_after_s)} if retry_after_s else {}
    return web.json_response(body, status=status, headers=headers)


def refuse_host(request: web.Request, server: Server) -> web.Response | None:
    """A loopback server answers only to loopback names: a foreign name that resolves here is a
    page rebinding its own (DNS rebinding), and would pass for same-origin. Beyond loopback any
    name is answered to; a malformed one nowhere."""
    found = read_host(request.host)
    if found is None:
        return problem(400, "bad_host", "the Host header is malformed; send name[:port]")
    name, _ = found
    if not server.local or is_loopback(name) or name.endswith(".localhost"):
        return None
    if name in {origin[1] for origin in map(read_origin, server.config.server.origins) if origin}:
        return None
    return problem(403, "bad_host", f"this server does not answer to the name {name!r}")


def refuse_origin(request: web.Request, server: Server) -> web.Response | None:
    """403 for a browser page of a foreign origin; None when the door is open to it."""
    origin = ", ".join(request.headers.getall("Origin", ()))
    if "Origin" not in request.headers:
        return None
    if origin_allowed(origin, request.host, request.scheme, server.config.server.origins):
        return None
    return problem(
        403, "bad_origin", f"{origin} may not call here; add it to server.origins to allow it"
    )


def refuse_stranger(request: web.Request, server: Server) -> web.Response | None:
    """Without an Origin it is a program: it needs a key, unless only this machine gets here."""
    return None if "Origin" in request.headers else refuse_keyless(request, server)


def refuse_keyless(request: web.Request, server: Server) -> web.Response | None:
    """401 without a key, whatever the Origin says: a program can write any Origin it likes."""
    if server.local:
        return None
    if key_allowed(request.headers.get("Authorization"), server.keys):
        return None
    return _no_key()


def refuse_outsider(request: web.Request, server: Server) -> web.Response | None:
    """403 for a foreign page, 401 for whoever has no key: the doors of programs, whose content is
    nobody else's business. A loopback server that stands behind a proxy is not local to the
    proxy's callers, so what a proxy passed on needs a key as well."""
    refused = refuse_origin(request, server)
    if refused is not None:
        return refused
    passed_on = any(name in request.headers for name in PROXIED)
    if passed_on and not key_allowed(request.headers.get("Authorization"), server.keys):
        return _no_key()
    return refuse_keyless(request, server)


def _no_key() -> web.Response:
    refused = problem(401, "no_key", "send Authorization: Bearer with a key of server.api_keys")
    refused.headers["WWW-Authenticate"] = "Bearer"
    return refused
