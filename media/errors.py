"""Errors of the sound floor.

    MediaError
    +-- MediaValueError      you misused it: names the field and the remedy
    +-- LineClosed           you used a line after its call ended
    +-- TransportError       the peer or its carrier failed
        +-- TransportStalled     the peer stopped taking audio: its deadline passed
        +-- TransportClosed      the carrier went away
        +-- Unsupported          the carrier has no such control (hold, transfer, DTMF)

Only TransportErrors come from outside; a call survives them (DESIGN 2).
"""

from __future__ import annotations


class MediaError(Exception):
    """Root of this floor's errors. `code` is the wire code of CONTRACTS A (`problem`)."""

    code = "ERR_MEDIA"


class MediaValueError(MediaError, ValueError):
    """A value that cannot be used: names the field, what was given, and what to do instead."""

    code = "ERR_VALUE"

    def __init__(self, field: str, given: str, remedy: str) -> None:
        super().__init__(f"{field}: {given} cannot be used; {remedy}")
        self.field = field
        self.remedy = remedy


class LineClosed(MediaError):
    """The call has ended; nothing can be played or heard any more."""

    code = "ERR_LINE_CLOSED"


class TransportError(MediaError):
    """The carrier failed. The call is then detached, not ended (DESIGN 2)."""

    code = "ERR_TRANSPORT"


class TransportStalled(TransportError):
    """The peer took no audio before the write deadline."""

    code = "ERR_TRANSPORT_STALLED"


class TransportClosed(TransportError):
    """The carrier closed under a send or a receive."""

    code = "ERR_TRANSPORT_CLOSED"


class Unsupported(TransportError):
    """This carrier has no such control."""

    code = "ERR_UNSUPPORTED"

    def __init__(self, control: str, carrier: str) -> None:
        super().__init__(f"{control} is not supported on a {carrier} line")
        self.control = control
