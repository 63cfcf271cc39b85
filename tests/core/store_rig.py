"""What the cases of the store suite work with: a store of every group, and the rig that opens one.

Owned by tests/core/store_suite.py, whose docstring says how to use it.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import ClassVar, Protocol

import pytest

from voxglove.core import Message, Store
from voxglove.core.store import (
    ConsumptionStore,
    EventQueueStore,
    InboxStore,
    PermissionStore,
    SubAgentStores,
    TaskStore,
)


class FullStore(
    Store,
    ConsumptionStore,
    PermissionStore,
    TaskStore,
    InboxStore,
    EventQueueStore,
    SubAgentStores,
    Protocol,
):
    """A store with every optional group."""


class StoreRig(Protocol):
    """How the suite gets at stores. Its owner, the fixture `rig`, closes them all at the end."""

    async def open(self, conversation: str) -> FullStore:
        """A store of this conversation; what was kept of it is there. May be called twice."""
        ...

    async def reopen(self, store: FullStore) -> FullStore:
        """Close `store` and open its conversation anew, as after a restart of the process.

        Called only where the suite says `durable`.
        """
        ...


class StoreCases:
    """What all groups of cases share. `durable` False leaves out what needs a restart."""

    durable: ClassVar[bool] = True

    @pytest.fixture
    def rig(self) -> StoreRig:
        raise NotImplementedError("a subclass gives its rig")

    async def again(self, rig: StoreRig, store: FullStore) -> FullStore:
        """The store after a restart; where nothing outlives one, the store itself."""
        return await rig.reopen(store) if self.durable else store

    async def before_and_after(self, rig: StoreRig, store: FullStore) -> AsyncIterator[FullStore]:
        """The store, and then, where it is durable, the store after a restart."""
        yield store
        if self.durable:
            yield await rig.reopen(store)

    def needs_durable(self) -> None:
        if not self.durable:
            pytest.skip("this store keeps nothing after it is closed, and says so")


def fresh() -> str:
    """The id of a conversation nobody had before."""
    return f"talk-{uuid.uuid4().hex}"


def said(text: str, message_id: str = "") -> Message:
    """A user message with an id of its own."""
    return Message(sender="user", text=text, id=message_id or f"msg_{uuid.uuid4().hex}")


async def texts(store: Store) -> list[str]:
    return [message.text for message in await store.get_messages()]
