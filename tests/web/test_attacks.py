"""What a stranger can send at the doors: every answer is a refusal in words, never a 500, never a
line of somebody else's in the log, and the server goes on. Loopback only, bounded in count."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import random
from collections.abc import Callable
from io import StringIO

import pytest
from aiohttp import web

from tests.web.client import Client, Site, config, eventually, site
from voxglove.adapters.credentials import Secret
from voxglove.media.events import Slot
from voxglove.web import connections
from voxglove.web.auth import Signer
from voxglove.web.calls import ENDED_KEPT
from voxglove.web.config import LogConfig
from voxglove.web.logs import handler, is_worth_a_line

pytestmark = pytest.mark.real_loop

KEY = "k" * 20
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


async def raw(here: Site, *pieces: bytes, pause_s: float = 0.0) -> str:
    """Send bytes as they are, and the first kilobytes of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", _port(here))
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause_s)
        async with asyncio.timeout(5):
            return (await reader.read(8_000)).decode("latin-1")
    finally:
        writer.close()


def ask(
    here: Site,
    line: str = "POST /session",
    *,
    host: str | None = None,
    extra: str = "",
    body: bytes = b"",
) -> bytes:
    host = f"127.0.0.1:{_port(here)}" if host is None else host
    head = f"{line} HTTP/1.1\r\nHost: {host}\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
    return head.encode("latin-1") + body


def status(answer: str) -> int:
    return int(answer.split(" ", 2)[1])


def _port(here: Site) -> int:
    return int(here.url.rpartition(":")[2])


HOSTS = {
    "localhost": 201,
    "LOCALHOST:1": 201,
    "[::1]": 201,
    "page.localhost": 201,
    "localhost.": 403,
    "evil.example": 403,
    "127.0.0.1.evil.example": 403,
    "localhost.evil.example": 403,
    "0x7f.1": 403,
    "2130706433": 403,
    "[::ffff:8.8.8.8]": 403,
    "[::1": 400,
    "[::1]evil": 400,
    "evil@127.0.0.1": 400,
    "127.0.0.1#evil.example": 400,
    "127.0.0.1/../evil": 400,
    "127.0.0.1 evil": 400,
    "127.0.0.1:99999": 400,
    "127.0.0.1:80:80": 400,
    "127.0.0.1%0d%0aX: y": 400,
    "": 400,
}


async def test_only_loopback_names_reach_a_loopback_server_and_malformed_ones_nobody() -> None:
    async with site() as here:
        for host, wanted in HOSTS.items():
            answer = await raw(here, ask(here, host=host))
            assert status(answer) == wanted, (host, answer[:200])


ORIGINS = {
    "http://{own}": 201,
    "HTTP://{own}": 201,
    "http://{own}.": 403,
    "http://{own}/": 403,
    "http://{own}/evil": 403,
    "http://user@{own}": 403,
    "http://{own}, http://evil.example": 403,
    "http://evil.example\r\nOrigin: http://{own}": 403,
    "http://{own}\r\nOrigin: http://evil.example": 403,
    "http://[": 403,
    "http://[::1": 403,
    "http://\u00e9.example": 403,
    "null": 403,
    "": 403,
}


async def test_an_origin_is_read_strictly_and_never_breaks_the_server() -> None:
    async with site() as here:
        own = f"127.0.0.1:{_port(here)}"
        for origin, wanted in ORIGINS.items():
            sent = f"Origin: {origin.format(own=own)}\r\n"
            for line in ("POST /session", "GET /ws?token=x"):
                answer = await raw(here, ask(here, line, extra=sent))
                expected = wanted if "session" in line or wanted == 403 else 426
                assert status(answer) == expected, (origin, line, answer[:200])


BODIES: list[tuple[bytes, int]] = [
    (b'{"agent": NaN}', 400),
    (b'{"agent": 1e999}', 400),
    (b"[" * 4_000, 400),
    (b"9" * 4_000, 400),
    (b'{"agent": "\\ud800"}', 400),
    (b'{"agent": {"a": []}}', 400),
    (b'{"agent": "demo", "agent": "other"}', 400),
    (b'{"agent": "other", "agent": "demo"}', 201),
    (b"\xff\xfe{", 400),
    (b'{"agent": "a\\nb"}', 400),
    (b" " * 4_096, 201),
    (b" " * 4_097, 413),
]


