"""The realtime port: what a provider's adapter is, can do, and is told.

The adapter owns the provider's half (conversation, schema limits, context window, its socket); a
session owns the agent's half. A session branches on `Capabilities`, never on a provider's name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from ..core.messages import Message
from ..core.model import ToolSpec
from ..media.format import AudioFormat
from .commands import ProviderCommand
from .events import RealtimeEvent

TurnTaking = Literal["host", "provider", "full_duplex"]
InputKind = Literal["audio", "text", "image", "video"]
OutputKind = Literal["audio", "text"]
Emit = Callable[[RealtimeEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a provider's model can do, and what it needs.

    turn_taking          who ends the user's turn: our side, the provider, or nobody (it listens
                         while it speaks)
    inputs, outputs      kinds it takes and gives
    input_format         of SendAudio; output_format of Audio. Mono
    item_delete          context can be replaced, the conversation forgotten (ForgetBefore)
    item_truncate        its conversation can be cut to what was heard
    can_cancel           CutOutput ends its generation; else only our side falls silent
    update_tools         on the open connection, by a reconnect, or never
    update_instructions  the same; `append`: a new text comes on top of the old one
    resume               a handle restores the conversation
    response_request     RequestResponse is more than a hint
    out_of_band          Summarise works
    transcripts          whole turns, or `fragments` with times and no end of their own
    usage                what it counts
    context_usage        it reports how full its context is
    paced_input          time is the audio we send: 20 ms must come every 20 ms, silence included
    closes_first         the old connection must be closed before a resumed one is opened
    max_session_s        the provider ends a connection after this; we move before
    idle_s               a connection without any frame for this long is dead; None: pings tell
    due_s                the same while an answer is due
    """

    turn_taking: TurnTaking
    inputs: frozenset[InputKind]
    outputs: frozenset[OutputKind]
    input_format: AudioFormat
    output_format: AudioFormat
    item_delete: bool = False
    item_truncate: bool = False
    can_cancel: bool = False
    update_tools: Literal["live", "reconnect", "none"] = "none"
    update_instructions: Literal["live", "append", "reconnect"] = "reconnect"
    resume: bool = False
    response_request: bool = True
    out_of_band: bool = False
    transcripts: Literal["turns", "fragments"] = "turns"
    usage: Literal["tokens", "duration"] = "tokens"
    context_usage: bool = True
    paced_input: bool = False
    closes_first: bool = False
    max_session_s: float | None = None
    idle_s: float | None = None
    due_s: float | None = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a connection starts with.

    `history` is what the provider does not know yet, as a model may see it (heard words only, each
    call with its result): all of it, or after `resume_handle` what came since that handle.
    `manual_turns`: SpeechBoundary and CommitTurn end turns, not the provider's detector.
    `interruption` off: the user's voice does not end the model's speech.
    """

    instructions: str
    tools: tuple[ToolSpec, ...] = ()
    history: tuple[Message, ...] = ()
    resume_handle: str | None = None
    manual_turns: bool = False
    interruption: bool = True


class Connection(Protocol):
    """One open connection. Its events go to the `emit` it was opened with, in order, until Closed;
    after that, and after `close`, commands are dropped silently."""

    def tell(self, command: ProviderCommand) -> None:
        """Send it; returns at once and never raises for what the peer does."""
        ...

    async def close(self) -> None:
        """End it in order and wait for the provider's last word (final usage), bounded. Emits
        Closed if that was not emitted yet. Idempotent; a cancelled close has closed the socket."""
        ...


class RealtimeAdapter(Protocol):
    """Opens connections to one model of one provider. Holds keys and options, no state of a call:
    several sessions may share it."""

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    async def connect(self, setup: Setup, emit: Emit, group: asyncio.TaskGroup) -> Connection:
        """Connect and wait until the provider took the setup: Opened was emitted when this
        returns. Tasks of the connection live in `group` and end with it.

        Raises AdapterError, then nothing is left and nothing more is emitted: ConnectionFailed and
        ProviderStalled may be tried again, CredentialsRejected and ProviderRefused not. The code
        `ERR_REALTIME_HANDLE` says that the provider does not take this handle (any more).
        """
        ...
