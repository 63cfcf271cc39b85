"""The store door: who may come in, what a body may look like, and that nothing at it breaks."""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from tests.web.client import config, eventually
from tests.web.echo import EchoCalls
from tests.web.sessions_site import KEY, KeptInMemory, StoreSite, store_site
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.scripted import EchoModel
from voxglove.adapters.stores.remote_wire import IDEMPOTENCY
from voxglove.core.errors import StoreError
from voxglove.core.store import Store
from voxglove.core.stores.memory import MemoryStore
from voxglove.web.config import Config
from voxglove.web.routes.sessions import ACTIONS, MAX_AT_ONCE
from voxglove.web.routes.sessions_asked import MAX_SMALL
from voxglove.web.stores import IN_MEMORY, Stores

pytestmark = pytest.mark.real_loop

DOORS = [(method, f"/sessions/s{path.replace('{item}', 'i')}") for method, path in ACTIONS]
DOORS.append(("POST", "/chat"))
ANYWHERE = config(host="0.0.0.0", api_keys=(Secret(KEY),))
BEARER = {"Authorization": f"Bearer {KEY}"}


@asynccontextmanager
async def site(
    configured: Config | None = None, stores: Stores | None = None
) -> AsyncIterator[tuple[StoreSite, aiohttp.ClientSession]]:
    async with (
        store_site(stores or KeptInMemory().stores, configured=configured) as here,
        aiohttp.ClientSession() as http,
    ):
        yield here, http


async def ask(
    http: aiohttp.ClientSession,
    method: str,
    url: str,
    body: object = None,
    **headers: str,
) -> tuple[int, object]:
    """Status and parsed answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = None if body is None else io.BytesIO(json.dumps(body).encode())
    async with http.request(method, url, data=sent, headers=named) as answer:
        raw = await answer.read()
        return answer.status, json.loads(raw) if raw else None


async def raw(url: str, *pieces: bytes) -> tuple[int, bytes]:
    """Bytes as they are, and status and head of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    try:
        for piece in pieces:
            writer.write(piece)
        await writer.drain()
        async with asyncio.timeout(5):
            answer = await reader.read(4_000)
        return int(answer.split(b" ", 2)[1]), answer
    finally:
        writer.close()


def request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


# -- who may come in


@pytest.mark.parametrize("origin", ["none", "own"])
async def test_beyond_loopback_every_door_wants_a_key_whatever_the_origin_says(origin: str) -> None:
    async with site(ANYWHERE) as (here, http):
        headers = {} if origin == "none" else {"Origin": here.url}
        for method, path in DOORS:
            async with http.request(method, here.url + path, headers=headers) as answer:
                found = await answer.json()
                assert (answer.status, found["code"]) == (401, "no_key"), path
                assert answer.headers["WWW-Authenticate"] == "Bearer"
            wrong = headers | {"Authorization": f"Bearer {KEY}x"}
            async with http.request(method, here.url + path, headers=wrong) as answer:
                assert answer.status == 401, path


async def test_with_a_key_every_door_opens() -> None:
    async with site(ANYWHERE) as (here, http):
        for method, path in DOORS:
            async with http.request(method, here.url + path, headers=BEARER) as answer:
                assert answer.status in (200, 204, 404, 422), path
                if answer.status == 404:
                    assert (await answer.json())["code"] == "no_chat"


async def test_a_foreign_page_is_refused_at_every_door_key_or_not() -> None:
    for configured in (config(), ANYWHERE):
        async with site(configured) as (here, http):
            headers = BEARER | {"Origin": "http://evil.example"}
            for method, path in DOORS:
                async with http.request(method, here.url + path, headers=headers) as answer:
                    assert (answer.status, (await answer.json())["code"]) == (403, "bad_origin")


@pytest.mark.parametrize("name", ["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"])
async def test_what_a_proxy_passes_to_a_loopback_server_wants_a_key(name: str) -> None:
    async with site(config(api_keys=(Secret(KEY),))) as (here, http):
        assert (await ask(http, "GET", f"{here.url}/sessions/s/messages"))[0] == 200
        for method, path in DOORS:
            async with http.request(
                method, here.url + path, headers={name: "203.0.113.9"}
            ) as answer:
                assert answer.status == 401, path
        async with http.get(
            f"{here.url}/sessions/s/messages", headers=BEARER | {name: "203.0.113.9"}
        ) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("stores", [None, IN_MEMORY], ids=["none", "memory"])
