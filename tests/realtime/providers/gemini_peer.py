"""A bare client of the Gemini Live wire, for tests that must send what no SDK would send."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
from google.genai import types
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.simulators import tone_words
from tests.simulators.gemini_live import KEY, GeminiLive
from tests.simulators.gemini_live_setup import GENERATIONS

Json = dict[str, object]
PATH = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
PAUSE_MS = 700


def setup_for(server: GeminiLive, **fields: object) -> Json:
    """A setup with both transcripts, and whatever `fields` add or replace."""
    model = GENERATIONS[server.record.generation].models[0]
    transcripts: Json = {"inputAudioTranscription": {}, "outputAudioTranscription": {}}
    return {"model": f"models/{model}", **transcripts, **fields}


def audio(pcm: bytes, rate: int = 16_000) -> Json:
    blob = {"mimeType": f"audio/pcm;rate={rate}", "data": base64.b64encode(pcm).decode()}
    return {"realtimeInput": {"audio": blob}}


def content(message: Json) -> dict[str, object]:
    """The serverContent of a message, empty where it has none."""
    found = message.get("serverContent", {})
    assert isinstance(found, dict)
    return found


@dataclass(slots=True)
class Peer:
    """One connection. `seen` holds all that came."""

    socket: ClientConnection
    seen: list[Json] = field(default_factory=list)

    async def send(self, message: object) -> None:
        await self.socket.send(json.dumps(message))

    async def next(self) -> Json:
        frame = await self.socket.recv()
        assert isinstance(frame, bytes), "the provider answers in binary frames"
        message: Json = json.loads(frame)
        self.seen.append(message)
        return message

    async def until(self, wanted: str | Callable[[Json], object]) -> list[Json]:
        """Everything up to the message with this key (of the message or its serverContent)."""
        got: list[Json] = []
        while True:
            got.append(await self.next())
            last = got[-1]
            if wanted(last) if callable(wanted) else wanted in last or wanted in content(last):
                return got

    async def speak(self, text: str, rate: int = 16_000, pause_ms: int = PAUSE_MS) -> None:
        """Words and a pause, in pieces of 100 ms, as fast as they go out."""
        pause = np.zeros(rate * pause_ms // 1000, np.int16)
        pcm = np.concatenate([tone_words.speak(text, rate), pause]).tobytes()
        for at in range(0, len(pcm), rate // 5):
            await self.send(audio(pcm[at : at + rate // 5], rate))

    async def refused(self) -> tuple[int, str]:
        """Close code and reason; other messages may come first."""
        try:
            while True:
                await self.next()
        except ConnectionClosed as closed:
            assert closed.rcvd is not None, "no close frame came"
            return closed.rcvd.code, closed.rcvd.reason


@asynccontextmanager
async def dialled(
    server: GeminiLive, path: str = f"{PATH}?key={KEY}", headers: dict[str, str] | None = None
) -> AsyncIterator[Peer]:
    """A socket, before setup."""
    address = server.origin + path
    async with connect(address, additional_headers=headers, ping_interval=None) as socket:
        yield Peer(socket)


@asynccontextmanager
async def opened(server: GeminiLive, **fields: object) -> AsyncIterator[Peer]:
    """A session that was set up."""
    async with dialled(server) as peer:
        await peer.send({"setup": setup_for(server, **fields)})
        assert "setupComplete" in await peer.next()
        yield peer


def assert_clean(server: GeminiLive) -> None:
    """The client did nothing wrong, nor the simulator; every message is one that the SDK knows to
    the last field."""
    assert server.violations == []
    assert server.faults == []
    for wire in server.wires:
        for message in wire.sent:
            types.LiveServerMessage.model_validate(message)


def sound_of(messages: list[Json]) -> list[str]:
    """The words that the model's sound says."""
    pcm = b""
    for message in messages:
        turn = content(message).get("modelTurn")
        if isinstance(turn, dict):
            pcm += b"".join(base64.b64decode(p["inlineData"]["data"]) for p in turn["parts"])
    return tone_words.read(pcm, 24_000)


def words_of(messages: list[Json], kind: str) -> str:
    """A transcript, put together."""
    told = (content(message).get(kind) for message in messages)
    return "".join(str(one["text"]) for one in told if isinstance(one, dict))


def order_of(messages: list[Json]) -> list[str]:
    """What came, in order: keys of messages and of their serverContent, repeats once."""
    kinds: list[str] = []
    for message in messages:
        keys = content(message) or message
        kinds += [key for key in keys if kinds[-1:] != [key]]
    return kinds
