"""The fault matrix: one call for each provider and each moment at which a connection can die.

The caller and the model speak in tone words, so that what was lost and what came twice is known to
the word. `KILL_POINTS` is the data; `hold` plays one call and returns what is wrong with it, in
words. Printed by `make faults`, asserted by test_faults.py (DESIGN 5.6 to 5.8).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from tests.realtime.received import PROVIDERS, Provider
from tests.realtime.rigs import simulated
from tests.realtime.sessions import built
from tests.simulators import tone_words
from tests.simulators.realtime_script import Asked, Call, Fault, Reply, Script
from voxglove.core.agent import Agent
from voxglove.core.tool import ToolContext
from voxglove.core.tool import tool as as_tool
from voxglove.realtime.asks import GO_ON
from voxglove.realtime.factory import create_realtime_adapter
from voxglove.realtime.link import Reconnected
from voxglove.realtime.session import RealtimeSession
from voxglove.realtime.session_events import SessionEvent, SessionProblem

__all__ = ["KILL_POINTS", "PROVIDERS", "Held", "Provider", "hold"]

KILL_POINTS: dict[str, tuple[Fault, ...]] = {
    "before the first connection": (Fault(point="connect", action="refuse", code=503),),
    "in the setup": (Fault(point="setup", action="drop"),),
    "just opened": (Fault(point="opened", action="drop"),),
    "before the greeting sounds": (Fault(point="before_audio", action="drop"),),
    "in the greeting": (Fault(point="mid_audio", action="drop", nth=3),),
    "nobody speaks": (Fault(point="caller_silent", action="drop", nth=40),),
    "while the caller speaks": (Fault(point="caller_speaking", action="drop", nth=3),),
    "half-open while the caller speaks": (
        Fault(point="caller_speaking", action="half_open", nth=3),
    ),
    "as the caller stops": (Fault(point="caller_stopped", action="drop"),),
    "turn taken, words not told": (Fault(point="turn_taken", action="drop"),),
    "words told, no answer begun": (Fault(point="user_words", action="drop"),),
    "answer begun, no sound yet": (Fault(point="response_started", action="drop", nth=2),),
    "in the answer": (Fault(point="mid_audio", action="close", nth=14),),
    "half-open in the answer": (Fault(point="mid_audio", action="half_open", nth=14),),
    "silent in the answer": (Fault(point="mid_audio", action="stall", nth=14),),
    "answer over, not closed": (Fault(point="audio_done", action="drop", nth=2),),
    "after the answer": (Fault(point="response_done", action="drop", nth=2),),
    "as a tool is called": (Fault(point="tool_called", action="drop"),),
    "while a tool runs": (Fault(point="tool_running", action="drop"),),
    "as its result arrives": (Fault(point="tool_answered", action="drop"),),
    "as typed words arrive": (Fault(point="text_taken", action="drop"),),
    "twice: in the answer, and while it reconnects": (
        Fault(point="mid_audio", action="drop", nth=14),
        Fault(point="setup", action="drop", connection=2),
    ),
    "the provider goes away": (Fault(point="response_done", action="go_away", nth=2, seconds=8.0),),
}
"""Name -> what strikes. All on the first connection unless it says otherwise."""

GREETING = "hotel india"
ANSWERS = {
    "alpha bravo": "charlie delta echo foxtrot",
    "november": "oscar papa",
    "romeo sierra": "tango zero",
}
ASKS_TOOL, TOOL_SAYS, AFTER_TOOL = "kilo lima", "seven", "golf seven"
SPOKEN = ("alpha bravo", ASKS_TOOL, "november", "romeo sierra")
HEARD = f"{GREETING} {ANSWERS['alpha bravo']} {AFTER_TOOL} {ANSWERS['november']} tango zero"


@dataclass
class Held:
    """One call that was held under a fault."""

    provider: Provider
    point: str
    texts: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    tool_runs: int = 0
    results: int = 0
    struck: bool = False
    reconnected: list[Reconnected] = field(default_factory=list)
    problems: list[SessionProblem] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    failure: str = ""

    @property
    def wrong(self) -> list[str]:
        """What should not have happened, in words; empty when all is well."""
        found = [self.failure] if self.failure else []
        if not self.struck:
            found.append("the fault never struck")
        if self.texts != list(SPOKEN):
            found.append(f"the caller's turns in history are {self.texts}")
        if self.tool_runs != 1 or self.results != 1:
            found.append(f"the tool ran {self.tool_runs} times, with {self.results} results")
        counts = Counter(self.heard)
        wanted = HEARD.split()
        twice = [word for word, count in counts.items() if count > wanted.count(word)]
        lost = [word for word in dict.fromkeys(wanted) if counts[word] < wanted.count(word)]
        if len(twice) > 1 or "hotel" in twice:
            found.append(f"heard twice: {twice}")
        if len(lost) > 1:
            found.append(f"never heard: {lost}")
        found += self.violations
        return found


class Model:
    """What the simulated model says: a fixed conversation, gone on with after a break."""

    def __call__(self, asked: Asked) -> Reply:
        if asked.by == "results":
            return Reply(text=AFTER_TOOL)
        if asked.by == "context":
            return Reply()
        # A provider without requests gets the instruction as a text.
        wish = asked.instruction or asked.text
        if GO_ON[:20] in wish:
            return self._rest(asked)
        if "greet the caller" in wish:
            return Reply(text=GREETING)
        known = self._to(asked.text)
        return known if known != Reply() else self._latest(asked)

    def _to(self, text: str) -> Reply:
        said = next((known for known in (*ANSWERS, ASKS_TOOL) if known in text), "")
        if said == ASKS_TOOL:
            return Reply(calls=(Call(name="book", arguments={"word": "kilo"}),))
        return Reply(text=ANSWERS.get(said, ""))

    def _latest(self, asked: Asked) -> Reply:
        """An answer to the last thing in the conversation."""
        for role, text in reversed(asked.history):
            if TOOL_SAYS in text and "echo" not in text:
                return Reply(text=AFTER_TOOL)
            if role == "user" and self._to(text) != Reply():
                return self._to(text)
        return Reply()

    def _rest(self, asked: Asked) -> Reply:
        """The words of the answer that broke off which the conversation does not show yet."""
        shown = " ".join(text for role, text in asked.history if role == "assistant")
        for planned in (GREETING, *ANSWERS.values(), AFTER_TOOL):
            words = planned.split()
            count = next((n for n in range(len(words), 0, -1) if " ".join(words[:n]) in shown), 0)
            if 0 < count < len(words):
                return Reply(text=" ".join(words[count:]))
        return Reply()


class Caller:
    """Somebody who speaks in tone words, and waits for an answer and its end."""

    def __init__(self, session: RealtimeSession) -> None:
        self._session = session
        self._sound = 0
        session.on("audio", self._hear)
        self._rate = session.adapter.capabilities.input_format.rate

    async def say(self, text: str) -> None:
        """With the boundaries that a brain's own ear would tell."""
        self._session.user_speech(True)
        await self._send(tone_words.speak(text, self._rate))
        self._session.user_speech(False)

    async def wait(self, seconds: float) -> None:
        await self._send(np.zeros(round(seconds * self._rate), np.int16))

    async def answered(self, limit_s: float = 60.0) -> None:
        """Until something was heard, and then nobody speaks or works for 1.5 s; silence goes out
        all the while."""
        still, before = 0.0, self._sound
        for _ in range(round(limit_s * 10)):
            await self.wait(0.1)
            session = self._session
            idle = session.state == "open" and not session.working and not session.speaking
            idle = idle and self._sound > before
            still = still + 0.1 if idle else 0.0
            if still >= 1.5:
                return
        raise TimeoutError("the call never came to rest")

    def _hear(self, pcm: bytes, _: object) -> None:
        self._sound += len(pcm)

    async def _send(self, samples: tone_words.Samples) -> None:
        size = self._rate // 50
        for at in range(0, len(samples), size):
            self._session.send_audio(samples[at : at + size].tobytes())
            await asyncio.sleep(0.02)


