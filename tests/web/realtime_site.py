"""A server whose calls are answered by a simulated realtime provider, all in one loop.

Real: the composition root, the doors, the session, the codec and its socket. The caller says tone
words (tests/simulators/tone_words.py), which the provider reads to the word; a detector by loudness
hears them where Silero would not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import aiohttp
import numpy as np
from aiohttp import web

from tests.simulators import tone_words
from tests.simulators.gemini_live import GeminiLive, gemini_live
from tests.simulators.gpt_live import GptLive, gpt_live
from tests.simulators.openai_realtime import OpenAIRealtimeServer, openai_realtime
from tests.simulators.realtime_script import Script
from tests.web.client import Client
from voxglove.core.agent import Agent
from voxglove.core.builder import Glove
from voxglove.core.factory import CallInfo
from voxglove.core.tool import Tool
from voxglove.media.pcm import Samples
from voxglove.media.vad.energy import EnergyVad
from voxglove.realtime.factory import realtime_model
from voxglove.web.app import Behind, create_app
from voxglove.web.build import Shared, call_factory, open_shared
from voxglove.web.config import Config, PartConfig, ServerConfig
from voxglove.web.config_webrtc import WebRtcSection
from voxglove.web.server import SERVER, Server
from voxglove.web.stores import IN_MEMORY, Stores

Provider = Literal["openai", "gemini", "gpt-live"]
Simulator = OpenAIRealtimeServer | GeminiLive | GptLive
PROVIDERS: tuple[Provider, ...] = ("openai", "gemini", "gpt-live")
KEY = "test-key"
ENV = {"OPENAI_API_KEY": KEY, "GEMINI_API_KEY": KEY}
RATE = 16_000


@asynccontextmanager
async def simulator(provider: Provider, script: Script) -> AsyncIterator[Simulator]:
    """The provider on loopback; what went wrong inside it fails the test that used it."""
    async with AsyncExitStack() as stack:
        running: Simulator
        match provider:
            case "openai":
                running = await stack.enter_async_context(openai_realtime(script))
            case "gemini":
                running = await stack.enter_async_context(gemini_live(script))
            case "gpt-live":
                running = await stack.enter_async_context(gpt_live(script))
        yield running
    assert running.faults == []


def base_url(provider: Provider, running: Simulator) -> str:
    """Where `brain.base_url` points to."""
    return running.origin if provider == "gemini" else f"{running.origin}/v1"


def agent_factory(*tools: Tool, prompt: str = "Be brief.") -> Callable[[CallInfo], Agent]:
    """An agent with `tools`, in the call's store."""

    def factory(info: CallInfo) -> Agent:
        builder = Glove(model=realtime_model(), system_prompt=prompt, store=info.store)
        for tool in tools:
            builder.fold(tool)
        return builder.build()

    return factory


@dataclass
class RealtimeSite:
    """The running server, its provider and an HTTP client."""

    url: str
    http: aiohttp.ClientSession
    server: Server
    provider: Simulator
    shared: Shared
    call_id: str = ""

    async def connect(self) -> Client:
        """A new call over /ws, at its `ready`."""
        async with self.http.post(f"{self.url}/session", json={}) as answer:
            assert answer.status == 201, await answer.text()
            offer = await answer.json()
        self.call_id = str(offer["call_id"])
        client = Client(await self.http.ws_connect(offer["ws_url"], max_msg_size=0))
        await client.until_kind("ready")
        return client


@asynccontextmanager
async def realtime_site(
    provider: Provider,
    script: Script,
    *,
    tools: Sequence[Tool] = (),
    factory: Callable[[CallInfo], Agent] | None = None,
    stores: Stores = IN_MEMORY,
    options: dict[str, object] | None = None,
    **sections: object,
) -> AsyncIterator[RealtimeSite]:
    """Serve calls on `provider`. `options` go into `brain`, `sections` into the configuration."""
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(simulator(provider, script))
        given = {"base_url": base_url(provider, running), **(options or {})}
        config = Config(
            **{  # type: ignore[arg-type]
                "server": ServerConfig(port=0, drain_s=0),
                "webrtc": WebRtcSection(host_addresses=("127.0.0.1",)),
                "brain": PartConfig(name=provider, options=given),
                **sections,
            }
        )
        shared = await open_shared(config, ENV)
        stack.callback(shared.close)
        shared = replace(
            shared,
            speech=replace(shared.speech, vad=lambda: EnergyVad(config.vad)),
            factories={"demo": factory or agent_factory(*tools)},
            stores=stores,
        )
        app = create_app(config, call_factory(shared), Behind(stores=stores))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, lingering_time=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        headers = {"Origin": url}
        http = await stack.enter_async_context(aiohttp.ClientSession(headers=headers))
        yield RealtimeSite(url, http, app[SERVER], running, shared)


def spoken(*says: str, before_s: float = 0.3, after_s: float = 1.0) -> Samples:
    """A caller who says each text, quiet before, between and behind them. 16 kHz."""
    pieces = [np.zeros(round(before_s * RATE), np.int16)]
    for text in says:
        pieces += [tone_words.speak(text, RATE), np.zeros(round(after_s * RATE), np.int16)]
    return np.concatenate(pieces)


@dataclass
class Microphone:
    """A caller's sound over /ws in real time: silence unless `say` gave it words."""

    client: Client
    said: list[Samples] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Say it from the next frame on."""
        self.said.append(tone_words.speak(text, RATE))

    async def run(self) -> None:
        """Task of the test's group: one frame each 20 ms; cancelled by its owner."""
        loop = asyncio.get_running_loop()
        begun, sent = loop.time(), 0
        while not self.client.closed:
            await self.client.ws.send_bytes(self._frame().tobytes())
            sent += 1
            await asyncio.sleep(max(0.0, begun + sent * 0.02 - loop.time()))

    def _frame(self) -> Samples:
        if not self.said:
            return np.zeros(320, np.int16)
        frame, rest = self.said[0][:320], self.said[0][320:]
        self.said[:1] = [rest] if len(rest) else []
        return np.pad(frame, (0, 320 - len(frame)))


@asynccontextmanager
async def on_the_line(here: RealtimeSite) -> AsyncIterator[tuple[Client, Microphone]]:
    """A call over /ws with a microphone that is on; hung up at the end."""
    client = await here.connect()
    microphone = Microphone(client)
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(microphone.run())
        yield client, microphone
        sending.cancel()
    await client.say(t="hangup")
    await client.until_closed()


def heard(client: Client, text: str) -> bool:
    """The page was told that the caller heard `text`."""
    return any(one["t"] == "heard" and text in str(one["heard"]) for one in client.texts)


def events(client: Client, kind: str) -> list[dict[str, object]]:
    """Events of the timeline of that kind that the client was told."""
    told = [one["event"] for one in client.texts if one["t"] == "event"]
    return [one for one in told if isinstance(one, dict) and one["type"] == kind]


def codes(client: Client) -> list[object]:
    """Problems that the client was told, by code."""
    return [one["code"] for one in client.texts if one["t"] == "error"]
