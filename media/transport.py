"""The carrier port: what a call needs from a line to a person, whatever carries it.

An adapter (adapters/transports) implements it; the Call owns the transport it attached. Nothing
here knows brains, agents or history. Output positions count samples *actually played* to the
person since attach, at the transport's output rate: a cleared sample never gets a position.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from .format import PIPELINE, AudioFormat
from .frame import AudioFrame

HORIZON_MS = 200
"""Most sound a transport holds that the person has not heard yet (DESIGN 2)."""

SETTLE_MS = 300
"""How long after a clear one correction of the stop position is awaited (DESIGN 2)."""

LineState = Literal["attached", "held", "detached", "closed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportInfo:
    """What a carrier is and can do. A brain branches on these fields, never on `kind`.

    `clock` says whether `clear()` and `played()` are exact or estimates that a `Played` signal
    corrects. `gapless` says that a frame comes every 20 ms without fail, so that the input
    timeline need not fill holes by the loop's clock. `fast` marks a loop clock that jumps.
    """

    kind: str
    peer: str = ""
    input: AudioFormat = PIPELINE
    output: AudioFormat = PIPELINE
    clock: Literal["exact", "estimate"] = "exact"
    gapless: bool = False
    data: bool = False
    silence_ms: int = 60


@dataclass(frozen=True, slots=True)
class Data:
    """A JSON message from the peer's data channel."""

    message: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Gap:
    """`samples` of input (at the transport's input rate) that will never come."""

    samples: int


@dataclass(frozen=True, slots=True)
class Played:
    """The peer's word that playback epoch `epoch`, closed by a `clear()`, ended at output `pos`.

    Only for `clock="estimate"`, at most once per epoch. If it is the epoch closed last, the
    transport counts on from `pos` from here on: `played()` moves by the difference to what
    `clear()` returned, in the same step of the loop in which `receive` yields this.
    """

    pos: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Hangup:
    """The person (`by_remote`) or our side ended the call on this carrier."""

    by_remote: bool = True
    code: str = "hangup"


@dataclass(frozen=True, slots=True)
class Image:
    """A picture from the person: `data` is a whole file of type `mime` (image/png, …).

    `live`: a frame of a camera that is on; it stands for what is seen now and replaces the one
    before it. Otherwise a picture that was attached on purpose.
    """

    mime: str
    data: bytes
    live: bool = False


@dataclass(frozen=True, slots=True)
class LineChanged:
    """The call's own word to its brain: a carrier was attached, lost, or the call closed."""

    state: LineState


Signal = Data | Gap | Played | Hangup | Image | LineChanged


class CallTransport(Protocol):
    """One carrier of one call. Only the call that attached it calls these methods."""

    @property
    def info(self) -> TransportInfo:
        """What this carrier is. Constant for its life."""
        ...

    def receive(self) -> AsyncIterator[AudioFrame | Signal]:
        """Frames (any length, `info.input`) and signals in order, until the carrier ends.

        Ends normally after `Hangup`; raises TransportError when the carrier fails. Iterated once.
        """
        ...

    async def send(self, frame: AudioFrame) -> bool:
        """Take a frame in `info.output`; wait while more than HORIZON_MS is unplayed.

        Returns False when `clear()` came while it waited: the frame was dropped and has no
        position. Raises TransportStalled when the peer takes nothing for the write deadline,
        TransportClosed when the carrier is gone. After cancellation the frame was not taken.
        """
        ...

    def clear(self) -> int:
        """Stop sound now, drop all unplayed samples, close the playback epoch.

        Returns the best known output sample at which sound stopped; later frames count on from
        there. Synchronous and safe at any time, also after the carrier failed.
        """
        ...

    def played(self) -> int:
        """Output samples played so far. Monotone, but for the step of a `Played` correction."""
        ...

    async def send_data(self, message: Mapping[str, object]) -> None:
        """Send JSON to the peer; dropped silently where `info.data` is False."""
        ...

    async def aclose(self, reason: str) -> None:
        """End the carrier; `reason` reaches the peer where the wire has a place for it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInfo:
    """Who is on the line: what an AgentFactory and the log may know about a call."""

    call_id: str
    line: str = "fixture"
    peer: str = ""
    agent: str = "demo"
    params: Mapping[str, str] = field(default_factory=dict)
