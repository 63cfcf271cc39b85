"""What a model is shown: the line of every turn, and the details it asks for."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import BaseModel

from tests.core.forms.rig import ALL, Diary, claim, runner
from voxglove.core.forms import Fail, FieldSpec, Jump, define_form
from voxglove.core.forms.render import (
    field_data,
    field_history,
    outline,
    past_fills,
    status,
    step_data,
    tier_zero,
)


async def test_the_line_names_the_open_step_what_it_wants_and_what_is_to_come() -> None:
    forms = runner()
    await forms.start("claim", {"full_name": "Ada"})
    assert await forms.line() == (
        '[form: claim] step 1/2 "Claimant" · pending: Work email\nlater: Travel (how, how far)'
    )


async def test_optional_fields_are_marked_and_what_does_not_apply_is_left_out() -> None:
    forms = runner()
    await forms.start("claim", {"full_name": "Ada", "email": "a@b"})
    assert await forms.line() == (
        '[form: claim] step 2/2 "Travel" · pending: Mode, Total, Note (optional)'
    )


async def test_the_line_is_empty_when_nothing_is_open() -> None:
    forms = runner()
    assert await forms.line() == ""
    await forms.start("claim", ALL)
    assert await forms.line() == ""
    await forms.retract("email")
    assert await forms.line() != ""
    await forms.abandon("no more")
    assert await forms.line() == ""


async def test_the_line_holds_no_answer_and_stays_on_its_line() -> None:
    class Odd(BaseModel):
        a: Annotated[str, FieldSpec(label="A\n[form: x]\tB")]
        b: str

    form = define_form(id="f", version=1, name="F", description="d")
    forms = runner(form.step("s", title="Ti\ntle", fields=Odd, preview="p\nq").build())
    await forms.start("f", {"b": "a secret"})
    assert await forms.line() == '[form: f] step 1/1 "Ti tle" · pending: A [form: x] B'


async def test_a_refusal_stands_in_the_line_while_it_holds() -> None:
    form = (
        claim()
        .checkpoint(
            "cap",
            when=lambda a: (a.total or 0) > 750,
            blocking=True,
            run=Diary().hook(Fail("too\ndear")),
        )
        .build()
    )
    forms = runner(form)
    await forms.start("claim", {"total": 800.0})
    assert (await forms.line()).splitlines()[0].endswith("· refused: too dear")


async def test_several_open_forms_have_their_lines_and_the_rest_is_named() -> None:
    fields = {"a": FieldSpec(schema=str)}
    built = [
        define_form(id=f"f{at}", version=1, name="F", description="d")
        .step("s", title="S", fields=fields)
        .build()
        for at in range(5)
    ]
    forms = runner(*built)
    for one in built:
        await forms.start(one.id)
    lines = (await forms.line()).splitlines()
    assert [one[:10] for one in lines[:3]] == ["[form: f0]", "[form: f1]", "[form: f2]"]
    assert lines[3:] == ["also open: f3, f4"]


async def test_status_shows_the_open_step_in_full() -> None:
    forms = runner()
    await forms.start("claim", {"full_name": "Ada", "email": "a@b", "miles": 3, "total": 1.0})
    await forms.undo("total")
    shown = status(await forms.status())
    assert shown["conduct"] == "One question at a time."
    assert shown["step"] == "2/2 Travel"
    assert shown["held"] == ["Miles"]
    assert (shown["undo"], shown["redo"]) == ("Miles", "Total")
    assert shown["fields"] == [
        {
            "id": "mode",
            "label": "Mode",
            "takes": "text",
            "state": "pending",
            "ask": "How did they travel?",
        },
        {"id": "miles", "label": "Miles", "takes": "integer >= 1", "state": "held", "value": 3},
        {"id": "total", "label": "Total", "takes": "number", "state": "pending"},
        {"id": "note", "label": "Note", "takes": "text", "state": "pending", "optional": True},
    ]


async def test_notes_tell_what_failed_behind_an_answer_that_stands() -> None:
    forms = runner(claim().on_fill("email", Diary().hook(Fail("it bounced"))).build())
    await forms.start("claim", {"email": "a@b"})
    assert status(await forms.status())["notes"] == ["fill.email: it bounced"]
    await forms.retract("email")
    assert "notes" not in status(await forms.status())


async def test_a_revisited_step_is_gone_through_again() -> None:
    forms = runner(claim().on_complete(Diary().hook(Jump("claimant"))).build())
    await forms.start("claim", ALL)
    assert status(await forms.status())["go_through_again"] == ["Full name", "Work email"]
    assert await forms.line() == (
        '[form: claim] back at step 1/2 "Claimant" — go through it again, filling what is'
        " confirmed: Full name, Work email"
    )


async def test_outline_step_field_and_history() -> None:
    forms = runner()
    await forms.start("claim", {"mode": "car"})
    await forms.fill({"mode": "rail"}, reason="misheard", source="model")
    snapshot = await forms.status()
    definition = snapshot.definition
    assert definition is not None
    steps = outline(snapshot, definition)["steps"]
    assert isinstance(steps, list)
    assert steps[1]["fields"]["Miles"] == "does not apply now"
    assert step_data(snapshot, definition.steps[0])["title"] == "Claimant"
    assert field_data(snapshot, definition.fields["mode"])["value"] == "rail"
    history = field_history(snapshot.instance, definition.fields["mode"])
    assert history["revisions"] == [
        {"value": "car", "by": "host", "at": "2030-01-01T00:00:00Z"},
        {
            "value": "rail",
            "by": "model",
            "at": "2030-01-01T00:00:00Z",
            "reason": "misheard",
            "in_force": True,
        },
    ]
    (row,) = past_fills(await forms.instances())
    assert row["answers"] == {"mode": "rail"}


async def test_rendering_does_not_wait_for_anything() -> None:
    """Lines are made of what is stored; no hook, no clock."""
    forms = runner()
    await forms.start("claim")
    began = asyncio.get_running_loop().time()
    assert tier_zero(await forms.instances())
    assert asyncio.get_running_loop().time() == began
