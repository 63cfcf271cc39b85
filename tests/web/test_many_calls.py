"""Two hundred calls in a row on the whole keyless stack: nothing may be left of any of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import aiohttp
import numpy as np
import psutil
import pytest

from tests.web.client import Client
from tests.web.serving import served

pytestmark = [pytest.mark.real_loop, pytest.mark.local_speech, pytest.mark.slow]

CALLS, SETTLED = 200, 50
FRAME = bytes(640)


def slope(values: list[int]) -> float:
    """Least squares, per step."""
    steps = np.arange(len(values))
    return float(np.polyfit(steps, values, 1)[0])


async def admitted(http: aiohttp.ClientSession, url: str) -> str:
    """A call's token; a server that feels its machine is too busy says so, and is asked again."""
    for _ in range(10):
        async with http.post(f"{url}/session", json={}) as answer:
            if answer.status == 201:
                return str((await answer.json())["token"])
            assert answer.status == 503, await answer.text()
            await asyncio.sleep(float(answer.headers["Retry-After"]))
    raise AssertionError("never admitted")


async def one_call(http: aiohttp.ClientSession, url: str) -> None:
    """Connect, send a little sound, ask in writing, hear the answer begin, hang up."""
    token = await admitted(http, url)
    ws = await http.ws_connect(f"{url}/ws?token={token}", max_msg_size=0)
    client = Client(ws)
    await client.until_kind("ready")
    for _ in range(10):
        await ws.send_bytes(FRAME)
    await client.say(t="say", text="What are your opening hours?")
    await client.until(lambda client: len(client.audio) > 3_200, 15)
    await client.say(t="hangup")
    await client.until_closed()
    await ws.close()


async def gauge(http: aiohttp.ClientSession, url: str, name: str) -> float:
    """One value of /metrics."""
    async with http.get(f"{url}/metrics") as answer:
        rows = (await answer.text()).splitlines()
    return next(float(row.split()[-1]) for row in rows if row.startswith(f"voxglove_{name} "))


@pytest.mark.timeout(400)
async def test_two_hundred_calls_leave_no_memory_descriptors_or_tasks(
    tmp_path: Path, tell: Callable[[str], None]
) -> None:
    async with served(tmp_path) as server, aiohttp.ClientSession() as http:
        process = psutil.Process(server.pid)
        rss, fds, tasks = [], [], []
        for _ in range(CALLS):
            await one_call(http, server.url)
            rss.append(process.memory_info().rss)
            fds.append(process.num_fds())
            tasks.append(await gauge(http, server.url, "tasks"))
    growth = round(slope(rss[SETTLED:]))
    tell(
        f"{CALLS} calls over /ws, from call {SETTLED}: {growth} bytes a call, "
        f"descriptors {fds[SETTLED]} -> {fds[-1]}, tasks {tasks[SETTLED]:.0f} -> {tasks[-1]:.0f}"
    )
    assert growth < 20_000
    assert max(fds[SETTLED:]) - min(fds[SETTLED:]) <= 2
    assert max(tasks[SETTLED:]) - min(tasks[SETTLED:]) <= 3
