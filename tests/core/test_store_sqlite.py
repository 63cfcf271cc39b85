"""SqliteStore through the store suite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.core.store_suite import FullStore, StoreRig, StoreSuite
from voxglove.core.stores import SqliteStore


class SqliteRig:
    """All conversations of a test in one file, as in a server."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: dict[int, SqliteStore] = {}

    async def open(self, conversation: str) -> FullStore:
        store = SqliteStore(self.path, conversation)
        self._opened[id(store)] = store
        return store

    async def reopen(self, store: FullStore) -> FullStore:
        await self._opened.pop(id(store)).aclose()
        return await self.open(store.identifier)

    async def aclose(self) -> None:
        for store in self._opened.values():
            await store.aclose()


class TestSqliteStore(StoreSuite):
    @pytest.fixture
    async def rig(self, tmp_path: Path) -> AsyncIterator[StoreRig]:
        rig = SqliteRig(tmp_path / "agent.db")
        yield rig
        await rig.aclose()
