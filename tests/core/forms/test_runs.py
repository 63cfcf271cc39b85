"""Each owed run happens, under one key; no writer loses an answer to another."""

from __future__ import annotations

import asyncio

import pytest

from tests.core.forms.rig import ALL, Diary, claim, run_states, runner, state, values
from voxglove.core.forms import (
    Effect,
    FormConflictError,
    FormInstance,
    FormRefused,
    FormRunner,
    HookContext,
    MemoryFormAdapter,
    Patch,
)
from voxglove.core.forms.ledger import MAX_BEGINNINGS


class Crash(BaseException):
    """The process ends here."""


async def test_an_interrupted_run_is_resumed_under_the_same_key() -> None:
    keys: list[str] = []

    async def hook(context: HookContext) -> Effect:
        keys.append(context.key)
        if len(keys) == 1:
            raise Crash
        return Patch({"total": 1.0})

    adapter = MemoryFormAdapter()
    form = claim().on_fill("mode", hook).build()
    with pytest.raises(Crash):
        await runner(form, adapter=adapter).start("claim", {"mode": "car"})
    after = runner(form, adapter=adapter)
    assert await values(after) == {"mode": "car"}
    await after.resume()
    await after.resume()
    assert await values(after) == {"mode": "car", "total": 1.0}
    assert len(keys) == 2 and len(set(keys)) == 1


async def test_what_is_owed_runs_before_the_next_change() -> None:
    """The interrupted hook still sees the answers it was raised by."""
    seen: list[object] = []

    async def hook(context: HookContext) -> None:
        seen.append(context.values.mode)
        if len(seen) == 1:
            raise Crash

    adapter = MemoryFormAdapter()
    form = claim().on_fill("mode", hook).build()
    with pytest.raises(Crash):
        await runner(form, adapter=adapter).start("claim", {"mode": "car"})
    await runner(form, adapter=adapter).fill({"mode": "rail"})
    assert seen == ["car", "car"]


async def test_a_run_cancelled_in_the_middle_is_owed() -> None:
    started = asyncio.Event()
    keys: list[str] = []

    async def hook(context: HookContext) -> None:
        keys.append(context.key)
        if len(keys) == 1:
            started.set()
            await asyncio.Event().wait()

    forms = runner(claim().on_fill("mode", hook).build())
    async with asyncio.TaskGroup() as group:
        filling = group.create_task(forms.start("claim", {"mode": "car"}))
        await started.wait()
        filling.cancel()
    await forms.resume()
    assert len(keys) == 2 and len(set(keys)) == 1
    assert await run_states(forms) == {"fill.mode:1": "done"}


async def test_a_run_that_ends_the_process_each_time_is_given_up() -> None:
    runs = 0

    async def hook(context: HookContext) -> None:
        nonlocal runs
        runs += 1
        raise Crash

    adapter = MemoryFormAdapter()
    form = claim().on_fill("mode", hook).build()
    with pytest.raises(Crash):
        await runner(form, adapter=adapter).start("claim", {"mode": "car"})
    for _ in range(MAX_BEGINNINGS - 1):
        with pytest.raises(Crash):
            await runner(form, adapter=adapter).resume()
    forms = runner(form, adapter=adapter)
    await forms.resume()
    assert runs == MAX_BEGINNINGS
    assert await run_states(forms) == {"fill.mode:1": "failed"}


async def test_a_hook_may_change_its_form_through_the_runner() -> None:
    """Its change is committed at once; what that raises is run by the run that is under way."""
    diary = Diary()
    forms: FormRunner

    async def hook(context: HookContext) -> None:
        await forms.fill({"total": 5.0})
        assert diary.hooks == []

    forms = runner(claim().on_fill("mode", hook).on_fill("total", diary.hook()).build())
    await forms.start("claim", {"mode": "car"})
    assert await values(forms) == {"mode": "car", "total": 5.0}
    assert diary.hooks == ["fill.total:1"]


async def test_a_run_overtaken_before_it_began_is_dropped() -> None:
    """The checkpoint takes an answer the form needs; the form's own hook must not run."""
    diary = Diary()
    forms: FormRunner

    async def hook(context: HookContext) -> None:
        await forms.retract("email")

    form = (
        claim()
        .checkpoint("look", when=lambda a: a.total is not None, run=hook)
        .on_complete(diary.hook())
        .build()
    )
    forms = runner(form)
    await forms.start("claim", ALL)
    assert diary.hooks == []
    assert (await run_states(forms))["form.complete:1"] == "dropped"
    await forms.fill({"email": "c@d"})
    assert diary.hooks == ["form.complete:2"]


