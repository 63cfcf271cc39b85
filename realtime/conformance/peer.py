"""The two sides of a case: the provider in the author's hand, and the connections under test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import NoReturn, Protocol, TypeVar

from ...core.messages import ToolCall
from ..commands import ProviderCommand, SendAudio
from ..events import RealtimeEvent
from ..port import Capabilities, Connection, RealtimeAdapter, Setup
from .grammar import NonConforming, brief

E = TypeVar("E")
FRAME_MS = 20


class Peer(Protocol):
    """The provider's side of one case, and the adapter that talks to it.

    Everything it says goes out in the provider's real frames, binary where they are. Its model
    speaks and calls only when it is told to here; to results of tools it answers with one word, to
    a request, or to typed text, too. To context it says nothing. The methods return when the thing
    is under way; where the provider hears for itself they may use the connection to send sound.
    """

    @property
    def adapter(self) -> RealtimeAdapter:
        """Under test, with the peer's address and a key that the peer takes."""
        ...

    @property
    def holds_results(self) -> bool:
        """Off for a provider whose model goes on by itself with any result of a tool."""
        ...

    async def user_says(self, connection: Connection, text: str) -> None:
        """The user says `text`, a turn; the model answers it with no word."""
        ...

    async def speak(self, connection: Connection, text: str) -> int:
        """The model speaks `text`, one sound for each word. Returns its length in ms, at least 200
        for each word."""
        ...

    async def call_tools(self, connection: Connection, calls: Sequence[ToolCall]) -> None:
        """The model asks for these, in one response. Where the provider gives ids itself, those of
        `calls` mean nothing."""
        ...

    async def interrupt(self, connection: Connection) -> None:
        """The user speaks over the model. Only asked where the provider takes turns."""
        ...

    async def drop(self) -> None:
        """The newest connection breaks, without a word."""
        ...

    async def close(self, code: int, reason: str) -> None:
        """The peer closes the newest connection in order, with a close code of the socket."""
        ...

    def refuse(self, status: int) -> None:
        """The next handshake is answered with this HTTP status."""
        ...

    def received(self) -> str:
        """All texts that came in, sound left out, decoded, oldest first."""
        ...

    def sound(self) -> bytes:
        """All sound that came in, as PCM in the adapter's input format."""
        ...

    def results(self) -> Sequence[tuple[str, str]]:
        """(call id, text) of each result of a tool that came in, oldest first."""
        ...

    def knows(self) -> str:
        """The texts of the newest connection's conversation as the model sees it now."""
        ...

    def open_connections(self) -> int:
        """How many sockets are open now."""
        ...


MakePeer = Callable[[], AbstractAsyncContextManager[Peer]]


@dataclass
class Line:
    """One connection under test, and what it told."""

    connection: Connection
    events: list[RealtimeEvent]
    frame: bytes
    commands: list[ProviderCommand] = field(default_factory=list)

    def tell(self, *commands: ProviderCommand) -> None:
        """Tell the connection."""
        for command in commands:
            self.commands.append(command)
            self.connection.tell(command)

    def all(self, kind: type[E]) -> list[E]:
        """What it told of this kind."""
        return [event for event in self.events if isinstance(event, kind)]

    async def time(self, seconds: float) -> None:
        """Let time pass; the caller says nothing."""
        for _ in range(max(1, round(seconds * 1000 / FRAME_MS))):
            self.connection.tell(SendAudio(self.frame))
            await asyncio.sleep(FRAME_MS / 1000)


class Trial:
    """One run of one case: a fresh peer, and a group that connections live in."""

    def __init__(self, peer: Peer, group: asyncio.TaskGroup, patience_s: float) -> None:
        self.peer = peer
        self.group = group
        self.lines: list[Line] = []
        self._patience_s = patience_s

    @property
    def can(self) -> Capabilities:
        return self.peer.adapter.capabilities

    async def open(self, setup: Setup | None = None) -> Line:
        """A connection that is open."""
        events: list[RealtimeEvent] = []
        setup = setup or Setup(instructions="Be brief.")
        connection = await self.peer.adapter.connect(setup, events.append, self.group)
        sound = self.can.input_format
        frame = bytes(sound.rate * FRAME_MS // 1000 * 2)
        line = Line(connection, events, frame)
        self.lines.append(line)
        return line

    async def until(self, line: Line, holds: Callable[[], object], demand: str) -> None:
        """Wait for something that the port demands."""
        loop = asyncio.get_running_loop()
        limit = loop.time() + self._patience_s
        while not holds():
            if loop.time() > limit:
                self.fail(demand, f"nothing of it within {self._patience_s:g} s", line)
            await line.time(FRAME_MS / 1000)

    def only(self, line: Line, kind: type[E], demand: str) -> E:
        """The one event of this kind; another number of them does not conform."""
        found = line.all(kind)
        self.need(len(found) == 1, demand, found, line)
        return found[0]

    def need(self, holds: object, demand: str, got: object = "", line: Line | None = None) -> None:
        """Something that the port demands."""
        if not holds:
            self.fail(demand, got, line)

    def fail(self, demand: str, got: object, line: Line | None = None) -> NoReturn:
        """Raises NonConforming."""
        told = "" if line is None else f"\n  told: {brief(line.events)}"
        raise NonConforming(f"the port demands: {demand}\n  got: {got}{told}")
