"""The client socket against real loopback peers: every way to fail, to end, and to fall silent."""

from __future__ import annotations

import asyncio
import logging
import socket as sockets
import ssl
import struct
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import InvalidURI
from websockets.http11 import Request
from websockets.server import ServerProtocol

from tests.support.peers import require_peer
from voxglove.adapters import socket as socket_module
from voxglove.adapters.credentials import Secret
from voxglove.adapters.errors import (
    AdapterError,
    ConnectionFailed,
    CredentialsRejected,
    ProviderRefused,
    ProviderStalled,
)
from voxglove.adapters.socket import (
    ABNORMAL,
    ATTEMPTS,
    UNSENT,
    Socket,
    SocketClosed,
    SocketConfig,
    backoff,
    connect,
)
from voxglove.media.errors import MediaValueError
from voxglove.web.tls import self_signed

pytestmark = pytest.mark.real_loop

KEY = "sk-proj-0123456789abcdefghij"
STAGE = "ERR_REALTIME"

Serve = Callable[[ServerConnection], Awaitable[None]]
Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def websocket_server(serve_one: Serve, **options: object) -> AsyncIterator[str]:
    """A well-behaved server; gives its origin."""
    async with serve(
        serve_one,
        "127.0.0.1",
        0,
        close_timeout=0.3,
        **options,  # type: ignore[arg-type]
    ) as server:
        yield f"127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"


@asynccontextmanager
async def tcp_server(peer: Peer, *, small: bool = False) -> AsyncIterator[str]:
    """A peer that does with TCP whatever a test wants; gives its address.

    `small`: it takes little before the sender feels it.
    """
    open_writers: list[asyncio.StreamWriter] = []

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_writers.append(writer)
        await peer(reader, writer)

    listening = sockets.socket()
    if small:
        listening.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    listening.bind(("127.0.0.1", 0))
    server = await asyncio.start_server(one, sock=listening, limit=2**16)
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.close()
        for writer in open_writers:
            writer.transport.abort()
        await asyncio.sleep(0)


def answering(response: str) -> Peer:
    """Reads the request's head, answers with text, closes."""

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response.encode())
        writer.close()

    return peer


def http(status: str, body: str = "", *headers: str) -> str:
    """A whole HTTP answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body.encode())}", *headers, "", body]
    return "\r\n".join(lines)


async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The server's half of a handshake, by hand."""
    protocol = ServerProtocol()
    while not (events := protocol.events_received()):
        protocol.receive_data(await reader.readuntil(b"\r\n\r\n"))
    assert isinstance(events[0], Request)
    protocol.send_response(protocol.accept(events[0]))
    for data in protocol.data_to_send():
        writer.write(data)


def config(address: str, **options: object) -> SocketConfig:
    return SocketConfig(
        **{"url": f"ws://{address}/v1", "close_timeout_s": 0.3, **options},  # type: ignore[arg-type]
    )


async def failure(address: str, **options: object) -> AdapterError:
    """What `connect` raises."""
    with pytest.raises(AdapterError) as caught:
        await connect(config(address, **options), stage=STAGE)
    return caught.value


async def received(socket: Socket) -> list[str | bytes]:
    return [frame async for frame in socket.receive()]


async def echo(peer: ServerConnection) -> None:
    async for frame in peer:
        await peer.send(frame)


# --- Opening ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "code", "retryable"),
    [
        ("401 Unauthorized", CredentialsRejected, "ERR_REALTIME_AUTH", False),
        ("403 Forbidden", CredentialsRejected, "ERR_REALTIME_AUTH", False),
        ("400 Bad Request", ProviderRefused, "ERR_REALTIME_REFUSED", False),
        ("404 Not Found", ProviderRefused, "ERR_REALTIME_REFUSED", False),
        ("426 Upgrade Required", ProviderRefused, "ERR_REALTIME_REFUSED", False),
        ("200 OK", ProviderRefused, "ERR_REALTIME_REFUSED", False),
        ("408 Request Timeout", ConnectionFailed, "ERR_REALTIME_CONNECTION", True),
        ("429 Too Many Requests", ConnectionFailed, "ERR_REALTIME_CONNECTION", True),
        ("500 Internal Server Error", ConnectionFailed, "ERR_REALTIME_CONNECTION", True),
        ("503 Service Unavailable", ConnectionFailed, "ERR_REALTIME_CONNECTION", True),
    ],
)
async def test_an_http_answer_is_the_error_it_means(
    status: str, kind: type[AdapterError], code: str, retryable: bool
) -> None:
    async with tcp_server(answering(http(status, "model\n gone " + "x" * 400))) as address:
        error = await failure(address)
    assert type(error) is kind
    assert (error.code, error.retryable) == (code, retryable)
    start, _, body = str(error).partition(f"HTTP {status[:3]}: ")
    assert start == f"{address}: "
    assert body.startswith("model gone xxx") and len(body) == 300


