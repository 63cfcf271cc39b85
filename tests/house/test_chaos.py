"""The chaos proxy does each harm it promises, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.chaos import ChaosProxy, chaos_proxy, slow_read

Line = tuple[ChaosProxy, asyncio.StreamReader, asyncio.StreamWriter]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1024):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        return
    finally:
        writer.close()


@asynccontextmanager
async def connected() -> AsyncIterator[Line]:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, chaos_proxy(*server.sockets[0].getsockname()[:2]) as proxy:
        reader, writer = await asyncio.open_connection(*proxy.address)
        try:
            writer.write(b"hello")
            assert await asyncio.wait_for(reader.readexactly(5), 5) == b"hello"
            yield proxy, reader, writer
        finally:
            writer.close()


async def test_it_forwards_both_ways_and_the_end() -> None:
    async with connected() as (proxy, reader, writer):
        writer.write_eof()
        assert await reader.read() == b""
        assert proxy.accepted == 1


async def test_a_stall_holds_bytes_back_and_flow_delivers_them() -> None:
    async with connected() as (proxy, reader, writer):
        proxy.stall()
        writer.write(b"late")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.readexactly(4), 30)
        proxy.flow()
        assert await asyncio.wait_for(reader.readexactly(4), 5) == b"late"


async def test_a_half_open_peer_takes_bytes_and_answers_nothing() -> None:
    async with connected() as (proxy, reader, writer):
        proxy.half_open()
        writer.write(b"anyone?")
        await writer.drain()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 60)


async def test_a_drop_resets_the_connection() -> None:
    async with connected() as (proxy, reader, _):
        assert proxy.drop() == 2
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(1), 5)


async def test_a_slow_reader_reads_by_the_loops_clock() -> None:
    async with connected() as (_, reader, writer):
        writer.write(b"x" * 10)
        await asyncio.sleep(1)
        began, got = asyncio.get_running_loop().time(), b""
        async for piece in slow_read(reader, chunk=2, pause_s=0.5):
            got += piece
            if len(got) == 10:
                break
        assert asyncio.get_running_loop().time() - began == pytest.approx(2.0, abs=0.1)