async def test_work_left_to_a_run_that_is_just_ending_is_not_left_lying() -> None:
    """The other writer comes between the run's last commit and the moment it hears of it."""
    diary = Diary()

    class Late(MemoryFormAdapter):
        async def commit(self, instance: FormInstance, *, if_version: int) -> None:
            await super().commit(instance, if_version=if_version)
            if instance.ledger and instance.ledger[-1].state == "done":
                await asyncio.sleep(1.0)

    form = claim().on_fill("mode", diary.hook()).on_fill("total", diary.hook()).build()
    forms = runner(form, adapter=Late())
    async with asyncio.TaskGroup() as group:
        group.create_task(forms.start("claim", {"mode": "car"}))
        await asyncio.sleep(0.5)
        await forms.fill({"total": 1.0})
    assert diary.hooks == ["fill.mode:1", "fill.total:1"]
    assert set((await run_states(forms)).values()) == {"done"}


# -- compare and set


class Contended(MemoryFormAdapter):
    """Another writer is first, as often as it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.losses = 0

    async def commit(self, instance: FormInstance, *, if_version: int) -> None:
        if self.losses:
            self.losses -= 1
            stored = await self.get(instance.id)
            assert stored is not None
            raise FormConflictError("somebody else was first")
        await super().commit(instance, if_version=if_version)


@pytest.mark.parametrize("losses", [1, 3])
async def test_a_lost_race_is_tried_again(losses: int) -> None:
    adapter = Contended()
    forms = runner(adapter=adapter)
    await forms.start("claim")
    adapter.losses = losses
    await forms.fill({"mode": "car"})
    assert await values(forms) == {"mode": "car"}


async def test_the_fourth_lost_race_is_a_refusal_that_writes_nothing() -> None:
    adapter = Contended()
    forms = runner(adapter=adapter)
    await forms.start("claim")
    adapter.losses = 4
    with pytest.raises(FormRefused) as caught:
        await forms.fill({"mode": "car"})
    assert caught.value.code == "form_conflict"
    assert await values(forms) == {}


async def test_a_race_lost_after_a_hook_does_not_lose_the_answer_and_owes_the_run() -> None:
    adapter = Contended()
    keys: list[str] = []

    async def hook(context: HookContext) -> Effect:
        keys.append(context.key)
        adapter.losses = 4 if len(keys) == 1 else 0
        return Patch({"total": 2.0})

    forms = runner(claim().on_fill("mode", hook).build(), adapter=adapter)
    change = await forms.start("claim", {"mode": "car"})
    assert change.report.accepted == ("mode",)
    assert await run_states(forms) == {"fill.mode:1": "pending"}
    await forms.resume()
    assert await values(forms) == {"mode": "car", "total": 2.0}
    assert len(keys) == 2 and len(set(keys)) == 1


async def test_abandoning_is_tried_again_like_every_change() -> None:
    adapter = Contended()
    forms = runner(adapter=adapter)
    await forms.start("claim")
    adapter.losses = 3
    await forms.abandon("enough")
    assert await state(forms) == "abandoned"
    await forms.start("claim")
    adapter.losses = 4
    with pytest.raises(FormRefused) as caught:
        await forms.abandon("enough")
    assert caught.value.code == "form_conflict"


async def test_a_hook_that_the_definition_lost_is_dropped() -> None:
    async def crash(context: HookContext) -> None:
        raise Crash

    adapter = MemoryFormAdapter()
    with pytest.raises(Crash):
        await runner(claim().on_fill("mode", crash).build(), adapter=adapter).start(
            "claim", {"mode": "car"}
        )
    forms = runner(claim().build(), adapter=adapter)
    await forms.resume()
    assert await run_states(forms) == {"fill.mode:1": "dropped"}


async def test_a_hook_of_its_own_time_out_fails_like_any_other() -> None:
    forms = runner(claim().on_fill("mode", Diary().hook(TimeoutError("slow bank"))).build())
    await forms.start("claim", {"mode": "car"})
    note = (await forms.status()).instance.ledger[0].note
    assert note == "the work behind it failed"


async def test_writers_at_the_same_time_lose_no_answer() -> None:
    class Slow(MemoryFormAdapter):
        async def get(self, instance_id: str) -> FormInstance | None:
            found = await super().get(instance_id)
            await asyncio.sleep(0.01)
            return found

    forms = runner(adapter=Slow())
    await forms.start("claim")
    async with asyncio.TaskGroup() as group:
        for answer in ({"mode": "car"}, {"total": 1.0}, {"email": "a@b"}):
            group.create_task(forms.fill(answer))
    assert await values(forms) == {"mode": "car", "total": 1.0, "email": "a@b"}
