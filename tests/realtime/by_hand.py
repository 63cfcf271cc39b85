"""A provider whose every word is a test's: it records what it is told and says what `say` gives it.

For orders that no well-behaved model produces. It answers a CutOutput at once, as the port asks;
all else, a response to a request included, is up to the test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tests.realtime.sessions import built
from voxglove.core.agent import Agent
from voxglove.core.errors import StoreError
from voxglove.core.messages import Message, ToolCall
from voxglove.core.stores.memory import MemoryStore
from voxglove.core.tool import Tool
from voxglove.realtime.commands import CutOutput, ProviderCommand, SendAudio
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.events import (
    LOST,
    Audio,
    Closed,
    Interrupted,
    ItemDone,
    Opened,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    ToolCalls,
    UserTurn,
    Words,
)
from voxglove.realtime.port import Capabilities, Emit, Setup
from voxglove.realtime.scripted import ABLE
from voxglove.realtime.session import RealtimeSession
from voxglove.realtime.session_events import SessionEvent, SessionProblem

C = TypeVar("C", bound=ProviderCommand)
E = TypeVar("E")


class HandAdapter:
    """A RealtimeAdapter. `connect_s`: a connection takes so long to open."""

    provider = "hand"
    model = "hand-1"

    def __init__(self, capabilities: Capabilities = ABLE, *, connect_s: float = 0.0) -> None:
        self.capabilities = capabilities
        self.connect_s = connect_s
        self.connections: list[HandConnection] = []
        self.setups: list[Setup] = []

    async def connect(self, setup: Setup, emit: Emit, group: asyncio.TaskGroup) -> HandConnection:
        self.setups.append(setup)
        await asyncio.sleep(self.connect_s)
        resumed = setup.resume_handle is not None
        emit(Opened(f"hand-{len(self.connections) + 1}", resumed=resumed))
        connection = HandConnection(emit, setup)
        self.connections.append(connection)
        return connection


class HandConnection:
    """A Connection."""

    def __init__(self, emit: Emit, setup: Setup) -> None:
        self._emit = emit
        self.setup = setup
        self.commands: list[ProviderCommand] = []
        self.heard = bytearray()
        self.is_open = True

    def tell(self, command: ProviderCommand) -> None:
        if isinstance(command, SendAudio):
            self.heard += command.pcm
            return
        self.commands.append(command)
        if isinstance(command, CutOutput):
            self.say(Interrupted())

    @property
    def sent(self) -> int:
        """Samples of the caller that it was sent."""
        return len(self.heard) // 2

    async def close(self) -> None:
        self.drop("1000", clean=True)

    def say(self, *events: RealtimeEvent) -> None:
        for event in events:
            if self.is_open:
                self._emit(event)

    def drop(self, code: str = "1006", *, clean: bool = False) -> None:
        """The connection ends by itself."""
        if self.is_open:
            self.is_open = False
            self._emit(Closed(code, clean=clean))


class RoughStore(MemoryStore):
    """A store that fails the next `fails` writes, after it did them where `late` says so, and
    takes `slow_s` for each."""

    fails = 0
    late = False
    slow_s = 0.0

    async def append_messages(self, messages: Sequence[Message]) -> None:
        await asyncio.sleep(self.slow_s)
        if not self.fails:
            await super().append_messages(messages)
            return
        self.fails -= 1
        if self.late:
            await super().append_messages(messages)
        raise StoreError("the disk is full")


@dataclass
class ByHand:
    """A session and its provider."""

    session: RealtimeSession
    agent: Agent
    adapter: HandAdapter
    events: list[SessionEvent] = field(default_factory=list)

    @property
    def wire(self) -> HandConnection:
        """The newest connection."""
        return self.adapter.connections[-1]

    def all(self, kind: type[E]) -> list[E]:
        """What the session told of this kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def problems(self) -> list[str]:
        return [event.code for event in self.all(SessionProblem)]

    def told(self, kind: type[C]) -> list[C]:
        """What the newest connection was told of this kind."""
        return [command for command in self.wire.commands if isinstance(command, kind)]

    async def texts(self) -> list[str]:
        """Everything in history that somebody said, in order."""
        messages = await self.agent.store.get_messages()
        return [one.text for one in messages if one.text and not one.is_tool_results]

    # ---- what a provider says

    def turn(self, item: str, text: str | None) -> None:
        """A turn of the user is taken; its words come with it unless there are None."""
        self.wire.say(UserTurn(item))
        if text is not None:
            self.wire.say(Words("user", item, text, True))

    def begins(self, response: str, item: str, text: str, *, request: str = "", s: float = 1.0):  # type: ignore[no-untyped-def]
        """A response begins to speak; `s` seconds of its sound come at once."""
        self.wire.say(ResponseStarted(response, request), Words("assistant", item, text))
        if s:
            self.wire.say(Audio(item, bytes(round(s * 24_000) * 2)))

    def ends(self, response: str, item: str = "", text: str = "") -> None:
        """It is over."""
        if item:
            self.wire.say(Words("assistant", item, text, True), ItemDone(item))
        self.wire.say(ResponseDone(response))

    def answers(self, response: str, item: str, text: str, *, request: str = "") -> None:
        """A whole response with one second of sound."""
        self.begins(response, item, text, request=request)
        self.ends(response, item, text)

    def calls(self, response: str, *names: str) -> None:
        """A response that calls tools without arguments, ids `call_<name>`."""
        calls = tuple(ToolCall(name, {}, f"call_{name}") for name in names)
        self.wire.say(ResponseStarted(response), ToolCalls(response, calls), ResponseDone(response))

    def breaks(self, *open_responses: str) -> None:
        """The connection breaks; its adapter closes what was open."""
        for response in open_responses:
            self.wire.say(ResponseDone(response, "cancelled", LOST))
        self.wire.drop()

    async def again(self) -> None:
        """Until another connection is open, and was told what it has to know."""
        async with asyncio.timeout(120):
            before = len(self.adapter.connections)
            while len(self.adapter.connections) == before or self.session.state != "open":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)


@asynccontextmanager
async def by_hand(
    *tools: Tool,
    adapter: HandAdapter | None = None,
    agent: Agent | None = None,
    config: SessionConfig | None = None,
    resume_handle: str | None = None,
) -> AsyncIterator[ByHand]:
    """An open session on a HandAdapter; stopped at the end."""
    adapter = adapter or HandAdapter()
    agent = agent or built(*tools)
    session = RealtimeSession(agent, adapter=adapter, config=config)
    found = ByHand(session, agent, adapter)
    session.listen(found.events.append)
    await session.start(resume_handle=resume_handle)
    try:
        yield found
    finally:
        await session.stop()


def unable(**changes: object) -> Capabilities:
    """ABLE with these fields changed."""
    return replace(ABLE, **changes)  # type: ignore[arg-type]
