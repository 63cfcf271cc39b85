"""A session on each provider's simulator, and what can be asked of it alike for all of them.

`rig(provider)` holds a call on the virtual loop: a caller who speaks in tone words in real time,
an agent, a session, and the strict simulator at the other end of a loopback socket. `received` is
what really went over the wire; the readers below it say it without the provider's words.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np

from tests.realtime.sessions import built
from tests.simulators import tone_words
from tests.simulators.gemini_live import GeminiLive, gemini_live
from tests.simulators.gemini_live_setup import GENERATIONS, GenerationName
from tests.simulators.gpt_live import GptLive, gpt_live
from tests.simulators.openai_realtime import OpenAIRealtimeServer, openai_realtime
from tests.simulators.realtime_script import Asked, Reply, Script
from tests.simulators.realtime_server import Json, Wire
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

Provider = Literal["openai", "gemini", "gpt-live"]
PROVIDERS: tuple[Provider, ...] = ("openai", "gemini", "gpt-live")
Simulator = OpenAIRealtimeServer | GeminiLive | GptLive
Answer = Callable[[Asked], Reply]
E = TypeVar("E")

FRAME_MS = 40


@dataclass
class Rig:
    """One call; `asked` is everything that the simulated model was asked."""

    provider: Provider
    server: Simulator
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

    # ---- what the simulator received

    @property
    def wires(self) -> Sequence[Wire]:
        """Every connection, oldest first."""
        net = self.server.running if isinstance(self.server, OpenAIRealtimeServer) else None
        return net.wires if net is not None else self.server.wires  # type: ignore[union-attr]

    def frames(self, connection: int | None = None) -> list[Json]:
        """Everything that came in, without sound; of one connection (from 1), or of all."""
        wires = self.wires if connection is None else [self.wires[connection - 1]]
        return [frame for wire in wires for frame in wire.received if not _is_sound(frame)]

    def sent_text(self) -> str:
        """All of that as one text, to look for what must not be in it."""
        return "\n".join(_plain(frame) for frame in self.frames())

    def place(self, *words: str, connection: int | None = None) -> int:
        """Where the first frame is that has all these words in it; fails without one."""
        for at, frame in enumerate(self.frames(connection)):
            if all(word in _plain(frame) for word in words):
                return at
        raise AssertionError(f"no frame with {words} among {self.frames(connection)}")

    def count(self, words: str) -> int:
        """How many frames have these words in them."""
        return sum(words in _plain(frame) for frame in self.frames())

    @property
    def results(self) -> list[tuple[str, str]]:
        """(call id, text) of every tool result that was sent for a call, in order."""
        found: list[tuple[str, str]] = []
        for wire in self.wires:
            seeded = {_at(frame, "item", "call_id") for frame in wire.received if _is_call(frame)}
            sent = (one for frame in wire.received for one in _results(frame))
            found += [one for one in sent if one[0] not in seeded]
        return found

    def seed(self, connection: int) -> list[tuple[str, str]]:
        """(role, text) of the conversation that a connection was begun with; a call and its result
        are ("call", name) and ("result", text) where the provider takes them as such."""
        return list(_seed(self.provider, self.frames(connection)))

    @property
    def tools(self) -> list[str]:
        """The names of tools in the newest setup or update."""
        for frame in reversed(self.frames()):
            if found := _tool_names(frame):
                return found
        return []

    def assert_clean(self) -> None:
        """The simulator had nothing to complain about, and nothing broke in it."""
        running = self.server.running if isinstance(self.server, OpenAIRealtimeServer) else None
        faults = running.faults if running is not None else self.server.faults
        assert list(self.server.violations) == []
        assert faults == []

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


# ---- frames without the provider's words


def _plain(frame: Json) -> str:
    return json.dumps(frame, default=repr)


def _is_sound(frame: Json) -> bool:
    if str(frame.get("type", "")).startswith("input_audio_buffer.append"):
        return True
    if frame.get("type") == "session.input_audio.append":
        return True
    given = frame.get("realtimeInput")
    return isinstance(given, dict) and "audio" in given


def _is_call(frame: Json) -> bool:
    return _at(frame, "item", "type") == "function_call"


def _results(frame: Json) -> Iterator[tuple[str, str]]:
    item = frame.get("item")
    if isinstance(item, dict) and item.get("type") == "function_call_output":
        yield item["call_id"], item["output"]
    answer = frame.get("toolResponse")
    if isinstance(answer, dict):
        for one in answer["functionResponses"]:
            yield one["id"], _plain(one["response"])


def _seed(provider: Provider, frames: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    if provider == "gpt-live":
        yield from _contents(_at(frames[0], "session", "input"))
    elif provider == "gemini":
        for frame in frames[1:2]:
            for turn in _list(_at(frame, "clientContent", "turns")):
                yield from _gemini_turn(turn)
    else:
        for frame in frames[1:]:
            if frame["type"] != "conversation.item.create":
                return
            yield from _contents([frame["item"]])


def _contents(items: object) -> Iterator[tuple[str, str]]:
    for item in _list(items):
        if item.get("type") == "function_call":
            yield "call", item["name"]
        elif item.get("type") == "function_call_output":
            yield "result", item["output"]
        elif item.get("role") != "system":
            yield item["role"], "".join(part.get("text", "") for part in _list(item["content"]))


def _gemini_turn(turn: dict[str, Any]) -> Iterator[tuple[str, str]]:
    role = "user" if turn["role"] == "user" else "assistant"
    for part in _list(turn["parts"]):
        if "functionCall" in part:
            yield "call", part["functionCall"]["name"]
        elif "functionResponse" in part:
            yield "result", _plain(part["functionResponse"]["response"])
        else:
            yield role, part["text"]


def _tool_names(frame: Json) -> list[str]:
    tools = (
        _at(frame, "session", "tools")
        or _at(frame, "session", "delegation", "responses", "tools")
        or _at(frame, "setup", "tools")
        or _at(frame, "contextUpdate", "tools", "tools")
    )
    names = [one["name"] for one in _list(tools) if "name" in one]
    declared = (one.get("functionDeclarations", ()) for one in _list(tools))
    return names + [one["name"] for some in declared for one in some]


def _at(frame: object, *path: str) -> object:
    for name in path:
        frame = frame.get(name) if isinstance(frame, dict) else None
    return frame


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