async def test_an_answer_without_a_body_says_host_and_status() -> None:
    async with tcp_server(answering(http("502 Bad Gateway"))) as address:
        assert str(await failure(address)) == f"{address}: HTTP 502"


async def test_a_redirect_is_refused_and_not_followed() -> None:
    followed: list[object] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        followed.append(await reader.readline())
        writer.close()

    async with tcp_server(elsewhere) as other:
        location = f"Location: ws://{other}/"
        async with tcp_server(answering(http("307 Temporary Redirect", "", location))) as address:
            error = await failure(address, headers={"Authorization": Secret(f"Bearer {KEY}")})
    assert type(error) is ProviderRefused and "307" in str(error)
    assert followed == []


@pytest.mark.parametrize(
    "response",
    ["", "SSH-2.0-OpenSSH_9.6\r\n", "HTTP/1.1 101 Switching Protocols\r\n"],
    ids=["hangs up", "not HTTP", "half an answer"],
)
async def test_a_peer_that_answers_no_http_is_a_failed_connection(response: str) -> None:
    async with tcp_server(answering(response)) as address:
        error = await failure(address)
    assert type(error) is ConnectionFailed and error.code == "ERR_REALTIME_CONNECTION"
    assert str(error).startswith(f"{address}: ") and len(str(error)) > len(address) + 5


async def test_a_wrong_accept_key_is_no_websocket() -> None:
    head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    async with tcp_server(answering(f"{head}Sec-WebSocket-Accept: bm8=\r\n\r\n")) as address:
        error = await failure(address)
    assert type(error) is ProviderRefused and "no WebSocket here" in str(error)


async def test_a_proxy_whose_address_is_wrong_is_told_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket_module, "_Connect", _through_a_bad_proxy)
    error = await failure("provider.example")
    assert type(error) is ConnectionFailed
    assert str(error) == "provider.example: InvalidURI"
    assert KEY not in "".join(traceback.format_exception(error))


async def _through_a_bad_proxy(url: str, **options: object) -> ClientConnection:
    raise InvalidURI(f"http://user:{KEY}@proxy", "no port")


async def test_nobody_listening_is_a_failed_connection() -> None:
    with sockets.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        error = await failure(address)
    assert type(error) is ConnectionFailed and error.__cause__ is not None
    assert str(error).startswith(f"{address}: ")


async def test_a_name_that_does_not_exist_is_a_failed_connection() -> None:
    assert type(await failure("no-such-host.invalid")) is ConnectionFailed


async def test_a_stalled_handshake_is_a_stall_and_leaves_nothing_open() -> None:
    ended = asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        ended.set()

    async with tcp_server(peer) as address:
        error = await failure(address, connect_timeout_s=0.05)
        await asyncio.wait_for(ended.wait(), 1)
    assert type(error) is ProviderStalled and error.retryable
    assert (error.code, str(error)) == (
        "ERR_REALTIME_STALLED",
        f"{address}: no connection within 0.05 s",
    )


async def test_a_cancelled_connect_leaves_nothing_open() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        ended.set()

    async with tcp_server(peer) as address, asyncio.TaskGroup() as group:
        task = group.create_task(connect(config(address), stage=STAGE))
        await asked.wait()
        task.cancel()
        await asyncio.wait_for(ended.wait(), 1)
    assert task.cancelled()


async def test_tls_speaks_to_a_trusted_peer_and_to_no_other(tmp_path: Path) -> None:
    require_peer("openssl")
    certificate, private = self_signed(tmp_path, ["localhost"])
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(certificate, private)
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with websocket_server(echo, ssl=shown) as address:
        port = address.partition(":")[2]
        trusted = SocketConfig(url=f"wss://localhost:{port}/", tls=trusting)
        socket = await connect(trusted, stage=STAGE)
        socket.send("hello")
        async for frame in socket.receive():
            assert frame == "hello"
            await socket.aclose()
        with pytest.raises(ConnectionFailed) as caught:
            await connect(SocketConfig(url=f"wss://localhost:{port}/"), stage=STAGE)
    assert isinstance(caught.value.__cause__, ssl.SSLError)


