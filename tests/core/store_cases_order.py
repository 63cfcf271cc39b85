"""Cases of the store suite: many callers at once, cancellation, isolation and restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from tests.core.store_cases_events import event, pending
from tests.core.store_cases_records import ANSWERED, item, statuses, task
from tests.core.store_rig import FullStore, StoreCases, StoreRig, fresh, said, texts
from tests.core.store_values import AWKWARD_NAMES, every_flag
from voxglove.core import Message, Usage, UsageError

STEPS = (0, 1, 2, 3, 5, 8)
"""Turns of the loop after which a call is cancelled."""


async def cancelled_after(steps: int, work: Coroutine[Any, Any, object]) -> bool:
    """Run `work`, cancel it after `steps` turns of the loop; True if it had ended by then."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        for _ in range(steps):
            await asyncio.sleep(0)
        return not task.cancel()


def batch(name: str, size: int = 3) -> list[Message]:
    return [said(f"{name}.{at}", f"{name}.{at}") for at in range(size)]


async def fill(store: FullStore) -> None:
    """Something in every group."""
    await store.append_messages([every_flag(), said("hello", "m2")])
    await store.amend_message("m2", {"heard": "hel", "interrupted": True})
    await store.add_tokens(Usage(5, 6, 7, 8))
    await store.increment_turn()
    await store.set_permission("pay", "granted", "{}")
    await store.add_tasks([task("b"), task("a")])
    await store.add_inbox_item(item("one"))
    await store.add_inbox_item(item("two"))
    await store.resolve_inbox_item("two", "yes", ANSWERED)
    await store.event_queue().put(event("e1"))
    child = await store.create_sub_agent_store("cook", durable=True)
    await child.append_messages([said("soup")])


async def contents(store: FullStore) -> list[object]:
    """All a store gives back, group by group."""
    child = await store.create_sub_agent_store("cook", durable=True)
    return [
        await store.get_messages(),
        await store.get_token_count(),
        await store.get_token_consumption(),
        await store.get_turn_count(),
        await store.get_permission("pay", "{}"),
        await store.get_tasks(),
        await store.get_inbox_items(),
        await store.get_resolved_inbox_items(),
        list(await store.event_queue().peek()),
        await store.event_queue().size(),
        await texts(child),
    ]


