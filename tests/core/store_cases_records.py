"""Cases of the store suite: tasks and inbox items (spec core 13.2, 13.3)."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.store_rig import FullStore, StoreCases, StoreRig, fresh, said, texts
from tests.core.store_values import AWKWARD_NAMES, NASTY, many, text
from voxglove.core import Message, UsageError
from voxglove.core.errors import UnknownRecordError
from voxglove.core.records import (
    TASK_STATUSES,
    InboxItem,
    InboxPatch,
    Task,
    TaskPatch,
    patched_item,
    patched_task,
)

POSTED = "2025-03-01T10:00:00.000+00:00"
ANSWERED = "2025-03-02T11:30:00.125+00:00"


def task(name: str, content: str = "") -> Task:
    return Task(id=name, content=content or f"do {name}", active_form=f"doing {name}")


def item(name: str, request: str = "which one?") -> InboxItem:
    return InboxItem(id=name, tag=f"tag {name}", request=request, created_at=POSTED)


async def item_ids(store: FullStore) -> list[str]:
    return [one.id for one in await store.get_inbox_items()]


async def statuses(store: FullStore) -> list[str]:
    return [one.status for one in await store.get_inbox_items()]


TASK_PATCHES = st.fixed_dictionaries(
    {}, optional={"content": text, "active_form": text, "status": st.sampled_from(TASK_STATUSES)}
)
ITEM_PATCHES = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(("pending", "resolved", "consumed")),
        "response": st.none() | text,
        "resolved_at": st.none() | st.just(ANSWERED),
    },
)


class TaskCases(StoreCases):
    """Promises of TaskStore."""

    async def test_there_are_no_tasks_at_first(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        assert await store.get_tasks() == []

    async def test_tasks_replace_the_whole_list_and_keep_their_order(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.add_tasks([task("z"), task("a"), task("m")])
        second = [task("m", "again"), Task(id="b", content="", active_form="", status="completed")]
        await store.add_tasks(second)
        assert await store.get_tasks() == second
        assert await (await self.again(rig, store)).get_tasks() == second

    async def test_an_empty_list_clears(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.add_tasks([task("a")])
        await store.add_tasks([])
        assert await store.get_tasks() == []

    async def test_a_replacement_is_all_or_nothing(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.add_tasks([task("a"), task("b")])
        with pytest.raises(UsageError):
            await store.add_tasks([task("c"), task("d"), task("c")])
        assert await store.get_tasks() == [task("a"), task("b")]

    async def test_task_lists_are_the_callers_own(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        given_list = [task("a")]
        await store.add_tasks(given_list)
        given_list.append(task("b"))
        (await store.get_tasks()).clear()
        assert await store.get_tasks() == [task("a")]

    @many
    @given(patch=TASK_PATCHES)
    async def test_a_task_is_changed_in_its_place(self, rig: StoreRig, patch: TaskPatch) -> None:
        store = await rig.open(fresh())
        await store.add_tasks([task("z"), task("b"), task("a")])
        wanted = patched_task(task("b"), patch)
        assert await store.update_task("b", patch) == wanted
        async for opened in self.before_and_after(rig, store):
            assert await opened.get_tasks() == [task("z"), wanted, task("a")]

    async def test_an_unknown_task_or_field_changes_nothing(self, rig: StoreRig) -> None:
        store, other = await rig.open(fresh()), await rig.open(fresh())
        await store.add_tasks([task("a")])
        await other.add_tasks([task("b")])
        for unknown in ("b", "A", ""):
            with pytest.raises(UnknownRecordError):
                await store.update_task(unknown, {"status": "completed"})
        with pytest.raises(TypeError):
            await store.update_task("a", {"done": True})  # type: ignore[typeddict-unknown-key]
        with pytest.raises(UsageError):
            await store.update_task("a", {"status": "done"})  # type: ignore[typeddict-item]
        assert await store.get_tasks() + await other.get_tasks() == [task("a"), task("b")]

    async def test_nasty_tasks_survive(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        tasks = [
            Task(id=f"{at} {name}", content=nasty, active_form=nasty)
            for at, (name, nasty) in enumerate(zip(AWKWARD_NAMES * 2, NASTY, strict=False))
        ]
        await store.add_tasks(tasks)
        assert await (await self.again(rig, store)).get_tasks() == tasks


class InboxCases(StoreCases):
    """Promises of InboxStore."""

    async def test_the_inbox_is_empty_at_first(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        assert await store.get_inbox_items() == []
        assert await store.get_resolved_inbox_items() == []

    async def test_items_keep_the_order_they_were_added_in(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        items = [item("z"), item("a"), item("m")]
        for one in items:
            await store.add_inbox_item(one)
        assert await store.get_inbox_items() == items
        (await store.get_inbox_items()).clear()
        assert await (await self.again(rig, store)).get_inbox_items() == items

    async def test_every_field_of_an_item_survives(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        items = [
            InboxItem(
                id=f"{at} {name}",
                tag=f"t{nasty}",
                request=f"r{nasty}",
                created_at=POSTED,
                response=nasty,
                status="resolved",
                blocking=at % 2 == 0,
                resolved_at=ANSWERED,
            )
            for at, (name, nasty) in enumerate(zip(AWKWARD_NAMES * 2, NASTY, strict=False))
        ]
        for one in items:
            await store.add_inbox_item(one)
        assert await (await self.again(rig, store)).get_inbox_items() == items

    async def test_an_id_is_taken_once(self, rig: StoreRig) -> None:
        store, other = await rig.open(fresh()), await rig.open(fresh())
        await store.add_inbox_item(item("a"))
        with pytest.raises(UsageError):
            await store.add_inbox_item(item("a", "another question"))
        await other.add_inbox_item(item("a", "of another conversation"))
        assert await store.get_inbox_items() == [item("a")]

    @many
    @given(patch=ITEM_PATCHES)
    async def test_an_item_is_changed_in_its_place(self, rig: StoreRig, patch: InboxPatch) -> None:
        store = await rig.open(fresh())
        for name in ("z", "b", "a"):
            await store.add_inbox_item(item(name))
        wanted = patched_item(item("b"), patch)
        assert await store.update_inbox_item("b", patch) == wanted
        async for opened in self.before_and_after(rig, store):
            assert await opened.get_inbox_items() == [item("z"), wanted, item("a")]
            resolved = [wanted] if wanted.status == "resolved" else []
            assert await opened.get_resolved_inbox_items() == resolved

    async def test_an_unknown_item_or_field_changes_nothing(self, rig: StoreRig) -> None:
        store, other = await rig.open(fresh()), await rig.open(fresh())
        await store.add_inbox_item(item("a"))
        await other.add_inbox_item(item("b"))
        for unknown in ("b", "A", ""):
            with pytest.raises(UnknownRecordError):
                await store.update_inbox_item(unknown, {"status": "consumed"})
        with pytest.raises(TypeError):
            await store.update_inbox_item("a", {"by": "x"})  # type: ignore[typeddict-unknown-key]
        assert await store.get_inbox_items() == [item("a")]

    async def test_resolved_items_come_in_the_order_they_were_added(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        for name in ("c", "a", "b", "d"):
            await store.add_inbox_item(item(name))
        for name in ("b", "c", "d"):
            assert await store.resolve_inbox_item(name, f"for {name}", ANSWERED)
        await store.update_inbox_item("d", {"status": "consumed"})
        async for opened in self.before_and_after(rig, store):
            found = await opened.get_resolved_inbox_items()
            assert [(one.id, one.response) for one in found] == [("c", "for c"), ("b", "for b")]
            assert {one.resolved_at for one in found} == {ANSWERED}
            assert await item_ids(opened) == ["c", "a", "b", "d"]

    async def test_only_a_pending_item_of_this_store_is_resolved(self, rig: StoreRig) -> None:
        store, other = await rig.open(fresh()), await rig.open(fresh())
        for name in ("pending", "resolved", "consumed"):
            await store.add_inbox_item(item(name))
        await store.update_inbox_item("resolved", {"status": "resolved", "response": "first"})
        await store.update_inbox_item("consumed", {"status": "consumed"})
        before = await store.get_inbox_items()
        for name in ("resolved", "consumed", "unknown", "PENDING", ""):
            assert not await store.resolve_inbox_item(name, "late", ANSWERED)
        assert not await other.resolve_inbox_item("pending", "wrong store", ANSWERED)
        assert await store.get_inbox_items() == before
        assert await store.resolve_inbox_item("pending", "yes", ANSWERED) is True
        assert await store.resolve_inbox_item("pending", "no", ANSWERED) is False
        (first, *_) = await store.get_inbox_items()
        wanted: InboxPatch = {"status": "resolved", "response": "yes", "resolved_at": ANSWERED}
        assert first == patched_item(item("pending"), wanted)

    async def test_of_several_answers_one_counts(self, rig: StoreRig) -> None:
        conversation = fresh()
        store = await rig.open(conversation)
        for name in map(str, range(10)):
            await store.add_inbox_item(item(name))
            async with asyncio.TaskGroup() as group:
                tries = [
                    group.create_task(store.resolve_inbox_item(name, f"answer {n}", ANSWERED))
                    for n in range(8)
                ]
            winners = [n for n, one in enumerate(tries) if one.result()]
            assert len(winners) == 1
            found = (await store.get_inbox_items())[-1]
            assert found.response == f"answer {winners[0]}"

    async def test_fault_20_an_answer_and_its_mark_are_stored_together(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        for name in ("a", "b", "c"):
            await store.add_inbox_item(item(name))
        for name in ("a", "b"):
            await store.resolve_inbox_item(name, "yes", ANSWERED)
        await store.consume_inbox_items(["b", "a"], said("[Inbox: 2 items resolved]", "m1"))
        async for opened in self.before_and_after(rig, store):
            assert await texts(opened) == ["[Inbox: 2 items resolved]"]
            assert await statuses(opened) == ["consumed", "consumed", "pending"]
            assert await opened.get_resolved_inbox_items() == []
            first, *_ = await opened.get_inbox_items()
            assert (first.response, first.resolved_at) == ("yes", ANSWERED)

    async def test_fault_20_a_failed_append_leaves_the_items_resolved(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.append_messages([said("first", "taken")])
        await store.add_inbox_item(item("a"))
        await store.resolve_inbox_item("a", "yes", ANSWERED)
        for bad in ("taken", ""):
            with pytest.raises(UsageError):
                await store.consume_inbox_items(["a"], Message(sender="user", text="s", id=bad))
        async for opened in self.before_and_after(rig, store):
            assert await texts(opened) == ["first"]
            assert [one.id for one in await opened.get_resolved_inbox_items()] == ["a"]

    async def test_fault_20_an_unknown_item_leaves_nothing_appended(self, rig: StoreRig) -> None:
        store, other = await rig.open(fresh()), await rig.open(fresh())
        await store.add_inbox_item(item("a"))
        await other.add_inbox_item(item("theirs"))
        await store.resolve_inbox_item("a", "yes", ANSWERED)
        for unknown in ("theirs", "b", ""):
            with pytest.raises(UnknownRecordError):
                await store.consume_inbox_items(["a", unknown], said("shown", "m1"))
        async for opened in self.before_and_after(rig, store):
            assert await texts(opened) == []
            assert await statuses(opened) == ["resolved"]
        await opened.consume_inbox_items(["a"], said("shown", "m1"))
        assert await statuses(other) == ["pending"]

    async def test_a_consuming_message_takes_its_place_in_history(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.append_messages([said("1")])
        await store.add_inbox_item(item("a"))
        await store.consume_inbox_items(["a"], said("2", "m2"))
        await store.append_messages([said("3")])
        await store.amend_message("m2", {"text": "2!"})
        assert await texts(store) == ["1", "2!", "3"]
