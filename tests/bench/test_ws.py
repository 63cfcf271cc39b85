"""The generator's WebSocket, against aiohttp's."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import WSMsgType, web

from bench import ws

pytestmark = pytest.mark.real_loop

SIZES = (0, 1, 125, 126, 640, 65_535, 65_536)


async def echo(request: web.Request) -> web.WebSocketResponse:
    found = web.WebSocketResponse(max_msg_size=0)
    await found.prepare(request)
    await found.ping(b"there?")
    async for message in found:
        if message.type is WSMsgType.BINARY:
            await found.send_bytes(message.data)
        elif message.type is WSMsgType.TEXT:
            await found.send_str(message.data)
    return found


async def served(port: int) -> web.AppRunner:
    app = web.Application()
    app.router.add_get("/call", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    return runner


async def test_messages_of_every_size_come_back_whole(unused_tcp_port: int) -> None:
    runner = await served(unused_tcp_port)
    got: list[tuple[int, bytes]] = []
    try:
        connection = await ws.connect(
            unused_tcp_port, "/call", lambda opcode, payload, _: got.append((opcode, payload))
        )
        sent = [(ws.BINARY, bytes([size % 251]) * size) for size in SIZES]
        sent.append((ws.TEXT, b'{"t": "clear"}'))
        for opcode, payload in sent:
            connection.send(ws.frame(opcode, payload))
        async with asyncio.timeout(5):
            while len(got) < len(sent):  # noqa: ASYNC110 - a list that a callback fills
                await asyncio.sleep(0.01)
        await connection.close()
    finally:
        await runner.cleanup()
    assert got == sent


async def test_a_refused_upgrade_says_why(unused_tcp_port: int) -> None:
    runner = await served(unused_tcp_port)
    try:
        with pytest.raises(ws.Refused, match="404"):
            await ws.connect(unused_tcp_port, "/nowhere", lambda *_: None)
    finally:
        await runner.cleanup()
