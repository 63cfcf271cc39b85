"""A form that was begun under another version of its definition."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.core.forms.rig import Diary, claim, runner, state, values
from voxglove.core.forms import (
    FieldSpec,
    FormDefinition,
    FormRefused,
    MemoryFormAdapter,
    define_form,
)


async def begun(**answers: object) -> MemoryFormAdapter:
    adapter = MemoryFormAdapter()
    await runner(adapter=adapter).start("claim", {"mode": "car", **answers})
    return adapter


def renamed() -> FormDefinition:
    """Version 2 asks for `vehicle` instead of everything else."""

    def migrate(answers: Mapping[str, object], version: int) -> Mapping[str, object]:
        assert version == 1
        return {"vehicle": answers["mode"]}

    return (
        define_form(id="claim", version=2, name="Claim", description="d")
        .step(
            "s", title="S", fields={"vehicle": FieldSpec(schema=str), "mode": FieldSpec(schema=str)}
        )
        .migrate(migrate)
        .build()
    )


async def test_without_a_migration_it_is_stale_and_refuses_writes() -> None:
    adapter = await begun()
    forms = runner(claim(version=2).build(), adapter=adapter)
    snapshot = await forms.status()
    assert snapshot.instance.status == "stale"
    assert snapshot.reason == "the form has changed from version 1 to 2"
    assert await forms.line() == ""
    with pytest.raises(FormRefused) as caught:
        await forms.fill({"mode": "rail"})
    assert caught.value.code == "form_stale"


async def test_a_stale_one_can_be_abandoned_and_begun_anew() -> None:
    adapter = await begun()
    forms = runner(claim(version=2).build(), adapter=adapter)
    await forms.abandon("outdated")
    assert await state(forms) == "abandoned"
    await forms.start("claim", {"mode": "rail"})
    assert await values(forms) == {"mode": "rail"}


async def test_looking_at_a_stale_one_writes_nothing_and_its_version_revives_it() -> None:
    adapter = await begun()
    before = await adapter.list("call_1")
    await runner(claim(version=2).build(), adapter=adapter).status()
    await runner(claim(version=2).build(), adapter=adapter).resume()
    assert await adapter.list("call_1") == before
    assert await values(runner(adapter=adapter)) == {"mode": "car"}


async def test_a_newer_one_is_stale_for_an_older_process() -> None:
    adapter = MemoryFormAdapter()
    await runner(claim(version=3).build(), adapter=adapter).start("claim")
    snapshot = await runner(claim(version=2).build(), adapter=adapter).status()
    assert snapshot.reason == "it was begun with version 3, this is version 2"


async def test_a_form_that_is_gone_is_stale() -> None:
    adapter = await begun()
    other = define_form(id="other", version=1, name="O", description="d")
    forms = runner(
        other.step("s", title="S", fields={"a": FieldSpec(schema=str)}).build(), adapter=adapter
    )
    (snapshot,) = await forms.instances()
    assert snapshot.instance.status == "stale" and "not registered" in snapshot.reason


async def test_a_migration_carries_answers_over_and_is_stored_with_the_next_change() -> None:
    adapter = await begun()
    forms = runner(renamed(), adapter=adapter)
    assert await values(forms) == {"vehicle": "car"}
    assert (await adapter.list("call_1"))[0].form_version == 1
    await forms.fill({"mode": "fast"})
    (stored,) = await adapter.list("call_1")
    assert stored.form_version == 2
    assert stored.logs["vehicle"].revisions[0].source == "migrate"
    assert [one.retracted for one in stored.logs["mode"].revisions] == [False, True, False]


async def test_hooks_of_migrated_answers_run_with_the_next_change() -> None:
    adapter = await begun()
    diary = Diary()
    form = (
        claim(version=2)
        .migrate(lambda answers, version: {**answers, "total": 1.0})
        .on_fill("mode", diary.hook())
        .on_fill("total", diary.hook())
        .build()
    )
    await runner(form, adapter=adapter).fill({"note": "n"})
    assert diary.hooks == ["fill.total:1"]


@pytest.mark.parametrize("answers", [{"unknown": 1}, {"total": "much"}])
async def test_a_migration_that_does_not_fit_makes_it_stale(answers: dict[str, object]) -> None:
    adapter = await begun()
    form = claim(version=2).migrate(lambda old, version: answers).build()
    snapshot = await runner(form, adapter=adapter).status()
    assert snapshot.instance.status == "stale"
    assert next(iter(answers)) in snapshot.reason


async def test_a_migration_that_raises_makes_it_stale() -> None:
    adapter = await begun()
    form = claim(version=2).migrate(lambda old, version: {"mode": old["nothing"]}).build()
    assert (await runner(form, adapter=adapter).status()).instance.status == "stale"


async def test_answers_that_do_not_fit_any_more_are_asked_again() -> None:
    """The definition became stricter without a new version."""
    adapter = MemoryFormAdapter()
    loose = define_form(id="f", version=1, name="F", description="d").step(
        "s", title="S", fields={"a": FieldSpec(schema=str)}
    )
    strict = define_form(id="f", version=1, name="F", description="d").step(
        "s", title="S", fields={"a": FieldSpec(schema=int)}
    )
    await runner(loose.build(), adapter=adapter).start("f", {"a": "x"})
    forms = runner(strict.build(), adapter=adapter)
    evaluation = (await forms.status()).evaluation
    assert evaluation is not None
    assert set(evaluation.invalid) == {"a"} and evaluation.missing == ("a",)
    await forms.fill({"a": 3})
    assert await state(forms) == "complete"