async def test_headers_and_subprotocols_arrive_with_their_keys() -> None:
    seen: list[str | None] = []

    async def look(peer: ServerConnection) -> None:
        assert peer.request is not None
        seen.extend(peer.request.headers.get(name) for name in ("Authorization", "OpenAI-Beta"))
        seen.append(peer.request.headers["Sec-WebSocket-Protocol"])

    async with websocket_server(look, subprotocols=["realtime"]) as address:
        socket = await connect(
            config(
                address,
                headers={"Authorization": Secret(f"Bearer {KEY}"), "OpenAI-Beta": "on"},
                subprotocols=("realtime", Secret(f"insecure.{KEY}")),
            ),
            stage=STAGE,
        )
        await received(socket)
    assert socket.subprotocol == "realtime"
    assert seen == [f"Bearer {KEY}", "on", f"realtime, insecure.{KEY}"]


# --- Frames ----------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.text(max_size=70), st.binary(max_size=300)), max_size=20))
def test_frames_keep_kind_and_order(frames: list[str | bytes]) -> None:
    async def run() -> list[str | bytes]:
        async with websocket_server(echo) as address:
            socket = await connect(config(address), stage=STAGE)
            for frame in frames:
                socket.send(frame)
            socket.send("end")
            got: list[str | bytes] = []
            async for frame in socket.receive():
                got.append(frame)
                if len(got) > len(frames):
                    await socket.aclose()
            return got

    assert asyncio.run(run()) == [*frames, "end"]


async def test_a_frame_is_with_the_peer_before_send_returns() -> None:
    heads = asyncio.Queue[bytes](1)

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer)
        heads.put_nowait(await reader.readexactly(2))

    async with tcp_server(peer) as address:
        socket = await connect(config(address), stage=STAGE)
        socket.send("x" * 100)
        assert socket.unsent_bytes == 0
        async with asyncio.timeout(1):
            assert await heads.get() == bytes([0x81, 0x80 | 100])
        socket.abort("done")


async def test_last_frame_at_moves_with_messages_only() -> None:
    async def one(peer: ServerConnection) -> None:
        await (await peer.ping())
        await peer.send("late")

    async with websocket_server(one) as address:
        socket = await connect(config(address), stage=STAGE)
        opened_at = socket.last_frame_at
        assert abs(asyncio.get_running_loop().time() - opened_at) < 0.5
        await asyncio.sleep(0.02)
        assert socket.last_frame_at == opened_at
        assert await received(socket) == ["late"]
        assert socket.last_frame_at > opened_at


async def test_a_message_beyond_the_limit_ends_it_with_1009() -> None:
    codes: list[int | None] = []

    async def one(peer: ServerConnection) -> None:
        await peer.send("first")
        await peer.send("x" * 5000)
        await peer.wait_closed()
        codes.append(peer.close_code)

    async with websocket_server(one) as address:
        socket = await connect(config(address, max_message_bytes=4096), stage=STAGE)
        assert await received(socket) == ["first"]
    assert socket.closed is not None
    assert (socket.closed.code, socket.closed.by_us) == (1009, True)
    assert codes == [1009]


async def test_text_that_is_no_utf8_ends_it_with_1007() -> None:
    async def one(peer: ServerConnection) -> None:
        await peer.send(b"\xff\xfe", text=True)
        await peer.wait_closed()

    async with websocket_server(one) as address:
        socket = await connect(config(address), stage=STAGE)
        assert await received(socket) == []
    assert socket.closed is not None
    assert (socket.closed.code, socket.closed.by_us) == (1007, True)


async def test_a_cancelled_wait_loses_no_message() -> None:
    async with websocket_server(echo) as address:
        socket = await connect(config(address), stage=STAGE)
        frames = socket.receive()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await anext(frames)
        socket.send("kept")
        assert await anext(socket.receive()) == "kept"
        await socket.aclose()
        await frames.aclose()


# --- A peer that takes too little ------------------------------------------------------------


