"""The official SDK against the simulated OpenAI realtime model: whole sessions, strictly typed."""

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
import pytest
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from tests.simulators import tone_words
from tests.simulators.openai_realtime import OpenAIRealtimeServer, openai_realtime
from tests.simulators.openai_realtime_types import unknown_fields
from tests.simulators.realtime_script import Asked, Reply, Script

pytestmark = pytest.mark.real_loop
MODEL = "gpt-realtime-2"
RATE = 24_000
FAST = 50.0
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
        """The event of this type that comes next, or the so-manieth."""
        while True:
            event = await self.next()
            times -= event["type"] == kind
            if not times:
                return event

    async def setup(self, **session: Any) -> Event:
        """Send a session.update and wait for its answer."""
        await self.sdk.session.update(session={"type": "realtime", **session})  # type: ignore[typeddict-item]
        return (await self.until("session.updated"))["session"]  # type: ignore[no-any-return]

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


def answering(*replies: Reply, asked: list[Asked] | None = None) -> Callable[[Asked], Reply]:
    """An answer that gives these replies one after another."""
    rest = list(replies)

    def answer(question: Asked) -> Reply:
        if asked is not None:
            asked.append(question)
        return rest.pop(0)

    return answer


async def test_official_sdk_completes_a_session_by_voice() -> None:
    async with session(Script(speed=FAST)) as client:
        assert (await client.next())["type"] == "session.created"
        transcription = {"model": "gpt-4o-transcribe"}
        told = await client.setup(audio={"input": {"transcription": transcription}})
        assert told["audio"]["input"]["transcription"] == transcription
        assert told["audio"]["input"]["turn_detection"]["type"] == "server_vad"
        await client.push("alpha bravo", silence_ms=700)
        done = await client.until("response.done")
        assert done["response"]["status"] == "completed"
        assert client.heard() == "echo alpha bravo"
        assert client.server.turns == ["alpha bravo"]
        assert client.server.items() == [("user", "alpha bravo"), ("assistant", "echo alpha bravo")]
        assert client.server.violations == []
        assert client.types() == [
            *("session.created", "session.updated"),
            *("input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"),
            *("input_audio_buffer.committed", "conversation.item.added", "conversation.item.done"),
            "conversation.item.input_audio_transcription.delta",
            "conversation.item.input_audio_transcription.completed",
            *("response.created", "rate_limits.updated", "response.output_item.added"),
            *("conversation.item.added", "response.content_part.added"),
            *_spoken(client),
            *("response.output_audio.done", "response.output_audio_transcript.done"),
            *("response.content_part.done", "response.output_item.done"),
            *("conversation.item.done", "response.done"),
        ]


def _spoken(client: Client) -> list[str]:
    """The deltas of speech as they came: words and sound interleave freely."""
    deltas = ("response.output_audio.delta", "response.output_audio_transcript.delta")
    return [one for one in client.types() if one in deltas]
