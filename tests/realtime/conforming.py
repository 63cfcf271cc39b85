"""Peers of the conformance suite: the scripted provider, and the three simulators as providers.

A simulator hears for itself, so what a user says goes in as sound of the connection; what its model
says next is planned here. An example of what an adapter's author has to write.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import numpy as np
from websockets.protocol import State

from tests.realtime.received import Provider, Received
from tests.realtime.rigs import simulated
from tests.simulators import tone_words
from tests.simulators.gemini_live_setup import GENERATIONS, GenerationName
from tests.simulators.openai_realtime import OpenAIRealtimeServer
from tests.simulators.realtime_script import Asked, Call, Fault, Reply, Script
from tests.simulators.realtime_server import Wire
from voxglove.adapters.errors import AdapterError, ConnectionFailed, CredentialsRejected
from voxglove.core.messages import ToolCall
from voxglove.realtime import scripted
from voxglove.realtime.commands import (
    AppendContext,
    ForgetBefore,
    SendAudio,
    SendText,
    SendToolResults,
)
from voxglove.realtime.conformance import MakePeer
from voxglove.realtime.factory import create_realtime_adapter
from voxglove.realtime.port import Connection, RealtimeAdapter

FRAME_MS = 20
PAUSE_S = 0.9


class Planned:
    """What the model says next; afterwards one word to results and requests, and nothing else."""

    def __init__(self) -> None:
        self.next: Reply | None = None

    def __call__(self, asked: Asked) -> Reply:
        if asked.by == "context":
            return Reply()
        if asked.by == "speech":
            reply, self.next = self.next or Reply(), None
            return reply
        return Reply(text="golf")


class SimulatedPeer:
    """A Peer over a simulator."""

    def __init__(
        self, received: Received, adapter: RealtimeAdapter, script: Script, planned: Planned
    ) -> None:
        self.adapter = adapter
        self.holds_results = adapter.capabilities.update_tools == "live"  # of Gemini, the newest
        self._received = received
        self._script = script
        self._planned = planned

    async def user_says(self, connection: Connection, text: str) -> None:
        await self._say(connection, text)

    async def speak(self, connection: Connection, text: str) -> int:
        self._planned.next = Reply(text=text)
        await self._say(connection, "tango")
        return tone_words.duration_ms(text)

    async def call_tools(self, connection: Connection, calls: Sequence[ToolCall]) -> None:
        self._planned.next = Reply(
            calls=tuple(Call(name=one.tool_name, arguments=dict(one.input_args)) for one in calls)  # type: ignore[call-overload]
        )
        await self._say(connection, "sierra")

    async def interrupt(self, connection: Connection) -> None:
        await self._say(connection, "papa quebec")

    async def drop(self) -> None:
        self._wires[-1].reset()

    async def close(self, code: int, reason: str) -> None:
        await self._wires[-1].socket.close(code, reason)

    def refuse(self, status: int) -> None:
        self._script.faults.append(
            Fault(point="connect", action="refuse", code=status, connection=0)
        )

    def received(self) -> str:
        return self._received.sent_text()

    def sound(self) -> bytes:
        found = bytearray()
        for wire in self._wires:
            for frame in wire.received:
                found += _sound(frame)
        return bytes(found)

    def results(self) -> Sequence[tuple[str, str]]:
        return self._received.results

    def knows(self) -> str:
        server = self._received.server
        items = server.items() if isinstance(server, OpenAIRealtimeServer) else server.conversation
        return "\n".join(text for _, text in items)

    def open_connections(self) -> int:
        return sum(wire.socket.state is State.OPEN for wire in self._wires)

    @property
    def _wires(self) -> Sequence[Wire]:
        return self._received.wires

    async def _say(self, connection: Connection, text: str) -> None:
        rate = self.adapter.capabilities.input_format.rate
        pause = np.zeros(round(PAUSE_S * rate), np.int16)
        sound = np.concatenate([tone_words.speak(text, rate), pause])
        size = rate * FRAME_MS // 1000
        for at in range(0, len(sound), size):
            connection.tell(SendAudio(sound[at : at + size].tobytes()))
            await asyncio.sleep(FRAME_MS / 1000)


def simulated_peer(provider: Provider, generation: GenerationName = "3.8") -> MakePeer:
    """Makes peers of one provider's simulator."""

    @asynccontextmanager
    async def make() -> AsyncIterator[SimulatedPeer]:
        planned = Planned()
        script = Script(answer=planned, speed=1.0)
        async with simulated(provider, script, generation) as (server, address):
            model = GENERATIONS[generation].models[0] if provider == "gemini" else None
            adapter = create_realtime_adapter(
                provider, model=model, api_key="test-key", base_url=address, env={}
            )
            yield SimulatedPeer(Received(provider, server), adapter, script, planned)

    return make


