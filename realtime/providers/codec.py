"""The seam between a provider's wire and its socket: a codec without I/O.

A codec is fed the provider's frames and the session's commands, and asked for events and frames to
send; it holds what the protocol makes it remember (which response runs, which items exist) and
nothing else. Each provider has one in its `*_wire.py`; `driver.py` joins it with a socket.
"""

from __future__ import annotations

from typing import Protocol

from ..commands import ProviderCommand
from ..events import RealtimeEvent
from ..port import Setup

Frame = str | bytes
"""A text or a binary message of a WebSocket."""


class Codec(Protocol):
    """One connection's protocol. Pure: no clock, no socket, no random numbers but ids it counts."""

    def begin(self, setup: Setup) -> None:
        """The socket is open: queue the first frames. Called once, before anything else."""
        ...

    def receive(self, frame: Frame) -> list[RealtimeEvent]:
        """What a frame of the provider means. A frame that is no JSON, or whose type is unknown,
        is one ProviderProblem at most, never an exception. May queue frames."""
        ...

    def tell(self, command: ProviderCommand) -> list[RealtimeEvent]:
        """Queue the frames of a command; the events that it causes by itself (Interrupted)."""
        ...

    def finish(self) -> bool:
        """We want to end: queue the frames that ask for it. True: wait for `finished`."""
        ...

    def closed(self, code: int, reason: str) -> list[RealtimeEvent]:
        """The socket closed. Whatever is still open is closed in order (ItemDone, ResponseDone
        cancelled, Summary failed), then exactly one Closed."""
        ...

    def take(self) -> list[Frame]:
        """Frames to send now, oldest first; each is given once."""
        ...

    @property
    def due(self) -> bool:
        """An answer of the provider is due: silence now means that the connection is dead."""
        ...

    @property
    def finished(self) -> bool:
        """After `finish`: the provider has said its last word."""
        ...
