"""What a realtime provider reports: one vocabulary for all of them (the *port* events of DESIGN 7).

A codec makes these of the provider's frames; a session reads them and never asks which provider
it was. Frozen values, no I/O. Times are milliseconds of the audio that was sent on this
connection, from its first sample; `None` where the provider tells none.

A **response** is one stretch of the model's own work (text, speech, tool calls); of a model that
has no responses it is one stretch of speech. An **item** is one message of the conversation: what
the user said in one turn, or one spoken answer. Ids are unique within a connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..core.messages import ToolCall
from ..core.usage import Usage

Role = Literal["user", "assistant"]
ResponseStatus = Literal["completed", "cancelled", "incomplete", "failed"]
LOST = "connection lost"
"""The `reason` of a ResponseDone (`cancelled`) that only the end of the connection caused."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The provider took the setup; commands may be sent. `resumed`: it kept the conversation."""

    session_id: str
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class UserSpeech:
    """The provider hears the user begin (`started`) or stop. Only where it tells."""

    event: Literal["started", "stopped"]
    item_id: str = ""
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class UserTurn:
    """The user's turn `item_id` is over and in the provider's conversation: audio up to `end_ms`
    was consumed. Its words may come before or long after (Words). At most once per item."""

    item_id: str
    start_ms: int | None = None
    end_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """Words of one item. Not final: `text` goes behind what came before. Final, once per item:
    `text` is all of it, in place of what came before; "" means that nothing was said or that it
    could not be read (`failed`)."""

    role: Role
    item_id: str
    text: str
    final: bool = False
    start_ms: int | None = None
    end_ms: int | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ResponseStarted:
    """The model works. `request_id` is that of the RequestResponse it answers, "" for its own."""

    response_id: str
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Audio:
    """Speech of item `item_id`, mono PCM in the capabilities' output format, whole samples."""

    item_id: str
    pcm: bytes


@dataclass(frozen=True, slots=True)
class ItemDone:
    """No more sound and no more words of this assistant item. At most once per item."""

    item_id: str


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Calls that wait for results, in order: all of one response at once. `input_args` of each is
    a dict, or the raw text where that was no JSON."""

    response_id: str
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ToolsCancelled:
    """The provider takes no result for these calls any more."""

    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The provider ended its speech because the user speaks: sound of it must stop now. `item_id`
    is the item that was speaking, "" where the provider does not say. Also the answer to every
    CutOutput, exactly once."""

    item_id: str = ""


@dataclass(frozen=True, slots=True)
class ResponseDone:
    """The response is over, exactly once per ResponseStarted; `status` tells of the generation,
    not of the playback. Its tool calls may still wait for results."""

    response_id: str
    status: ResponseStatus = "completed"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Used:
    """What the provider counted.

    `usage` is of one response (0 where it counts none). `context_tokens` is the size of the
    context now, `context_ratio` its share of the window. `seconds` is cumulative for the
    connection: the latest counts, never a sum. `final`: the last word on this connection.
    """

    usage: Usage = Usage()
    context_tokens: int | None = None
    context_ratio: float | None = None
    seconds: float | None = None
    final: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """The answer to Summarise `request_id`; `text` is "" when it failed."""

    request_id: str
    text: str
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Resumable:
    """The newest handle that restores the conversation as it is now; None: it cannot now."""

    handle: str | None


@dataclass(frozen=True, slots=True)
class GoAway:
    """The provider will end this connection in `time_left_s`."""

    time_left_s: float


@dataclass(frozen=True, slots=True)
class ProviderProblem:
    """The provider refused something; the connection goes on. `code` is the provider's own."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The connection is over, exactly once, the last event. `code` is the provider's or the
    socket's (`1011`, `session_expired`, `expired`, …), `reason` its text. `fatal`: opening it again
    cannot help. `clean`: we asked for it and the provider finished its work (final usage came)."""

    code: str
    reason: str = ""
    fatal: bool = False
    clean: bool = False


RealtimeEvent = (
    Opened
    | UserSpeech
    | UserTurn
    | Words
    | ResponseStarted
    | Audio
    | ItemDone
    | ToolCalls
    | ToolsCancelled
    | Interrupted
    | ResponseDone
    | Used
    | Summary
    | Resumable
    | GoAway
    | ProviderProblem
    | Closed
)
