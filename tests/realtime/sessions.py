"""A realtime session on the virtual clock with a scripted provider, and all that it told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np

from voxglove.core.agent import Agent
from voxglove.core.builder import Glove
from voxglove.core.config import AgentConfig
from voxglove.core.events import SubscriberEvent
from voxglove.core.messages import Message
from voxglove.core.store import Store
from voxglove.core.stores.memory import MemoryStore
from voxglove.core.tool import Tool
from voxglove.realtime.commands import ProviderCommand
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.factory import realtime_model
from voxglove.realtime.scripted import ScriptedAdapter, ScriptedConnection
from voxglove.realtime.session import RealtimeSession
from voxglove.realtime.session_events import SessionEvent, SessionProblem, StateChanged

FRAME_MS = 20


def built(
    *tools: Tool,
    store: Store | None = None,
    config: AgentConfig | None = None,
    prompt: str = "be brief",
) -> Agent:
    """An agent for calls."""
    builder = Glove(
        model=realtime_model(),
        system_prompt=prompt,
        store=store or MemoryStore("call"),
        config=config or AgentConfig(builtin_tools=()),
    )
    for tool in tools:
        builder.fold(tool)
    return builder.build()


@dataclass
class Held:
    """A session under test."""

    session: RealtimeSession
    agent: Agent
    adapter: ScriptedAdapter
    events: list[SessionEvent] = field(default_factory=list)
    subscribed: list[SubscriberEvent] = field(default_factory=list)

    @property
    def states(self) -> list[str]:
        return [event.state for event in self.events if isinstance(event, StateChanged)]

    @property
    def problems(self) -> list[SessionProblem]:
        return [event for event in self.events if isinstance(event, SessionProblem)]

    @property
    def wire(self) -> ScriptedConnection:
        """The newest connection."""
        return self.adapter.current

    def commands(self, kind: type[ProviderCommand]) -> list[ProviderCommand]:
        """What the newest connection was told of this kind."""
        return [command for command in self.wire.commands if isinstance(command, kind)]

    async def history(self) -> list[Message]:
        return await self.agent.store.get_messages()

    async def texts(self) -> list[tuple[str, str]]:
        """(sender, text) of everything in history that is a turn of somebody."""
        return [
            (one.sender, one.text)
            for one in await self.history()
            if one.text and not one.tool_results and not one.framework_context
        ]

    async def silence(self, seconds: float) -> None:
        """The caller says nothing, in real time."""
        await self.sound(np.zeros(round(seconds * self._rate), np.int16))

    async def talk(self, text: str, seconds: float = 1.0) -> None:
        """The caller says `text`, and then nothing for long enough to end the turn."""
        start = len(self.wire.heard) // 2 * 1000 // self._rate
        self.wire.user_says(text, start, start + round(seconds * 1000))
        await self.sound(_voice(seconds, self._rate))
        await self.silence(0.7)

    async def sound(self, samples: np.ndarray[tuple[int, ...], np.dtype[np.int16]]) -> None:
        """The caller's sound, in real time."""
        size = self._rate * FRAME_MS // 1000
        for at in range(0, len(samples), size):
            self.session.send_audio(samples[at : at + size].tobytes())
            await asyncio.sleep(FRAME_MS / 1000)

    async def until(self, holds: Callable[[], object], limit_s: float = 30.0) -> None:
        """Wait until something holds."""
        for _ in range(round(limit_s * 100)):
            if holds():
                return
            await asyncio.sleep(0.01)
        raise TimeoutError(f"it did not hold within {limit_s:g} s")

    async def rest(self, seconds: float = 1.0) -> None:
        """Let time pass without any sound of the caller."""
        await asyncio.sleep(seconds)

    @property
    def _rate(self) -> int:
        return self.adapter.capabilities.input_format.rate


def _voice(seconds: float, rate: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    time = np.arange(round(seconds * rate)) / rate
    return (np.sin(2 * np.pi * 300 * time) * 8_000).astype(np.int16)


@asynccontextmanager
async def held(
    adapter: ScriptedAdapter | None = None,
    *,
    agent: Agent | None = None,
    tools: Sequence[Tool] = (),
    config: SessionConfig | None = None,
    resume_handle: str | None = None,
) -> AsyncIterator[Held]:
    """An open session; stopped at the end."""
    adapter = adapter or ScriptedAdapter()
    agent = agent or built(*tools)
    session = RealtimeSession(agent, adapter=adapter, config=config)
    found = Held(session, agent, adapter)
    session.listen(found.events.append)
    session.add_subscriber(found.subscribed.append)
    await session.start(resume_handle=resume_handle)
    try:
        yield found
    finally:
        await session.stop()
