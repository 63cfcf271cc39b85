"""Cases of the store suite: the event queue and the stores of sub-agents (spec core 5, 10)."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.core.store_rig import StoreCases, StoreRig, fresh, said, texts
from tests.core.store_values import NASTY, json_objects, many, text
from voxglove.core import AgentEvent, EventQueue, Usage

REMEMBERED = 1024
"""Ids of at least so many events are known again (spec core 10.1)."""


def event(name: str, content: str = "news") -> AgentEvent:
    return AgentEvent(id=name, source="desk", content=content)


async def pending(queue: EventQueue) -> list[str]:
    return [one.id for one in await queue.peek()]


shown = text.filter(lambda one: bool(one.strip()))
events = st.builds(
    AgentEvent,
    id=st.uuids().map(str),
    source=shown,
    content=shown,
    kind=st.none() | text,
    created_at=st.none() | text,
    metadata=st.none() | json_objects,
)


class EventQueueCases(StoreCases):
    """Promises of EventQueue, for the queue a store keeps."""

    async def test_a_queue_is_empty_at_first(self, rig: StoreRig) -> None:
        queue = (await rig.open(fresh())).event_queue()
        assert (list(await queue.peek()), await queue.size()) == ([], 0)

    async def test_events_come_first_in_first_out(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        queue = store.event_queue()
        for name in ("z", "a", "m", "b"):
            assert await queue.put(event(name)) is True
        assert await pending(queue) == ["z", "a", "m", "b"]
        assert await pending(queue) == ["z", "a", "m", "b"], "looking takes nothing away"
        await queue.ack(["a", "b"])
        await queue.put(event("c"))
        assert (await pending(queue), await queue.size()) == (["z", "m", "c"], 3)
        again = (await self.again(rig, store)).event_queue()
        assert (await pending(again), await again.size()) == (["z", "m", "c"], 3)

    @many
    @given(batch=st.lists(events, min_size=1, max_size=4, unique_by=lambda one: one.id))
    async def test_any_event_survives(self, rig: StoreRig, batch: list[AgentEvent]) -> None:
        store = await rig.open(fresh())
        for one in batch:
            await store.event_queue().put(one)
        assert list(await store.event_queue().peek()) == batch
        assert list(await (await self.again(rig, store)).event_queue().peek()) == batch

    async def test_nasty_events_survive(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        batch = [event(f"e{at}", f"x{nasty}") for at, nasty in enumerate(NASTY)]
        for one in batch:
            await store.event_queue().put(one)
        assert list(await (await self.again(rig, store)).event_queue().peek()) == batch

    async def test_a_seen_id_is_a_duplicate_before_and_after_its_ack(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        queue = store.event_queue()
        assert await queue.put(event("a", "first"))
        assert await queue.put(event("a", "second")) is False
        assert [one.content for one in await queue.peek()] == ["first"]
        await queue.ack(["a"])
        assert await queue.put(event("a", "third")) is False
        assert await queue.put(event("A")) is True
        again = (await self.again(rig, store)).event_queue()
        assert await again.put(event("a", "fourth")) is False
        assert await pending(again) == ["A"]

    async def test_an_ack_of_what_is_not_there_is_nothing(self, rig: StoreRig) -> None:
        queue = (await rig.open(fresh())).event_queue()
        await queue.put(event("a"))
        await queue.ack(["b"])
        await queue.ack([])
        await queue.ack(iter(["b", "c"]))
        assert await pending(queue) == ["a"]
        await queue.ack(["a", "a"])
        await queue.ack(["a"])
        assert await queue.size() == 0
        assert await queue.put(event("b")) is True, "an unknown ack marks nothing as seen"

    async def test_ids_of_the_last_thousand_events_are_remembered(self, rig: StoreRig) -> None:
        queue = (await rig.open(fresh())).event_queue()
        names = [f"e{n}" for n in range(REMEMBERED)]
        for name in names:
            assert await queue.put(event(name))
        await queue.ack(names)
        assert await queue.size() == 0
        assert not any([await queue.put(event(name)) for name in names])

    async def test_of_several_puts_of_one_id_one_counts(self, rig: StoreRig) -> None:
        queue = (await rig.open(fresh())).event_queue()
        async with asyncio.TaskGroup() as group:
            puts = [group.create_task(queue.put(event(f"e{n % 5}"))) for n in range(30)]
        assert [one.result() for one in puts].count(True) == 5
        assert sorted(await pending(queue)) == [f"e{n}" for n in range(5)]

    async def test_conversations_do_not_see_each_others_events(self, rig: StoreRig) -> None:
        store, other = await rig.open(fresh()), await rig.open(fresh())
        assert await store.event_queue().put(event("a"))
        assert await other.event_queue().put(event("a", "theirs"))
        await store.event_queue().ack(["a"])
        assert [one.content for one in await other.event_queue().peek()] == ["theirs"]
        assert await store.event_queue().size() == 0

    async def test_core_row_077_a_queue_outlives_its_agent(self, rig: StoreRig) -> None:
        self.needs_durable()
        store = await rig.open(fresh())
        await store.event_queue().put(event("a"))
        await store.event_queue().put(event("b"))
        await store.event_queue().ack(["a"])
        queue = (await rig.reopen(store)).event_queue()
        assert list(await queue.peek()) == [event("b")]
        assert await queue.put(event("a")) is False


class SubAgentCases(StoreCases):
    """Promises of SubAgentStores (row 61)."""

    async def test_core_row_061_a_durable_sub_store_is_kept(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        child = await store.create_sub_agent_store("cook", durable=True)
        await child.append_messages([said("soup")])
        await child.add_tokens(Usage(3, 4))
        again = await store.create_sub_agent_store("cook", durable=True)
        assert await texts(again) == ["soup"]
        assert child.identifier == again.identifier == f"{store.identifier}__cook"
        reopened = await self.again(rig, store)
        kept = await reopened.create_sub_agent_store("cook", durable=True)
        assert (await texts(kept), await kept.get_token_count()) == (["soup"], 7)

    async def test_core_row_061_other_sub_stores_are_fresh_each_time(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await (await store.create_sub_agent_store("cook", durable=True)).append_messages(
            [said("soup")]
        )
        first = await store.create_sub_agent_store("cook")
        await first.append_messages([said("salad", "m1")])
        second = await store.create_sub_agent_store("cook")
        assert await texts(second) == []
        await second.append_messages([said("bread", "m1")])
        await second.increment_turn()
        assert (await texts(first), await first.get_turn_count()) == (["salad"], 0)
        assert len({store.identifier, first.identifier, second.identifier}) == 3

    async def test_core_row_061_sub_stores_are_isolated(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        cook = await store.create_sub_agent_store("cook", durable=True)
        guide = await store.create_sub_agent_store("guide", durable=True)
        for place, one in (("main", store), ("cook", cook), ("guide", guide)):
            await one.append_messages([said(place, "m1")])
        await cook.add_tokens(Usage(5, 5))
        await cook.increment_turn()
        assert [await texts(one) for one in (store, cook, guide)] == [["main"], ["cook"], ["guide"]]
        assert [await one.get_token_count() for one in (store, cook, guide)] == [0, 10, 0]
        assert await store.get_turn_count() == 0

    async def test_sub_stores_may_have_sub_stores(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        child = await store.create_sub_agent_store("cook", durable=True)
        assert hasattr(child, "create_sub_agent_store")
        grandchild = await child.create_sub_agent_store("baker", durable=True)
        await grandchild.append_messages([said("bread")])
        assert grandchild.identifier == f"{store.identifier}__cook__baker"
        assert await texts(child) == []
