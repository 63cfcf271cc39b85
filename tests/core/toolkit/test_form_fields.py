"""What each kind of field takes, and what a model may not ask for."""

from __future__ import annotations

import time
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from voxglove.core.toolkit import FormField, form_answers
from voxglove.core.toolkit.form_fields import check_field

TAKEN: list[tuple[dict[str, Any], object, object]] = [
    ({"type": "text"}, "  a b ", "a b"),
    ({"type": "text"}, "   ", None),
    ({"type": "text"}, None, None),
    ({"type": "text", "min": 2, "max": 3}, "abc", "abc"),
    ({"type": "text", "pattern": "[A-Z]{2}[0-9]+|none"}, "AB12", "AB12"),
    ({"type": "text", "pattern": "[A-Z]{2}[0-9]+|none"}, "none", "none"),
    ({"type": "textarea"}, "a\nb", "a\nb"),
    ({"type": "number"}, 3, 3),
    ({"type": "number"}, 2.5, 2.5),
    ({"type": "number"}, "7", 7),
    ({"type": "number"}, "7.5", 7.5),
    ({"type": "number", "min": 0, "max": "0.5"}, 0.5, 0.5),
    ({"type": "email"}, "anna@example.org", "anna@example.org"),
    ({"type": "tel"}, "+44 (20) 7946-0000", "+44 (20) 7946-0000"),
    ({"type": "date"}, "2030-02-28", date(2030, 2, 28)),
    ({"type": "date", "min": "2030-01-01", "max": "2030-01-01"}, "2030-01-01", date(2030, 1, 1)),
    ({"type": "select", "options": ["a", "b"]}, "b", "b"),
    ({"type": "select", "options": ["a", "b"]}, "", None),
    ({"type": "checkbox"}, None, False),
    ({"type": "checkbox", "required": True}, True, True),
]


@pytest.mark.parametrize(("options", "raw", "parsed"), TAKEN)
def test_an_answer_that_fits_is_parsed(
    options: dict[str, Any], raw: object, parsed: object
) -> None:
    found = check_field(FormField(name="f", label="F", **options), raw)
    assert found == parsed and type(found) is type(parsed)


REFUSED: list[tuple[dict[str, Any], object, str]] = [
    ({"type": "text", "required": True}, " ", "Fill this in"),
    ({"type": "text"}, 3, "some words"),
    ({"type": "text", "min": 2}, "a", "at least 2"),
    ({"type": "text", "max": 2}, "abc", "at most 2"),
    ({"type": "textarea"}, "x" * 4_001, "at most 4000"),
    ({"type": "text", "pattern": "[0-9]+"}, "12a", "form that is asked for"),
    ({"type": "text", "pattern": "a|b"}, "ab", "form that is asked for"),
    ({"type": "text", "pattern": "[0-9]+", "pattern_hint": "Digits only."}, "a", "Digits only."),
    ({"type": "number"}, True, "a number"),
    ({"type": "number"}, "three", "a number"),
    ({"type": "number"}, "nan", "a number"),
    ({"type": "number"}, float("inf"), "a number"),
    ({"type": "number"}, [3], "a number"),
    ({"type": "number", "min": 1}, 0, "1 or more"),
    ({"type": "number", "max": 8}, 9, "8 or less"),
    ({"type": "email"}, "anna@example", "name@example.org"),
    ({"type": "email"}, "an na@example.org", "name@example.org"),
    ({"type": "email"}, "a" * 300 + "@example.org", "name@example.org"),
    ({"type": "tel"}, "call me", "telephone"),
    ({"type": "tel"}, "12", "telephone"),
    ({"type": "date"}, "31.01.2030", "year-month-day"),
    ({"type": "date"}, 20300131, "year-month-day"),
    ({"type": "date"}, "2030-02-30", "year-month-day"),
    ({"type": "date", "min": "2030-01-02"}, "2030-01-01", "2030-01-02 or later"),
    ({"type": "date", "max": "2030-01-02"}, "2030-01-03", "2030-01-02 or earlier"),
    ({"type": "select", "options": ["a"]}, "b", "one of the options"),
    ({"type": "checkbox"}, "on", "Tick"),
    ({"type": "checkbox", "required": True}, False, "Tick this box"),
]


@pytest.mark.parametrize(("options", "raw", "words"), REFUSED)
def test_an_answer_that_does_not_fit_is_refused_in_words_for_people(
    options: dict[str, Any], raw: object, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        check_field(FormField(name="f", label="F", **options), raw)


NONSENSE: list[tuple[dict[str, Any], str]] = [
    ({"type": "select"}, "options"),
    ({"type": "text", "options": ["a"]}, "options"),
    ({"type": "number", "pattern": "x"}, "pattern"),
    ({"type": "text", "pattern": "("}, "regular expression"),
    ({"type": "text", "pattern": "(?=a)a"}, "look-around"),
    ({"type": "text", "pattern": "((a{1000}){1000}){1000}"}, "regular expression"),
    ({"type": "number", "min": "low"}, "min: must be a number"),
    ({"type": "date", "max": 3}, "max: must be an ISO date"),
    ({"type": "text", "min": 1.5}, "min: must be a number of characters"),
    ({"type": "text", "min": -1}, "min: must be a number of characters"),
    ({"type": "checkbox", "max": 1}, "max: a checkbox has none"),
    ({"type": "number", "min": 2, "max": 1}, "min: is above max"),
    ({"type": "number", "default": "x"}, "default"),
    ({"type": "date", "default": "soon"}, "default"),
    ({"name": "1st"}, "name"),
    ({"type": "colour"}, "type"),
]


@pytest.mark.parametrize(("options", "words"), NONSENSE)
def test_a_field_that_cannot_be_answered_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        FormField.model_validate({"name": "f", "label": "F", **options})


def test_a_models_pattern_cannot_hold_up_the_loop() -> None:
    field = FormField(name="f", label="F", pattern="(a+)+b")
    began = time.process_time()
    with pytest.raises(ValueError, match="form"):
        check_field(field, "a" * 3_000)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("name", ["copy", "json", "schema", "model_config", "validate", "a-b"])
def test_any_name_of_a_field_can_be_answered(name: str) -> None:
    answers = form_answers([FormField(name=name, label="F", required=True)])
    assert answers.model_validate({name: "x"}).by_name() == {name: "x"}
    with pytest.raises(ValidationError) as refused:
        answers.model_validate({})
    assert [found["loc"] for found in refused.value.errors()] == [(name,)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([case[0] for case in TAKEN]), JSON)
def test_whatever_a_page_sends_is_parsed_or_refused(options: dict[str, Any], raw: object) -> None:
    field = FormField(name="f", label="F", **options)
    try:
        parsed = check_field(field, raw)
    except ValueError as error:
        assert str(error)
    else:
        assert parsed is None or isinstance(parsed, str | bool | int | float | date)