async def test_no_body_breaks_the_door() -> None:
    async with site() as here:
        for body, wanted in BODIES:
            assert status(await raw(here, ask(here, body=body))) == wanted, body[:40]
        bomb = ask(here, extra="Content-Encoding: gzip\r\n", body=gzip.compress(b" " * 1_000_000))
        assert status(await raw(here, bomb)) == 413
        lie = ask(here, extra="Content-Encoding: gzip\r\n", body=b"no gzip")
        assert status(await raw(here, lie)) == 400
        both = ask(here, extra="Transfer-Encoding: chunked\r\n", body=b"2\r\n{}\r\n0\r\n\r\n")
        assert status(await raw(here, both)) == 400


async def test_a_body_in_pieces_is_one_body_and_a_slow_one_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with site() as here:
        whole = ask(here, body=b'{"agent": "demo"}')
        assert status(await raw(here, whole[:-6], whole[-6:], pause_s=0.05)) == 201
        monkeypatch.setattr("voxglove.web.routes.body.BODY_S", 0.05)
        assert status(await raw(here, whole[:-6])) == 408
        await eventually(lambda: not _handlers(here)())


async def test_huge_and_many_headers_are_refused() -> None:
    async with site() as here:
        assert status(await raw(here, ask(here, extra=f"X-A: {'a' * 20_000}\r\n"))) == 400
        many = "".join(f"X-{i}: a\r\n" for i in range(500))
        assert status(await raw(here, ask(here, extra=many))) == 400
        long_line = await raw(here, ask(here, f"GET /static/{'a' * 20_000}"))
        assert status(long_line) in (400, 414)
        assert (await here.session())["token"]


async def test_only_the_files_of_the_page_are_served() -> None:
    paths = (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/..%5capp.py",
        "/static/%00",
        "/static/app.js%00.html",
        "/static/.",
        "/static//etc/passwd",
        "/static/app.js/",
        "/static",
        "//evil.example/",
    )
    async with site() as here:
        for path in paths:
            answer = await raw(here, ask(here, f"GET {path}"))
            assert status(answer) == 404, path
            assert "Location:" not in answer, "no redirect to elsewhere"


async def test_nothing_that_is_sent_comes_back_as_a_header() -> None:
    async with site() as here:
        for line in (
            "GET /%0d%0aX-Evil:1",
            "GET /static/a%0d%0aX-Evil:1",
            "GET /ws?token=%0d%0aX-Evil:1",
        ):
            answer = await raw(here, ask(here, line))
            assert "\r\nX-Evil" not in answer


async def test_silent_and_slow_connections_are_closed_and_served_ones_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with site() as here:
        server = _handlers(here)
        slow = [await asyncio.open_connection("127.0.0.1", _port(here)) for _ in range(20)]
        slow[0][1].write(b"POST /session HTTP/1.1\r\nHost: 127")
        client = await here.connect()
        await client.until_kind("ready")
        await eventually(lambda: len(server()) >= 21)
        doorstep, now = here.server.connections, 1_000.0
        assert doorstep.sweep(server(), now) == 0
        assert doorstep.sweep(server(), now + connections.FIRST_REQUEST_S - 1) == 0
        assert doorstep.sweep(server(), now + connections.FIRST_REQUEST_S) == 20
        for reader, writer in slow:
            async with asyncio.timeout(2):
                assert await reader.read() == b""
            writer.close()
        await client.say(t="say", text="hi")
        await client.until_kind("speech_end")
        await client.ws.close()


async def test_beyond_the_limit_a_silent_connection_is_not_waited_for() -> None:
    async with site() as here:
        server = _handlers(here)
        silent = [await asyncio.open_connection("127.0.0.1", _port(here)) for _ in range(5)]
        await eventually(lambda: len(server()) == 5)
        assert connections.Connections(5).sweep(server(), 0.0) == 0
        assert connections.Connections(4).sweep(server(), 0.0) == 5
        for _, writer in silent:
            writer.close()


def _handlers(here: Site) -> Callable[[], list[web.RequestHandler]]:
    """The connections of the site's only server."""

    def present() -> list[web.RequestHandler]:
        found = here.runner.server
        assert found is not None
        return found.connections

    return present


async def test_a_flood_of_sessions_costs_no_memory_of_ours_and_full_is_full() -> None:
    async with site(config(max_calls=2)) as here:
        tokens = [str((await here.session())["token"]) for _ in range(200)]
        assert here.server.registry.active == 0, "a token is no call"
        first, second = await here.connect(tokens[0]), await here.connect(tokens[1])
        for token in tokens[2:6]:
            answer = await raw(here, ask(here, f"GET /ws?token={token}", extra=UPGRADE))
            assert status(answer) == 503
            assert "Retry-After: 5" in answer
        await first.ws.close()
        await second.ws.close()
        await eventually(lambda: here.server.registry.active == 0)
        assert ENDED_KEPT >= 1_000, "ended calls are remembered, within a bound"


