"""MemoryStore through the store suite: the reference for every other store."""

from __future__ import annotations

import pytest

from tests.core.store_suite import FullStore, StoreRig, StoreSuite
from voxglove.core import MemoryStore


class MemoryRig:
    """Opens a store; the same id gives another store, for nothing is kept."""

    async def open(self, conversation: str) -> FullStore:
        return MemoryStore(conversation)

    async def reopen(self, store: FullStore) -> FullStore:
        raise AssertionError("a memory store has no restart")


class TestMemoryStore(StoreSuite):
    durable = False

    @pytest.fixture
    def rig(self) -> StoreRig:
        return MemoryRig()
