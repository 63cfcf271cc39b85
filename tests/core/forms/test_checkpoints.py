"""Checkpoints: blocking ones, who decides them, what is refused meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from tests.core.forms.rig import ALL, Diary, Effects, claim, runner, state, values
from voxglove.core import UsageError
from voxglove.core.forms import (
    Complete,
    Effect,
    Fail,
    FormRefused,
    FormRunner,
    HookContext,
    Jump,
    Passed,
    Patch,
    Terminate,
)

DEAR = {**ALL, "total": 900.0}


def capped(diary: Diary, *outcomes: Effects | Exception) -> FormRunner:
    """A claim above 750 needs a decision."""
    form = (
        claim()
        .checkpoint(
            "cap",
            when=lambda a: (a.total or 0) > 750,
            blocking=True,
            wait_message="Finance looks at this.",
            run=diary.hook(*outcomes),
        )
        .on_complete(diary.hook())
        .build()
    )
    return runner(form)


async def test_a_checkpoint_runs_each_time_its_condition_comes_to_hold() -> None:
    diary = Diary()
    form = claim().checkpoint("cap", when=lambda a: (a.total or 0) > 750, run=diary.hook()).build()
    forms = runner(form)
    await forms.start("claim", {"total": 800.0})
    for total in (900.0, 10.0, 800.0):
        await forms.fill({"total": total})
    assert diary.hooks == ["checkpoint.cap:1", "checkpoint.cap:2"]


async def test_a_blocking_one_awaits_a_decision_and_refuses_every_write() -> None:
    diary = Diary()
    forms = capped(diary, None)
    await forms.start("claim", DEAR)
    before = (await forms.status()).instance
    assert before.status == "awaiting"
    for attempt in (
        forms.fill({"mode": "car"}),
        forms.retract("mode"),
        forms.undo(),
        forms.redo(),
    ):
        with pytest.raises(FormRefused) as caught:
            await attempt
        assert caught.value.code == "form_blocked"
        assert caught.value.details["say"] == "Finance looks at this."
    assert (await forms.status()).instance == before
    assert diary.hooks == ["checkpoint.cap:1"]


async def test_the_host_lets_it_pass_and_the_form_completes() -> None:
    diary = Diary()
    forms = capped(diary, None)
    await forms.start("claim", DEAR)
    await forms.resolve_checkpoint("cap")
    assert await state(forms) == "complete"
    assert diary.hooks == ["checkpoint.cap:1", "form.complete:1"]


async def test_the_host_refuses_and_the_form_is_open_until_the_condition_ends() -> None:
    diary = Diary()
    forms = capped(diary, None)
    await forms.start("claim", DEAR)
    await forms.resolve_checkpoint("cap", Fail("over the limit"))
    assert await state(forms) == "open"
    assert await forms.line() == "[form: claim] all answered, but refused: over the limit"
    await forms.fill({"total": 100.0})
    assert await state(forms) == "complete"
    assert diary.hooks == ["checkpoint.cap:1", "form.complete:1"]


async def test_a_refusal_may_be_overruled_while_it_stands() -> None:
    diary = Diary()
    forms = capped(diary, Fail("over the limit"))
    await forms.start("claim", DEAR)
    await forms.resolve_checkpoint("cap", Fail("still no"))
    assert list((await forms.status()).instance.rejected.values()) == ["still no"]
    await forms.resolve_checkpoint("cap")
    assert await state(forms) == "complete"
    with pytest.raises(FormRefused, match="undecided: none"):
        await forms.resolve_checkpoint("cap")
    assert diary.hooks == ["checkpoint.cap:1", "form.complete:1"]


async def test_a_correction_that_leaves_the_condition_true_is_not_checked_again() -> None:
    diary = Diary()
    forms = capped(diary, Fail("over the limit"))
    await forms.start("claim", DEAR)
    await forms.fill({"total": 800.0})
    assert diary.hooks == ["checkpoint.cap:1"]
    assert await state(forms) == "open"


DECISIONS: list[tuple[str, Effects, str]] = [
    ("passed", Passed(), "complete"),
    ("refused", Fail("no"), "open"),
    ("patched", [Patch({"total": 700.0}), Passed()], "complete"),
    ("terminated", Terminate("fraud"), "terminated"),
    ("sent back", [Fail("who?"), Jump("claimant")], "open"),
    ("completed", Complete(), "complete"),
]


@pytest.mark.parametrize(
    ("outcome", "status"), [d[1:] for d in DECISIONS], ids=[d[0] for d in DECISIONS]
)
async def test_its_own_run_may_decide(outcome: Effects, status: str) -> None:
    forms = capped(Diary(), outcome)
    await forms.start("claim", DEAR)
    assert await state(forms) == status


async def test_one_without_a_run_waits_for_the_host() -> None:
    forms = runner(claim().checkpoint("cap", when=lambda a: bool(a.total), blocking=True).build())
    await forms.start("claim", {"total": 1.0})
    assert await state(forms) == "awaiting"
    assert await forms.line() == (
        "[form: claim] waiting: cap is being decided · it cannot change until then"
    )
    await forms.resolve_checkpoint("cap", Patch({"note": "seen"}))
    assert await values(forms) == {"total": 1.0, "note": "seen"}


async def test_one_whose_run_broke_stays_undecided() -> None:
    """A check that could not be made has not been passed."""
    forms = capped(Diary(), RuntimeError("no answer"))
    await forms.start("claim", DEAR)
    assert await state(forms) == "awaiting"
    await forms.resolve_checkpoint("cap")
    assert await state(forms) == "complete"


async def test_only_what_is_undecided_can_be_decided() -> None:
    forms = capped(Diary(), None)
    await forms.start("claim", ALL)
    with pytest.raises(FormRefused) as caught:
        await forms.resolve_checkpoint("cap")
    assert caught.value.code == "checkpoint_not_waiting"


async def test_a_decision_the_form_cannot_carry_out_is_the_hosts_mistake() -> None:
    forms = capped(Diary(), None)
    await forms.start("claim", DEAR)
    with pytest.raises(UsageError, match="no step 'nowhere'"):
        await forms.resolve_checkpoint("cap", Jump("nowhere"))
    assert await state(forms) == "awaiting"


async def test_the_first_decision_counts() -> None:
    """The host decides while the run is still thinking; its late refusal changes nothing."""
    asked, answer = asyncio.Event(), asyncio.Event()

    async def think(context: HookContext) -> Effect:
        asked.set()
        await answer.wait()
        return Fail("no")

    form = claim().checkpoint("cap", when=lambda a: bool(a.total), blocking=True, run=think)
    forms = runner(form.build())
    async with asyncio.TaskGroup() as group:
        group.create_task(forms.start("claim", ALL))
        await asked.wait()
        await forms.resolve_checkpoint("cap")
        answer.set()
    assert await state(forms) == "complete"
    assert (await forms.status()).instance.rejected == {}


async def test_a_question_that_no_longer_stands_is_not_waited_for() -> None:
    diary = Diary()
    form = (
        claim()
        .checkpoint("cap", when=lambda a: (a.total or 0) > 750, blocking=True)
        .checkpoint(
            "trim", when=lambda a: (a.total or 0) > 750, run=diary.hook(Patch({"total": 1.0}))
        )
        .build()
    )
    forms = runner(form)
    await forms.start("claim", DEAR)
    assert await state(forms) == "complete"


async def test_two_blocking_ones_are_decided_one_by_one() -> None:
    form = (
        claim()
        .checkpoint("a", when=lambda a: bool(a.total), blocking=True)
        .checkpoint("b", when=lambda a: bool(a.total), blocking=True)
        .build()
    )
    forms = runner(form)
    await forms.start("claim", ALL)
    await forms.resolve_checkpoint("b")
    assert await state(forms) == "awaiting"
    await forms.resolve_checkpoint("a")
    assert await state(forms) == "complete"


async def test_a_checkpoint_may_ask_what_fired_before() -> None:
    diary = Diary()
    form = (
        claim()
        .checkpoint("first", when=lambda a: a.mode is not None, run=diary.hook())
        .checkpoint(
            "second",
            when=lambda a, p: p.checkpoint_fired("first") and a.total is not None,
            run=diary.hook(),
        )
        .build()
    )
    forms = runner(form)
    await forms.start("claim", {"mode": "car"})
    await forms.fill({"total": 1.0})
    assert diary.hooks == ["checkpoint.first:1", "checkpoint.second:1"]


async def test_a_waiting_form_can_be_abandoned() -> None:
    forms = capped(Diary(), None)
    await forms.start("claim", DEAR)
    await forms.abandon("changed their mind")
    assert await state(forms) == "abandoned"
    assert (await forms.status()).instance.awaiting == ()