async def test_detached_calls_count_until_they_are_gone() -> None:
    async with site(config(max_calls=3), linger_s=0.3) as here:
        for _ in range(3):
            client = await here.connect()
            await client.until_kind("ready")
            await client.drop()
        answer = await raw(here, ask(here))
        assert status(answer) == 503, "a line that is waited for is a line in use"
        await eventually(lambda: here.server.registry.active == 0)
        assert status(await raw(here, ask(here))) == 201


async def test_tokens_of_other_servers_times_and_calls_open_nothing() -> None:
    secret = config(secret=Secret("s" * 16))
    async with site(secret) as here:
        past = Signer.of("s" * 16, lambda: 1_000.0).sign("call_1", "demo", "start", 60)[0]
        other = Signer.of("t" * 16).sign("call_1", "demo", "start", 60)[0]
        unborn = Signer.of("s" * 16).sign("call_1", "demo", "attach", 60)[0]
        client = await here.connect()
        ready = await client.until_kind("ready")
        await client.say(t="hangup")
        await client.until_closed()
        await eventually(lambda: here.server.registry.active == 0)
        for token in (past, other, unborn, str(ready["token"]), "%00", "a.b", ".", "x" * 5_000):
            answer = await raw(here, ask(here, f"GET /ws?token={token}", extra=UPGRADE))
            assert status(answer) == 401, token[:40]
            assert token[:40] not in answer or len(token) < 4
        assert here.server.registry.active == 0


async def test_metrics_want_a_key_whatever_the_origin_says() -> None:
    here_config = config(host="0.0.0.0", api_keys=(Secret(KEY),))
    async with site(here_config, origin=None) as here:
        own = {"Origin": here.url}
        for headers, wanted in (
            ({}, 401),
            (own, 401),
            (own | _bearer(KEY), 200),
            (_bearer(KEY), 200),
        ):
            async with here.http.get(f"{here.url}/metrics", headers=headers) as answer:
                assert answer.status == wanted, headers
                text = await answer.text()
                assert KEY not in text


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


COMMANDS: list[dict[str, object]] = [
    {"t": "say", "text": "hi"},
    {"t": "mute", "on": True},
    {"t": "ptt", "down": True},
    {"t": "commit"},
    {"t": "barge_in"},
    {"t": "interrupt"},
    {"t": "resolve", "id": "no such slot", "value": {"a": [1] * 50}},
    {"t": "reject", "id": "x" * 200, "reason": "y" * 8_000},
    {"t": "playback", "epoch": 0, "pos": 2**53 - 1},
    {"t": "cleared", "epoch": 0, "pos": 0},
    {"t": "playback_done", "turnId": "1"},
    {"t": "speaker", "speaker": "me"},
    {"t": "image", "mime": "image/png", "data": ""},
    {"t": "mute", "on": False},
    {"t": "ptt", "down": False},
]


@pytest.mark.parametrize("when", ["at once", "thinking", "speaking", "asking"])
async def test_every_command_in_every_state_leaves_the_call_alive(when: str) -> None:
    async with site() as here:
        client = await here.connect()
        await _bring_to(client, when)
        commands = COMMANDS[:]
        random.Random(when).shuffle(commands)
        for command in commands:
            await client.say(**command)
            await client.ws.send_bytes(b"\1\2\3")
        await _still_alive(client)


BAD_TEXTS = [
    "",
    "null",
    "[]",
    '{"t": {}}',
    '{"t": "say", "text": NaN}',
    '{"t": "resolve", "id": "a", "value": 1e999}',
    '{"t": "resolve", "id": "a", "value": ' + "9" * 4_000 + "}",
    '{"t": "resolve", "id": "a", "value": 9223372036854775808}',
    '{"t": "resolve", "id": "a", "value": ' + "[" * 40 + "]" * 40 + "}",
    '{"t": "resolve", "id": "a", "value": ' + "[" * 30_000 + "]" * 30_000 + "}",
    '{"t": "resolve", "id": "a", "value": "\\ud800"}',
    '{"t": "say", "text": "\\u0000\\udfff"}',
    '{"t": "say", "text": "' + "x" * 8_001 + '"}',
    '{"t": "playback", "epoch": true, "pos": 0}',
    '{"t": "playback", "epoch": 0, "pos": -1}',
    '{"t": "cleared", "epoch": 9, "pos": 0}',
]


