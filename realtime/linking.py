"""What a link is configured with, asks for and reports. Frozen values; `link` gives them life."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ..adapters.socket import ATTEMPTS
from ..media.errors import MediaValueError
from .lifecycle_vocabulary import Phase
from .port import RealtimeAdapter, Setup
from .uplink import Pacing


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkConfig:
    """How long a link waits, tries and remembers.

    attempts           tries in a row before it gives up
    ring_s             the caller's sound that is kept for replay
    connect_timeout_s  for one connection, its setup included
    close_timeout_s    for a connection to say its last word
    gap_poll_s         how often `at_gap` is asked while a move waits
    pacing             for providers whose time is the audio we send
    """

    attempts: int = ATTEMPTS
    ring_s: float = 12.0
    connect_timeout_s: float = 15.0
    close_timeout_s: float = 12.0
    gap_poll_s: float = 0.05
    pacing: Pacing = Pacing()

    def __post_init__(self) -> None:
        for name in ("ring_s", "connect_timeout_s", "close_timeout_s", "gap_poll_s"):
            if getattr(self, name) <= 0:
                raise MediaValueError(name, str(getattr(self, name)), "use more than 0")


@dataclass(frozen=True, slots=True)
class LinkState:
    """The session's state (row 78). `code` and `reason` say why it is reconnecting or closed; ""
    for a stop. A move that closes the old connection first is `reconnecting` with code `move`."""

    phase: Phase
    code: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reconnected:
    """Another connection carries the session, by a move (`planned`) or after an outage.

    `state_restored`: the provider kept the conversation, else it was seeded. `replayed_ms` of the
    caller's sound were sent again, `lost_ms` before them were no longer kept. `attempt` counts from
    1; nothing was open for `outage_ms`.
    """

    state_restored: bool
    lost_ms: int
    replayed_ms: int
    attempt: int
    outage_ms: int
    planned: bool


@dataclass(frozen=True, slots=True)
class SetupRequest:
    """What a new connection starts from. With `resume_handle` the provider knows all up to `mark`,
    the session's own mark of when that handle came (None: the handle was given to `open`)."""

    resume_handle: str | None
    mark: object
    attempt: int
    planned: bool


MakeSetup = Callable[[SetupRequest], Awaitable[Setup]]
Refresh = Callable[[], Awaitable[RealtimeAdapter]]