async def test_a_slow_reader_is_given_up_at_the_limit_and_later_frames_are_dropped() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer)

    limit, frame = 200_000, b"x" * 20_000
    async with tcp_server(peer, small=True) as address:
        socket = await connect(config(address, max_unsent_bytes=limit), stage=STAGE)
        most = 0
        for _ in range(2_000):
            socket.send(frame)
            most = max(most, socket.unsent_bytes)
            if socket.closed is not None:
                break
            await asyncio.sleep(0)
        assert socket.closed is not None, "nobody noticed"
        assert (socket.closed.code, socket.closed.by_us) == (UNSENT, True)
        assert socket.closed.reason.startswith("unsent: the peer left ")
        assert limit < most <= limit + len(frame) + 14
        socket.send(frame)
        assert socket.unsent_bytes == 0
        assert await received(socket) == []
        async with asyncio.timeout(0.2):
            await socket.aclose()
    assert socket.closed.code == UNSENT


async def test_one_frame_may_be_larger_than_the_limit() -> None:
    async with websocket_server(echo, max_size=None) as address:
        socket = await connect(config(address, max_unsent_bytes=1000), stage=STAGE)
        picture = b"x" * 8_000_000
        socket.send(picture)
        async for frame in socket.receive():
            assert frame == picture
            await socket.aclose()
    assert socket.closed == SocketClosed(1000, "", by_us=True)


# --- Ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "reason"), [(1000, "bye"), (1008, "policy"), (1011, "internal"), (4408, "späť" * 15)]
)
async def test_code_and_reason_of_the_peer_are_kept(code: int, reason: str) -> None:
    async def one(peer: ServerConnection) -> None:
        await peer.send("last")
        await peer.close(code, reason)

    async with websocket_server(one) as address:
        socket = await connect(config(address), stage=STAGE)
        assert socket.closed is None
        assert await received(socket) == ["last"]
        assert socket.closed == SocketClosed(code, reason, by_us=False)
        await socket.aclose(1001)
        assert socket.closed == SocketClosed(code, reason, by_us=False)


async def test_a_close_frame_without_a_code_is_1005() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer)
        writer.write(b"\x88\x00")
        await reader.readexactly(6)
        writer.close()

    async with tcp_server(peer) as address:
        socket = await connect(config(address), stage=STAGE)
        await received(socket)
    assert socket.closed == SocketClosed(1005, "", by_us=False)


async def test_a_reset_is_1006() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer)
        await writer.drain()
        raw = writer.get_extra_info("socket")
        raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async with tcp_server(peer) as address:
        socket = await connect(config(address), stage=STAGE)
        await received(socket)
    assert socket.closed is not None
    assert (socket.closed.code, socket.closed.by_us) == (ABNORMAL, False)
    assert "reset" in socket.closed.reason


async def test_tcp_that_ends_without_a_close_frame_is_1006() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer)
        writer.close()

    async with tcp_server(peer) as address:
        socket = await connect(config(address), stage=STAGE)
        await received(socket)
    assert socket.closed is not None and socket.closed.reason
    assert (socket.closed.code, socket.closed.by_us) == (ABNORMAL, False)


async def test_a_peer_that_says_close_and_keeps_tcp_open_is_not_waited_for() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer)
        writer.write(b"\x88\x02\x03\xe8")

    async with tcp_server(peer) as address, asyncio.timeout(1):
        socket = await connect(config(address, close_timeout_s=0.05), stage=STAGE)
        await received(socket)
    assert socket.closed == SocketClosed(1000, "", by_us=False)


async def test_our_close_reaches_the_peer_and_may_be_repeated() -> None:
    codes: list[tuple[int | None, str | None]] = []

    async def one(peer: ServerConnection) -> None:
        await peer.wait_closed()
        codes.append((peer.close_code, peer.close_reason))

    async with websocket_server(one) as address:
        socket = await connect(config(address), stage=STAGE)
        await asyncio.gather(socket.aclose(4001, "ж" * 100), socket.aclose(), received(socket))
        await socket.aclose(1011)
        socket.send("nothing")
    assert codes == [(4001, "ж" * 61)]
    assert socket.closed is not None
    assert (socket.closed.code, socket.closed.by_us) == (4001, True)


async def test_a_code_that_no_frame_may_carry_is_sent_as_1000() -> None:
    async with websocket_server(echo) as address:
        socket = await connect(config(address), stage=STAGE)
        await socket.aclose(1006)
    assert socket.closed == SocketClosed(1006, "", by_us=True)


