"""What only a wire can do wrong to a store: lost answers, late writes, servers that keep less."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import aiohttp
import pytest
from aiohttp import web

from tests.core.store_cases_records import ANSWERED, item
from tests.core.store_rig import said, texts
from tests.web.client import eventually
from tests.web.sessions_site import KeptInMemory, StoreSite, store_site
from voxglove.adapters.credentials import Secret
from voxglove.adapters.stores.remote import (
    RemoteConfig,
    RemoteStore,
    RemoteStoreError,
    RemoteStores,
)
from voxglove.adapters.stores.remote_wire import IDEMPOTENCY, REPEATED
from voxglove.core.errors import UnknownMessageError, UnknownRecordError, UsageError
from voxglove.core.external import AgentEvent
from voxglove.core.messages import Message, ToolResult, ToolResultData
from voxglove.core.usage import Usage
from voxglove.web.routes.sessions import GONE
from voxglove.web.routes.sessions_once import Once

pytestmark = pytest.mark.real_loop

EVENT = AgentEvent(id="e", source="desk", content="news")


@asynccontextmanager
async def serving(
    handle: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    """The address of a server that answers everything with `handle`."""
    app = web.Application(client_max_size=0)
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@dataclass
class Losing:
    """Stands before a store's door: passes requests on, and loses so many answers, each after its
    request was carried out. With `forgets` the server then restarts and knows no key any more."""

    site: StoreSite
    http: aiohttp.ClientSession
    lose: int = 0
    forgets: bool = False
    seen: list[Mapping[str, str]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(dict(request.headers))
        passed = {k: v for k, v in request.headers.items() if k.startswith(("Idem", "Vox"))}
        url, body = f"{self.site.url}{request.raw_path}", await request.read()
        async with self.http.request(request.method, url, data=body, headers=passed) as answer:
            raw = await answer.read()
        if self.lose:
            self.lose -= 1
            if self.forgets:
                self.site.sessions.once = Once(GONE)
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=answer.status, body=raw, content_type="application/json")


@dataclass
class Lossy:
    """A store over a line that loses answers, and the same store without the line."""

    store: RemoteStore
    proxy: Losing
    kept: KeptInMemory


@asynccontextmanager
async def lossy(*, attempts: int = 3) -> AsyncIterator[Lossy]:
    kept = KeptInMemory()
    async with store_site(kept.stores) as site, aiohttp.ClientSession() as http:
        proxy = Losing(site, http)
        async with serving(proxy.handle) as url, client(url, attempts=attempts) as stores:
            store = stores.store("s")
            await stores.features("s")
            yield Lossy(store, proxy, kept)


@asynccontextmanager
async def client(url: str, **how: object) -> AsyncIterator[RemoteStores]:
    stores = RemoteStores(RemoteConfig(url=url, **({"wait_s": 0.01} | how)))  # type: ignore[arg-type]
    try:
        yield stores
    finally:
        await stores.aclose()


WRITES: dict[str, Callable[[RemoteStore], Awaitable[object]]] = {
    "append": lambda store: store.append_messages([said("one", "m1"), said("two", "m2")]),
    "tokens": lambda store: store.add_tokens(Usage(2, 3)),
    "turn": lambda store: store.increment_turn(),
    "item": lambda store: store.add_inbox_item(item("new")),
    "resolve": lambda store: store.resolve_inbox_item("a", "yes", ANSWERED),
    "consume": lambda store: store.consume_inbox_items(["a"], said("shown", "m3")),
    "event": lambda store: store.event_queue().put(EVENT),
    "amend": lambda store: store.amend_message("m0", {"heard": "h"}),
}
COUNTS = ("tokens", "turn")
"""What cannot be compared with the store: their keys alone protect them, while the server lives."""


async def state(store: RemoteStore) -> list[object]:
    return [
        await store.get_messages(),
        await store.get_token_count(),
        await store.get_turn_count(),
        await store.get_inbox_items(),
        list(await store.event_queue().peek()),
    ]


@pytest.mark.parametrize(
    ("name", "forgets"),
    [
        (name, forgets)
        for name in WRITES
        for forgets in (False, True)
        if not forgets or name not in COUNTS
    ],
)
async def test_a_write_whose_answer_was_lost_is_done_once(name: str, forgets: bool) -> None:
    found = []
    for lose in (0, 2):
        async with lossy() as line:
            await line.store.append_messages([said("zero", "m0")])
            await line.store.add_inbox_item(item("a"))
            line.proxy.lose, line.proxy.forgets = lose, forgets
            before = len(line.proxy.seen)
            answer = await WRITES[name](line.store)
            sent = line.proxy.seen[before:]
            assert len(sent) == lose + 1
            assert len({one[IDEMPOTENCY] for one in sent}) == 1
            assert [REPEATED in one for one in sent] == [False] + [True] * lose
            found.append((answer, await state(line.store)))
    assert found[0] == found[1], "the caller cannot tell that answers were lost"


async def test_a_first_attempt_is_never_taken_for_a_repetition() -> None:
    async with lossy() as line:
        await line.store.append_messages([said("one", "m1")])
        with pytest.raises(UsageError, match="m1"):
            await line.store.append_messages([said("one", "m1")])


async def test_a_repeated_append_of_other_words_is_a_conflict() -> None:
    async with lossy() as line:
        await line.kept.open("s").append_messages([said("theirs", "m1")])
        line.proxy.lose, line.proxy.forgets = 1, True
        with pytest.raises(UsageError):
            await line.store.append_messages([said("mine", "m1")])
        assert await texts(line.store) == ["theirs"]


async def test_a_failure_that_lasts_is_a_store_error_and_the_write_never_comes_late() -> None:
    async with lossy(attempts=2) as line:
        line.proxy.lose = 2
        with pytest.raises(RemoteStoreError) as failed:
            await line.store.increment_turn()
        assert failed.value.retryable and failed.value.__cause__ is not None
        key = line.proxy.seen[-1][IDEMPOTENCY]
        assert await line.store.get_turn_count() == 1, "it was done, its answer alone was lost"
        url = f"{line.proxy.site.url}/sessions/s/turns"
        async with line.proxy.http.post(url, headers={IDEMPOTENCY: key}) as late:
            assert late.status == 204
        assert await line.store.get_turn_count() == 1


async def test_a_cancelled_write_that_comes_late_is_not_done() -> None:
    holding, went = asyncio.Event(), asyncio.Event()
    kept = KeptInMemory()

    async with store_site(kept.stores) as site, aiohttp.ClientSession() as http:
        proxy = Losing(site, http)

        async def slow(request: web.Request) -> web.StreamResponse:
            if request.method == "POST" and not went.is_set():
                await request.read()  # whole, so that it can be passed on when its sender is gone
                went.set()
                await holding.wait()
            return await proxy.handle(request)

        async with serving(slow) as url, client(url) as stores, asyncio.TaskGroup() as group:
            store = stores.store("s")
            writing = group.create_task(store.append_messages([said("late", "m1")]))
            await went.wait()
            writing.cancel()
            await asyncio.wait([writing])
            assert await texts(store) == []
            came = len(proxy.seen)
            holding.set()
            await eventually(lambda: len(proxy.seen) == came + 1)
            await asyncio.sleep(0.05)
            assert await texts(store) == [], "the reader was told it had not happened"
            await store.append_messages([said("now", "m1")])
            assert await texts(store) == ["now"]


# -- what the server says


def problem_of(status: int, code: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.json_response({"code": code, "message": "why"}, status=status)

    return handle


REFUSALS: list[tuple[int, str, type[Exception]]] = [
    (404, "unknown_message", UnknownMessageError),
    (404, "unknown_record", UnknownRecordError),
    (409, "conflict", UsageError),
    (422, "invalid", UsageError),
    (400, "bad_session", UsageError),
    (401, "no_key", RemoteStoreError),
    (403, "bad_origin", RemoteStoreError),
    (404, "no_store", RemoteStoreError),
    (413, "too_big", RemoteStoreError),
    (503, "store_failed", RemoteStoreError),
]


@pytest.mark.parametrize(("status", "code", "kind"), REFUSALS)
async def test_a_problem_becomes_the_error_it_was(
    status: int, code: str, kind: type[Exception]
) -> None:
    async with serving(problem_of(status, code)) as url, client(url, attempts=1) as stores:
        with pytest.raises(kind, match="why") as failed:
            await stores.store("s").increment_turn()
        assert type(failed.value) is kind
        if isinstance(failed.value, RemoteStoreError):
            assert (failed.value.status, failed.value.retryable) == (status, status >= 500)


async def test_no_error_shows_the_key_and_no_redirect_takes_it_away() -> None:
    key = Secret("s3cr3t-s3cr3t-s3cr3t")
    went: list[str | None] = []

    async def elsewhere(request: web.Request) -> web.StreamResponse:
        went.append(request.headers.get("Authorization"))
        raise web.HTTPTemporaryRedirect("http://127.0.0.1:9/elsewhere")

    async with serving(elsewhere) as url, client(url, key=key) as stores:
        with pytest.raises(RemoteStoreError) as failed:
            await stores.store("s").get_messages()
    assert went == [f"Bearer {key.reveal()}"]
    assert failed.value.status == 307 and not failed.value.retryable
    assert key.reveal() not in f"{failed.value!r} {stores._config!r}"


BROKEN = [b"", b"null", b"{}", b"[1]", b'[{"text": 5}]', b"[{]", b"\xff", b"[" * 2_000, b'"x"']


@pytest.mark.parametrize("raw", BROKEN, ids=lambda raw: ascii(raw[:12]))
async def test_an_answer_that_cannot_be_read_is_the_servers_fault(raw: bytes) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(body=raw, content_type="application/json")

    async with serving(handle) as url, client(url) as stores:
        store = stores.store("s")
        reads: list[Callable[[], Awaitable[object]]] = [
            store.get_messages,
            store.get_token_count,
            store.get_inbox_items,
            lambda: store.amend_message("m", {}),
            lambda: store.resolve_inbox_item("a", "b", ANSWERED),
        ]
        for read in reads:
            with pytest.raises(RemoteStoreError):
                await read()


async def test_a_server_that_does_not_answer_is_left_after_the_timeout() -> None:
    over = asyncio.Event()

    async def never(request: web.Request) -> web.StreamResponse:
        await over.wait()
        return web.Response()

    async with serving(never) as url, client(url, timeout_s=0.05, attempts=2) as stores:
        with pytest.raises(RemoteStoreError, match=r"no answer within 0\.05 s"):
            await stores.store("s").get_messages()
        over.set()


# -- servers that keep less


async def test_a_group_that_the_server_lacks_lives_in_memory_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = KeptInMemory()
    async with store_site(kept.stores) as site:
        stores = RemoteStores(
            RemoteConfig(url=site.url), features=["consumption", "permissions", "tasks"]
        )
        store = stores.store("s")
        try:
            with caplog.at_level(logging.WARNING):
                await store.add_inbox_item(item("a"))
                assert await store.resolve_inbox_item("a", "yes", ANSWERED)
                await store.consume_inbox_items(["a"], said("shown", "m1"))
                await store.event_queue().put(EVENT)
            told = [vars(record)["group"] for record in caplog.records if "group" in vars(record)]
            assert told == ["inbox", "events"]
            assert [one.status for one in await store.get_inbox_items()] == ["consumed"]
            assert await texts(store) == ["shown"]
            with pytest.raises(UnknownRecordError):
                await store.consume_inbox_items(["b"], said("not shown", "m2"))
            assert await texts(store) == ["shown"]
            assert await stores.store("s").get_inbox_items() == [], "gone with its object"
        finally:
            await stores.aclose()


async def test_a_server_that_says_nothing_of_groups_wants_them_named() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.json_response([])

    async with serving(handle) as url, client(url) as stores:
        with pytest.raises(RemoteStoreError, match="pass features="):
            await stores.store("s").get_inbox_items()
        assert await stores.store("s").get_messages() == []


# -- what is large or deep


async def test_a_result_as_deep_as_can_be_stored_passes() -> None:
    deep: object = 1
    for _ in range(196):
        deep = [deep]
    result = ToolResult("t", "c", ToolResultData("success", deep))
    message = Message(sender="user", id="m", tool_results=(result,))
    async with store_site(KeptInMemory().stores) as site, client(site.url) as stores:
        store = stores.store("s")
        await store.append_messages([message])
        assert await store.get_messages() == [message]
        assert await store.amend_message("m", {"heard": "x"}) == replace(message, heard="x")


# -- misuse


@pytest.mark.parametrize("bad", ["", "  ", ".", "..", "a\x00b", "a\nb", "x" * 201, "\ud800"])
def test_an_id_that_no_address_can_carry_is_refused(bad: str) -> None:
    with pytest.raises(UsageError, match="session_id"):
        RemoteStores(RemoteConfig(url="http://127.0.0.1:9")).store(bad)


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:80", "ftp://a", "http://", "http://u:p@a", "http://a?x=1", "http://[::1"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match=r"RemoteConfig\.url"):
        RemoteConfig(url=url)


async def test_after_aclose_stores_say_so() -> None:
    async with store_site(KeptInMemory().stores) as site, client(site.url) as stores:
        store = stores.store("s")
        await store.append_messages([said("hi")])
        await stores.aclose()
        await stores.aclose()
        with pytest.raises(RemoteStoreError, match="closed"):
            await store.get_messages()
