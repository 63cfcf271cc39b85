"""What the simulated Live model sends, in its form, and what a session of it is in.

Owned by `gpt_live_session`, which decides; here is how it is told, and where it is written down.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from tests.simulators.gpt_live_rules import Json, Refused, part, word
from tests.simulators.realtime_script import Reply
from tests.simulators.realtime_server import Wire

EXPIRES_AT = 1_893_456_000


@dataclass(slots=True)
class Record:
    """What happened on a server, for tests to look at.

    turns        the words heard in each turn of the caller
    backchannels those of them that did not make the model stop or answer
    said         what the model spoke, whole or not
    stopped      how often the caller made it fall silent
    outputs      tool outputs by call id; of client delegations by delegation id
    appended     (instructions, thinking or commentary; content; delegation id)
    starts       the session of each session.start
    violations   what was refused
    """

    turns: list[str] = field(default_factory=list)
    backchannels: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    stopped: int = 0
    outputs: dict[str, str] = field(default_factory=dict)
    appended: list[tuple[str, str, str | None]] = field(default_factory=list)
    starts: list[Json] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """What a session is in.

    due      (clock at which it is said, reply), oldest first
    history  (role, text) of everything
    """

    config: Json = field(default_factory=dict)
    clock_ms: int = 0
    muted: bool = False
    fixture: str | None = None
    running_at: int | None = None
    appends: deque[Json] = field(default_factory=deque)
    due: deque[tuple[int, Reply]] = field(default_factory=deque)
    history: list[tuple[str, str]] = field(default_factory=list)
    saying: str = ""
    expires_at: float = math.inf


class Outgoing:
    """Events of one connection, with ids that count."""

    def __init__(self, wire: Wire, state: State) -> None:
        self._wire = wire
        self._state = state
        self._ids = count(1)

    @property
    def rate(self) -> int:
        """Samples a second, of both directions."""
        rate = part(self._state.config, "audio", "format").get("rate", 24_000)
        return rate if isinstance(rate, int) else 24_000

    @property
    def format(self) -> str:
        return word(part(self._state.config, "audio", "format").get("type")) or "audio/pcm"

    @property
    def delegates_to(self) -> str:
        """`client` or `responses`."""
        return word(part(self._state.config, "delegation").get("type"))

    @property
    def resource(self) -> Json:
        """The session as the provider tells it."""
        fixed: Json = {"id": f"live_{self._wire.number}", "status": "active"}
        return {**self._state.config, **fixed, "expires_at": EXPIRES_AT}

    async def send(self, kind: str, cause: Mapping[str, object], **fields: object) -> None:
        """Send an event that `cause`, an event of the client, brought about; {} for none."""
        await self.put({"type": kind, **fields}, cause)

    async def put(self, event: Json, cause: Mapping[str, object] | None = None) -> None:
        """Send an event that was made elsewhere."""
        whole: Json = {"event_id": f"event_{next(self._ids)}", **event}
        if cause and cause.get("event_id"):
            whole["client_event_id"] = cause["event_id"]
        await self._wire.send(whole)

    async def usage(self) -> None:
        ratio = min(1.0, self._state.clock_ms / 3_600_000)
        usage = {"seconds": self._state.clock_ms // 1_000}
        window = {"usage_ratio": ratio}
        await self.send("session.usage.updated", {}, usage=usage, context_window=window)

    async def close(self, reason: str, cause: Mapping[str, object]) -> None:
        """The end: final usage, session.closed, 1000. Raises Gone."""
        await self.usage()
        usage = {"seconds": self._state.clock_ms // 1_000}
        session = self.resource
        await self.send("session.closed", cause, reason=reason, usage=usage, session=session)
        await self._wire.close(1000)

    async def error(self, refused: Refused, kind: str) -> None:
        error: Json = {"type": kind, "code": refused.code, "message": refused.message}
        if refused.param is not None:
            error["param"] = refused.param
        if refused.event_id is not None:
            error["client_event_id"] = refused.event_id
        await self.send("error", {}, error=error)
