"""The store door: `/sessions/{id}/…`, a conversation's store for whoever has a key.

Open while a durable `store` is configured. Decides who may come in, reads the body, has a write
done once, and turns whatever goes wrong into a problem with its field; what is done is said in
sessions_history.py and inbox.py. Bad input is answered, never a 500 (docs/stores.md).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from ...adapters.stores.remote_wire import (
    ABANDONED,
    IDEMPOTENCY,
    MAX_ABANDONED,
    REPEATED,
    BadField,
    Fields,
    session_problem,
)
from ...core.encoding import json_bytes
from ...core.errors import StoreError, UnknownMessageError, UnknownRecordError, UsageError
from ..server import SERVER, Server, problem, refuse_outsider
from ..stores import Stores
from . import inbox, sessions_history
from .body import parse_object, read_bytes
from .sessions_asked import MAX_MESSAGES, Action, Asked, Unsupported
from .sessions_once import Answer, KeyReused, Once

log = logging.getLogger(__name__)

MAX_AT_ONCE = 64
"""Requests under way; more are refused with 503."""
BODY_S = 30.0
"""How long a body may take to arrive: pictures over a slow line."""
MAX_KEY_CHARS = 128

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

ACTIONS: dict[tuple[str, str], Action] = {
    ("GET", ""): Action(run=sessions_history.get_session),
    ("GET", "/messages"): Action(run=sessions_history.get_messages),
    ("POST", "/messages"): Action(
        run=sessions_history.append_messages, limit=MAX_MESSAGES, owned=True
    ),
    ("PATCH", "/messages"): Action(
        run=sessions_history.amend_message, limit=MAX_MESSAGES, owned=True
    ),
    ("GET", "/tokens"): Action(run=sessions_history.get_tokens),
    ("POST", "/tokens"): Action(run=sessions_history.add_tokens, owned=True),
    ("GET", "/turns"): Action(run=sessions_history.get_turns),
    ("POST", "/turns"): Action(run=sessions_history.increment_turn, owned=True),
    ("POST", "/counters/reset"): Action(run=sessions_history.reset_counters, owned=True),
    ("GET", "/consumption"): Action(run=sessions_history.get_consumption),
    ("POST", "/permissions/check"): Action(run=sessions_history.check_permission),
    ("PUT", "/permissions"): Action(run=sessions_history.set_permission),
    ("GET", "/tasks"): Action(run=sessions_history.get_tasks),
    ("PUT", "/tasks"): Action(run=sessions_history.replace_tasks, owned=True),
    ("POST", "/tasks/update"): Action(run=sessions_history.update_task, owned=True),
    ("POST", "/stores"): Action(run=sessions_history.sub_agent_store),
    ("GET", "/inbox"): Action(run=inbox.get_items),
    ("POST", "/inbox"): Action(run=inbox.add_item),
    ("POST", "/inbox/update"): Action(run=inbox.update_item),
    ("GET", "/inbox/resolved"): Action(run=inbox.get_resolved),
    ("POST", "/inbox/resolve"): Action(run=inbox.resolve_item),
    ("POST", "/inbox/{item}/resolve"): Action(run=inbox.resolve_item),
    ("POST", "/inbox/consume"): Action(run=inbox.consume_items, limit=MAX_MESSAGES, owned=True),
    ("GET", "/events"): Action(run=inbox.get_events),
    ("POST", "/events"): Action(run=inbox.put_event),
    ("POST", "/events/ack"): Action(run=inbox.ack_events, owned=True),
    ("GET", "/events/size"): Action(run=inbox.get_event_count),
}
"""(method, path below `/sessions/{id}`) -> what is done."""


def _answer(refusal: web.Response) -> Answer:
    body = refusal.body
    return Answer(refusal.status, body if isinstance(body, bytes) else b"")


GONE = _answer(problem(409, "abandoned", "the client gave this request up before it began"))


@dataclass(slots=True)
class Sessions:
    """The door's own state. `stores` None: there is no durable store, and the door is closed."""

    stores: Stores | None
    once: Once = field(default_factory=lambda: Once(GONE))
    at_once: int = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[bool]:
        """One of the places; False when all are taken."""
        if self.at_once >= MAX_AT_ONCE:
            yield False
            return
        self.at_once += 1
        try:
            yield True
        finally:
            self.at_once -= 1


