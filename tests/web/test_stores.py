"""The server's store: what the configuration may say, what ends the start, what a call gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.core.store_rig import said, texts
from tests.web.sessions_site import KEY, KeptInMemory, store_site
from voxglove.adapters.credentials import Secret
from voxglove.adapters.models.scripted import Call, ScriptedModel, say
from voxglove.core import Agent, Glove, Tool, ToolContext
from voxglove.core.factory import CallInfo as AgentCallInfo
from voxglove.core.stores.memory import MemoryStore
from voxglove.core.stores.sqlite import SqliteStore
from voxglove.media.transport import CallInfo
from voxglove.web.build import Shared, open_call, open_shared
from voxglove.web.config import Config, PartConfig, ServerConfig, load
from voxglove.web.config_reader import ConfigError
from voxglove.web.config_report import report
from voxglove.web.config_store import StoreConfig
from voxglove.web.stores import IN_MEMORY, Stores, open_stores

# -- what the configuration may say

TEXTS = {
    "memory": StoreConfig(),
    "sqlite:/var/lib/calls.db": StoreConfig(kind="sqlite", path="/var/lib/calls.db"),
    "sqlite:C:\\calls.db": StoreConfig(kind="sqlite", path="C:\\calls.db"),
    "postgres": StoreConfig(kind="postgres"),
    "postgres:host=db user=x": StoreConfig(kind="postgres", dsn=Secret("host=db user=x")),
    "postgres:postgresql://u:p@h/d": StoreConfig(
        kind="postgres", dsn=Secret("postgresql://u:p@h/d")
    ),
    "postgresql://u:p@h/d": StoreConfig(kind="postgres", dsn=Secret("postgresql://u:p@h/d")),
    "postgres://u:p@h/d": StoreConfig(kind="postgres", dsn=Secret("postgres://u:p@h/d")),
    "remote:https://h:8443/calls": StoreConfig(kind="remote", url="https://h:8443/calls"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_store_is_one_text_in_the_file_or_the_environment(text: str, tmp_path: Path) -> None:
    file = tmp_path / "voxglove.yaml"
    file.write_text(f"store: '{text}'\n")
    assert load(file, {}).store == TEXTS[text]
    (tmp_path / "empty.yaml").write_text("")
    assert load(tmp_path / "empty.yaml", {"VOXGLOVE_STORE": text}).store == TEXTS[text]


def test_a_store_may_be_a_table(tmp_path: Path) -> None:
    file = tmp_path / "voxglove.yaml"
    file.write_text("store: {kind: remote, url: 'http://h:1'}\n")
    found = load(file, {"VOXGLOVE_STORE__KEY": KEY}).store
    assert found == StoreConfig(kind="remote", url="http://h:1", key=Secret(KEY))


BAD = {
    "mysql://u:s3cret-word@h/d": r"store\.kind: 'mysql'",
    "memory:x": r"store\.path",
    "sqlite": r"store\.path",
    "sqlite:": r"store\.",
    "remote:h:80": r"store\.url",
    "remote:ftp://h": r"store\.url",
    "remote:http://u:s3cret-word@h": r"store\.url",
    "remote": r"store\.url",
}


@pytest.mark.parametrize("text", BAD)
def test_a_store_that_makes_no_sense_is_named_and_shows_no_secret(
    text: str, tmp_path: Path
) -> None:
    (tmp_path / "v.yaml").write_text("")
    with pytest.raises(ConfigError, match=BAD[text]) as refused:
        load(tmp_path / "v.yaml", {"VOXGLOVE_STORE": text})
    assert "s3cret" not in str(refused.value)


def test_the_dsn_and_the_key_are_secrets() -> None:
    dsn = "postgresql://user:s3cret%2Dword@host/d"
    config = Config(store=StoreConfig(kind="postgres", dsn=Secret(dsn)))
    assert "s3cret" not in f"{report(config, {}).text()}{config!r}"
    assert {dsn, "s3cret-word"} <= set(config.secrets)
    remote = Config(store=StoreConfig(kind="remote", url="http://h", key=Secret(KEY)))
    assert KEY not in report(remote, {}).text() and KEY in remote.secrets


# -- opening it


async def test_memory_is_fresh_for_each_call() -> None:
    stores = await open_stores(StoreConfig(), {})
    assert stores is IN_MEMORY and not stores.durable
    await stores.open("s").append_messages([said("gone")])
    assert await texts(stores.open("s")) == []


async def test_a_file_is_kept_and_given_back_at_the_end(tmp_path: Path) -> None:
    config = StoreConfig(kind="sqlite", path=str(tmp_path / "calls.db"))
    stores = await open_stores(config, {})
    assert stores.durable and stores.name == f"sqlite:{tmp_path / 'calls.db'}"
    async with stores.session("s") as store:
        await store.append_messages([said("kept")])
    async with stores.session("s") as store:
        assert await texts(store) == ["kept"]
    await stores.aclose()
    async with SqliteStore(tmp_path / "calls.db", "s") as store:
        assert await texts(store) == ["kept"]


async def test_what_cannot_be_opened_ends_the_start_in_words(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, whatever its name says" * 50)
    no_folder = StoreConfig(kind="sqlite", path=str(tmp_path / "no" / "calls.db"))
    for config, wanted in (
        (no_folder, r"store\.path.*make the folder"),
        (StoreConfig(kind="sqlite", path=str(tmp_path / "text.db")), "not a database"),
        (StoreConfig(kind="sqlite", path=str(tmp_path)), "store"),
        (StoreConfig(kind="postgres"), r"store\.dsn.*DATABASE_URL"),
    ):
        with pytest.raises(ConfigError, match=wanted):
            await open_stores(config, {})


@pytest.mark.real_loop
async def test_another_server_is_asked_at_the_start() -> None:
    async with store_site(KeptInMemory().stores) as here:
        stores = await open_stores(StoreConfig(kind="remote", url=here.url), {})
        async with stores.session("s") as store:
            await store.append_messages([said("over there")])
        async with stores.session("s") as store:
            assert await texts(store) == ["over there"]
        await stores.aclose()
    async with store_site(None) as here:
        with pytest.raises(ConfigError, match="this server keeps no store"):
            await open_stores(StoreConfig(kind="remote", url=here.url), {})


# -- what a call gets


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Shared]:
    (tmp_path / "spoken.json").write_text("[]")
    config = Config(
        server=ServerConfig(port=0),
        stt=PartConfig(name="scripted", arg=str(tmp_path / "spoken.json")),
        tts=PartConfig(name="scripted"),
        model=PartConfig(name="scripted", arg="echo"),
    )
    stores = await open_stores(StoreConfig(kind="sqlite", path=str(tmp_path / "s.db")), {})
    shared = replace(await open_shared(config, {}), stores=stores)
    yield shared
    await stores.aclose()
    shared.close()


INFO = CallInfo(call_id="call_1", line="websocket", peer="test", agent="demo")


async def test_the_front_desk_keeps_its_calls_where_the_server_does(
    shared: Shared, tmp_path: Path
) -> None:
    async with open_call(shared, INFO) as opened:
        assert opened.agent.store.identifier == "call_1"
        await opened.agent.process_request("hello")
    await shared.stores.aclose()
    async with SqliteStore(tmp_path / "s.db", "call_1") as store:
        assert await texts(store) == ["hello", "You said: hello"]


async def test_without_a_durable_store_a_call_has_one_of_its_own(shared: Shared) -> None:
    async with open_call(replace(shared, stores=IN_MEMORY), INFO) as opened:
        assert isinstance(opened.agent.store, MemoryStore)
        assert opened.agent.store.identifier == "call_1"


class Nothing(BaseModel):
    """No input."""


async def test_a_tool_that_outlives_its_call_still_writes_its_result(shared: Shared) -> None:
    """An un_abortable tool ends in the server's group; the store waits for it (DESIGN 5.6)."""
    going, may_end = asyncio.Event(), asyncio.Event()

    async def pay(arguments: object, context: ToolContext) -> str:
        going.set()
        await may_end.wait()
        return "paid"

    model = ScriptedModel([say(Call("pay", {}, "c1")), "Done."])
    tool = Tool(name="pay", description="Pays.", do=pay, input_model=Nothing, un_abortable=True)

    def factory(info: AgentCallInfo) -> Agent:
        return Glove(model=model).fold(tool).build(store=info.store)

    theirs = replace(shared, factories={"demo": factory})
    async with asyncio.TaskGroup() as server:
        async with open_call(theirs, INFO, None, server) as opened:
            agent = opened.agent
            async with agent.running(server), asyncio.TaskGroup() as group:
                asking = group.create_task(agent.process_request("pay it"))
                await going.wait()
                asking.cancel()
        assert agent.outstanding
        may_end.set()
    async with shared.stores.session("call_1") as store:
        results = [one for message in await store.get_messages() for one in message.tool_results]
    assert [(one.call_id, one.result.data) for one in results] == [("c1", "paid")]


async def test_a_store_is_let_go_when_the_call_could_not_be_built(shared: Shared) -> None:
    held: list[SqliteStore] = []

    def opened(session_id: str) -> SqliteStore:
        store = shared.stores.open(session_id)
        assert isinstance(store, SqliteStore)
        held.append(store)
        return store

    def factory(info: AgentCallInfo) -> Agent:
        raise RuntimeError("not today")

    stores = Stores(open=opened, durable=True, name="watched")
    theirs = replace(shared, stores=stores, factories={"demo": factory})
    with pytest.raises(RuntimeError, match="not today"):
        async with open_call(theirs, INFO):
            pytest.fail("it opened")
    assert [store._database for store in held] == [None], (
        "a store that was never used holds nothing"
    )