@pytest.mark.parametrize("when", ["at once", "speaking", "asking"])
async def test_a_json_bomb_is_answered_and_nothing_else(when: str) -> None:
    async with site() as here:
        client = await here.connect()
        await _bring_to(client, when)
        for text in BAD_TEXTS:
            await client.ws.send_str(text)
        await client.until(lambda c: c.kinds().count("error") == len(BAD_TEXTS))
        assert {text["code"] for text in client.texts if text["t"] == "error"} == {"bad_message"}
        await _still_alive(client)


async def test_a_key_that_comes_twice_counts_once_and_the_last_one_is_it() -> None:
    async with site() as here:
        client = await here.connect()
        await client.until_kind("ready")
        await client.ws.send_str('{"t": "hangup", "text": "first", "t": "say", "text": "second"}')
        utterance = await client.until_kind("utterance")
        assert utterance["text"] == "second"
        await _still_alive(client)


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537])
@pytest.mark.parametrize("kind", ["text", "sound"])
async def test_the_border_of_64_kib(size: int, kind: str) -> None:
    async with site() as here:
        client = await here.connect()
        await client.until_kind("ready")
        if kind == "sound":
            await client.ws.send_bytes(bytes(size))
        else:
            frame = '{"t": "resolve", "id": "a", "value": "%s"}'
            await client.ws.send_str(frame % ("é" * ((size - len(frame) + 2) // 2)).ljust(1))
            size = len((frame % ("é" * ((size - len(frame) + 2) // 2))).encode())
        if size > 65_536:
            assert await client.until_closed() == 1009
            return
        await _still_alive(client)


async def test_what_an_agent_shows_is_bounded_and_never_stops_the_call() -> None:
    async with site() as here:
        client = await here.connect()
        ready = await client.until_kind("ready")
        call = here.calls.calls[str(ready["callId"])]
        for odd in ({"a": "x" * 70_000}, {"a": float("nan")}, {"a": object()}):
            call.emit(Slot(id="s", renderer="generic", input=odd, strategy="stay"))
        await client.until(lambda c: c.kinds().count("error") == 3)
        errors = [text for text in client.texts if text["t"] == "error"]
        assert {text["code"] for text in errors} == {"unsendable"}
        assert all(len(json.dumps(text)) < 500 for text in errors)
        await _still_alive(client)


async def test_a_mute_that_was_refused_is_not_shown_as_muted() -> None:
    async with site() as here:
        client = await here.connect()
        await client.until_kind("ready")
        for _ in range(40):
            await client.say(t="say", text="a long story")
        await client.say(t="mute", on=True)
        await client.until(lambda c: any(t.get("code") == "busy" for t in c.texts))
        await client.say(t="impair", loss=0, burst=1, jitter_ms=0, down=False)
        await client.until(lambda c: any(t.get("code") == "unsupported" for t in c.texts))
        assert not any(text.get("muted") for text in client.texts)
        await client.ws.close()


def test_a_log_line_stays_one_line_whatever_is_in_it() -> None:
    out = StringIO()
    log = logging.getLogger("tests.attack")
    log.propagate = False
    log.handlers[:] = [handler(LogConfig(json=False), ("supersecretvalue",), out)]
    fake = "x\n2026-01-01T00:00:00 info    call ended\r\x1b[2J\u2028"
    try:
        raise ValueError(f"{fake} supersecretvalue")
    except ValueError:
        log.exception("failed", extra={"agent": fake})
    lines = out.getvalue().splitlines()
    assert len(lines) > 2
    assert all(line.startswith("  | ") for line in lines[1:])
    assert "\x1b" not in out.getvalue()
    assert "supersecretvalue" not in out.getvalue()


async def test_a_strangers_noise_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with site() as here:
        with caplog.at_level(logging.INFO):
            for noise in (
                b"\x16\x03\x01\0\xff\0",
                b"GET / HTTP/9\r\n\r\n",
                b"GET /\xe9 HTTP/1.1\r\n\r\n",
            ):
                await raw(here, noise)
        assert not [
            record
            for record in caplog.records
            if is_worth_a_line(record) and record.levelno >= logging.ERROR
        ]


async def _bring_to(client: Client, when: str) -> None:
    await client.until_kind("ready")
    if when == "at once":
        return
    await client.say(t="say", text="ask" if when == "asking" else "something rather long to say")
    if when == "asking":
        await client.until_kind("slot")
    else:
        await client.until(lambda c: when in c.states())


async def _still_alive(client: Client) -> None:
    """The call takes another command, and ends by a hang-up."""
    await client.say(t="impair", loss=0, burst=1, jitter_ms=0, down=False)
    await client.until(lambda c: any(text.get("code") == "unsupported" for text in c.texts))
    await client.say(t="hangup")
    assert await client.until_closed() == 1000
