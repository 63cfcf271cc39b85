"""`POST /chat`: one answer of the server's model, streamed (seed: createChatHandler).

For agents that run elsewhere and have no key of a vendor: `adapters/models/remote.py` is the other
end. The handler owns the model's task; whoever goes away takes the answer with him, at once. It
runs no tool, keeps nothing, and knows no vendor (docs/protocol.md).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from ...adapters.models.failures import empty
from ...adapters.stores.remote_wire import BadField, Fields
from ...core.cancel import AbortScope, CancelToken
from ...core.errors import AbortError, ModelError
from ...core.model import Model, ModelRequest
from ..server import SERVER, Server, problem, refuse_outsider
from .body import parse_object, read_bytes
from .chat_body import read_chat
from .chat_stream import ChatStream, ReaderTooSlow

log = logging.getLogger(__name__)

MAX_BODY = 8 * 1_048_576
"""Of a request, pictures included."""
BODY_S = 30.0
"""How long it may take to arrive."""
KEEP_ALIVE_S = 15.0
"""A stream that is silent for so long gets a comment, so that no proxy takes it for dead."""
GONE_CHECK_S = 0.1
"""How often a silent stream looks whether its reader is still there: aiohttp does not say."""
STALLED_S = 30.0
"""How long a reader may take nothing."""

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
}
EXAMPLE = '{"systemPrompt": "…", "messages": [{"sender": "user", "text": "hello"}], "tools": []}'


class Chats:
    """The answers under way on one server, and the model that gives them: one for all, got for the
    first of them and closed by whoever made it."""

    def __init__(self, make: Callable[[], Model] | None, limit: int) -> None:
        self._make = make if limit else None
        self._model: Model | None = None
        self._limit = limit
        self._tokens: set[CancelToken] = set()

    @property
    def model(self) -> Model | None:
        """None where the door is closed."""
        if self._model is None and self._make is not None:
            self._model = self._make()
        return self._model

    @property
    def active(self) -> int:
        """Answers under way."""
        return len(self._tokens)

    @property
    def full(self) -> bool:
        return self.active >= self._limit

    @contextmanager
    def one(self) -> Iterator[CancelToken]:
        """A place, and the token that ends what happens in it."""
        token = CancelToken()
        self._tokens.add(token)
        try:
            yield token
        finally:
            self._tokens.discard(token)

    def end_all(self) -> None:
        """The server goes down."""
        for token in list(self._tokens):
            token.abort("the server is going down")


CHATS: web.AppKey[Chats] = web.AppKey("chats", Chats)


def add_chat_route(app: web.Application, make: Callable[[], Model] | None, limit: int) -> None:
    """Open the door on a model, for `limit` answers at once; without either it answers 404."""
    app[CHATS] = Chats(make, limit)
    app.router.add_post("/chat", post_chat)


async def post_chat(request: web.Request) -> web.StreamResponse:
    """200 and the events; 400, 401, 403, 404 (no model here), 408, 413, 422 with the field at
    fault, or 503 with Retry-After."""
    server, chats = request.app[SERVER], request.app[CHATS]
    refused = refuse_outsider(request, server)
    if refused is not None:
        return refused
    model = chats.model
    if model is None:
        return problem(404, "no_chat", "this server answers no chats")
    refused = _refuse(server, chats)
    if refused is not None:
        return refused
    with chats.one() as token:
        asked = await _read(request)
        if isinstance(asked, web.Response):
            return asked
        server.metrics.count("chats_total")
        return await _answer(request, model, asked, token)


def _refuse(server: Server, chats: Chats) -> web.Response | None:
    if server.registry.draining:
        return problem(503, "draining", "the server is going down", retry_after_s=30)
    if chats.full:
        return problem(503, "busy", "too many answers at once", retry_after_s=2)
    return None


async def _read(request: web.Request) -> ModelRequest | web.Response:
    raw = await read_bytes(request, MAX_BODY, BODY_S)
    body = raw if isinstance(raw, web.Response) else parse_object(raw, EXAMPLE)
    if isinstance(body, web.Response):
        return body
    try:
        return read_chat(Fields(body))
    except BadField as error:
        return problem(422, "invalid", str(error), field=error.field)


async def _answer(
    request: web.Request, model: Model, asked: ModelRequest, token: CancelToken
) -> web.StreamResponse:
    """The model works in a task of this request; the token ends it however the request ends."""
    response = web.StreamResponse(headers=HEADERS)
    await response.prepare(request)
    stream = ChatStream()
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(_ask(model, asked, stream, token), name="chat model")
        try:
            await _send(request, response, stream)
        except ConnectionError:
            log.debug("chat reader went away")
        finally:
            token.abort("the reader is gone")
            asking.cancel()
    return response


async def _ask(model: Model, asked: ModelRequest, stream: ChatStream, token: CancelToken) -> None:
    """Never raises but for cancellation: a failure is the stream's last event."""
    try:
        async with AbortScope(token):
            result = await model.prompt(asked, stream.put, token)
        if not result.messages:
            raise empty(f"{model.name} gave no message")
        stream.done(result)
    except ModelError as error:
        stream.failed(error)
    except AbortError as error:
        stream.failed(ModelError(error.reason, code="ERR_MODEL_ABORTED", retryable=True))
    except ReaderTooSlow:
        stream.failed(ModelError("the reader is too slow", code="ERR_MODEL_SLOW_READER"))
    except Exception:
        log.exception("chat model failed", extra={"model": model.name})
        stream.failed(ModelError("the model failed; see the server's log"))


async def _send(request: web.Request, response: web.StreamResponse, stream: ChatStream) -> None:
    """Write until the last event is out. Raises ConnectionError when the reader is gone."""
    loop = asyncio.get_running_loop()
    spoke_at = loop.time()
    while True:
        waiting = stream.take()
        if not waiting and loop.time() - spoke_at >= KEEP_ALIVE_S:
            waiting = b": keep-alive\n\n"
        if waiting:
            spoke_at = loop.time()
            await _write(response, waiting)
            continue
        if stream.finished:
            return
        if request.transport is None or request.transport.is_closing():
            raise ConnectionResetError("the reader is gone")
        await _woken(stream)


async def _write(response: web.StreamResponse, data: bytes) -> None:
    try:
        async with asyncio.timeout(STALLED_S):
            await response.write(data)
    except TimeoutError:
        raise ConnectionResetError("the reader takes nothing") from None


async def _woken(stream: ChatStream) -> None:
    """Until something waits, or it is time to look around."""
    try:
        async with asyncio.timeout(GONE_CHECK_S):
            await stream.wait()
    except TimeoutError:
        return
