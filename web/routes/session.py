"""POST /session: permission to begin one call (CONTRACTS B). Makes no call by itself."""

from __future__ import annotations

import asyncio
import json

from aiohttp import web

from ..calls import Refused
from ..server import SERVER, Server, problem, refuse_origin, refuse_stranger

MAX_BODY = 4_096
BODY_S = 5.0
"""How long a body may take to arrive."""


async def post_session(request: web.Request) -> web.Response:
    """201 `{token, call_id, ws_url, expires_at}`; 400, 401, 403, 408, 413, or 503 with
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
    }
    return web.json_response(body, status=201, headers={"Cache-Control": "no-store"})


async def _agent(request: web.Request, server: Server) -> str | web.Response:
    """The agent that is asked for, or the answer that refuses it."""
    try:
        async with asyncio.timeout(BODY_S):
            raw = await request.read()  # whole, in however many pieces it comes
    except web.HTTPRequestEntityTooLarge:
        return problem(413, "too_big", f"the body is limited to {MAX_BODY} bytes")
    except TimeoutError:
        return problem(408, "too_slow", f"the body took more than {BODY_S:g} s")
    try:
        body = json.loads(raw) if raw.strip() else {}
    except (ValueError, RecursionError):
        return problem(400, "bad_body", "the body is no valid JSON; send {} or nothing")
    if not isinstance(body, dict):
        return problem(400, "bad_body", 'send a JSON object such as {"agent": "demo"}')
    agent = body.get("agent", server.config.agent)
    known = sorted(server.config.known_agents)
    if agent not in known:
        return problem(400, "bad_agent", f"agent must be one of {', '.join(known)}", field="agent")
    return str(agent)