def _sound(frame: dict[str, object]) -> bytes:
    """The caller's sound in one frame of any of the providers."""
    given = frame.get("realtimeInput")
    if isinstance(given, dict):
        data = given.get("audio", {}).get("data", b"")
        return data if isinstance(data, bytes) else base64.b64decode(data)
    if str(frame.get("type", "")).endswith(("input_audio_buffer.append", "input_audio.append")):
        return base64.b64decode(str(frame["audio"]))
    return b""


# ---- the scripted provider


class ScriptedPeer:
    """A Peer over the scripted provider, which is adapter and provider in one."""

    def __init__(self) -> None:
        self._next: scripted.Reply | None = None
        self._heard: list[str] = []
        self.scripted = scripted.ScriptedAdapter(self._answer, speed=1.0)
        self.under_test: RealtimeAdapter = self.scripted
        self.holds_results = True

    def _answer(self, asked: scripted.Asked) -> scripted.Reply:
        if asked.by == "speech":
            reply, self._next = self._next or scripted.Reply(), None
            return reply
        return scripted.Reply(text="golf")

    @property
    def adapter(self) -> RealtimeAdapter:
        return self.under_test

    async def user_says(self, connection: Connection, text: str) -> None:
        wire = self.scripted.current if connection is self.scripted.current else connection
        assert isinstance(wire, scripted.ScriptedConnection)
        rate = self.scripted.capabilities.input_format.rate
        self._heard.append(text)
        start = len(wire.heard) // 2 * 1000 // rate
        wire.user_says(text, start, start + 400)
        frame = bytes(rate * FRAME_MS // 1000 * 2)
        for _ in range(round(1400 / FRAME_MS)):
            connection.tell(SendAudio(frame))
            await asyncio.sleep(FRAME_MS / 1000)

    async def speak(self, connection: Connection, text: str) -> int:
        self._next = scripted.Reply(text=text)
        await self.user_says(connection, "tango")
        return 240 * len(text.split())

    async def call_tools(self, connection: Connection, calls: Sequence[ToolCall]) -> None:
        self._next = scripted.Reply(calls=tuple(calls))
        await self.user_says(connection, "sierra")

    async def interrupt(self, connection: Connection) -> None:
        await self.user_says(connection, "papa")

    async def drop(self) -> None:
        self.scripted.current.drop()

    async def close(self, code: int, reason: str) -> None:
        self.scripted.current.drop(str(code), reason)

    def refuse(self, status: int) -> None:
        error: AdapterError = ConnectionFailed(str(status), "refused")
        self.scripted.refuse(CredentialsRejected("401", "no") if status == 401 else error)

    def received(self) -> str:
        told = [(one.setup, one.commands) for one in self.scripted.connections]
        return json.dumps(told, default=str)

    def sound(self) -> bytes:
        return b"".join(bytes(one.heard) for one in self.scripted.connections)

    def results(self) -> Sequence[tuple[str, str]]:
        return [
            (output.call_id, output.text)
            for connection in self.scripted.connections
            for command in connection.commands
            if isinstance(command, SendToolResults)
            for output in command.outputs
        ]

    def knows(self) -> str:
        """What the newest connection was told, as a provider that can do all would hold it."""
        texts = {message.id: message.text for message in self.scripted.current.setup.history}
        texts |= {text: text for text in self._heard}
        for number, command in enumerate(self.scripted.current.commands):
            match command:
                case AppendContext(text, key):
                    texts[key or str(number)] = text
                case SendText(text):
                    texts[str(number)] = text
                case ForgetBefore(summary):
                    texts = {"summary": summary}
                case _:
                    pass
        return "\n".join(texts.values())

    def open_connections(self) -> int:
        return len(self.scripted.open_now)


@asynccontextmanager
async def scripted_peer() -> AsyncIterator[ScriptedPeer]:
    """Makes peers that are the scripted provider."""
    yield ScriptedPeer()
