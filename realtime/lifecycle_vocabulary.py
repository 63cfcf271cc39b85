"""What the connection table of a realtime session is told and what it asks for. Frozen values.

See `lifecycle`, which gives them their meaning. Times are the event loop's, in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..media.errors import MediaValueError

Phase = Literal["connecting", "open", "reconnecting", "closed"]

HANDLE_REFUSED = "ERR_REALTIME_HANDLE"
"""The provider does not take this resumption handle (any more): only a fresh connection helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the table needs to know. The first four come from capabilities and configuration.

    resume         a handle restores the conversation
    closes_first   the old connection is closed before the new one is opened
    max_session_s  the provider ends a connection after this
    refreshable    rejected credentials can be renewed, once for each connection that is sought
    attempts       for one connection, fewer by those before it that did not hold; then it is over
    stable_s       a connection that was open this long has held
    lead_s         a move begins this long before its deadline, whoever is speaking
    """

    resume: bool = False
    closes_first: bool = False
    max_session_s: float | None = None
    refreshable: bool = False
    attempts: int = 8
    stable_s: float = 3.0
    lead_s: float = 5.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise MediaValueError("attempts", str(self.attempts), "use 1 or more")
        if self.stable_s < 0 or self.lead_s < 0:
            raise MediaValueError("stable_s, lead_s", "a negative time", "use 0 or more")
        if self.max_session_s is not None and self.max_session_s <= 0:
            raise MediaValueError("max_session_s", str(self.max_session_s), "use more than 0")


@dataclass(frozen=True, slots=True)
class Start:
    """Connect for the first time; with a handle that somebody kept, or without."""

    handle: bool = False


@dataclass(frozen=True, slots=True)
class Connected:
    """The connection that was dialled is open."""

    at: float


@dataclass(frozen=True, slots=True)
class Failed:
    """It could not be opened. `credentials`: they were rejected."""

    at: float
    code: str
    retryable: bool
    credentials: bool = False


@dataclass(frozen=True, slots=True)
class Dropped:
    """The connection that carries the session ended without being asked."""

    at: float
    code: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class HandleKept:
    """The provider gave a handle that restores the conversation."""


@dataclass(frozen=True, slots=True)
class GoingAway:
    """The provider ends this connection in `time_left_s`."""

    at: float
    time_left_s: float


@dataclass(frozen=True, slots=True)
class MoveWanted:
    """Our side needs a new connection: at the next gap, at the latest at `by` (None: whenever).
    `fresh`: one that does not resume, as what the provider knows is not wanted any more."""

    by: float | None = None
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed. `gap`: nobody speaks, works or waits now."""

    at: float
    gap: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """We want to end."""


Event = Start | Connected | Failed | Dropped | HandleKept | GoingAway | MoveWanted | Tick | Stop


@dataclass(frozen=True, slots=True)
class Dial:
    """Open a connection; after `failures` in a row, wait before (`adapters.socket.backoff`).

    `attempt` counts from 1 for each connection that is sought; `resume`: with the latest handle,
    else fresh, seeded from the store. `close_first`: end the old one before. `refresh`: renew the
    credentials before.
    """

    attempt: int
    failures: int = 0
    resume: bool = False
    close_first: bool = False
    refresh: bool = False


@dataclass(frozen=True, slots=True)
class Abort:
    """Give up the dial that runs or waits."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """The new connection carries the session from here; an old one is retired."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with the adopted connection: report it, then send the caller's sound. `attempt` and
    `planned` tell how it came about; `first`: the session has only begun."""

    attempt: int
    planned: bool
    first: bool


@dataclass(frozen=True, slots=True)
class ForgetHandle:
    """The handle is worth nothing any more."""


@dataclass(frozen=True, slots=True)
class Announce:
    """The session's public state changed."""

    phase: Phase
    code: str = ""


Effect = Dial | Abort | Adopt | Resume | ForgetHandle | Announce