class ConcurrencyCases(StoreCases):
    """Many calls of one store at once."""

    async def test_appends_at_once_are_all_there_and_whole(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        names = [f"b{n}" for n in range(40)]
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(store.append_messages(batch(name)))
        found = await texts(store)
        starts = found[::3]
        assert sorted(starts) == sorted(f"{name}.0" for name in names)
        wanted = [f"{first[:-2]}.{at}" for first in starts for at in range(3)]
        assert found == wanted, "batches stand one after the other"
        assert await texts(await self.again(rig, store)) == found

    async def test_of_appends_with_one_id_one_counts(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())

        async def try_append(n: int) -> bool:
            try:
                await store.append_messages([said(f"{n}.0"), said(f"{n}.1", "same")])
            except UsageError:
                return False
            return True

        async with asyncio.TaskGroup() as group:
            tries = [group.create_task(try_append(n)) for n in range(10)]
        (winner,) = [n for n, one in enumerate(tries) if one.result()]
        assert await texts(store) == [f"{winner}.0", f"{winner}.1"]

    async def test_counts_at_once_add_up(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        async with asyncio.TaskGroup() as group:
            for _ in range(30):
                group.create_task(store.add_tokens(Usage(2, 1, 1, 1)))
                group.create_task(store.increment_turn())
        assert (await store.get_token_count(), await store.get_turn_count()) == (90, 30)
        assert await store.get_token_consumption() == Usage(60, 30, 30, 30)

    async def test_amendments_at_once_do_not_undo_each_other(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.append_messages([said("one", "m")])
        async with asyncio.TaskGroup() as group:
            group.create_task(store.amend_message("m", {"text": "two"}))
            group.create_task(store.amend_message("m", {"heard": "tw"}))
            group.create_task(store.amend_message("m", {"unheard": "o"}))
            group.create_task(store.amend_message("m", {"interrupted": True}))
        (found,) = await store.get_messages()
        changed = (found.text, found.heard, found.unheard, found.interrupted)
        assert changed == ("two", "tw", "o", True)

    async def test_one_item_is_consumed_with_every_message(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        names = [f"i{n}" for n in range(10)]
        for name in names:
            await store.add_inbox_item(item(name))
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(store.consume_inbox_items([name], said(name)))
        assert sorted(await texts(store)) == names
        assert await statuses(store) == ["consumed"] * 10


class CancellationCases(StoreCases):
    """After a cancelled call: it was done or not at all, and the store goes on."""

    @pytest.mark.parametrize("steps", STEPS)
    async def test_a_cancelled_append_is_whole_or_absent(self, rig: StoreRig, steps: int) -> None:
        store = await rig.open(fresh())
        await store.append_messages([said("before")])
        await cancelled_after(steps, store.append_messages(batch("b")))
        assert len(await store.get_messages()) in (1, 4)
        try:
            await store.append_messages(batch("b"))
        except UsageError:  # it was stored the first time
            assert len(await store.get_messages()) == 4
        await store.append_messages([said("after")])
        wanted = ["before", "b.0", "b.1", "b.2", "after"]
        assert await texts(store) == wanted
        assert await texts(await self.again(rig, store)) == wanted

    @pytest.mark.parametrize("steps", STEPS)
    async def test_a_cancelled_amendment_can_be_made_good(self, rig: StoreRig, steps: int) -> None:
        store = await rig.open(fresh())
        await store.append_messages([said("one", "m")])
        await cancelled_after(steps, store.amend_message("m", {"text": "two", "heard": "tw"}))
        await store.amend_message("m", {"unheard": "o"})
        (found,) = await store.get_messages()
        assert (found.text, found.heard, found.unheard) in (
            ("one", None, "o"),
            ("two", "tw", "o"),
        )

    @pytest.mark.parametrize("steps", STEPS)
    async def test_a_cancelled_consumption_is_both_or_neither(
        self, rig: StoreRig, steps: int
    ) -> None:
        store = await rig.open(fresh())
        for name in ("a", "b"):
            await store.add_inbox_item(item(name))
            await store.resolve_inbox_item(name, "yes", ANSWERED)
        await cancelled_after(steps, store.consume_inbox_items(["a", "b"], said("both", "m")))
        await store.increment_turn()
        state = (await texts(store), await statuses(store))
        assert state in ((["both"], ["consumed"] * 2), ([], ["resolved"] * 2))

    @pytest.mark.parametrize("steps", STEPS)
    async def test_every_call_can_be_cancelled(self, rig: StoreRig, steps: int) -> None:
        store = await rig.open(fresh())
        queue = store.event_queue()
        calls: list[Callable[[], Awaitable[object]]] = [
            store.get_messages,
            store.get_token_count,
            lambda: store.add_tokens(Usage(1, 1)),
            store.increment_turn,
            store.reset_counters,
            lambda: store.set_permission("t", "granted", "{}"),
            lambda: store.add_tasks([task("a"), task("b")]),
            store.get_tasks,
            lambda: store.add_inbox_item(item("a")),
            lambda: store.resolve_inbox_item("a", "yes", ANSWERED),
            lambda: queue.put(event("a")),
            queue.peek,
            lambda: queue.ack(["a"]),
            lambda: store.create_sub_agent_store("cook", durable=True),
        ]

        async def run(make: Callable[[], Awaitable[object]]) -> None:
            await make()

        for make in calls:
            await cancelled_after(steps, run(make))
        await store.append_messages([said("after")])
        assert await texts(store) == ["after"]
        assert await store.get_tasks() in ([], [task("a"), task("b")])
        assert await pending(queue) in ([], ["a"])


class IsolationCases(StoreCases):
    """Conversations share nothing, and what is kept outlives a restart."""

    async def test_conversations_share_nothing(self, rig: StoreRig) -> None:
        stem = fresh()
        full = await rig.open(stem)
        others = [await rig.open(f"{stem}{end}") for end in ("_", "%", " ", "__coo", "2", "'")]
        others += [await rig.open(stem.upper())]
        empty = [await contents(other) for other in others]
        await fill(full)
        assert [await contents(other) for other in others] == empty
        before = await contents(full)
        for other in others:
            await fill(other)
            await other.reset_counters()
        assert await contents(full) == before

    async def test_a_restart_gives_everything_back(self, rig: StoreRig) -> None:
        self.needs_durable()
        for name in AWKWARD_NAMES:
            store = await rig.open(f"{fresh()} {name}")
            await fill(store)
            before = await contents(store)
            again = await rig.reopen(store)
            assert await contents(again) == before
            await again.append_messages([said("more")])
            assert (await texts(again))[-1] == "more"

    async def test_two_handles_of_a_conversation_see_the_same(self, rig: StoreRig) -> None:
        self.needs_durable()
        conversation = fresh()
        store = await rig.open(conversation)
        await store.add_inbox_item(item("a"))
        other = await rig.open(conversation)
        assert await other.resolve_inbox_item("a", "yes", ANSWERED)
        assert [one.response for one in await store.get_resolved_inbox_items()] == ["yes"]
        await store.append_messages([said("seen")])
        assert await texts(other) == ["seen"]
        (message,) = await store.get_messages()
        await other.amend_message(message.id, {"text": "changed"})
        assert await texts(store) == ["changed"]
