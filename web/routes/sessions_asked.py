"""What an action of the store door gets, and what it may raise. Values only.

An action is one store call. It returns what is answered: JSON as bytes, a value that JSON knows, or
None for 204.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ...adapters.stores.remote_wire import Feature, Fields
from ...core.store import (
    ConsumptionStore,
    EventQueueStore,
    InboxStore,
    PermissionStore,
    Store,
    SubAgentStores,
    TaskStore,
)
from ..calls import LiveAgent

MAX_SMALL = 1_048_576
"""Body of a request without messages."""
MAX_MESSAGES = 8 * 1_048_576
"""Body of a request with messages, their pictures included."""
MAX_LIST = 10_000
"""Messages, tasks or ids in one request."""

GROUPS: dict[Feature, type] = {
    "consumption": ConsumptionStore,
    "permissions": PermissionStore,
    "tasks": TaskStore,
    "inbox": InboxStore,
    "events": EventQueueStore,
    "sub_agents": SubAgentStores,
}


class Unsupported(LookupError):
    """The store lacks a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request: `body` is {} where none is expected, `again` says that the client repeats a
    write whose answer it did not get, `item` is the item that the path names, `live` the agent of a
    session that is a call on this server now. Groups raise Unsupported where the store lacks
    them."""

    session: str
    store: Store
    body: Fields
    again: bool = False
    item: str = ""
    live: LiveAgent | None = None

    @property
    def consumption(self) -> ConsumptionStore:
        if not isinstance(self.store, ConsumptionStore):
            raise Unsupported("consumption")
        return self.store

    @property
    def permissions(self) -> PermissionStore:
        if not isinstance(self.store, PermissionStore):
            raise Unsupported("permissions")
        return self.store

    @property
    def tasks(self) -> TaskStore:
        if not isinstance(self.store, TaskStore):
            raise Unsupported("tasks")
        return self.store

    @property
    def inbox(self) -> InboxStore:
        if not isinstance(self.store, InboxStore):
            raise Unsupported("inbox")
        return self.store

    @property
    def events(self) -> EventQueueStore:
        if not isinstance(self.store, EventQueueStore):
            raise Unsupported("events")
        return self.store

    @property
    def sub_agents(self) -> SubAgentStores:
        if not isinstance(self.store, SubAgentStores):
            raise Unsupported("sub_agents")
        return self.store


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """`owned`: the session's own agent alone may do it, not a stranger while a call is on.
    `limit` bounds the body in bytes."""

    run: Callable[[Asked], Awaitable[object]]
    limit: int = MAX_SMALL
    owned: bool = False
