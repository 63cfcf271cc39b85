"""What a session tells its host: the provider's events that concern a host, and its own.

A closed vocabulary of frozen values. Provider events come as they are (`events`), with item ids of
the session's connections; what no host can use of them does not come at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from .events import (
    Audio,
    ItemDone,
    ResponseDone,
    ResponseStarted,
    Resumable,
    Used,
    UserSpeech,
    Words,
)
from .lifecycle_vocabulary import Phase
from .link import Reconnected


@dataclass(frozen=True, slots=True)
class StateChanged:
    """connecting -> open <-> reconnecting -> closed (row 78)."""

    state: Phase


@dataclass(frozen=True, slots=True)
class TurnStored:
    """The user's turn `item_id` is taken by the provider; it is message `message_id` in history,
    now or as soon as its words are known. `start`, `end`: input samples of the session."""

    item_id: str
    message_id: str
    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class AnswerHeard:
    """One answer is over for good: its whole text, and what of it was heard. An answer in text
    counts as heard. `message_id` is in history, unless `kept` is off (it was read out on
    command)."""

    item_id: str
    message_id: str
    text: str
    heard: str
    unheard: str
    interrupted: bool = False
    estimated: bool = False
    kept: bool = True


@dataclass(frozen=True, slots=True)
class OutputStopped:
    """All sound handed out so far is void: what is not played yet must not be played. `items` are
    those that sounded or waited, with what was heard of them as far as is known now (all of one
    whose end was not told yet); AnswerHeard tells the truth of each."""

    items: tuple[AnswerHeard, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionProblem:
    """Something failed; the call goes on unless `fatal`."""

    code: str
    stage: str
    message: str
    fatal: bool = False


SessionEvent = (
    StateChanged
    | Reconnected
    | SessionProblem
    | OutputStopped
    | TurnStored
    | AnswerHeard
    | UserSpeech
    | Words
    | ResponseStarted
    | Audio
    | ItemDone
    | ResponseDone
    | Used
    | Resumable
)
