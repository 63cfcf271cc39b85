"""/livez, /readyz, /metrics: for whoever keeps the server running."""

from __future__ import annotations

from aiohttp import web

from ..calls import Refused
from ..server import SERVER, refuse_keyless, refuse_origin

NO_STORE = {"Cache-Control": "no-store"}


async def get_livez(request: web.Request) -> web.Response:
    """200 while the loop answers at all."""
    return web.json_response({"status": "ok"}, headers=NO_STORE)


async def get_readyz(request: web.Request) -> web.Response:
    """200 while a new call would be taken; 503 with the reason otherwise."""
    registry = request.app[SERVER].registry
    body: dict[str, object] = {"status": "ok", "calls": registry.active}
    try:
        registry.admit()
    except Refused as refused:
        body |= {"status": "refusing", "reason": refused.reason}
        headers = NO_STORE | {"Retry-After": str(refused.retry_after_s)}
        return web.json_response(body, status=503, headers=headers)
    return web.json_response(body, headers=NO_STORE)


async def get_metrics(request: web.Request) -> web.Response:
    """Prometheus text. Off loopback it wants a key, also of a page: it is no door for people."""
    server = request.app[SERVER]
    refused = refuse_origin(request, server) or refuse_keyless(request, server)
    if refused is not None:
        return refused
    return web.Response(
        text=server.metrics.text(),
        headers=NO_STORE | {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
    )
