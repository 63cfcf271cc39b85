"""A strict GPT-Live model on loopback: a clock made of the caller's audio, played from a script.

`gpt_live(script)` serves `/v1/live/sessions` until its block ends. It is checked with the official
SDK. What the wire is stands in protocols/openai-live; what is refused in `gpt_live_rules`, one
connection in `gpt_live_session`, what it sends in `gpt_live_out`, hearing and speaking in
`gpt_live_ear`, delegated work in `gpt_live_work`.

Of the points of `realtime_script`: `setup` is session.start before its answer, `opened` the moment
behind it, `response_started` the beginning of anything the model says or gives away, `mid_audio`
behind each 100 ms of speech, `tool_running` 100 ms of audio after a call; `handle_given` does not
exist here. All times of a reply are times of the session's clock. `words_late_s` and `status` mean
nothing for speech, for this provider has neither; `status` is that of a delegated response.
`go_away` is a session that expires in so many seconds, as nothing is announced; an `error` with the
code `expired`, `content`, `remote_hangup` or `connection_lost` ends the session with that reason.
`session.close` ends it at once: delegated work takes no time here, and speech that is left is lost.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from websockets.http11 import Request

from tests.simulators.gpt_live_out import Record
from tests.simulators.gpt_live_session import Backchannel, Session
from tests.simulators.realtime_script import Fault, Script
from tests.simulators.realtime_server import RunningServer, Wire, running

KEY = "test-key"
PATH = "/v1/live/sessions"


@dataclass(slots=True)
class GptLive:
    """The running server, and all that its sessions recorded, oldest first."""

    net: RunningServer
    record: Record
    sessions: list[Session] = field(default_factory=list)

    @property
    def origin(self) -> str:
        """`ws://127.0.0.1:PORT`; the API is under `/v1`."""
        return self.net.origin

    @property
    def http(self) -> str:
        """`http://127.0.0.1:PORT`, for the SDK's `base_url`."""
        return self.net.http

    @property
    def wires(self) -> list[Wire]:
        return self.net.wires

    @property
    def faults(self) -> list[BaseException]:
        """What went wrong inside the simulator: a test asserts that there is nothing."""
        return self.net.faults

    @property
    def turns(self) -> list[str]:
        """The words heard in each turn of the caller."""
        return self.record.turns

    @property
    def outputs(self) -> Mapping[str, str]:
        """Tool outputs by call id."""
        return self.record.outputs

    @property
    def appended(self) -> list[tuple[str, str, str | None]]:
        """(instructions, thinking or commentary; content; delegation id)."""
        return self.record.appended

    @property
    def violations(self) -> list[str]:
        """What was refused; empty in a good run."""
        return self.record.violations

    @property
    def conversation(self) -> list[tuple[str, str]]:
        """(role, text) of the newest connection: user, assistant, developer, and what was appended
        by its kind."""
        return self.sessions[-1].state.history if self.sessions else []


@asynccontextmanager
async def gpt_live(
    script: Script,
    *,
    key: str = KEY,
    backchannel: Backchannel = lambda words: False,
    max_session_s: float = math.inf,
    port: int = 0,
) -> AsyncIterator[GptLive]:
    """Serve until the block ends.

    backchannel    words of the caller that neither stop the model nor are answered
    max_session_s  of audio, until a session expires
    """
    record = Record()
    sessions: list[Session] = []

    async def serve(wire: Wire) -> None:
        session = Session(wire, record, backchannel, max_session_s)
        sessions.append(session)
        await session.serve()

    async def own_fault(wire: Wire, fault: Fault) -> None:
        await next(one for one in sessions if one.wire is wire).own_fault(fault)

    async with running(
        script, serve, own_fault=own_fault, refuse=lambda request: _refusal(request, key), port=port
    ) as net:
        yield GptLive(net, record, sessions)


def _refusal(request: Request, key: str) -> tuple[int, str] | None:
    """What the handshake is answered with, where it is not taken."""
    if request.path != PATH:
        return 404, _body("not_found", f"Invalid URL (GET {request.path})")
    bearer = request.headers.get("Authorization", "") == f"Bearer {key}"
    if not bearer and request.headers.get("api-key", "") != key:
        return 401, _body("invalid_api_key", "Incorrect API key provided.")
    return None


def _body(code: str, message: str) -> str:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return json.dumps({"error": error})
