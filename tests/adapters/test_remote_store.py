"""RemoteStore through the store suite, over a real socket, and what only a wire can do wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.core.store_suite import (
    CancellationCases,
    ConcurrencyCases,
    FullStore,
    InboxCases,
    StoreRig,
    StoreSuite,
    SubAgentCases,
    TaskCases,
)
from tests.web.sessions_site import KeptInMemory, store_site
from voxglove.adapters.stores.remote import RemoteConfig, RemoteStores
from voxglove.web.config_store import StoreConfig
from voxglove.web.stores import Stores, open_stores

pytestmark = pytest.mark.real_loop


class RemoteRig:
    """A server over `stores`; a restart is that of the client."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._stack = AsyncExitStack()
        self._url = ""
        self._clients: dict[int, RemoteStores] = {}

    async def open(self, conversation: str) -> FullStore:
        if not self._url:
            site = await self._stack.enter_async_context(store_site(self._stores))
            self._url = site.url
        client = RemoteStores(RemoteConfig(url=self._url))
        store = client.store(conversation)
        self._clients[id(store)] = client
        self._stack.push_async_callback(client.aclose)
        return store

    async def reopen(self, store: FullStore) -> FullStore:
        await self._clients.pop(id(store)).aclose()
        return await self.open(store.identifier)

    async def aclose(self) -> None:
        await self._stack.aclose()
        await self._stores.aclose()


class TestRemoteOverSqlite(StoreSuite):
    @pytest.fixture
    async def rig(self, tmp_path: Path) -> AsyncIterator[StoreRig]:
        config = StoreConfig(kind="sqlite", path=str(tmp_path / "store.db"))
        rig = RemoteRig(await open_stores(config, {}))
        yield rig
        await rig.aclose()


class OverMemory:
    """The reference behind the door: what SQLite might forgive shows here."""

    @pytest.fixture
    async def rig(self) -> AsyncIterator[StoreRig]:
        rig = RemoteRig(KeptInMemory().stores)
        yield rig
        await rig.aclose()


class TestRemoteOverMemory(
    OverMemory, TaskCases, InboxCases, SubAgentCases, ConcurrencyCases, CancellationCases
):
    """What may end differently with a store that never waits."""


@pytest.mark.soak
class TestRemoteOverMemoryWhole(OverMemory, StoreSuite):
    """Everything."""
