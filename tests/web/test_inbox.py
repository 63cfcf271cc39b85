"""Answers from outside: over REST into a store, and into a call that is on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from tests.web.client import Client
from tests.web.sessions_site import KeptInMemory, StoreSite, store_site
from tests.web.test_sessions import ask
from voxglove.adapters.models.scripted import Call, ScriptedModel, Step, say
from voxglove.core import Agent, Glove
from voxglove.core.factory import CallInfo
from voxglove.core.records import InboxItem, item_json
from voxglove.core.stores.memory import MemoryStore
from voxglove.web.build import call_factory, open_shared
from voxglove.web.config import Config, PartConfig, ServerConfig
from voxglove.web.config_store import StoreConfig
from voxglove.web.stores import Stores, open_stores

pytestmark = pytest.mark.real_loop

ITEM = InboxItem(id="i1", tag="restock", request="tell me", created_at="2025-03-01T10:00:00+00:00")


async def test_an_item_goes_its_whole_way_over_rest() -> None:
    """The four calls of the seeds, with their paths and bodies, and what we add to them."""
    kept = KeptInMemory()
    async with store_site(kept.stores) as here, aiohttp.ClientSession() as http:
        base = f"{here.url}/sessions/s/inbox"
        assert await ask(http, "GET", base) == (200, [])
        assert await ask(http, "POST", base, {"item": item_json(ITEM)}) == (204, None)
        assert await ask(http, "GET", base) == (200, [item_json(ITEM)])
        assert (await ask(http, "POST", base, {"item": item_json(ITEM)}))[0] == 409
        for item, resolved in (("other", False), ("i1", True), ("i1", False)):
            told = {"response": "it is back"}
            found = await ask(http, "POST", f"{base}/{item}/resolve", told)
            assert found == (200, {"resolved": resolved}), item
        status, items = await ask(http, "GET", f"{base}/resolved")
        assert status == 200 and isinstance(items, list)
        assert (items[0]["response"], items[0]["status"]) == ("it is back", "resolved")
        assert items[0]["resolved_at"].endswith("+00:00"), "ISO 8601, UTC (spec core 19, 20)"
        message = {"sender": "user", "id": "m1", "text": "shown", "framework_context": "inbox"}
        consumed = await ask(
            http, "POST", f"{base}/consume", {"itemIds": ["i1"], "message": message}
        )
        assert consumed == (204, None)
        assert await ask(http, "GET", f"{base}/resolved") == (200, [])
        assert [one.text for one in await kept.open("s").get_messages()] == ["shown"]
        change = {"itemId": "i1", "updates": {"response": "no"}}
        status, changed = await ask(http, "POST", f"{base}/update", change)
        assert status == 200 and isinstance(changed, dict) and changed["response"] == "no"


async def test_fault_20_an_answer_counts_once_and_in_its_own_session_alone() -> None:
    kept = KeptInMemory()
    async with store_site(kept.stores) as here, aiohttp.ClientSession() as http:
        await ask(http, "POST", f"{here.url}/sessions/s/inbox", {"item": item_json(ITEM)})
        theirs = f"{here.url}/sessions/t/inbox/i1/resolve"
        assert await ask(http, "POST", theirs, {"response": "x"}) == (200, {"resolved": False})
        mine = f"{here.url}/sessions/s/inbox/i1/resolve"
        async with asyncio.TaskGroup() as group:
            tries = [
                group.create_task(ask(http, "POST", mine, {"response": str(n)})) for n in range(8)
            ]
        assert [one.result()[1] for one in tries].count({"resolved": True}) == 1


async def test_a_store_without_an_inbox_says_so() -> None:
    class Plain:
        """History alone."""

        def __init__(self) -> None:
            inner = MemoryStore("s")
            self.identifier = inner.identifier
            self.get_messages = inner.get_messages
            self.append_messages = inner.append_messages
            self.amend_message = inner.amend_message
            self.get_token_count = inner.get_token_count
            self.add_tokens = inner.add_tokens
            self.get_turn_count = inner.get_turn_count
            self.increment_turn = inner.increment_turn
            self.reset_counters = inner.reset_counters

    stores = Stores(open=lambda _: Plain(), durable=True, name="plain")
    async with store_site(stores) as here, aiohttp.ClientSession() as http:
        base = f"{here.url}/sessions/s"
        assert await ask(http, "GET", base) == (200, {"id": "s", "features": []})
        for path in ("/inbox", "/tasks", "/events", "/consumption"):
            status, found = await ask(http, "GET", base + path)
            assert isinstance(found, dict)
            assert (status, found["code"]) == (404, "unsupported"), path
        assert await ask(http, "GET", f"{base}/messages") == (200, [])


async def test_an_event_is_taken_once() -> None:
    async with store_site(KeptInMemory().stores) as here, aiohttp.ClientSession() as http:
        base = f"{here.url}/sessions/s/events"
        event = {"source": "desk", "content": "news", "id": "e1"}
        for accepted in (True, False):
            assert await ask(http, "POST", base, {"event": event}) == (200, {"accepted": accepted})
        unnamed = {"source": "desk", "content": "more"}
        for _ in range(2):
            assert await ask(http, "POST", base, {"event": unnamed}) == (200, {"accepted": True})
        assert await ask(http, "GET", f"{base}/size") == (200, {"count": 3})
        assert await ask(http, "POST", f"{base}/ack", {"ids": ["e1"]}) == (204, None)
        assert await ask(http, "GET", f"{base}/size") == (200, {"count": 2})


# -- a call that is on


@asynccontextmanager
async def on_a_call(
    folder: Path, *steps: Step | str
) -> AsyncIterator[tuple[StoreSite, Client, str, ScriptedModel]]:
    """A caller on a line to an agent with `steps`, whose history lies in an SQLite file."""
    (folder / "spoken.json").write_text("[]")
    config = Config(
        server=ServerConfig(port=0),
        stt=PartConfig(name="scripted", arg=str(folder / "spoken.json")),
        tts=PartConfig(name="scripted"),
        model=PartConfig(name="scripted", arg="echo"),
        store=StoreConfig(kind="sqlite", path=str(folder / "store.db")),
    )
    model = ScriptedModel(steps)

    def factory(info: CallInfo) -> Agent:
        return Glove(model=model).build(store=info.store)

    stores = await open_stores(config.store, {})
    shared = replace(await open_shared(config, {}), stores=stores, factories={"demo": factory})
    try:
        async with (
            store_site(stores, configured=config, build=call_factory(shared)) as here,
            aiohttp.ClientSession() as http,
        ):
            async with http.post(f"{here.url}/session") as answer:
                offer = await answer.json()
            client = Client(await http.ws_connect(offer["ws_url"]))
            await client.until_kind("ready")
            yield here, client, f"{here.url}/sessions/{offer['call_id']}", model
            await client.say(t="hangup")
            await client.until_closed()
    finally:
        await stores.aclose()
        shared.close()


def said_so(client: Client, text: str) -> bool:
    return any(one["t"] == "heard" and text in str(one["heard"]) for one in client.texts)


async def test_an_answer_from_outside_is_spoken_on_the_call_that_waits_for_it(
    tmp_path: Path,
) -> None:
    post = Call("glove_post_to_inbox", {"tag": "restock", "request": "when is it back?"})
    steps = (say(post), say("I ask."), say("It is back.", expects="item(s) resolved"))
    async with (
        on_a_call(tmp_path, *steps) as (_, client, base, model),
        aiohttp.ClientSession() as http,
    ):
        await client.say(t="say", text="tell me when it is back")
        await client.until(lambda one: said_so(one, "I ask."))
        _, items = await ask(http, "GET", f"{base}/inbox")
        assert isinstance(items, list)
        url = f"{base}/inbox/{items[0]['id']}/resolve"
        told = {"response": "since this morning"}
        assert await ask(http, "POST", url, told) == (200, {"resolved": True})
        assert await ask(http, "POST", url, told) == (200, {"resolved": False})
        await client.until(lambda one: said_so(one, "It is back."))
        model.verify()
        _, items = await ask(http, "GET", f"{base}/inbox")
        assert isinstance(items, list) and items[0]["status"] == "consumed"


async def test_an_event_from_outside_is_spoken_on_the_call(tmp_path: Path) -> None:
    steps = (say("Your taxi is here.", expects="taxi"),)
    async with (
        on_a_call(tmp_path, *steps) as (_, client, base, model),
        aiohttp.ClientSession() as http,
    ):
        event = {"event": {"source": "desk", "content": "the taxi waits", "id": "e1"}}
        assert await ask(http, "POST", f"{base}/events", event) == (200, {"accepted": True})
        await client.until(lambda one: said_so(one, "Your taxi is here."))
        assert await ask(http, "POST", f"{base}/events", event) == (200, {"accepted": False})
        model.verify()


async def test_a_calls_history_is_read_over_the_door(tmp_path: Path) -> None:
    async with (
        on_a_call(tmp_path, "Hello there.") as (_, client, base, _),
        aiohttp.ClientSession() as http,
    ):
        await client.say(t="say", text="hello")
        await client.until(lambda one: said_so(one, "Hello there."))
        status, found = await ask(http, "GET", f"{base}/messages")
        assert status == 200 and isinstance(found, list)
        assert [one["text"] for one in found] == ["hello", "Hello there."]
