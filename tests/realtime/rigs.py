"""A session on each provider's simulator, and what can be asked of it alike for all of them.

`rig(provider)` holds a call on the virtual loop: a caller who speaks in tone words in real time,
an agent, a session, and the strict simulator at the other end of a loopback socket. `Received` is
what really went over the wire, and reads it without the provider's words.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from tests.realtime.received import PROVIDERS, Provider, Received, Simulator
from tests.realtime.sessions import built
from tests.simulators import tone_words
from tests.simulators.gemini_live import gemini_live
from tests.simulators.gemini_live_setup import GENERATIONS, GenerationName
from tests.simulators.gpt_live import gpt_live
from tests.simulators.openai_realtime import openai_realtime
from tests.simulators.realtime_script import Asked, Reply, Script
from voxglove.core.agent import Agent
from voxglove.core.events import SubscriberEvent
from voxglove.core.messages import Message
from voxglove.core.tool import Tool
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.events import Audio
from voxglove.realtime.factory import create_realtime_adapter
from voxglove.realtime.playback import Playback
from voxglove.realtime.port import Capabilities, RealtimeAdapter
from voxglove.realtime.session import RealtimeSession
from voxglove.realtime.session_events import SessionEvent, SessionProblem, StateChanged

__all__ = ["PROVIDERS", "Answer", "Provider", "Rig", "quiet", "rig", "simulated"]

Answer = Callable[[Asked], Reply]
E = TypeVar("E")

FRAME_MS = 40


@dataclass
class Rig(Received):
    """One call; `asked` is everything that the simulated model was asked."""

    session: RealtimeSession
    agent: Agent
    asked: list[Asked] = field(default_factory=list)
    events: list[SessionEvent] = field(default_factory=list)
    subscribed: list[SubscriberEvent] = field(default_factory=list)

    # ---- the caller

    async def say(self, text: str) -> None:
        """The caller says `text` in tone words, and then nothing until his turn has ended."""
        await self._send(tone_words.speak(text, self._rate))
        await self.wait(0.7)

    async def wait(self, seconds: float) -> None:
        """The caller says nothing, in real time."""
        await self._send(np.zeros(round(seconds * self._rate), np.int16))

    async def until(self, holds: Callable[[], object], limit_s: float = 20.0) -> None:
        """The caller says nothing until something holds."""
        async with asyncio.timeout(limit_s):
            while not holds():
                await self.wait(FRAME_MS / 1000)

    async def rest(self, still_s: float = 1.5, limit_s: float = 20.0) -> None:
        """Until nobody speaks or works for `still_s`; the caller says nothing."""
        still = 0.0
        async with asyncio.timeout(limit_s):
            while still < still_s:
                await self.wait(0.1)
                session = self.session
                idle = session.state == "open" and not session.working and not session.speaking
                still = still + 0.1 if idle else 0.0

    # ---- what became of it

    @property
    def can(self) -> Capabilities:
        return self.session.adapter.capabilities

    @property
    def states(self) -> list[str]:
        return [event.state for event in self.events if isinstance(event, StateChanged)]

    @property
    def problems(self) -> list[SessionProblem]:
        return self.all(SessionProblem)

    def all(self, kind: type[E]) -> list[E]:
        """What the session told of this kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def heard(self) -> list[str]:
        """Words of the model that came out of the session, in order."""
        pcm = b"".join(event.pcm for event in self.all(Audio))
        return tone_words.read(pcm, self.can.output_format.rate)

    async def history(self) -> list[Message]:
        return await self.agent.store.get_messages()

    async def texts(self) -> list[tuple[str, str]]:
        """(sender, text) of everything in history that somebody said."""
        return [
            (one.sender, one.text)
            for one in await self.history()
            if one.text and not one.tool_results and not one.framework_context
        ]

    @property
    def _rate(self) -> int:
        return self.can.input_format.rate

    async def _send(self, samples: tone_words.Samples) -> None:
        size = self._rate * FRAME_MS // 1000
        for at in range(0, len(samples), size):
            if self.session.live:
                self.session.send_audio(samples[at : at + size].tobytes())
            await asyncio.sleep(FRAME_MS / 1000)


@asynccontextmanager
async def rig(
    provider: Provider,
    answer: Answer | None = None,
    *,
    tools: Sequence[Tool] = (),
    agent: Agent | None = None,
    config: SessionConfig | None = None,
    script: Script | None = None,
    start: bool = True,
    resume_handle: str | None = None,
    playback: Playback | None = None,
    env: Mapping[str, str] | None = None,
    adapt: Callable[[RealtimeAdapter], RealtimeAdapter] = lambda adapter: adapter,
    voice: str | None = None,
    generation: GenerationName = "3.8",
) -> AsyncIterator[Rig]:
    """An open session on `provider`'s simulator; stopped at the end. `adapt` may wrap its
    adapter; `generation` is of Gemini's models."""
    script = script or Script()
    wanted = answer or script.answer
    asked: list[Asked] = []

    def note(question: Asked) -> Reply:
        asked.append(question)
        return wanted(question)

    script.answer = note
    agent = agent or built(*tools)
    async with simulated(provider, script, generation) as (server, address):
        adapter = create_realtime_adapter(
            provider,
            model=GENERATIONS[generation].models[0] if provider == "gemini" else None,
            api_key="test-key",
            base_url=address,
            env=env or {},
            voice=voice,
        )
        session = RealtimeSession(agent, adapter=adapt(adapter), config=config, playback=playback)
        found = Rig(provider, server, session, agent, asked)
        session.listen(found.events.append)
        session.add_subscriber(found.subscribed.append)
        try:
            if start:
                await session.start(resume_handle=resume_handle)
            yield found
        finally:
            await session.stop()


@asynccontextmanager
async def simulated(
    provider: Provider, script: Script, generation: GenerationName = "3.8"
) -> AsyncIterator[tuple[Simulator, str]]:
    """The provider's simulator and the address for its adapter."""
    match provider:
        case "openai":
            async with openai_realtime(script) as openai:
                yield openai, f"{openai.origin}/v1"
        case "gemini":
            async with gemini_live(script, generation=generation) as gemini:
                yield gemini, gemini.origin
        case "gpt-live":
            async with gpt_live(script) as live:
                yield live, f"{live.origin}/v1"


def quiet(asked: Asked) -> Reply:
    """A model that answers speech and typed words with one word, and results with another."""
    said = {"speech": "echo", "text": "tango", "results": "golf", "request": "hotel"}
    return Reply(text=said.get(asked.by, ""))
