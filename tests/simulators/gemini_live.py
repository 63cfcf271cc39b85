"""A strict Gemini Live API (BidiGenerateContent) on loopback, played from a script.

`gemini_live(script)` serves until its block ends. It is checked with the official SDK. What the
wire is stands in protocols/gemini-live; the rules of it in gemini_live_{rules,setup}, one
connection in gemini_live_session, the model in gemini_live_model, hearing in gemini_live_ear.
"""

from __future__ import annotations

import re
import ssl as tls
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from websockets.http11 import Request

from tests.simulators.gemini_live_model import Options
from tests.simulators.gemini_live_rules import Fields
from tests.simulators.gemini_live_session import Record, Session
from tests.simulators.gemini_live_setup import GenerationName
from tests.simulators.realtime_script import Fault, Script
from tests.simulators.realtime_server import RunningServer, Wire, running

__all__ = ["KEY", "TOKEN", "GeminiLive", "Options", "gemini_live"]

KEY = "test-key"
TOKEN = "auth_tokens/test"
Header = Callable[[str], str | None]
PATH = re.compile(
    r"/{1,2}ws/google\.ai\.generativelanguage\.v1(?:beta|alpha)?"
    r"\.GenerativeService\.BidiGenerateContent(Constrained)?"
)


@dataclass(frozen=True, slots=True)
class GeminiLive:
    """A server that runs: `net` has its address, its connections and its own faults, `record`
    what happened on it."""

    net: RunningServer
    record: Record

    @property
    def origin(self) -> str:
        """`ws://127.0.0.1:PORT`, `wss` with a certificate."""
        return self.net.origin

    @property
    def wires(self) -> list[Wire]:
        return self.net.wires

    @property
    def faults(self) -> list[BaseException]:
        """What went wrong inside the simulator: a test asserts that there is nothing."""
        return self.net.faults

    @property
    def violations(self) -> list[str]:
        return self.record.violations

    @property
    def turns(self) -> list[str]:
        return self.record.turns

    @property
    def setups(self) -> list[Fields]:
        return self.record.setups

    @property
    def tool_responses(self) -> dict[str, Fields]:
        """By call id, as they were taken."""
        return self.record.tool_responses

    @property
    def conversation(self) -> list[tuple[str, str]]:
        """(role, text) of the newest connection's conversation; role user, assistant or tool."""
        latest = self.record.memory.latest
        return [] if latest is None else latest.history

    def expire_handles(self) -> None:
        """No handle that was given is taken any more."""
        self.record.memory.expire()


@asynccontextmanager
async def gemini_live(
    script: Script,
    *,
    key: str = KEY,
    tokens: frozenset[str] = frozenset({TOKEN}),
    generation: GenerationName = "3.8",
    options: Options | None = None,
    refuses_late: bool = False,
    ssl: tls.SSLContext | None = None,
    port: int = 0,
) -> AsyncIterator[GeminiLive]:
    """Serve the models of one `generation` until the block ends.

    key, tokens   what opens BidiGenerateContent, and what opens its Constrained twin
    refuses_late  a wrong key closes the open socket with 1007, instead of an HTTP status
    """
    record = Record(generation=generation, options=options or Options(), script=script)
    sessions: dict[int, Session] = {}

    async def serve_one(wire: Wire) -> None:
        refused = _refusal(wire.path, wire.headers.get, key, tokens)
        if refused is not None:
            await wire.close(1007, refused[1])
        sessions[wire.number] = Session(wire, record)
        await sessions[wire.number].run()

    async def own_fault(wire: Wire, fault: Fault) -> None:
        if fault.action == "go_away":
            await sessions[wire.number].go_away(fault.seconds)
        else:
            await sessions[wire.number].fail(fault)

    def refuse(request: Request) -> tuple[int, str] | None:
        refused = _refusal(request.path, request.headers.get, key, tokens)
        late = refuses_late and refused is not None and refused[0] != 404
        return None if late else refused

    async with running(
        script, serve_one, own_fault=own_fault, refuse=refuse, binary=True, ssl=ssl, port=port
    ) as net:
        yield GeminiLive(net, record)


def _refusal(path: str, header: Header, key: str, tokens: frozenset[str]) -> tuple[int, str] | None:
    """HTTP status and text of a handshake that is not taken."""
    address = urlsplit("ws://host" + path)
    method = PATH.fullmatch(address.path)
    if method is None:
        return 404, "Not Found"
    query = {name: values[-1] for name, values in parse_qs(address.query).items()}
    if method[1]:
        given = (header("authorization") or "").removeprefix("Token ")
        given = given or query.get("access_token", "")
        return None if given in tokens else (401, "Token is not valid or has expired.")
    given = header("x-goog-api-key") or query.get("key", "")
    if not given:
        return 403, "Method doesn't allow unregistered callers. Please use an API key."
    return None if given == key else (401, "API key not valid. Please pass a valid API key.")
