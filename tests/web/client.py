"""A real server on loopback and a real WebSocket client, for tests of the doors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

import aiohttp
from aiohttp import WSMsgType, web

from tests.web.echo import EchoCalls
from voxglove.media.call import CallPolicy
from voxglove.web.app import create_app
from voxglove.web.config import CallConfig, Config, ServerConfig
from voxglove.web.server import SERVER, Server


@dataclass
class Site:
    """A running server, and an HTTP client."""

    url: str
    http: aiohttp.ClientSession
    server: Server
    calls: EchoCalls
    runner: web.AppRunner

    async def session(self, **body: object) -> dict[str, object]:
        """POST /session that succeeds."""
        async with self.http.post(f"{self.url}/session", json=body) as answer:
            assert answer.status == 201, await answer.text()
            found = await answer.json()
            assert isinstance(found, dict)
            return found

    async def connect(
        self,
        token: str | None = None,
        headers: dict[str, str] | None = None,
        *,
        autoping: bool = True,
    ) -> Client:
        """A socket on a new call, or on the call of `token`."""
        token = token or str((await self.session())["token"])
        url = f"{self.url}/ws?token={token}"
        ws = await self.http.ws_connect(url, max_msg_size=0, headers=headers, autoping=autoping)
        return Client(ws)


@dataclass
class Client:
    """One WebSocket. `pump` reads in the background of the test's own awaits."""

    ws: aiohttp.ClientWebSocketResponse
    texts: list[dict[str, object]] = field(default_factory=list)
    audio: bytearray = field(default_factory=bytearray)
    epoch: int = 0
    pos: int = 0
    acks: bool = True
    closed: bool = False
    _ring: int = 0
    _played_at: float = 0.0
    _acked_at: float = 0.0

    async def say(self, **message: object) -> None:
        await self.ws.send_str(json.dumps(message))

    async def until(self, done: Callable[[Self], bool], within_s: float = 5.0) -> None:
        """Read until `done`; TimeoutError, with what came, when it does not happen."""
        try:
            async with asyncio.timeout(within_s):
                while not done(self) and not self.closed:
                    await self.read()
        except TimeoutError:
            raise AssertionError(f"not within {within_s} s; got {self.kinds()}") from None
        assert done(self), f"closed {self.ws.close_code}; got {self.kinds()}"

    async def until_kind(self, kind: str, within_s: float = 5.0) -> dict[str, object]:
        """Read until a message of `kind` came; the last of them."""
        await self.until(lambda client: kind in client.kinds(), within_s)
        return [text for text in self.texts if text["t"] == kind][-1]

    async def until_closed(self, within_s: float = 5.0) -> int | None:
        """Read until the server closes; its code."""
        await self.until(lambda client: client.closed, within_s)
        return self.ws.close_code

    async def drop(self) -> None:
        """Lose the connection without a word, as a phone in a tunnel does."""
        connection = self.ws._response.connection
        assert connection is not None and connection.transport is not None
        connection.transport.abort()
        await self.until_closed()

    async def read(self) -> None:
        """One message. Sound is played in real time and acknowledged at most every 100 ms."""
        message = await self.ws.receive()
        self._play()
        if message.type is WSMsgType.BINARY:
            self.audio += message.data
            self._ring += len(message.data) // 2
            await self._acknowledge()
        elif message.type is WSMsgType.TEXT:
            text = json.loads(message.data)
            self.texts.append(text)
            if text["t"] == "clear":
                self.epoch, self._ring = text["epoch"] + 1, 0
                if self.acks:
                    await self.say(t="cleared", epoch=text["epoch"], pos=self.pos)
        elif message.type is not WSMsgType.PING:
            self.closed = True

    def _play(self) -> None:
        now = asyncio.get_running_loop().time()
        played = min(self._ring, int((now - self._played_at) * 16_000)) if self._ring else 0
        self.pos += played
        self._ring -= played
        self._played_at = now

    async def _acknowledge(self) -> None:
        now = asyncio.get_running_loop().time()
        if self.acks and now - self._acked_at >= 0.1:
            self._acked_at = now
            await self.say(t="playback", epoch=self.epoch, pos=self.pos)

    def kinds(self) -> list[object]:
        return [text["t"] for text in self.texts]

    def states(self) -> list[object]:
        return [text["state"] for text in self.texts if text["t"] == "state"]


async def eventually(done: Callable[[], bool], within_s: float = 5.0) -> None:
    """Wait until the server's own state says so."""
    async with asyncio.timeout(within_s):
        while not done():  # noqa: ASYNC110 - a reading of another part's state
            await asyncio.sleep(0.01)


def config(**server: object) -> Config:
    """Defaults on a free port."""
    return Config(server=ServerConfig(port=0, **server))  # type: ignore[arg-type]


@asynccontextmanager
async def site(
    configured: Config | None = None, *, linger_s: float = 5.0, origin: str | None = "own"
) -> AsyncIterator[Site]:
    """Serve `configured` with echo calls. `origin`: "own", another, or None for a program."""
    configured = configured or config()
    calls = EchoCalls(CallPolicy(linger_s=linger_s))
    app = create_app(configured, calls.factory)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, lingering_time=0.1)
    await runner.setup()
    try:
        listening = web.TCPSite(runner, "127.0.0.1", 0)
        await listening.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        headers = {} if origin is None else {"Origin": url if origin == "own" else origin}
        async with aiohttp.ClientSession(headers=headers) as http:
            yield Site(url, http, app[SERVER], calls, runner)
    finally:
        await runner.cleanup()


__all__ = ["CallConfig", "Client", "Site", "config", "site"]