async def test_messages_under_way_still_come_while_we_close() -> None:
    async def one(peer: ServerConnection) -> None:
        await peer.recv()
        for number in range(200):
            await peer.send(str(number))
        await peer.wait_closed()

    async with websocket_server(one) as address:
        socket = await connect(config(address, close_timeout_s=2), stage=STAGE)
        frames = socket.receive()
        socket.send("go")
        first = await anext(frames)
        closing = asyncio.gather(socket.aclose(), received_rest(frames))
        _, rest = await closing
    assert [first, *rest] == [str(number) for number in range(200)]


async def received_rest(frames: AsyncIterator[str | bytes]) -> list[str | bytes]:
    return [frame async for frame in frames]


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Half-open: nothing is read or written after the handshake, TCP stays."""
    await accept(reader, writer)
    writer.transport.pause_reading()  # type: ignore[attr-defined]


async def test_closing_towards_a_half_open_peer_is_bounded() -> None:
    async with tcp_server(silent) as address:
        socket = await connect(config(address, close_timeout_s=0.05), stage=STAGE)
        async with asyncio.timeout(0.5):
            await socket.aclose()
            assert await received(socket) == []
    assert socket.closed == SocketClosed(1000, "", by_us=True)


async def test_closing_behind_a_full_buffer_is_bounded() -> None:
    async with tcp_server(silent, small=True) as address:
        socket = await connect(config(address, close_timeout_s=0.05), stage=STAGE)
        socket.send(b"x" * 8_000_000)
        assert socket.unsent_bytes > 0
        async with asyncio.timeout(0.5):
            await socket.aclose()


async def test_a_cancelled_close_has_aborted() -> None:
    async with tcp_server(silent) as address:
        socket = await connect(config(address, close_timeout_s=5), stage=STAGE)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await socket.aclose()
        async with asyncio.timeout(0.2):
            assert await received(socket) == []


async def test_abort_ends_at_once_and_drops_what_came() -> None:
    async def one(peer: ServerConnection) -> None:
        await peer.send("a")
        await peer.send("b")
        await peer.wait_closed()

    async with websocket_server(one) as address:
        socket = await connect(config(address), stage=STAGE)
        frames = socket.receive()
        assert await anext(frames) == "a"
        await asyncio.sleep(0.02)
        socket.abort("enough")
        socket.abort("again")
        assert await received_rest(frames) == []
    assert socket.closed == SocketClosed(ABNORMAL, "enough", by_us=True)


# --- A peer that falls silent ----------------------------------------------------------------


async def test_half_open_is_noticed_within_ping_and_pong_time(
    tell: Callable[[str], None],
) -> None:
    """Invariant 8, with times cut by a hundred: 4 + 5 s are 9 s."""
    loop = asyncio.get_running_loop()
    async with tcp_server(silent) as address, asyncio.timeout(2), asyncio.TaskGroup() as group:
        socket = await connect(config(address, ping_s=0.04, pong_s=0.05), stage=STAGE)
        begin = loop.time()
        group.create_task(socket.run())
        assert await received(socket) == []
    took = loop.time() - begin
    assert socket.closed == SocketClosed(ABNORMAL, "no pong within 0.05 s", by_us=True)
    assert 0.08 <= took < 0.5
    tell(f"half-open peer noticed after {took * 1000:.0f} ms of 90 ms (ping 40, pong 50)")


async def test_half_open_is_noticed_although_our_sound_fills_every_buffer() -> None:
    async with (
        tcp_server(silent, small=True) as address,
        asyncio.timeout(2),
        asyncio.TaskGroup() as group,
    ):
        socket = await connect(config(address, ping_s=0.04, pong_s=0.05), stage=STAGE)
        group.create_task(socket.run())
        socket.send(b"x" * 3_500_000)
        assert socket.unsent_bytes > 100_000
        assert await received(socket) == []
    assert socket.closed is not None and socket.closed.reason == "no pong within 0.05 s"


async def test_a_peer_that_answers_pings_is_kept() -> None:
    async with websocket_server(echo) as address, asyncio.TaskGroup() as group:
        socket = await connect(config(address, ping_s=0.02, pong_s=0.04), stage=STAGE)
        watch = group.create_task(socket.run())
        await asyncio.sleep(0.15)
        assert socket.closed is None and not watch.done()
        await socket.aclose()
        async with asyncio.timeout(0.2):
            await watch


async def test_a_peer_that_speaks_and_answers_no_ping_is_kept() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer)
        for _ in range(12):
            writer.write(b"\x81\x01a")
            await asyncio.sleep(0.02)
        writer.close()

    async with tcp_server(peer) as address, asyncio.TaskGroup() as group:
        socket = await connect(config(address, ping_s=0.01, pong_s=0.06), stage=STAGE)
        group.create_task(socket.run())
        assert len(await received(socket)) == 12
    assert socket.closed is not None and "pong" not in socket.closed.reason


async def test_without_pings_the_watch_only_waits_for_the_end() -> None:
    async with tcp_server(silent) as address, asyncio.TaskGroup() as group:
        socket = await connect(config(address, ping_s=None, pong_s=0.01), stage=STAGE)
        watch = group.create_task(socket.run())
        await asyncio.sleep(0.05)
        assert socket.closed is None and not watch.done()
        socket.abort("enough")


# --- Keys ------------------------------------------------------------------------------------

KEYED = {
    "headers": {"Authorization": Secret(f"Bearer {KEY}")},
    "subprotocols": (Secret(f"insecure.{KEY}"),),
}


async def test_no_key_is_in_a_repr_an_error_or_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said = http("401 Unauthorized", f"Incorrect key {KEY} (Bearer {KEY}); query-{KEY} too")
    async with tcp_server(answering(said)) as address:
        url = f"ws://{address}/v1?model=m-1&api_key=query-{KEY}"
        assert KEY not in repr(SocketConfig(url=url, headers=KEYED["headers"]))  # type: ignore[arg-type]
        error = await failure(address, url=url, **KEYED)
    shown = "".join(traceback.format_exception(error)) + repr(error) + caplog.text
    assert str(error) == f"{address}: HTTP 401: Incorrect key … (…); … too"
    assert KEY not in shown and "m-1" not in str(error)


async def test_no_key_is_in_a_log_of_an_open_connection(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def one(peer: ServerConnection) -> None:
        await peer.close(1008, f"wrong key {KEY}")

    async with websocket_server(one, logger=logging.Logger("apart")) as address:
        url = f"ws://{address}/v1?key=query-{KEY}"
        socket = await connect(config(address, url=url, headers=KEYED["headers"]), stage=STAGE)
        socket.send("spoken words")
        await received(socket)
    assert socket.closed == SocketClosed(1008, "wrong key …", by_us=False)
    assert KEY not in caplog.text and "spoken" not in caplog.text


def test_the_repr_names_address_and_headers() -> None:
    shown = repr(
        SocketConfig(url="wss://a.example/v1?key=k-12345", headers={"B": "b", "A": Secret("a")})
    )
    assert shown == "SocketConfig(wss://a.example/v1, headers: A, B)"


# --- Values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("url", {"url": "https://a.example/"}),
        ("url", {"url": "ws:///path"}),
        ("url", {"url": f"ws://user:{KEY}@a.example/"}),
        ("url", {"url": "ws://a.example/#x"}),
        ("url", {"url": "ws://a.example:port/"}),
        ("tls", {"url": "ws://a.example/", "tls": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)}),
        ("connect_timeout_s", {"url": "ws://a.example/", "connect_timeout_s": 0}),
        ("ping_s", {"url": "ws://a.example/", "ping_s": -1.0}),
        ("pong_s", {"url": "ws://a.example/", "pong_s": float("nan")}),
        ("max_unsent_bytes", {"url": "ws://a.example/", "max_unsent_bytes": 0}),
    ],
)
def test_a_config_that_cannot_work_names_its_field(field: str, options: dict[str, object]) -> None:
    with pytest.raises(MediaValueError) as caught:
        SocketConfig(**options)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert KEY not in str(caught.value)


def test_backoff_doubles_to_four_seconds() -> None:
    assert ATTEMPTS == 8
    assert [backoff(n, 0.0) for n in range(1, 9)] == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0]
    assert [backoff(n, -1.0) for n in (1, 5)] == pytest.approx([0.2, 3.2])
    assert [backoff(n, 1.0) for n in (1, 5)] == pytest.approx([0.3, 4.8])
    assert backoff(100_000, 0.0) == 4.0


@pytest.mark.parametrize(("attempt", "jitter", "field"), [(0, 0.0, "attempt"), (1, 1.1, "jitter")])
def test_backoff_refuses_what_it_cannot_count(attempt: int, jitter: float, field: str) -> None:
    with pytest.raises(MediaValueError) as caught:
        backoff(attempt, jitter)
    assert caught.value.field == field
