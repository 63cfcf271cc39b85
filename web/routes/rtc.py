"""The WebRTC door: `POST /rtc/offer`, `POST /rtc/candidate`, `GET /rtc/lines/{id}` (CONTRACTS B).

Admission and tokens as at `/ws`, before anything is built. The line outlives the request; its life
is rtc_lines' business. Bad input is answered by 400 with its field, never by 500.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from aiohttp import web

from ...adapters.transports.webrtc_sdp import MAX_SDP_BYTES
from ...media.errors import MediaValueError, TransportError
from ..auth import TokenRefused
from ..calls import Refused
from ..rtc_lines import NoSuchLine
from ..server import SERVER, Server, problem, refuse_origin
from .body import read_object

log = logging.getLogger(__name__)

MAX_OFFER = MAX_SDP_BYTES + 8_192
"""Body of an offer: JSON writes each line's end with two characters more."""
MAX_CANDIDATE = 4_096
MAX_ID_CHARS = 64
MAX_MID_CHARS = 64
OFFER = '{"token": "…", "sdp": "…"}'
CANDIDATE = '{"line_id": "…", "candidate": "…", "sdpMid": "0", "sdpMLineIndex": 0}'


async def post_offer(request: web.Request) -> web.Response:
    """200 `{sdp, line_id}`; 400, 401, 403, 404 (no WebRTC here, or no such line), 408, 413, or 503
    with Retry-After."""
    server = request.app[SERVER]
    refused = refuse_origin(request, server) or _refuse_without(server)
    if refused is not None:
        return refused
    body = await read_object(request, MAX_OFFER, OFFER)
    offer = body if isinstance(body, web.Response) else _offer(body)
    if isinstance(offer, web.Response):
        return offer
    try:
        answer = await _answer(server, offer, request.remote or "")
    except TokenRefused as error:
        return problem(401, "bad_token", str(error), field="token")
    except MediaValueError as error:
        return problem(400, "bad_offer", str(error), field=error.field)
    except NoSuchLine:
        return _no_line()
    except Refused as full:
        return problem(503, full.reason, str(full), retry_after_s=full.retry_after_s)
    except TransportError as error:
        return problem(503, "no_line", str(error), retry_after_s=2)
    except Exception:
        log.exception("call could not be built")
        return problem(500, "build_failed", "the call could not be set up; see the server's log")
    return web.json_response(answer, headers={"Cache-Control": "no-store"})


async def post_candidate(request: web.Request) -> web.Response:
    """204; 400, 403, 404 for a line that is not known, 408, 413. "" or null: there are no more."""
    server = request.app[SERVER]
    refused = refuse_origin(request, server) or _refuse_without(server)
    if refused is not None:
        return refused
    body = await read_object(request, MAX_CANDIDATE, CANDIDATE)
    if isinstance(body, web.Response):
        return body
    wrong = _wrong_candidate(body)
    if wrong is not None:
        return problem(400, "bad_candidate", wrong[1], field=wrong[0])
    mid, index = body.get("sdpMid"), body.get("sdpMLineIndex")
    try:
        line = server.lines.find(str(body["line_id"]))
        await line.transport.add_candidate(
            str(body.get("candidate") or ""),
            mid if isinstance(mid, str) else None,
            index if isinstance(index, int) else None,
        )
    except NoSuchLine:
        return _no_line()
    except MediaValueError as error:
        return problem(400, "bad_candidate", str(error), field=error.field)
    return web.Response(status=204)


async def get_line(request: web.Request) -> web.Response:
    """200 `{state, cause}`, until a minute after the line's end; then 404."""
    server = request.app[SERVER]
    refused = refuse_origin(request, server)
    if refused is not None:
        return refused
    try:
        line = server.lines.status(request.match_info["line_id"])
    except NoSuchLine:
        return _no_line()
    body = {"state": line.state, "cause": line.cause}
    return web.json_response(body, headers={"Cache-Control": "no-store"})


@dataclass(frozen=True, slots=True)
class _Offer:
    """The body of an offer; `line_id` names the line that is renegotiated."""

    token: str
    sdp: str
    line_id: str | None


def _offer(body: dict[str, object]) -> _Offer | web.Response:
    """The checked body, or the answer that refuses it."""
    token, sdp, line_id = body.get("token"), body.get("sdp"), body.get("line_id")
    if not isinstance(token, str):
        return problem(401, "bad_token", "send the token of POST /session", field="token")
    if not isinstance(sdp, str):
        return problem(400, "bad_offer", "sdp must be text: an offer's SDP", field="sdp")
    if line_id is not None and not isinstance(line_id, str):
        return problem(400, "bad_offer", "line_id must be text", field="line_id")
    return _Offer(token, sdp, line_id)


async def _answer(server: Server, offer: _Offer, peer: str) -> dict[str, str]:
    """A new line is answered before its call is opened: a bad offer begins no call."""
    lines, registry = server.lines, server.registry
    call_id = registry.permit(offer.token)
    if offer.line_id is not None:
        sdp = await lines.renegotiate(offer.line_id, call_id, offer.sdp)
        return {"sdp": sdp, "line_id": offer.line_id}
    line, sdp = await lines.answer(call_id, offer.sdp, peer)
    try:
        session, again = await registry.open(offer.token, peer, "webrtc")
        lines.carry(line, session, again)
    except BaseException:
        await lines.give_up(line)
        raise
    return {"sdp": sdp, "line_id": line.id}


def _wrong_candidate(body: dict[str, object]) -> tuple[str, str] | None:
    """(field, what is wrong with it), or None."""
    line_id, candidate = body.get("line_id"), body.get("candidate")
    mid, index = body.get("sdpMid"), body.get("sdpMLineIndex")
    if not isinstance(line_id, str) or len(line_id) > MAX_ID_CHARS:
        return "line_id", "line_id must be the text that POST /rtc/offer gave"
    if candidate is not None and not isinstance(candidate, str):
        return "candidate", "candidate must be text"
    if mid is not None and (not isinstance(mid, str) or len(mid) > MAX_MID_CHARS):
        return "sdpMid", "sdpMid must be short text or null"
    if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
        return "sdpMLineIndex", "sdpMLineIndex must be a whole number or null"
    return None


def _refuse_without(server: Server) -> web.Response | None:
    if server.lines.offered:
        return None
    return problem(404, "no_webrtc", "this server does no WebRTC; use /ws")


def _no_line() -> web.Response:
    return problem(404, "unknown_line", "no such line; POST /rtc/offer makes one", field="line_id")
