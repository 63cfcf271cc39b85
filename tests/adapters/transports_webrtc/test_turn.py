"""A call that goes through a TURN server alone: a real coturn on loopback, started by the test."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from aiortc import RTCConfiguration, RTCIceServer, RTCPeerConnection
from aiortc.rtcconfiguration import RTCIceTransportPolicy

from tests.adapters.transports_webrtc.peer import Peer
from tests.support.peers import require_peer
from tests.web.rtc_client import pitch, rtc_client, rtc_site, sine
from voxglove.adapters.credentials import Secret
from voxglove.web.config import Config, ServerConfig
from voxglove.web.config_webrtc import IceServerConfig, WebRtcSection
from voxglove.web.ice import turn_credentials

pytestmark = pytest.mark.real_loop

USER, PASSWORD, SHARED = "reception", "not-a-real-password", "not-a-real-shared-secret"
CREDENTIALS = {
    "static": f"user={USER}:{PASSWORD}",
    "secret": f"use-auth-secret\nstatic-auth-secret={SHARED}",
}


@asynccontextmanager
async def coturn(folder: Path, credentials: str) -> AsyncIterator[str]:
    """A TURN server on 127.0.0.1; its address as a URL."""
    program = require_peer("coturn")
    port = _free_port()
    config = folder / "turnserver.conf"
    config.write_text(
        f"listening-ip=127.0.0.1\nrelay-ip=127.0.0.1\nlistening-port={port}\n"
        f"min-port=49160\nmax-port=49260\nrealm=test.example\nlt-cred-mech\n{credentials}\n"
        "no-tls\nno-dtls\nno-cli\ncli-password=unused-but-wanted\nallow-loopback-peers\n"
        f"fingerprint\nno-stdout-log\nlog-file={folder}/turn.log\nsimple-log\n"
        f"pidfile={folder}/turn.pid\nuserdb={folder}/turn.db\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(program, "-c", str(config)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"]},
    )
    try:
        await _listens(port)
        yield f"turn:127.0.0.1:{port}?transport=udp"
    finally:
        process.kill()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]  # 3.11 leaves its pipes open


@pytest.mark.parametrize("kind", CREDENTIALS)
async def test_a_call_over_the_relay_alone(kind: str, tmp_path: Path) -> None:
    async with coturn(tmp_path, CREDENTIALS[kind]) as url:
        ice = (
            IceServerConfig(urls=(url,), username=USER, credential=Secret(PASSWORD))
            if kind == "static"
            else IceServerConfig(urls=(url,), auth_secret=Secret(SHARED))
        )
        section = WebRtcSection(ice_servers=(ice,), relay_only=True)
        async with rtc_site(Config(server=ServerConfig(port=0), webrtc=section)) as site:
            asked = await site.session()
            peer = Peer(ice=_relay_only(asked))
            async with rtc_client(site, str(asked["token"]), peer=peer) as page:
                brain = site.calls.brains[str(asked["call_id"])]
                page.peer.speech.put(sine(2.0))
                page.peer.say({"t": "say", "text": "hi"})
                await page.until(lambda: brain.loud_samples >= 16_000)
                assert brain.pitch() == pytest.approx(700, abs=15)
                await page.until(lambda: page.loud_ms() >= 500)
                loud = np.concatenate([f for f in page.peer.heard if np.abs(f).max() > 2_000])
                assert pitch(loud) == pytest.approx(440, abs=15)
                line = site.server.lines.find(page.line_id)
                assert _way(line.transport._pc) == _way(page.peer.pc) == "relay"
                page.peer.say({"t": "hangup"})
                await page.until_kind("bye")


async def test_a_turn_server_that_refuses_is_told_as_the_cause(tmp_path: Path) -> None:
    async with coturn(tmp_path, CREDENTIALS["static"]) as url:
        ice = IceServerConfig(urls=(url,), username=USER, credential=Secret("wrong"))
        section = WebRtcSection(ice_servers=(ice,), relay_only=True, connect_s=1.0)
        config = Config(server=ServerConfig(port=0), webrtc=section)
        async with rtc_site(config) as site, rtc_client(site, rewrite=str) as page:
            await page.until(lambda: site.server.metrics.value("rtc_lines_active") == 0)
            assert "ours: none" in str((await page.status())["cause"])


def test_credentials_are_those_of_the_turn_rest_api() -> None:
    name, password = turn_credentials("north", 1_700_000_000.9, "call_1")
    assert name == "1700000000:call_1"
    assert password == "uhUq+G6dwhhB7A1SgLvJBr8bLnk=", "as openssl dgst -sha1 -hmac has it"


def _relay_only(asked: dict[str, object]) -> RTCConfiguration:
    """What a page makes of the answer of /session, allowed to use the relay alone."""
    rtc = asked["rtc"]
    assert isinstance(rtc, dict)
    servers = [RTCIceServer(**server) for server in rtc["ice_servers"]]
    return RTCConfiguration(servers, RTCIceTransportPolicy.RELAY)


def _way(pc: RTCPeerConnection) -> str:
    """Type of the own candidate of the pair that carries sound. (The other's may show as peer
    reflexive: its checks come before its candidates do.)"""
    ice = pc.getTransceivers()[0].receiver.transport.transport
    return str(ice._connection._nominated[1].local_candidate.type)


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def _listens(port: int) -> None:
    """Wait until the server takes TCP connections, which it does beside UDP."""
    async with asyncio.timeout(10):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            await writer.wait_closed()
            return
