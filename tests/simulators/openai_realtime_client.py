"""The official SDK as a client of the simulated OpenAI realtime model, for tests.

Every event that it gets is judged by the SDK's types, unknown fields included, before a test sees
it.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import openai
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from websockets.asyncio.client import connect

from tests.simulators import tone_words
from tests.simulators.openai_realtime import OpenAIRealtimeServer, openai_realtime
from tests.simulators.openai_realtime_types import unknown_fields
from tests.simulators.realtime_script import Asked, Reply, Script

MODEL = "gpt-realtime-2"
RATE = 24_000
FAST = 50.0
BEARER = "Bearer test-key"
Event = dict[str, Any]


@dataclass
class Client:
    """The SDK's connection; every event is checked by the SDK's types before a test sees it."""

    sdk: AsyncRealtimeConnection
    server: OpenAIRealtimeServer
    seen: list[Event] = field(default_factory=list)

    async def next(self) -> Event:
        async with asyncio.timeout(5):
            event = json.loads(await self.sdk.recv_bytes())
        assert unknown_fields(event) == []
        self.seen.append(event)
        return dict(event)

    async def until(self, kind: str, times: int = 1) -> Event:
        """The event of this type that comes next, or the one so many later."""
        while True:
            event = await self.next()
            times -= event["type"] == kind
            if not times:
                return event

    async def setup(self, **session: Any) -> Event:
        """Send a session.update and wait for its answer."""
        settings: Any = {"type": "realtime", **session}
        await self.sdk.session.update(session=settings)
        return dict((await self.until("session.updated"))["session"])

    async def item(self, **item: Any) -> Event:
        """Send a conversation item and wait until it is there."""
        given: Any = item
        await self.sdk.conversation.item.create(item=given)
        return dict((await self.until("conversation.item.done"))["item"])

    async def ask(self, **response: Any) -> Event:
        """Ask for a response and wait for its end."""
        params: Any = response
        await self.sdk.response.create(response=params)
        return dict((await self.until("response.done"))["response"])

    async def push(self, text: str, silence_ms: int = 0, piece_ms: int = 100) -> None:
        """Speak, and be silent after it."""
        silence = np.zeros(RATE * silence_ms // 1_000, np.int16)
        pcm = np.concatenate([tone_words.speak(text, RATE), silence]).tobytes()
        size = RATE * 2 * piece_ms // 1_000
        for at in range(0, len(pcm), size):
            audio = base64.b64encode(pcm[at : at + size]).decode()
            await self.sdk.input_audio_buffer.append(audio=audio)

    def types(self) -> list[str]:
        """Of the events so far, repeated deltas told once."""
        kinds = [event["type"] for event in self.seen]
        return [one for at, one in enumerate(kinds) if at == 0 or kinds[at - 1] != one]

    def heard(self, item_id: str = "") -> str:
        """The words in the model's sound."""
        pcm = b"".join(
            base64.b64decode(event["delta"])
            for event in self.seen
            if event["type"] == "response.output_audio.delta"
            and event["item_id"].startswith(item_id)
        )
        return " ".join(tone_words.read(pcm, RATE))

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.seen if event["type"] == kind]


@asynccontextmanager
async def session(script: Script, **options: Any) -> AsyncIterator[Client]:
    """A server, and the official SDK connected to it."""
    async with openai_realtime(script, **options) as server:
        async with (
            openai.AsyncOpenAI(api_key="test-key", base_url=server.http + "/v1") as sdk,
            sdk.realtime.connect(model=MODEL) as connection,
        ):
            yield Client(connection, server)
        assert server.faults == []


@asynccontextmanager
async def bare_session(script: Script, **options: Any) -> AsyncIterator[Client]:
    """The same on a socket of our own: the SDK's HTTP client is slow to make."""
    async with openai_realtime(script, **options) as server:
        url, headers = f"{server.origin}/v1/realtime?model={MODEL}", {"Authorization": BEARER}
        async with connect(url, additional_headers=headers, close_timeout=0.2) as socket:
            yield Client(AsyncRealtimeConnection(socket), server)
        assert server.faults == []


def answering(*replies: Reply, asked: list[Asked] | None = None) -> Callable[[Asked], Reply]:
    """An answer that gives these replies one after another."""
    rest = list(replies)

    def answer(question: Asked) -> Reply:
        if asked is not None:
            asked.append(question)
        return rest.pop(0)

    return answer


def user(text: str) -> Event:
    """A typed message of the user."""
    return {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": text}],
    }
