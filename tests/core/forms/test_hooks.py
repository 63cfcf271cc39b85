"""Hooks: order, rising edges, effects, and that each owed run happens under one key."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from tests.core.forms.rig import ALL, Diary, claim, run_states, runner, state, values
from voxglove.core.forms import (
    Complete,
    Effect,
    Fail,
    FieldSpec,
    FormRefused,
    HookContext,
    Jump,
    MemoryFormAdapter,
    Patch,
    Terminate,
    define_form,
)
from voxglove.core.forms.ledger import MAX_PATCH_ROUNDS


async def test_hooks_run_fields_first_then_steps_checkpoints_and_the_form() -> None:
    diary = Diary()
    form = (
        claim()
        .on_complete(diary.hook())
        .checkpoint("cap", when=lambda a: (a.total or 0) > 50, run=diary.hook())
        .on_fill("total", diary.hook())
        .on_fill("mode", diary.hook())
        .step(
            "more",
            title="More",
            fields={"extra": FieldSpec(schema=str, on_fill=diary.hook())},
            on_complete=diary.hook(),
        )
        .build()
    )
    await runner(form).start("claim", {"extra": "x", **ALL})
    order = ["fill.mode", "fill.total", "fill.extra", "step.more", "checkpoint.cap"]
    assert diary.hooks == [f"{one}:1" for one in [*order, "form.complete"]]


async def test_a_hook_runs_after_its_answer_is_stored() -> None:
    adapter = MemoryFormAdapter()
    seen: list[object] = []

    async def look(context: HookContext) -> None:
        stored = await adapter.get(context.instance_id)
        assert stored is not None
        seen.append(stored.logs["mode"].revisions[0].value)

    await runner(claim().on_fill("mode", look).build(), adapter=adapter).start(
        "claim", {"mode": "car"}
    )
    assert seen == ["car"]


async def test_a_hook_gets_live_answers_and_its_own_never_held_ones() -> None:
    diary = Diary()
    await runner(claim().on_fill("mode", diary.hook()).build()).start(
        "claim", {"miles": 40, "mode": "rail"}
    )
    (context,) = diary.contexts
    assert dict(context.values) == {"mode": "rail"}
    assert (context.field, context.value, context.scope) == ("mode", "rail", "call_1")
    assert context.form_id == "claim" and context.occurrence == 1


async def test_a_correction_of_a_live_answer_is_no_edge_and_a_new_crossing_has_a_new_key() -> None:
    diary = Diary()
    forms = runner(claim().on_fill("mode", diary.hook()).build())
    await forms.start("claim", {"mode": "car"})
    await forms.fill({"mode": "rail"})
    assert diary.hooks == ["fill.mode:1"]
    await forms.retract("mode")
    await forms.undo("mode")
    assert diary.hooks == ["fill.mode:1", "fill.mode:2"]
    assert len(set(diary.keys)) == 2


async def test_an_answer_that_comes_to_apply_is_an_edge() -> None:
    diary = Diary()
    forms = runner(claim().on_fill("miles", diary.hook()).build())
    await forms.start("claim", {"miles": 40})
    assert diary.hooks == []
    for mode in ("car", "rail", "car"):
        await forms.fill({"mode": mode})
    assert diary.hooks == ["fill.miles:1", "fill.miles:2"]


async def test_a_form_that_completes_again_is_a_new_occurrence() -> None:
    diary = Diary()
    forms = runner(claim().on_complete(diary.hook()).build())
    await forms.start("claim", ALL)
    await forms.retract("email")
    await forms.fill({"email": "b@c"})
    assert diary.hooks == ["form.complete:1", "form.complete:2"]


async def test_a_step_without_required_fields_is_complete_when_the_form_starts() -> None:
    diary = Diary()
    form = define_form(id="f", version=1, name="F", description="d").step(
        "s",
        title="S",
        fields={"a": FieldSpec(schema=str, default="")},
        on_complete=diary.hook(),
    )
    await runner(form.build()).start("f")
    assert diary.hooks == ["step.s:1"]


# -- effects


async def test_a_patch_is_written_and_raises_further_hooks() -> None:
    diary = Diary()
    form = (
        claim()
        .on_fill("mode", diary.hook(Patch({"Total": 7.0})))
        .on_fill("total", diary.hook())
        .build()
    )
    forms = runner(form)
    change = await forms.start("claim", {"mode": "car"})
    assert await values(forms) == {"mode": "car", "total": 7.0}
    assert diary.hooks == ["fill.mode:1", "fill.total:1"]
    revision = change.snapshot.instance.logs["total"].revisions[0]
    assert revision.source == "hook:fill.mode"


async def test_a_patch_keeps_its_good_values_and_the_host_is_told_of_bad_ones(
    caplog: pytest.LogCaptureFixture,
) -> None:
    diary = Diary()
    form = claim().on_fill("mode", diary.hook(Patch({"total": 7.0, "totl": 1, "email": 3}))).build()
    forms = runner(form)
    with caplog.at_level(logging.WARNING, logger="voxglove.core.forms"):
        await forms.start("claim", {"mode": "car"})
    assert await values(forms) == {"mode": "car", "total": 7.0}
    assert await run_states(forms) == {"fill.mode:1": "failed"}
    assert [one.message for one in caplog.records].count("form hook asked in vain") == 2


async def test_a_form_completed_by_a_patch_runs_its_hook_last() -> None:
    diary = Diary()
    form = (
        claim()
        .on_complete(diary.hook())
        .on_fill("mode", diary.hook(Patch({"total": 7.0})))
        .on_fill("total", diary.hook())
        .build()
    )
    await runner(form).start("claim", {"full_name": "Ada", "email": "a@b", "mode": "rail"})
    assert diary.hooks == ["fill.mode:1", "fill.total:1", "form.complete:1"]


async def test_the_forms_own_hook_waits_for_hooks_that_are_raised_on_the_way() -> None:
    """The form is complete at once; a patch raises another hook, which still comes first."""
    diary = Diary()
    form = (
        claim()
        .on_complete(diary.hook())
        .on_fill("total", diary.hook(Patch({"note": "n"})))
        .on_fill("note", diary.hook())
        .build()
    )
    await runner(form).start("claim", ALL)
    assert diary.hooks == ["fill.total:1", "fill.note:1", "form.complete:1"]
    assert diary.contexts[-1].values.note == "n"


async def test_hooks_that_raise_each_other_end_after_eight_rounds_of_patches() -> None:
    """Each step unlocks the next field, twelve in a row; the ninth patch is refused."""
    diary = Diary()
    form = define_form(id="f", version=1, name="F", description="d")
    fields = {
        f"f{at}": FieldSpec(schema=int, on_fill=diary.hook(Patch({f"f{at + 1}": at + 1})))
        for at in range(12)
    }
    forms = runner(form.step("s", title="S", fields=fields).build())
    await forms.start("f", {"f0": 0})
    assert len(await values(forms)) == 1 + MAX_PATCH_ROUNDS
    assert diary.hooks[-1] == f"fill.f{MAX_PATCH_ROUNDS}:1"
    assert (await run_states(forms))[diary.hooks[-1]] == "failed"


@pytest.mark.parametrize("extra", [[], [Patch({"note": "n"})]])
async def test_terminate_closes_the_form_and_wins_over_completing(extra: list[Effect]) -> None:
    diary = Diary()
    effects = [*extra, Complete(), Terminate("not eligible"), Jump("claimant")]
    form = (
        claim()
        .checkpoint("age", when=lambda a: (a.total or 0) > 50, run=diary.hook(effects))
        .on_complete(diary.hook())
        .build()
    )
    forms = runner(form)
    change = await forms.start("claim", ALL)
    instance = change.snapshot.instance
    assert (instance.status, instance.closed_reason) == ("terminated", "not eligible")
    assert diary.hooks == ["checkpoint.age:1"]
    assert (await run_states(forms))["form.complete:1"] == "dropped"
    with pytest.raises(FormRefused, match="terminated: not eligible"):
        await forms.fill({"mode": "car"})


async def test_complete_ends_a_form_with_answers_missing() -> None:
    diary = Diary()
    form = claim().on_fill("mode", diary.hook(Complete())).on_complete(diary.hook()).build()
    forms = runner(form)
    await forms.start("claim", {"mode": "car"})
    assert await state(forms) == "complete"
    assert diary.hooks == ["fill.mode:1", "form.complete:1"]


async def test_a_jump_opens_a_step_until_an_answer_lands_there() -> None:
    diary = Diary()
    form = claim().on_fill("full_name", diary.hook(Jump("travel"))).build()
    forms = runner(form)
    change = await forms.start("claim", {"full_name": "Ada"})
    assert change.snapshot.evaluation is not None
    assert change.snapshot.evaluation.open_step == "travel"
    change = await forms.fill({"email": "a@b"})
    assert change.snapshot.instance.jump == "travel"
    change = await forms.fill({"mode": "rail"})
    assert change.snapshot.instance.jump is None


async def test_a_jump_back_revisits_a_finished_step_even_of_a_complete_form() -> None:
    diary = Diary()
    form = claim().on_complete(diary.hook(Jump("claimant"), None)).build()
    forms = runner(form)
    change = await forms.start("claim", ALL)
    assert change.snapshot.evaluation is not None
    assert change.snapshot.evaluation.open_step == "claimant"
    assert change.snapshot.evaluation.revisit
    assert 'back at step 1/2 "Claimant"' in await forms.line()
    await forms.fill({"full_name": "Ada Lovelace"})
    assert await forms.line() == ""


async def test_a_jump_to_nowhere_is_left_out() -> None:
    forms = runner(claim().on_fill("mode", Diary().hook(Jump("nowhere"))).build())
    change = await forms.start("claim", {"mode": "car"})
    assert change.snapshot.instance.jump is None


async def test_fail_is_told_while_the_answer_stands() -> None:
    diary = Diary()
    forms = runner(claim().on_fill("email", diary.hook(Fail("the address bounced"))).build())
    await forms.start("claim", {"email": "a@b"})
    assert await run_states(forms) == {"fill.email:1": "failed"}
    assert (await forms.status()).instance.ledger[0].note == "the address bounced"


@pytest.mark.parametrize("outcome", [3, "text", [3], {"patch": {}}])
async def test_what_is_no_effect_fails_the_run_and_nothing_else(outcome: object) -> None:
    async def hook(context: HookContext) -> Effect | None:
        return outcome  # type: ignore[return-value]

    forms = runner(claim().on_fill("mode", hook).build())
    await forms.start("claim", {"mode": "car"})
    assert await run_states(forms) == {"fill.mode:1": "failed"}


async def test_a_raising_hook_keeps_the_answer_and_is_not_tried_again() -> None:
    diary = Diary()
    forms = runner(claim().on_fill("mode", diary.hook(RuntimeError("secret"))).build())
    await forms.start("claim", {"mode": "car"})
    await forms.fill({"total": 1.0})
    assert await values(forms) == {"mode": "car", "total": 1.0}
    assert diary.hooks == ["fill.mode:1"]
    note = (await forms.status()).instance.ledger[0].note
    assert note is not None and "secret" not in note


async def test_a_hook_that_hangs_fails_at_its_deadline() -> None:
    async def hang(context: HookContext) -> None:
        await asyncio.Event().wait()

    forms = runner(claim().on_fill("mode", hang).build(), hook_timeout_s=3.0)
    began = asyncio.get_running_loop().time()
    await forms.start("claim", {"mode": "car"})
    assert asyncio.get_running_loop().time() - began == pytest.approx(3.0)
    assert await run_states(forms) == {"fill.mode:1": "failed"}


async def test_a_hook_that_cancels_itself_fails_alone() -> None:
    async def cancelled(context: HookContext) -> None:
        raise asyncio.CancelledError

    forms = runner(claim().on_fill("mode", cancelled).build())
    await forms.start("claim", {"mode": "car"})
    assert await run_states(forms) == {"fill.mode:1": "failed"}


async def test_a_plain_function_runs_beside_the_loop() -> None:
    threads: list[threading.Thread] = []

    def hook(context: HookContext) -> Effect:
        threads.append(threading.current_thread())
        return Patch({"total": 1.0})

    forms = runner(claim().on_fill("mode", hook).build())
    await forms.start("claim", {"mode": "car"})
    assert threads[0] is not threading.main_thread()
    assert await values(forms) == {"mode": "car", "total": 1.0}
