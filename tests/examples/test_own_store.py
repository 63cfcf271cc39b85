"""examples/own_store.py keeps the promises of the groups it has, by the suite that ours pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.core.store_suite import MessageCases
from tests.examples.test_examples import example
from voxglove.core import (
    ConsumptionStore,
    EventQueueStore,
    InboxStore,
    PermissionStore,
    SubAgentStores,
    TaskStore,
    Usage,
)

STORE = example("own_store").JsonLines


class Rig:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def open(self, conversation: str) -> Any:
        return STORE(self._folder, conversation)

    async def reopen(self, store: Any) -> Any:
        return STORE(self._folder, store.identifier)


class TestMessages(MessageCases):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> Any:
        return Rig(tmp_path)


async def test_it_counts(tmp_path: Path) -> None:
    """The suite's cases of counters want the groups for billing and permissions as well."""
    store = STORE(tmp_path, "one")
    await store.add_tokens(Usage(10, 5))
    await store.increment_turn()
    assert (await store.get_token_count(), await store.get_turn_count()) == (15, 1)
    await store.reset_counters()
    assert (await store.get_token_count(), await store.get_turn_count()) == (0, 0)


def test_it_has_no_other_group(tmp_path: Path) -> None:
    store = STORE(tmp_path, "one")
    groups = (ConsumptionStore, PermissionStore, TaskStore, InboxStore, EventQueueStore)
    assert not [group for group in (*groups, SubAgentStores) if isinstance(store, group)]