async def hold(provider: Provider, point: str) -> Held:
    """Hold the call in which `point` strikes."""
    faults = [replace(fault) for fault in KILL_POINTS[point]]
    found = Held(provider, point)
    script = Script(answer=Model(), faults=faults)

    async def book(word: str, ctx: ToolContext) -> str:
        """Book a word."""
        found.tool_runs += 1
        await asyncio.sleep(0.3)
        return TOOL_SAYS

    agent = built(as_tool(book))
    async with simulated(provider, script) as (server, address):
        adapter = create_realtime_adapter(provider, api_key="test-key", base_url=address)
        session = RealtimeSession(agent, adapter=adapter)
        sound = bytearray()
        session.on("audio", lambda pcm, _: sound.extend(pcm))
        session.listen(lambda event: _note(found, event))
        try:
            async with asyncio.timeout(300):
                await session.start()
                await _conversation(session)
        except Exception as error:
            found.failure = f"{type(error).__name__}: {error}"
        finally:
            await session.stop()
        found.violations = list(server.violations)
        found.heard = tone_words.read(bytes(sound), adapter.capabilities.output_format.rate)
    found.struck = all(fault.done for fault in faults)
    await _history(found, agent)
    return found


async def _conversation(session: RealtimeSession) -> None:
    caller = Caller(session)
    session.respond("greet the caller")
    await caller.answered()
    for text in SPOKEN:
        if text == "november":
            typed = session.inject(kind="user", text=text)
            await caller.answered()
            assert typed.done(), "the typed turn never ended"
        else:
            await caller.say(text)
            await caller.answered()


async def _history(found: Held, agent: Agent) -> None:
    for message in await agent.store.get_messages():
        if message.is_user_turn:
            found.texts.append(message.text)
        found.results += len(message.tool_results)


def _note(found: Held, event: SessionEvent) -> None:
    if isinstance(event, Reconnected):
        found.reconnected.append(event)
    elif isinstance(event, SessionProblem):
        found.problems.append(event)
