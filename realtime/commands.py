"""What a session tells a realtime provider: one vocabulary for all of them.

A codec makes the provider's frames of these, in the order they come. Where a provider has no such
thing, its codec does the nearest that its protocol allows, or nothing, as its capabilities say.
Frozen values, no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.messages import ResultStatus
from ..core.model import ToolSpec


@dataclass(frozen=True, slots=True)
class SendAudio:
    """The caller's sound in the capabilities' input format: mono PCM, whole samples."""

    pcm: bytes


@dataclass(frozen=True, slots=True)
class SendText:
    """A message of the user that was typed, or stands for one. `respond`: it is answered now."""

    text: str
    respond: bool = True
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class SendImage:
    """A picture the user shows, a whole file of type `mime`. It asks for no answer by itself."""

    data: bytes
    mime: str


@dataclass(frozen=True, slots=True)
class SendVideoFrame:
    """A frame of a camera that is on, as JPEG: what is seen now."""

    jpeg: bytes


@dataclass(frozen=True, slots=True)
class AppendContext:
    """Something the model should know and not speak about by itself. A later one of the same
    non-empty `key` replaces it where `item_delete` says so, and comes on top elsewhere. An empty
    `text` takes back what the key said, where that can be done."""

    text: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The one result of a call, as the model reads it."""

    call_id: str
    name: str
    text: str
    status: ResultStatus = "success"


@dataclass(frozen=True, slots=True)
class SendToolResults:
    """Results of all calls of one ToolCalls event that still wait. `respond`: the model goes on
    now; else with the user's next turn."""

    outputs: tuple[ToolOutput, ...]
    respond: bool = True


@dataclass(frozen=True, slots=True)
class RequestResponse:
    """Let the model speak without the user. `instruction` is for this response alone and no part
    of the conversation. Requests queue behind the response that runs; nothing is lost.

    `verbatim`: read `instruction` aloud word for word, outside the conversation where the provider
    can. `request_id` comes back in ResponseStarted.
    """

    instruction: str = ""
    request_id: str = ""
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class UpdateAgent:
    """The agent changed: the whole new value of what is not None. Only where the capabilities say
    that this provider takes it on an open connection."""

    instructions: str | None = None
    tools: tuple[ToolSpec, ...] | None = None


@dataclass(frozen=True, slots=True)
class CutOutput:
    """The sound of the agent was stopped: end the response that runs, and let the provider's
    conversation hold what was heard.

    `heard_ms` maps every item that was not heard whole to the milliseconds of it that were played,
    0 for nothing. `cancel` off: leave the response that runs alone (interruption is switched
    off, or it is another one's business).
    """

    heard_ms: Mapping[str, int] = field(default_factory=dict)
    cancel: bool = True


@dataclass(frozen=True, slots=True)
class SpeechBoundary:
    """The host hears the user begin (`speaking`) or stop. Opens and closes the turn where the
    setup says `manual_turns`; elsewhere only providers with host boundaries use it."""

    speaking: bool


@dataclass(frozen=True, slots=True)
class CommitTurn:
    """The user's turn is over now: what was sent of it is to be answered."""


@dataclass(frozen=True, slots=True)
class Summarise:
    """Summarise the conversation out of band; answered by one Summary event. Only where the
    capabilities say `out_of_band`."""

    request_id: str
    instructions: str


@dataclass(frozen=True, slots=True)
class ForgetBefore:
    """After a summary: drop the conversation so far from the provider's context and keep `summary`
    in its place. Only where the capabilities say `item_delete`."""

    summary: str


ProviderCommand = (
    SendAudio
    | SendText
    | SendImage
    | SendVideoFrame
    | AppendContext
    | SendToolResults
    | RequestResponse
    | UpdateAgent
    | CutOutput
    | SpeechBoundary
    | CommitTurn
    | Summarise
    | ForgetBefore
)
