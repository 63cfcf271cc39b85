"""POST /session: permission to begin one call (CONTRACTS B). Makes no call by itself."""

from __future__ import annotations

from aiohttp import web

from ..calls import Refused
from ..ice import ice_access
from ..server import SERVER, Server, problem, refuse_origin, refuse_stranger
from .body import read_object

MAX_BODY = 4_096


async def post_session(request: web.Request) -> web.Response:
    """201 `{token, call_id, ws_url, expires_at, rtc}`; 400, 401, 403, 408, 413, or 503 with
    Retry-After."""
    server = request.app[SERVER]
    refused = refuse_origin(request, server) or refuse_stranger(request, server)
    if refused is not None:
        return refused
    agent = await _agent(request, server)
    if isinstance(agent, web.Response):
        return agent
    try:
        offer = server.registry.offer(agent)
    except Refused as full:
        return problem(503, full.reason, str(full), retry_after_s=full.retry_after_s)
    scheme = "wss" if request.scheme == "https" else "ws"
    body = {
        "token": offer.token,
        "call_id": offer.call_id,
        "ws_url": f"{scheme}://{request.host}/ws?token={offer.token}",
        "expires_at": offer.expires_at,
        "rtc": _rtc(server, offer.call_id),
    }
    return web.json_response(body, status=201, headers={"Cache-Control": "no-store"})


async def _agent(request: web.Request, server: Server) -> str | web.Response:
    """The agent that is asked for, or the answer that refuses it."""
    body = await read_object(request, MAX_BODY, '{"agent": "demo"}, or nothing')
    if isinstance(body, web.Response):
        return body
    agent = body.get("agent", server.config.agent)
    known = sorted(server.config.known_agents)
    if agent not in known:
        return problem(400, "bad_agent", f"agent must be one of {', '.join(known)}", field="agent")
    return str(agent)


def _rtc(server: Server, call_id: str) -> dict[str, object] | None:
    """How to come over WebRTC; None where that is not possible."""
    if not server.lines.offered:
        return None
    servers = ice_access(server.config.webrtc.ice_servers, server.signer.now(), call_id)
    return {
        "offer_url": "/rtc/offer",
        "candidate_url": "/rtc/candidate",
        "ice_servers": [found.as_dictionary() for found in servers],
    }
