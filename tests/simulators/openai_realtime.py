"""A strict OpenAI realtime model on loopback: hears, says and does wrong what its script tells.

The protocol is `openai_realtime_wire`; the socket and its faults are `realtime_server`. Here are
the model's part (Script), the moments at which faults strike, what a test may ask about
afterwards, and how a session ends: at its cap, and by the provider's own errors.

Of the points of `realtime_script`: `setup` is the first session.update before its answer, `opened`
the moment behind it, `tool_called` the end of a response with calls, `mid_audio` behind each chunk,
`closing` the end of the client's side; `handle_given` does not exist here. `go_away` is a session
that expires in so many seconds, as this provider announces nothing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from websockets.http11 import Request

from tests.simulators.openai_realtime_checks import word
from tests.simulators.openai_realtime_secrets import Secrets, serving
from tests.simulators.openai_realtime_session import Record, Session
from tests.simulators.realtime_script import Fault, Script
from tests.simulators.realtime_server import RunningServer, Wire, running

MODELS = ("gpt-realtime", "gpt-4o-realtime", "gpt-4o-mini-realtime", "gpt-audio")
"""How the names of models begin that this endpoint serves."""
INVALID_MODEL_CODE = 4_000
SECRET_PROTOCOL = "openai-insecure-api-key."


@dataclass(slots=True)
class OpenAIRealtimeServer:
    """The running server, and all that its sessions recorded, oldest first."""

    running: RunningServer
    record: Record
    sessions: list[Session] = field(default_factory=list)
    rest: str = ""
    """`http://127.0.0.1:PORT` of the client secrets, where they are served."""

    @property
    def origin(self) -> str:
        """`ws://127.0.0.1:PORT`; the API is under `/v1`."""
        return self.running.origin

    @property
    def http(self) -> str:
        """`http://127.0.0.1:PORT`, for the SDK's `base_url`."""
        return self.running.http

    @property
    def turns(self) -> list[str]:
        """The words heard in each turn of the user's voice."""
        return self.record.turns

    @property
    def outputs(self) -> Mapping[str, str]:
        """Tool outputs by call id."""
        return self.record.outputs

    @property
    def violations(self) -> list[str]:
        """What a good client never does."""
        return self.record.violations

    @property
    def response_creates(self) -> int:
        """How often the client asked for a response, refused ones too."""
        return sum(event["type"] == "response.create" for event in self.record.events)

    @property
    def faults(self) -> list[BaseException]:
        """What went wrong inside the simulator."""
        return self.running.faults

    def items(self, connection: int = 0) -> list[tuple[str, str]]:
        """The conversation now as (role or type, text), of the newest session, or of that of a
        connection (from 1)."""
        return self.sessions[connection - 1].mind.texts() if self.sessions else []


@asynccontextmanager
async def openai_realtime(
    script: Script,
    *,
    key: str = "test-key",
    chunk_ms: int = 60,
    max_session_s: float | None = None,
    rest: bool = False,
    secret_s: float | None = None,
    port: int = 0,
) -> AsyncIterator[OpenAIRealtimeServer]:
    """Serve `/v1/realtime?model=…` on loopback until the block ends.

    chunk_ms       of sound in one delta
    max_session_s  after which every session expires
    rest           serve client secrets too, on a port of its own; they live for `secret_s`
    """
    record = Record()
    sessions: list[Session] = []
    secrets = Secrets(key, secret_s)

    async def serve(socket: Wire) -> None:
        start = secrets.start(_key(socket.headers))
        model = _query(socket.path).get("model") or word(start.get("model"))
        if start:
            start = {**start, "model": model}
        session = Session(socket, model, start, record, chunk_ms)
        sessions.append(session)
        if not model.startswith(MODELS):
            text = f"Model '{model}' is not supported in realtime mode."
            await socket.send(session.protocol.error("invalid_model", text))
            await socket.close(INVALID_MODEL_CODE, "invalid_request_error.invalid_model")
        await session.serve(max_session_s)

    async def own_fault(socket: Wire, fault: Fault) -> None:
        session = next(one for one in sessions if one.socket is socket)
        await session.own_fault(fault)

    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(secrets)) if rest else ""
        serving_sessions = running(
            script,
            serve,
            own_fault=own_fault,
            refuse=lambda request: refusal(request, secrets),
            subprotocols=("realtime",),
            port=port,
        )
        server = await stack.enter_async_context(serving_sessions)
        yield OpenAIRealtimeServer(server, record, sessions, url)


def refusal(request: Request, secrets: Secrets) -> tuple[int, str] | None:
    """What the handshake is answered with, where it is not taken."""
    if urlsplit(request.path).path != "/v1/realtime":
        return 404, _body("not_found", f"Invalid URL (GET {request.path})")
    key = _key(request.headers)
    if not secrets.opens(key):
        return 401, _body("invalid_api_key", "Incorrect API key provided.")
    if "OpenAI-Beta" in request.headers:
        text = "The Realtime Beta API is no longer supported. Please use /v1/realtime for GA."
        return 400, _body("beta_api_shape_disabled", text)
    query = _query(request.path)
    if set(query) - {"model"} or ("model" not in query and not secrets.start(key)):
        return 400, _body("missing_model", "You must provide a model parameter, and no other one.")
    return None


def _key(headers: Mapping[str, str]) -> str:
    """The key of a handshake: a header, or a browser's subprotocol."""
    scheme, _, key = headers.get("Authorization", "").partition(" ")
    if scheme == "Bearer":
        return key
    offered = headers.get("Sec-WebSocket-Protocol", "").split(",")
    found = (one.strip() for one in offered if one.strip().startswith(SECRET_PROTOCOL))
    return next(found, "").removeprefix(SECRET_PROTOCOL)


def _query(path: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(path).query).items()}


def _body(code: str, message: str) -> str:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return json.dumps({"error": error})
