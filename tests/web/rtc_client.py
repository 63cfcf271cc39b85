"""A page without a browser that comes over WebRTC: real ICE, DTLS and Opus on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import numpy as np

from tests.adapters.transports_webrtc.peer import LOOPBACK, Peer, Samples
from tests.web.client import Site, eventually, site
from voxglove.adapters.transports import webrtc_seams as seams
from voxglove.web.config import Config, ServerConfig
from voxglove.web.config_webrtc import WebRtcSection

RATE = 16_000

seams.install()  # the peers of these tests hear through the same parts, also the first of them


def rtc_config(connect_s: float = 10.0, **server: object) -> Config:
    """A server on loopback whose lines use 127.0.0.1 alone."""
    return Config(
        server=ServerConfig(port=0, **server),  # type: ignore[arg-type]
        webrtc=WebRtcSection(host_addresses=LOOPBACK, connect_s=connect_s),
    )


@asynccontextmanager
async def rtc_site(
    configured: Config | None = None, *, linger_s: float = 5.0
) -> AsyncIterator[Site]:
    """A server that has imported what lines need."""
    async with site(configured or rtc_config(), linger_s=linger_s) as running:
        await running.server.lines.warm()
        yield running


@dataclass
class RtcClient:
    """One WebRTC line and what came over it."""

    site: Site
    peer: Peer
    line_id: str = ""
    setup_ms: float = 0.0
    listening: asyncio.Task[None] | None = field(default=None, repr=False)

    async def until(self, done: Callable[[], bool], within_s: float = 5.0) -> None:
        """Wait for what the peer saw or the server knows."""
        try:
            await eventually(done, within_s)
        except TimeoutError:
            state = self.peer.pc.connectionState
            raise AssertionError(f"not within {within_s} s; {state}, got {self.kinds()}") from None

    async def until_kind(self, kind: str, within_s: float = 5.0) -> dict[str, object]:
        """The last message of `kind`, once there is one."""
        await self.until(lambda: kind in self.kinds(), within_s)
        return [message for message in self.peer.messages if message["t"] == kind][-1]

    async def status(self) -> dict[str, object]:
        """GET /rtc/lines/{id}."""
        async with self.site.http.get(f"{self.site.url}/rtc/lines/{self.line_id}") as answer:
            assert answer.status == 200, await answer.text()
            found = await answer.json()
            assert isinstance(found, dict)
            return found

    def kinds(self) -> list[object]:
        return [message["t"] for message in self.peer.messages]

    def heard(self) -> Samples:
        """Everything the peer heard, silence included."""
        return np.concatenate(self.peer.heard) if self.peer.heard else np.zeros(0, np.int16)

    def loud_ms(self) -> int:
        """How much of what was heard is a sound, in whole frames of 20 ms."""
        return sum(20 for frame in self.peer.heard if np.abs(frame.astype(int)).max() > 2_000)

    async def vanish(self) -> None:
        """Be gone without a word: no close, no answer to ICE any more."""
        transport = self.peer.pc.getTransceivers()[0].receiver.transport.transport
        for protocol in transport._connection._protocols:
            protocol.transport.close()


async def offer(running: Site, **body: object) -> tuple[int, dict[str, object]]:
    """POST /rtc/offer: status and JSON."""
    async with running.http.post(f"{running.url}/rtc/offer", json=body) as answer:
        return answer.status, await answer.json()


@asynccontextmanager
async def rtc_client(
    running: Site,
    token: str | None = None,
    *,
    peer: Peer | None = None,
    rewrite: Callable[[str], str] | None = None,
) -> AsyncIterator[RtcClient]:
    """A line on a new call, or on the call of `token`; connected, its channel open. With an offer
    that `rewrite` changed nothing is awaited."""
    token = token or str((await running.session())["token"])
    client = RtcClient(running, peer or Peer())
    loop = asyncio.get_running_loop()
    try:
        sdp = await client.peer.offer()
        sdp = rewrite(sdp) if rewrite else sdp
        began = loop.time()
        status, answer = await offer(running, token=token, sdp=sdp)
        assert status == 200, answer
        client.line_id = str(answer["line_id"])
        if rewrite is None:
            await client.peer.accept(str(answer["sdp"]))
            await client.until(lambda: client.peer.pc.connectionState == "connected", 8)
            client.setup_ms = (loop.time() - began) * 1000
            await client.until_kind("ready")
            client.listening = asyncio.create_task(client.peer.listen(), name="page listens")
        yield client
    finally:
        await client.peer.pc.close()
        if client.listening is not None:
            client.listening.cancel()
            with suppress(asyncio.CancelledError):
                await client.listening


def sine(seconds: float, hz: float = 700.0) -> bytes:
    """A tone at a third of full scale, 16 kHz mono."""
    at = np.arange(round(seconds * RATE))
    return (10_000 * np.sin(2 * np.pi * hz * at / RATE)).astype("<i2").tobytes()


def pitch(samples: Samples) -> float:
    """Strongest frequency, in Hz."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum)) * RATE / len(samples)
