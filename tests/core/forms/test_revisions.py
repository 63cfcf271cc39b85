"""Set, retract, undo, redo: every answer stays, and each move can be taken back."""

from __future__ import annotations

import pytest

from tests.core.forms.rig import ALL, Diary, claim, runner, state, values
from voxglove.core.forms import FormRefused, FormRunner, Patch


async def begun(**answers: object) -> FormRunner:
    forms = runner()
    await forms.start("claim", answers)
    return forms


async def log(forms: FormRunner, field: str) -> list[object]:
    said = (await forms.status()).instance.logs[field]
    return [None if one.retracted else one.value for one in said.revisions]


async def test_a_correction_appends() -> None:
    forms = await begun(mode="car")
    await forms.fill({"mode": "rail"}, reason="misheard")
    assert await log(forms, "mode") == ["car", "rail"]
    assert (await forms.status()).instance.logs["mode"].revisions[1].reason == "misheard"


async def test_a_retraction_keeps_the_answer_in_the_log() -> None:
    forms = await begun(mode="car")
    assert (await forms.retract("Mode")).moved == "mode"
    assert await values(forms) == {}
    assert await log(forms, "mode") == ["car", None]


async def test_undo_and_redo_of_one_field() -> None:
    forms = await begun(mode="car")
    await forms.fill({"mode": "rail"})
    await forms.undo("mode")
    assert await values(forms) == {"mode": "car"}
    await forms.undo("mode")
    assert await values(forms) == {}
    await forms.redo("mode")
    await forms.redo("mode")
    assert await values(forms) == {"mode": "rail"}


async def test_a_retraction_is_undone() -> None:
    forms = await begun(mode="car")
    await forms.retract("mode")
    await forms.undo("mode")
    assert await values(forms) == {"mode": "car"}


async def test_undo_after_a_correction_of_an_undone_answer_skips_what_was_undone() -> None:
    forms = await begun(mode="car")
    await forms.fill({"mode": "rail"})
    await forms.undo("mode")
    await forms.fill({"mode": "air"})
    await forms.undo("mode")
    assert await values(forms) == {"mode": "car"}
    await forms.redo("mode")
    assert await values(forms) == {"mode": "air"}
    assert await log(forms, "mode") == ["car", "rail", "air"]


async def test_undo_without_a_field_goes_back_over_the_whole_form_and_redo_forward() -> None:
    forms = await begun()
    for answer in ({"mode": "car"}, {"total": 5.0}, {"mode": "rail"}):
        await forms.fill(answer)
    seen = []
    for _ in range(3):
        await forms.undo()
        seen.append(await values(forms))
    assert seen == [{"mode": "car", "total": 5.0}, {"mode": "car"}, {}]
    for _ in range(3):
        await forms.redo()
    assert await values(forms) == {"mode": "rail", "total": 5.0}


async def test_undo_without_a_field_skips_what_hooks_wrote() -> None:
    diary = Diary()
    form = claim().on_fill("mode", diary.hook(Patch({"total": 7.0}))).build()
    forms = runner(form)
    await forms.start("claim", {"mode": "car"})
    change = await forms.undo()
    assert change.moved == "mode"
    assert await values(forms) == {"total": 7.0}


@pytest.mark.parametrize("move", ["undo", "redo"])
async def test_nothing_to_undo_or_redo_is_a_refusal(move: str) -> None:
    forms = await begun(mode="car")
    with pytest.raises(FormRefused) as caught:
        await (forms.undo("total") if move == "undo" else forms.redo())
    assert caught.value.code == "nothing_to_change"


async def test_retracting_what_was_not_said_is_a_refusal() -> None:
    forms = await begun()
    with pytest.raises(FormRefused, match="Mode has no answer"):
        await forms.retract("mode")
    with pytest.raises(FormRefused, match="Did you mean mode"):
        await forms.retract("mod")


async def test_a_complete_form_can_be_corrected() -> None:
    forms = await begun(**ALL)
    assert await state(forms) == "complete"
    await forms.retract("email")
    assert await state(forms) == "open"
    await forms.undo()
    assert await state(forms) == "complete"
