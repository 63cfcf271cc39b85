"""What is still owed on a call, and the parts that its three workers share.

`Parts` is put together by `run`; `dispatch` (what the provider says), `orders` (what the host says)
and `run` itself (the connection) work with it. Values and references; it does nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from ..adapters.errors import AdapterError
from ..core.agent import Agent
from ..core.cancel import CancelToken
from ..core.live import LiveConversation
from .asks import Asks
from .config import SessionConfig
from .feed import Feed, Tell
from .floor import Floor
from .history import Ledger
from .link import Link
from .linking import Refresh
from .output import Output
from .playback import Playback
from .port import Capabilities, RealtimeAdapter
from .report import Report
from .session_events import SessionEvent
from .summaries import Summaries
from .tools import ToolPath
from .worker import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a session is made of. `notify` tells the host; `fail` ends the session."""

    agent: Agent
    live: LiveConversation
    adapter: RealtimeAdapter
    config: SessionConfig
    playback: Playback
    refresh: Refresh | None
    notify: Callable[[SessionEvent], None]
    fail: Callable[[AdapterError], None]

    @property
    def can(self) -> Capabilities:
        return self.adapter.capabilities


@dataclass(slots=True)
class Due:
    """Flags of one run.

    answer   a turn of the user, or results of tools, have no whole answer yet
    count    how often that came to be
    speech   the agent is to speak at the next quiet pause
    wake     because something from outside asks for it
    begun    a turn of the user has begun and its preparations are ordered
    spoken   somebody who hears boundaries is there, and what the user said since the last one is
             not the provider's yet; None: nobody tells boundaries
    began    input sample at which the user last began to speak, as far as anybody told
    unwanted the answer that was due and had not begun was interrupted: it ends as it begins
    """

    answer: bool = False
    count: int = 0
    speech: bool = False
    wake: bool = False
    begun: bool = False
    spoken: bool | None = None
    began: int = 0
    unwanted: bool = False

    def owe_answer(self) -> None:
        """An answer is due from now on."""
        self.answer = True
        self.count += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """One run's parts. `tell` gives the provider a command if it knows by now what was said on
    earlier connections; `later` orders work behind all that was ordered before; `spawn` starts a
    task of the session's group; `problem` tells the host (code, stage, message)."""

    made: Made
    link: Link
    ledger: Ledger
    feed: Feed
    floor: Floor
    asks: Asks
    tools: ToolPath
    output: Output
    summaries: Summaries
    report: Report
    due: Due
    tell: Tell
    later: Callable[[Job], None]
    spawn: Callable[[Coroutine[None, None, None]], object]
    problem: Callable[[str, str, str], None]
    token: CancelToken = field(default_factory=CancelToken)