SESSIONS: web.AppKey[Sessions] = web.AppKey("sessions", Sessions)


def add_session_routes(app: web.Application, stores: Stores | None) -> None:
    """Open the door on `stores`; on None, or one that forgets, it answers 404."""
    app[SESSIONS] = Sessions(stores if stores is not None and stores.durable else None)
    for (method, path), action in ACTIONS.items():
        app.router.add_route(method, f"/sessions/{{id}}{path}", _door(action, method))


def _door(action: Action, method: str) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        server, sessions = request.app[SERVER], request.app[SESSIONS]
        refused = refuse_outsider(request, server)
        if refused is not None:
            return refused
        if sessions.stores is None:
            return problem(404, "no_store", "this server keeps no store: configure one under store")
        wrong = session_problem(request.match_info["id"])
        if wrong is not None:
            return problem(400, "bad_session", f"the session's id {wrong}", field="id")
        async with sessions.place() as free:
            if not free:
                return problem(503, "busy", "too many store requests at once", retry_after_s=1)
            found = await _serve(request, server, sessions, sessions.stores, action)
            server.metrics.count("store_requests_total", answer=f"{found.status // 100}xx")
            return found

    return handle


async def _serve(
    request: web.Request, server: Server, sessions: Sessions, stores: Stores, action: Action
) -> web.StreamResponse:
    raw = await read_bytes(request, action.limit, BODY_S)
    if isinstance(raw, web.Response):
        return raw
    session, method = request.match_info["id"], request.method
    body = parse_object(raw, "what docs/stores.md shows")
    if isinstance(body, web.Response):
        return body
    live = server.registry.live(session)
    if live is not None and action.owned:
        return problem(409, "in_call", "this session is a call on this server: its agent writes it")
    key = request.headers.get(IDEMPOTENCY, "") if method != "GET" else ""
    if len(key) > MAX_KEY_CHARS:
        return problem(400, "bad_key", f"{IDEMPOTENCY} is limited to {MAX_KEY_CHARS} characters")
    await sessions.once.abandon(session, _abandoned(request))
    async with stores.session(session) as store:
        asked = Asked(
            session=session,
            store=store,
            body=Fields(body),
            again=bool(key) and REPEATED in request.headers,
            item=request.match_info.get("item", ""),
            live=None if live is None else live.agent,
        )
        if not key:
            return _response(await _done(action, asked))
        digest = hashlib.sha256(f"{method} {request.raw_path}\0".encode() + raw).digest()
        try:
            done = sessions.once.run(session, key, digest, lambda: _done(action, asked))
            return _response(await done)
        except KeyReused:
            return problem(422, "key_reused", f"this {IDEMPOTENCY} came with another request")


async def _done(action: Action, asked: Asked) -> Answer:
    """The action's answer, or the problem that it met."""
    try:
        found = await action.run(asked)
    except BadField as error:
        return _problem(422, "invalid", str(error), error.field)
    except Unsupported as error:
        return _problem(404, "unsupported", f"this server's store keeps no {error}")
    except UnknownMessageError as error:
        return _problem(404, "unknown_message", str(error), "id")
    except UnknownRecordError as error:
        return _problem(404, "unknown_record", str(error), "itemId")
    except UsageError as error:
        return _problem(409, "conflict", str(error))
    except StoreError:
        log.exception("store failed", extra={"session": asked.session})
        return _answer(problem(503, "store_failed", "the store did not work; see the server's log"))
    if found is None:
        return Answer(204)
    return Answer(200, found if isinstance(found, bytes) else json_bytes(found))


def _problem(status: int, code: str, message: str, at: str | None = None) -> Answer:
    return _answer(problem(status, code, message, field=at))


def _abandoned(request: web.Request) -> list[str]:
    keys = request.headers.get(ABANDONED, "").split(",")[:MAX_ABANDONED]
    return [key.strip() for key in keys if 0 < len(key.strip()) <= MAX_KEY_CHARS]


def _response(answer: Answer) -> web.Response:
    headers = {"Cache-Control": "no-store"}
    if answer.status == 503:
        headers["Retry-After"] = "1"
    if not answer.body:
        return web.Response(status=answer.status, headers=headers)
    return web.Response(
        status=answer.status,
        body=answer.body,
        headers=headers | {"Content-Type": "application/json; charset=utf-8"},
    )
