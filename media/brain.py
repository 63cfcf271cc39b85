"""The brain port: what puts an agent on a line, and the commands both kinds of brain take.

A brain lives as long as its call. It is fed synchronously, frame by frame, and owns its turn
state; the Call owns the brain's task. Nothing here does I/O.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from .format import AudioFormat
from .frame import AudioFrame
from .transport import Signal

if TYPE_CHECKING:
    from .line import Line


@dataclass(frozen=True, slots=True)
class Say:
    """Text the user typed: a user turn like a spoken one (voice row 73)."""

    text: str


@dataclass(frozen=True, slots=True)
class Respond:
    """An agent turn without a user message; its text is history, the instruction is not."""

    instruction: str = ""


@dataclass(frozen=True, slots=True)
class Inject:
    """Text for the agent: `user` is answered, `context` is only known."""

    kind: Literal["user", "context"]
    text: str


@dataclass(frozen=True, slots=True)
class Narrate:
    """Speak `text` as it is; no history, no turn (voice rows 50-53)."""

    text: str


@dataclass(frozen=True, slots=True)
class Interrupt:
    """End the current answer and abort abortable tools."""

    reason: str = "command"


@dataclass(frozen=True, slots=True)
class Mute:
    """Stop (`on`) or restart feeding the caller's audio to VAD and STT."""

    on: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """The user's turn is over now, whatever the detector thinks."""


@dataclass(frozen=True, slots=True)
class PushToTalk:
    """The talk button went down or up; timing rules count input samples (rows 56-58)."""

    down: bool


@dataclass(frozen=True, slots=True)
class ClientBargeIn:
    """A client's own reflex paused playback there: answer with a cut or a resume (row 29)."""


Command = Say | Respond | Inject | Narrate | Interrupt | Mute | Commit | PushToTalk | ClientBargeIn


class Brain(Protocol):
    """One conversation partner for the life of one call."""

    @property
    def input_format(self) -> AudioFormat:
        """What `hear` wants."""
        ...

    async def run(self, line: Line) -> None:
        """Live on `line` until cancelled or until the brain itself ends the call (returns).

        Raises RuntimeError when already running. After cancellation nothing of the brain is left
        running, and `run` may be called again (voice rows 1, 4, 5).
        """
        ...

    def hear(self, frame: AudioFrame) -> None:
        """20 ms of caller audio at its place on the input clock. Synchronous, below 1 ms."""
        ...

    def signal(self, signal: Signal) -> None:
        """Something else the line said. Synchronous."""
        ...

    def command(self, command: Command) -> asyncio.Future[None]:
        """Ask for something; the future is done when its effect is over, and cancelled with the
        call. Raises RuntimeError before `run`."""
        ...
