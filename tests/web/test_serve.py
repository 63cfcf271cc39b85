"""The server as a process: it announces itself, drains on SIGTERM, and speaks TLS."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from pathlib import Path

import aiohttp
import pytest

from tests.support.peers import require_peer
from tests.web.client import Client, config
from tests.web.echo import EchoCalls
from voxglove.web.app import own_names, serve, urls
from voxglove.web.config import TlsConfig
from voxglove.web.config_reader import ConfigError
from voxglove.web.tls import self_signed, server_context

pytestmark = pytest.mark.real_loop


class Served:
    """`serve` in a task; `url` once it is announced."""

    def __init__(self) -> None:
        self.urls: asyncio.Queue[str] = asyncio.Queue(4)

    async def url(self) -> str:
        async with asyncio.timeout(10):
            return (await self.urls.get()).rstrip("/")


async def test_sigterm_drains_and_a_second_one_forces(tmp_path: Path) -> None:
    served, calls = Served(), EchoCalls()
    configured = config(drain_s=30.0)
    async with asyncio.TaskGroup() as group, aiohttp.ClientSession() as http:
        serving = group.create_task(
            serve(configured, served.urls.put_nowait, build=calls.factory, state_folder=tmp_path)
        )
        url = await served.url()
        async with http.post(f"{url}/session") as answer:
            token = (await answer.json())["token"]
        client = Client(await http.ws_connect(f"{url}/ws?token={token}"))
        await client.until_kind("ready")
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.2)
        async with http.post(f"{url}/session") as answer:
            assert answer.status == 503
        await client.say(t="say", text="hi")
        await client.until_kind("heard")
        assert not serving.done(), "the running call goes on"
        os.kill(os.getpid(), signal.SIGTERM)
        assert await client.until_closed() == 1001
        assert client.texts[-1] == {"t": "bye", "reason": "drain"}
    assert calls.closed


async def test_tls_makes_a_certificate_once_and_serves_with_it(tmp_path: Path) -> None:
    require_peer("openssl")
    served, calls = Served(), EchoCalls()
    configured = config(tls=TlsConfig(mode="self-signed"), drain_s=0.1)
    async with asyncio.TaskGroup() as group:
        group.create_task(
            serve(configured, served.urls.put_nowait, build=calls.factory, state_folder=tmp_path)
        )
        url = await served.url()
        assert url.startswith("https://127.0.0.1:")
        trust = ssl.create_default_context(cafile=str(tmp_path / "tls" / "cert.pem"))
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as http,
            http.post(f"{url}/session", headers={"Origin": url}) as answer,
        ):
            assert answer.status == 201
            assert (await answer.json())["ws_url"].startswith("wss://127.0.0.1:")
        os.kill(os.getpid(), signal.SIGTERM)
    key = tmp_path / "tls" / "key.pem"
    assert key.stat().st_mode & 0o077 == 0
    before = key.read_bytes()
    self_signed(tmp_path / "tls", ["localhost"])
    assert key.read_bytes() == before, "a browser's exception stays valid"


def test_a_certificate_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    bad = TlsConfig(mode="files", cert=str(tmp_path / "no.pem"), key=str(tmp_path / "no.key"))
    with pytest.raises(ConfigError, match="cannot be loaded"):
        server_context(bad, tmp_path, ["localhost"])
    assert server_context(TlsConfig(), tmp_path, []) is None


def test_the_announced_address_can_be_opened() -> None:
    everywhere = config(host="0.0.0.0")
    assert urls(everywhere, [("0.0.0.0", 9)], secure=False) == ["http://localhost:9/"]
    assert urls(config(host="::1"), [("::1", 9, 0, 0)], secure=True) == ["https://[::1]:9/"]
    assert own_names("127.0.0.1") == ["localhost", "127.0.0.1"]
    assert "10.1.2.3" in own_names("10.1.2.3")
