"""What applies: steps and fields that depend on answers, on each other, on themselves."""

from __future__ import annotations

import logging

import pytest

from tests.core.forms.rig import held, runner, state, values
from voxglove.core import UsageError
from voxglove.core.forms import Answers, FieldSpec, FormRunner, Progress, define_form


def chain(**when: object) -> FormRunner:
    """Fields in this order, each with its predicate or None."""
    fields = {
        name: FieldSpec(schema=str, when=predicate if callable(predicate) else None)
        for name, predicate in when.items()
    }
    form = define_form(id="f", version=1, name="F", description="d")
    return runner(form.step("s", title="S", fields=fields).build())


@pytest.mark.parametrize("order", ["abc", "acb", "cba"])
async def test_fields_that_exclude_each_other_settle_on_what_holds(order: str) -> None:
    """`c` is ruled out by `b` only as long as `b` itself applies."""
    when = {"a": None, "b": lambda v: v.a == "yes", "c": lambda v: v.b is None}
    forms = chain(**{name: when[name] for name in order})
    await forms.start("f", {"a": "no", "b": "x", "c": "y"})
    assert await values(forms) == {"a": "no", "c": "y"}
    assert await held(forms) == ("b",)
    assert await state(forms) == "complete"


async def test_a_field_may_depend_on_a_later_one() -> None:
    forms = chain(a=lambda v: v.b == "go", b=None)
    await forms.start("f", {"a": "x", "b": "stop"})
    assert await held(forms) == ("a",)
    await forms.fill({"b": "go"})
    assert await values(forms) == {"a": "x", "b": "go"}


async def test_a_chain_falls_as_a_whole_and_comes_back() -> None:
    forms = chain(a=None, b=lambda v: v.a == "1", c=lambda v: v.b == "2", d=lambda v: v.c == "3")
    await forms.start("f", {"a": "1", "b": "2", "c": "3", "d": "4"})
    await forms.fill({"a": "0"})
    assert await held(forms) == ("b", "c", "d")
    await forms.fill({"a": "1"})
    assert await held(forms) == ()


async def test_a_field_that_contradicts_itself_is_held_and_not_needed() -> None:
    forms = chain(a=lambda v: v.a is None, b=None)
    await forms.start("f", {"a": "x", "b": "y"})
    assert await held(forms) == ("a",)
    assert await state(forms) == "complete"


async def test_two_that_want_each_other_gone_end_in_one_answer() -> None:
    forms = chain(a=lambda v: v.b is None, b=lambda v: v.a is None)
    await forms.start("f", {"a": "x", "b": "y"})
    assert len(await values(forms)) == 1


def two_steps() -> FormRunner:
    form = (
        define_form(id="f", version=1, name="F", description="d")
        .step("one", title="One", fields={"a": FieldSpec(schema=str)})
        .step(
            "two",
            title="Two",
            fields={"b": FieldSpec(schema=str)},
            when=lambda answers, progress: progress.step_complete("one"),
        )
    )
    return runner(form.build())


async def test_a_step_that_does_not_apply_holds_its_answers_and_is_not_complete() -> None:
    forms = two_steps()
    change = await forms.start("f", {"b": "early"})
    assert await held(forms) == ("b",)
    evaluation = change.snapshot.evaluation
    assert evaluation is not None
    assert not evaluation.progress.step_complete("two")
    assert evaluation.open_step == "one"
    await forms.fill({"a": "now"})
    assert await values(forms) == {"a": "now", "b": "early"}
    assert await state(forms) == "complete"


async def test_the_open_step_is_the_first_that_applies_and_wants_something() -> None:
    forms = two_steps()
    await forms.start("f", {"a": "x"})
    evaluation = (await forms.status()).evaluation
    assert evaluation is not None and evaluation.open_step == "two"


async def test_a_form_with_nothing_required_is_complete_at_once() -> None:
    form = define_form(id="f", version=1, name="F", description="d")
    forms = runner(
        form.step("s", title="S", fields={"a": FieldSpec(schema=str, default="")}).build()
    )
    await forms.start("f")
    assert await state(forms) == "complete"


async def test_a_broken_predicate_counts_as_false_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    forms = chain(a=lambda v: v.b > 3, b=None)
    with caplog.at_level(logging.WARNING, logger="voxglove.core.forms"):
        await forms.start("f", {"b": "x"})
        await forms.fill({"a": "y"})
    assert await held(forms) == ("a",)
    assert await state(forms) == "complete"
    told = [one for one in caplog.records if one.message == "form predicate failed"]
    assert len(told) == 1


def test_answers_are_a_mapping_of_what_counts_and_show_no_values() -> None:
    answers = Answers({"a": 1}, frozenset({"a", "b"}))
    assert answers.a == 1 and answers.b is None
    assert dict(answers) == {"a": 1} and "b" not in answers
    assert repr(answers) == "Answers(a)"
    with pytest.raises(AttributeError, match="no field 'c'"):
        _ = answers.c


def test_progress_refuses_names_it_does_not_know() -> None:
    progress = Progress(steps={"one": True}, checkpoints={"cap": 0})
    assert progress.step_complete("one") and not progress.checkpoint_fired("cap")
    with pytest.raises(UsageError, match="known: one"):
        progress.step_complete("two")
    with pytest.raises(UsageError, match="known: cap"):
        progress.checkpoint_fired("two")
