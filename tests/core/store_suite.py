"""What every store must do: subclass StoreSuite, give a rig, inherit the tests.

    class TestMyStore(StoreSuite):
        @pytest.fixture
        async def rig(self) -> AsyncIterator[StoreRig]:
            rig = MyRig()            # has open(conversation) and reopen(store), see StoreRig
            yield rig
            await rig.aclose()       # close every store it opened

A rig may keep its data between tests: each test makes conversations of its own, with ids nobody
used before. A store that keeps nothing says `durable = False` in the class; its `reopen` is never
called, and what needs a restart is skipped by name. A store without an optional group inherits the
classes of the groups it has in place of StoreSuite. Stores that talk to another process mark the
class with `@pytest.mark.real_loop`. The suite needs pytest-asyncio and hypothesis, nothing of its
own; it judges what a store gives back, never how it keeps it.
"""

from __future__ import annotations

from tests.core.store_cases_events import EventQueueCases, SubAgentCases
from tests.core.store_cases_history import CounterCases, MessageCases, PermissionCases
from tests.core.store_cases_order import CancellationCases, ConcurrencyCases, IsolationCases
from tests.core.store_cases_records import InboxCases, TaskCases
from tests.core.store_rig import FullStore, StoreRig

__all__ = [
    "CancellationCases",
    "ConcurrencyCases",
    "CounterCases",
    "EventQueueCases",
    "FullStore",
    "InboxCases",
    "IsolationCases",
    "MessageCases",
    "PermissionCases",
    "StoreRig",
    "StoreSuite",
    "SubAgentCases",
    "TaskCases",
]


class StoreSuite(
    MessageCases,
    CounterCases,
    PermissionCases,
    TaskCases,
    InboxCases,
    EventQueueCases,
    SubAgentCases,
    ConcurrencyCases,
    CancellationCases,
    IsolationCases,
):
    """All promises of core.store, for a store that has every group."""