async def test_without_a_durable_store_the_door_is_closed(stores: Stores | None) -> None:
    async with store_site(stores) as here, aiohttp.ClientSession() as http:
        for method, path in DOORS[:-1]:
            status, found = await ask(http, method, here.url + path)
            assert (status, isinstance(found, dict) and found["code"]) == (404, "no_store")


# -- ids


IDS = {
    "%2e%2e": 400,
    "..": 400,
    ".": 400,
    "%2E": 400,
    "%00": 400,
    "a%0ab": 400,
    "%20": 400,
    "x" * 200: 200,
    "x" * 201: 400,
    "x" * 7_000: 400,
    "x" * 9_000: 400,
    "%F0%9F%A6%8A" * 200: 200,
    "..%2f..%2fetc%2fpasswd": 200,
    "a%2Fb": 200,
    "a%252Fb": 200,
    "%ff": 200,
    "%": 200,
    "a/b": 404,
    "a?b": 200,
    "": 404,
    "a\\..\\b": 200,
}
"""Of `GET /sessions/{id}/tokens`. What looks like a path is one odd name, no more."""


async def test_an_id_is_a_name_and_never_a_path() -> None:
    kept = KeptInMemory()
    async with site(stores=kept.stores) as (here, _):
        found = {
            name: (await raw(here.url, request("GET", f"/sessions/{name}/tokens")))[0]
            for name in IDS
        }
        assert found == IDS
        assert "../../etc/passwd" in kept.kept and "a/b" in kept.kept and "a%2Fb" in kept.kept


# -- bodies


WRONG: list[tuple[str, str, object, str]] = [
    ("POST", "/messages", {}, "messages"),
    ("POST", "/messages", {"messages": {}}, "messages"),
    ("POST", "/messages", {"messages": [5]}, "messages[0]"),
    ("POST", "/messages", {"messages": [{"text": "a"}]}, "messages[0].sender"),
    ("POST", "/messages", {"messages": [{"sender": "bot", "id": "a"}]}, "messages[0].sender"),
    ("POST", "/messages", {"messages": [{"sender": "user"}]}, "messages[0].id"),
    (
        "POST",
        "/messages",
        {"messages": [{"sender": "user", "id": "a", "tool_calls": [{"id": "c"}]}]},
        "messages[0].tool_calls.0.tool_name",
    ),
    ("PATCH", "/messages", {"id": "a"}, "patch"),
    ("PATCH", "/messages", {"patch": {"text": "a"}}, "id"),
    ("PATCH", "/messages", {"id": "a", "patch": {"sender": "user"}}, "patch.sender"),
    ("PATCH", "/messages", {"id": "a", "patch": {"heard": 5}}, "patch.heard"),
    ("POST", "/tokens", {"tokens_in": -1}, "tokens_in"),
    ("POST", "/tokens", {"tokens_out": True}, "tokens_out"),
    ("POST", "/tokens", {"tokens_out": 1.5}, "tokens_out"),
    ("PUT", "/permissions", {"tool_name": "a", "input_key": "b", "status": "maybe"}, "status"),
    ("PUT", "/permissions", {"tool_name": 1, "input_key": "b", "status": "unset"}, "tool_name"),
    ("POST", "/permissions/check", {"tool_name": "a"}, "input_key"),
    ("PUT", "/tasks", {"tasks": [{"id": "a", "content": "b"}]}, "tasks[0].activeForm"),
    ("POST", "/tasks/update", {"taskId": "a", "updates": {"done": True}}, "updates.done"),
    ("POST", "/inbox", {"item": {"id": "a", "tag": " "}}, "item.tag"),
    ("POST", "/inbox", {"item": []}, "item"),
    ("POST", "/inbox/update", {"itemId": "a", "updates": {"status": "done"}}, "updates.status"),
    ("POST", "/inbox/i/resolve", {}, "response"),
    ("POST", "/inbox/resolve", {"response": "yes"}, "itemId"),
    ("POST", "/inbox/consume", {"itemIds": [1], "message": {}}, "itemIds[0]"),
    ("POST", "/inbox/consume", {"itemIds": [], "message": {"sender": "x"}}, "message[0].sender"),
    ("POST", "/events", {"event": {"source": "a", "content": ""}}, "event.content"),
    ("POST", "/events", {"event": {"source": "a", "content": "b", "kind": 1}}, "event.kind"),
    ("POST", "/events/ack", {"ids": "a"}, "ids"),
    ("POST", "/stores", {"namespace": ""}, "namespace"),
    ("POST", "/stores", {"namespace": "x" * 200}, "namespace"),
]


