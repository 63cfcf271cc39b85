"""Controls a carrier may offer beside sound. Composed with a transport; absent ones raise."""

from __future__ import annotations

from typing import Protocol

from .errors import Unsupported


class CallControls(Protocol):
    """What tools like `end_call` or `transfer` reach. Every method raises Unsupported where the
    carrier has no such control, TransportError when it failed."""

    async def hang_up(self, reason: str) -> None:
        """End the call; the person hears the line go."""
        ...

    async def transfer(self, target: str) -> None:
        """Hand the person to `target` (a number or URI)."""
        ...

    async def send_dtmf(self, digits: str) -> None:
        """Send tones, one after the other."""
        ...

    async def hold(self, on: bool) -> None:
        """Put the person on hold, or take them back."""
        ...


class NoControls:
    """A line that can only be hung up by ending the call itself."""

    def __init__(self, carrier: str) -> None:
        self._carrier = carrier

    async def hang_up(self, reason: str) -> None:
        raise Unsupported("hang_up", self._carrier)

    async def transfer(self, target: str) -> None:
        raise Unsupported("transfer", self._carrier)

    async def send_dtmf(self, digits: str) -> None:
        raise Unsupported("send_dtmf", self._carrier)

    async def hold(self, on: bool) -> None:
        raise Unsupported("hold", self._carrier)
