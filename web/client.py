"""What a call's session needs of a line to a client, whatever carries it. Ports; no code.

A WebSocketTransport and a WebRtcTransport both fit; neither knows that this file exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from ..media.transport import CallTransport


class Client(CallTransport, Protocol):
    """A carrier with a screen: sound as CallTransport has it, and JSON that needs no waiting."""

    @property
    def sent(self) -> int:
        """Output position at which the next frame will stand."""
        ...

    @property
    def epoch(self) -> int:
        """The open playback epoch."""
        ...

    def post(self, message: Mapping[str, object]) -> None:
        """Queue JSON to the client, in order; nothing after the end. Raises MediaValueError for
        what is no JSON or too long."""
        ...


@runtime_checkable
class Impairable(Protocol):
    """A line that can lose and delay packets on purpose, for developers."""

    def impair(self, *, loss: float, burst: int, jitter_ms: float, down: bool) -> None:
        """Lose `loss` (0..1) of the packets in runs of `burst`, delay each by up to `jitter_ms`;
        of those that go out too when `down`."""
        ...