async def test_what_is_wrong_is_named_by_its_path() -> None:
    async with site() as (here, http):
        for method, path, body, field in WRONG:
            status, found = await ask(http, method, f"{here.url}/sessions/s{path}", body)
            assert isinstance(found, dict), path
            assert (status, found["field"]) == (422, field), (path, found)
            assert found["message"].startswith(field)


async def test_what_is_not_there_and_what_is_taken() -> None:
    async with site() as (here, http):
        base = f"{here.url}/sessions/s"
        told = {"id": "no", "patch": {"text": "x"}}
        status, found = await ask(http, "PATCH", f"{base}/messages", told)
        assert (status, found) == (
            404,
            {"code": "unknown_message", "message": "no message 'no' in store 's'", "field": "id"},
        )
        message = {"messages": [{"sender": "user", "id": "m", "text": "hi"}]}
        assert (await ask(http, "POST", f"{base}/messages", message))[0] == 204
        status, found = await ask(http, "POST", f"{base}/messages", message)
        assert (status, isinstance(found, dict) and found["code"]) == (409, "conflict")
        assert (await ask(http, "DELETE", f"{base}/messages"))[0] == 405


async def test_sizes_are_bounded() -> None:
    async with site() as (here, http):
        url = f"{here.url}/sessions/s"
        long = "x" * MAX_SMALL
        status, found = await ask(http, "POST", f"{url}/inbox/i/resolve", {"response": long})
        assert (status, isinstance(found, dict) and found["code"]) == (413, "too_big")
        message = {"messages": [{"sender": "user", "id": "m", "text": long}]}
        assert (await ask(http, "POST", f"{url}/messages", message))[0] == 204, "8 MiB for those"
        many = {"ids": ["x"] * 10_001}
        assert (await ask(http, "POST", f"{url}/events/ack", many))[0] == 422


def malformed(rng: random.Random) -> bytes:
    """Bytes that a client might send by mistake or to do harm."""
    good = {
        "messages": [{"sender": "user", "id": "a", "text": "b", "tool_calls": []}],
        "item": {"id": "a", "tag": "b", "request": "c", "created_at": "d"},
        "event": {"source": "a", "content": "b"},
        "itemIds": ["a"],
        "ids": ["a"],
        "updates": {},
        "patch": {},
    }
    odd: list[object] = [
        None,
        1,
        -1,
        1e308,
        True,
        "",
        "x",
        [],
        {},
        [[]],
        {"a": None},
        "\u0000",
        2**63,
    ]
    name = rng.choice(list(good))
    match rng.randrange(5):
        case 0:
            return rng.randbytes(rng.randrange(200))
        case 1:
            text = json.dumps(good).encode()
            return text[: rng.randrange(len(text))]
        case 2:
            return json.dumps(good | {name: rng.choice(odd)}).encode()
        case 3:
            key = rng.choice(["sender", "id", "text", "tool_calls", "tag", "content", "status"])
            return json.dumps({name: [{key: rng.choice(odd)}], key: rng.choice(odd)}).encode()
        case _:
            return rng.choice([b"[" * 5_000, b'{"a":NaN}', b'{"ids":["\\ud800"]}', b"\xff{}"])


async def test_a_thousand_malformed_bodies_leave_the_server_healthy() -> None:
    rng, seen = random.Random(20), Counter[int]()
    async with (
        store_site(KeptInMemory().stores, model=EchoModel) as here,
        aiohttp.ClientSession() as http,
    ):
        for _ in range(1_000):
            method, path = rng.choice(DOORS)
            async with http.request(method, here.url + path, data=malformed(rng)) as answer:
                seen[answer.status] += 1
        assert set(seen) == {200, 204, 400, 409, 422}, seen
        url = f"{here.url}/sessions/after"
        message = {"messages": [{"sender": "user", "id": "m", "text": "hi"}]}
        assert (await ask(http, "POST", f"{url}/messages", message))[0] == 204
        status, found = await ask(http, "GET", f"{url}/messages")
        assert (status, found) == (200, message["messages"])
        assert here.sessions.at_once == 0 and here.chats.active == 0


# -- once, and how many at once


async def test_a_key_is_one_write_however_often_and_how_fast_it_comes() -> None:
    async with site() as (here, http):
        url, key = f"{here.url}/sessions/s/turns", {IDEMPOTENCY: "one"}

        async def write() -> int:
            async with http.post(url, headers=key) as answer:
                return answer.status

        async with asyncio.TaskGroup() as group:
            writes = [group.create_task(write()) for _ in range(10)]
        assert {one.result() for one in writes} == {204}
        assert await ask(http, "GET", url) == (200, {"count": 1})
        async with http.post(f"{here.url}/sessions/other/turns", headers=key) as answer:
            assert answer.status == 204
        assert await ask(http, "GET", f"{here.url}/sessions/other/turns") == (200, {"count": 1})


async def test_a_key_with_another_request_is_refused() -> None:
    async with site() as (here, http):
        url, key = f"{here.url}/sessions/s/tokens", {IDEMPOTENCY: "one"}
        for body, status in (({"tokens_in": 1}, 204), ({"tokens_in": 2}, 422)):
            async with http.post(url, json=body, headers=key) as answer:
                assert answer.status == status
        async with http.post(url, json={}, headers={IDEMPOTENCY: "x" * 129}) as answer:
            assert (answer.status, (await answer.json())["code"]) == (400, "bad_key")


class Failing(MemoryStore):
    """Fails until told otherwise; may hold calls back."""

    broken = True
    gate: asyncio.Event | None = None

    async def increment_turn(self) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.broken:
            raise StoreError("no room left at postgresql://user:pw@host")
        await super().increment_turn()


def always(store: Store) -> Stores:
    return Stores(open=lambda _: store, durable=True, name="one")


async def test_a_store_that_fails_is_a_503_without_its_words_and_is_tried_again() -> None:
    store = Failing("s")
    async with site(stores=always(store)) as (here, http):
        url, key = f"{here.url}/sessions/s/turns", {IDEMPOTENCY: "one"}
        async with http.post(url, headers=key) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
            assert "host" not in await answer.text()
        store.broken = False
        async with http.post(url, headers=key) as answer:
            assert answer.status == 204
        assert await ask(http, "GET", url) == (200, {"count": 1})


async def test_too_many_requests_at_once_are_refused_not_queued() -> None:
    store = Failing("s")
    store.broken, store.gate = False, asyncio.Event()
    async with site(stores=always(store)) as (here, http):
        url = f"{here.url}/sessions/s/turns"

        async def write() -> int:
            async with http.post(url) as answer:
                return answer.status

        async with asyncio.TaskGroup() as group:
            held = [group.create_task(write()) for _ in range(MAX_AT_ONCE)]
            await eventually(lambda: here.sessions.at_once == MAX_AT_ONCE)
            async with http.get(url) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
            store.gate.set()
        assert {one.result() for one in held} == {204}
        assert await ask(http, "GET", url) == (200, {"count": MAX_AT_ONCE})
        assert here.server.metrics.value("store_requests_total", answer="2xx") == MAX_AT_ONCE + 1


async def test_a_writer_that_goes_away_has_written() -> None:
    store = Failing("s")
    store.broken, store.gate = False, asyncio.Event()
    async with site(stores=always(store)) as (here, http):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", int(here.url.rpartition(":")[2])
        )
        writer.write(request("POST", "/sessions/s/turns"))
        await eventually(lambda: here.sessions.at_once == 1)
        writer.close()
        store.gate.set()
        await eventually(lambda: here.sessions.at_once == 0)
        assert await ask(http, "GET", f"{here.url}/sessions/s/turns") == (200, {"count": 1})


# -- a session that is a call


async def test_the_history_of_a_call_belongs_to_its_agent_alone() -> None:
    calls = EchoCalls()
    async with (
        store_site(KeptInMemory().stores, build=calls.factory) as here,
        aiohttp.ClientSession() as http,
    ):
        async with http.post(f"{here.url}/session") as answer:
            offer = await answer.json()
        async with http.ws_connect(offer["ws_url"]) as ws:
            await ws.receive()
            base = f"{here.url}/sessions/{offer['call_id']}"
            for method, path in ACTIONS:
                status, found = await ask(http, method, f"{base}{path.replace('{item}', 'i')}")
                owned = ACTIONS[method, path].owned
                assert (status == 409) is owned, (method, path, found)
                assert not owned or isinstance(found, dict) and found["code"] == "in_call"
            await ws.send_str('{"t": "hangup"}')
            await eventually(lambda: here.server.registry.active == 0)
        assert (await ask(http, "POST", f"{base}/turns"))[0] == 204, "the call is over"
